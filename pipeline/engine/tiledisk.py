"""Where the tiles of ``home="disk"`` lie, and whether they fit there."""

from __future__ import annotations

import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..graph.limits import gib
from ..graph.spans import Span
from .ownership import is_partial, remove_files

_RUN = re.compile(r"[0-9a-f]{32}")
_TILE = re.compile(r"panel-\d{5,}-\d{3,}\.npy")
_HEADER_BYTES = 128


def tiles_bytes(spans: list[Span], itemsize: int) -> int:
    """Bytes of the files of all tiles: those of the upper triangle and of the diagonal.

    Examples
    --------
    >>> tiles_bytes([(0, 2), (2, 3)], 8) - 3 * 128  # 2 x 2, 2 x 1 and 1 x 1 numbers
    56
    """
    lengths = [stop - start for start, stop in spans]
    numbers = (sum(lengths) ** 2 + sum(length**2 for length in lengths)) // 2
    return numbers * itemsize + _HEADER_BYTES * (len(spans) * (len(spans) + 1) // 2)


def require_space(needed: int, checkpoint: Path | None) -> None:
    """Refuse tiles that do not fit on their disk, before anything is computed.

    Parameters
    ----------
    needed
        Bytes of all tiles.
    checkpoint
        Folder of the passes, beside which tiles lie; None for the temporary folder.

    Raises
    ------
    ValueError
        With the bytes on both sides.
    """
    folder = Path(tempfile.gettempdir()) if checkpoint is None else checkpoint
    there = next((place for place in (folder, *folder.absolute().parents) if place.is_dir()), folder)
    try:
        free = shutil.disk_usage(there).free
    except OSError:  # not every file system tells
        return
    if needed > free:
        other = "give checkpoint= on a larger disk" if checkpoint is None else "choose a place on a larger disk"
        raise ValueError(
            f"embed: tiles with home='disk' must fit on their disk; {gib(needed)} are needed, {gib(free)} are free in "
            f"{folder}. Make room there, {other}, or take home='recomputed'."
        )


@contextmanager
def tile_folder(checkpoint: Path | None) -> Iterator[Path]:
    """A folder for the tiles of one solve, gone at the end: beside the passes, or a temporary one.

    Where it cannot be made no tile can be kept, which the product with them reports.

    Parameters
    ----------
    checkpoint
        Folder of the passes, which is ours.

    Yields
    ------
    The folder. It has a name of its own: tiles of another solve are never taken for those of this one.

    Raises
    ------
    ValueError
        A symbolic link is in its place.
    """
    if checkpoint is None:
        with tempfile.TemporaryDirectory(prefix="manifold-observer-tiles-", ignore_cleanup_errors=True) as name:
            yield Path(name)
        return
    if (checkpoint / "tiles").is_symlink():
        raise ValueError(
            f"embed: {checkpoint / 'tiles'} must be a folder itself; got a symbolic link. Remove the link."
        )
    folder = checkpoint / "tiles" / uuid.uuid4().hex
    with suppress(OSError):
        folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        _remove(folder)


def clear_tiles(checkpoint: Path) -> None:
    """Remove the tiles that a killed run left beside its passes, and nothing else."""
    if (checkpoint / "tiles").is_symlink():
        return
    for folder in (checkpoint / "tiles").glob("*"):
        if _RUN.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove one solve's tiles, and the folders that are empty then."""
    remove_files(folder, lambda name: _is_tile(name) or is_partial(name, _is_tile))
    for empty in (folder, folder.parent):
        with suppress(OSError):
            empty.rmdir()


def _is_tile(name: str) -> bool:
    """Whether a name is that of a tile."""
    return _TILE.fullmatch(name) is not None
