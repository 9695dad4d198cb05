"""Patterns of places: files of this machine, and names in a bucket."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterator
from pathlib import Path

from .address import Address, Place, place
from .objects import names_in

_DOCUMENTS = {"zarr.json", ".zgroup", ".zarray"}


def list_places(pattern: str | os.PathLike[str] | Address) -> list[Place]:
    """Places that match a pattern, in the order of their names.

    Parameters
    ----------
    pattern
        Such as ``in/*.npy`` or ``s3://bucket/in/*.zarr``: ``*``, ``?`` and ``[...]`` stand within a name, ``**`` for
        any number of levels. Names that begin with a dot are matched by such patterns alone.

    Returns
    -------
    Files and folders, objects and Zarr stores; what has no pattern is returned as it is, whether it exists or not.

    Raises
    ------
    ValueError
        A pattern for a web server, which cannot list what it has.
    StoreError
        The bucket could not be listed.

    Examples
    --------
    >>> list_places("day.npy"), list_places("no such folder/*.npy")
    ([PosixPath('day.npy')], [])
    """
    where = place(pattern)
    if not glob.has_magic(where.key if isinstance(where, Address) else str(where)):
        return [where]
    if isinstance(where, Path):
        return [Path(name) for name in sorted(glob.glob(str(where), recursive=True))]
    if where.is_web:
        raise ValueError(
            f"list_places: a pattern must name files or a bucket; got {where}. Web servers cannot list what they have; "
            "name every file."
        )
    names = where.key.split("/")
    return sorted(set(_matching(Address(where.scheme, where.host, ""), names)), key=str)


def _matching(above: Address, names: list[str]) -> Iterator[Address]:
    """Addresses below one that match some names, level by level."""
    first, *rest = names
    if not glob.has_magic(first):
        # Known names need no list, but for the last, which may not be there.
        yield from _matching(above / first, rest) if rest else _listed(above, first, objects=True)
    elif first == "**":
        yield from _matching(above, rest or ["*"])
        prefixes, there = names_in(above)
        if not _DOCUMENTS & set(there):  # what lies in a Zarr store is no recording
            for name in prefixes:
                yield from () if name.startswith(".") else _matching(above / name, names)
    elif rest:
        for one in _listed(above, first, objects=False):
            yield from _matching(one, rest)
    else:
        yield from _listed(above, first, objects=True)


def _listed(above: Address, pattern: str, *, objects: bool) -> Iterator[Address]:
    """Addresses directly below one whose names match."""
    prefixes, there = names_in(above)
    for name in [*prefixes, *(there if objects else ())]:
        if fnmatch.fnmatchcase(name, pattern) and (pattern.startswith(".") or not name.startswith(".")):
            yield above / name
