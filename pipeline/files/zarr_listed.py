"""A look at a Zarr store at an address before it is opened, as :mod:`.zarr_scan` looks at a folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ..stores.address import Address, Place
from ..stores.objects import look_all, read_all, sizes
from .ordinary import refusal
from .stored import Stored
from .zarr_scan import DOCUMENTS, MOST_BYTES, MOST_FILES, check_length, is_chunk, parsed, scan_zarr, scanned, stored_of

Document = dict[str, Any]


def scan_place(root: Place) -> dict[str, Stored]:
    """Look at all metadata of a Zarr store, wherever it lies, as :func:`.zarr_scan.scan_zarr` does.

    Parameters
    ----------
    root
        A folder; or an address: that of a web server, which cannot list what it has, must have consolidated metadata.

    Raises
    ------
    ValueError
        It would run code, or is beyond all measure.
    StoreError
        The store could not be read.
    """
    if isinstance(root, Path):
        return scan_zarr(root)
    there = None if root.is_web else _listed(root)
    documents = _of_web(root) if there is None else _documents(root, there)
    found: dict[str, Stored] = {}
    for name, document in documents.items():
        folder, _, kind = name.rpartition("/")
        array = scanned(root, folder or ".", kind, document)
        if array and "/" not in folder:
            found[folder or "recording"] = _stored(root, folder, array, there)
    return found


def check_harmless(result: Place) -> None:
    """Refuse a stored result, made by somebody else, that would run code.

    Parameters
    ----------
    result
        A Zarr store.

    Raises
    ------
    ValueError
        As :func:`scan_place` says.
    """
    try:
        scan_place(result)
    except ValueError as error:
        raise ValueError(str(error).replace("open_recording", "load", 1)) from None


def _stored(root: Address, folder: str, array: Document, there: dict[str, int] | None) -> Stored:
    """What an array declares and stores; all of it, where that cannot be told."""

    def count(counts: list[int]) -> tuple[int, int]:
        if there is None:
            return math.prod(counts), 2**62
        chunks = [size for key, size in _below(there, folder) if is_chunk(key, counts)]
        return len(chunks), sum(chunks)

    return stored_of(root, folder or root.name, array, count)


def groups_at(root: Address) -> list[str]:
    """Groups of a store, by their names below it."""
    if root.is_web:
        return []
    documents = _documents(root, {n: s for n, s in _listed(root).items() if n.endswith(("/zarr.json", "/.zgroup"))})
    return sorted(name.rpartition("/")[0] for name, found in documents.items() if found.get("node_type") != "array")


def _listed(root: Address) -> dict[str, int]:
    """All objects of a store."""
    there = sizes(root)
    if len(there) > MOST_FILES:
        raise refusal(root, f"have at most {MOST_FILES} chunks", f"{len(there)}", "Store it in larger chunks")
    return there


def _documents(root: Address, there: dict[str, int]) -> dict[str, Document]:
    """Metadata documents of a list of objects."""
    names = [name for name in there if name.rpartition("/")[2] in DOCUMENTS]
    wanted = [name for name in names if not (name.endswith(".zmetadata") and there[name] > MOST_BYTES)]
    for name in wanted:
        check_length(root, root / name, there[name])
    return _parsed(root, wanted)


def _of_web(root: Address) -> dict[str, Document]:
    """Metadata documents that lie in one, by the names that they would have."""
    for name, one in zip(DOCUMENTS, look_all(root / name for name in DOCUMENTS), strict=True):
        check_length(root, root / name, 0 if one is None else one.size)
    top = _parsed(root, list(DOCUMENTS))
    three = (top.get("zarr.json", {}).get("consolidated_metadata") or {}).get("metadata") or {}
    two = top.get(".zmetadata", {}).get("metadata") or {}
    if not three and not two and top.get("zarr.json", {}).get("node_type") != "array" and ".zarray" not in top:
        must = "have consolidated metadata to be read from a web server"
        raise refusal(root, must, "none", "Consolidate them with zarr.consolidate_metadata, or read from a bucket")
    found = {**top, **two, **{f"{name}/zarr.json": entry for name, entry in three.items()}}
    return {str(name): entry for name, entry in found.items() if isinstance(entry, dict)}


def _parsed(root: Address, names: list[str]) -> dict[str, Document]:
    """Those of some documents that are there."""
    found = zip(names, read_all(root / name for name in names), strict=True)
    return {name: parsed(root, root / name, content) for name, content in found if content is not None}


def _below(there: dict[str, int], folder: str) -> list[tuple[str, int]]:
    """Objects of one array, by their names below it."""
    start = len(folder) + 1 if folder else 0
    inside = f"{folder}/" if folder else ""
    own = ((name[start:], size) for name, size in there.items() if name.startswith(inside))
    return [(key, size) for key, size in own if key not in DOCUMENTS]
