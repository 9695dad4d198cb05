"""Tiles of one panel in files, made once and mapped into memory from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks import atomic
from manifold_observer.tasks.arrays import Array
from manifold_observer.tasks.engine import kernel
from manifold_observer.tasks.engine.panel import Corner, Pair
from manifold_observer.tasks.engine.protocols import Block


class _Writer(NamedTuple):
    """All of an open file that np.save needs."""

    write: Callable[[bytes], int]


def read_or_make(
    path: str,
    blocks: Sequence[Block],
    places: Sequence[Pair],
    corners: Sequence[Corner],
    scale: kernel.Scale,
    failed: Callable[[OSError], object] | None = None,
) -> list[Array]:
    """Tiles of one panel of the kernel, mapped from ``.npy`` files that are made where they are missing or damaged.

    A file appears under its name complete, so that a killed task leaves nothing that could be mistaken.

    Parameters
    ----------
    path
        Start of the files' names, one file a tile.
    blocks
        Blocks of frames that the panel pairs.
    places
        For each tile the numbers of its row block and its column block.
    corners
        First row and first column of each tile.
    scale
        Scale of the kernel.
    failed
        Called with the error where a tile could not be written, which then stays in memory. Without it the error is
        raised.

    Returns
    -------
    The tiles, read-only where they are mapped.

    Raises
    ------
    OSError
        A tile could not be written.

    Notes
    -----
    Memory: one tile while it is made, and every tile that could not be kept; none of its own later.

    Examples
    --------
    >>> import tempfile
    >>> from manifold_observer.tasks.engine.factor import factor_block
    >>> block = factor_block(np.array([[0.0]]), np.ones((1, 1, 1)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tiles = read_or_make(f"{folder}/panel", [block], [(0, 0)], [(0, 0)], kernel.Scale(1.0))
    ...     np.array(tiles[0])
    array([[1.]])
    """
    tiles: list[Array] = []
    for number, ((i, j), (row, column)) in enumerate(zip(places, corners, strict=True)):
        file = Path(f"{path}-{number:03d}.npy")
        tile = _mapped(file, blocks[i], blocks[j])
        if tile is None:
            own = scale.of(row, column, blocks[i], blocks[j])
            tile = kernel.kernel_tile(blocks[i], blocks[j], *own, on_diagonal=row == column)
            if _written(file, tile, failed):
                kept = _mapped(file, blocks[i], blocks[j])
                tile = tile if kept is None else kept
        tiles.append(tile)
    return tiles


def _mapped(file: Path, rows: Block, columns: Block) -> Array | None:
    """The tile of two blocks from its file; None where the file is missing, or holds anything else."""
    try:
        tile: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    except Exception:  # a damaged header fails in as many ways as it has bytes
        return None
    fits = tile.shape == (rows.n_frames, columns.n_frames) and tile.dtype == rows.precision
    return tile if fits and tile.flags.c_contiguous else None


def _written(file: Path, tile: Array, failed: Callable[[OSError], object] | None) -> bool:
    """Write one tile; whether that was possible. It need not outlive a power cut."""
    try:
        with atomic.replacing(file, durable=False) as handle:
            # Hidden from NumPy, which writes past Python to a real file, and then cannot say why that failed.
            np.save(_Writer(handle.write), tile, allow_pickle=False)
    except OSError as error:
        if failed is None:
            raise
        failed(error)
        return False
    return True
