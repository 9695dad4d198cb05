"""Which recordings a corpus has: patterns to paths, and paths to names of results.

The only place that knows how inputs are found, and where the result of one goes.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..stores.address import Address, Place, is_address, place
from ..stores.listing import list_places
from ..stores.objects import exists
from .config import CorpusConfig


class Item(NamedTuple):
    """A recording of a corpus, and the name of its result without .zarr."""

    name: str
    path: str


def items_of(config: CorpusConfig) -> list[Item]:
    """Recordings that the patterns of a corpus match now, by name.

    Raises
    ------
    ValueError
        Two of them would have the same result.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = Path(folder, "night1.npy").touch()
    >>> [item.name for item in items_of(CorpusConfig(["*.npy"], folder=folder))]
    ['night1']
    """
    items: dict[str, Item] = {}
    for path in sorted(_found(config.inputs, config.root)):
        item = Item(_name(place(path), config.names), path)
        other = items.setdefault(item.name, item)
        if other.path != path:
            raise ValueError(
                f"corpus: inputs must have different names; got {other.path} and {path}, which would both be written "
                f"to {place_of(config, item.name)}. {_remedy(config.names)}"
            )
    _check_names(config, items)
    return sorted(items.values())


def place_of(config: CorpusConfig, name: str) -> Place:
    """Where the result of a recording goes."""
    return config.root / f"{name}.zarr"


def unmatched(config: CorpusConfig) -> list[str]:
    """Patterns that match nothing now."""
    return [pattern for pattern in config.inputs if not _found([pattern], config.root)]


def _found(patterns: Iterable[str], root: Place) -> set[str]:
    """Absolute paths and addresses that patterns match, but for what the corpus itself has written."""
    found: set[str] = set()
    for pattern in patterns:
        found.update(_matched(pattern))
    here = os.path.abspath(root) if isinstance(root, Path) else str(root)
    return {path for path in found if not _written_here(path, here)}


def _matched(pattern: str) -> list[str]:
    """What there is of a pattern now."""
    where = place(pattern)
    if isinstance(where, Address):
        return [str(one) for one in list_places(where) if one != where or exists(where)]
    # A name that exists is meant as it stands, whatever brackets it has.
    matched = [pattern] if os.path.lexists(pattern) else glob.glob(pattern, recursive=True)
    return [os.path.abspath(path) for path in matched]


def _written_here(path: str, root: str) -> bool:
    """Whether a path is in the state of a corpus, or in a Zarr folder that lies directly in its output."""
    if is_address(path) or is_address(root):
        if not path.startswith(f"{root.rstrip('/')}/"):
            return False
        first, *rest = path.removeprefix(f"{root.rstrip('/')}/").split("/")
    elif os.path.commonpath([path, root]) != root:
        return False
    else:
        first, *rest = os.path.relpath(path, root).split(os.sep)
    return first == ".corpus" or first.endswith(".manifold-observer") or (first.endswith(".zarr") and bool(rest))


def _name(path: Place, names: str) -> str:
    """Name of the result of a recording."""
    if names == "name":
        return path.name
    return path.stem if names == "stem" else f"{path.parent.name}-{path.stem}"


def _remedy(names: str) -> str:
    """What tells two recordings of the same name apart."""
    ways = {"stem": 'Set names = "name" or names = "folder" in [corpus]', "name": 'Set names = "folder" in [corpus]'}
    return f"{ways.get(names, 'Rename one of them')}, or give each of them a corpus of its own."


def _check_names(config: CorpusConfig, items: dict[str, Item]) -> None:
    """Refuse a recording whose result would take the place of the manifest."""
    taken = items.get(config.manifest.name.removesuffix(".zarr"))
    if taken is not None:
        raise ValueError(
            f"corpus: a result must not be called {config.manifest.name}, which is the manifest; got {taken.path}. "
            'Rename the recording, or set names = "name" in [corpus].'
        )


def gone(items: Sequence[Item], names: Iterable[str]) -> list[str]:
    """Names that no recording has any more."""
    there = {item.name for item in items}
    return sorted(set(names) - there)
