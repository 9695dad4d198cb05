"""Tiles of one panel in a file, made once and mapped into memory from then on."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manifold_observer.tasks import kernel
from manifold_observer.tasks.arrays import Array
from manifold_observer.tasks.panel import Span


def read_or_make(
    path: str,
    blocks: Sequence[kernel.Block],
    places: Sequence[tuple[int, int]],
    spans: Sequence[Span],
    scale: kernel.Scale,
) -> list[Array]:
    """Tiles of one panel of the kernel, mapped from ``.npy`` files that are made where they are missing.

    A file appears whole or not at all, so that a killed task leaves nothing that could be mistaken.

    Parameters
    ----------
    path
        Start of the files' names, one file a tile.
    blocks
        Blocks of frames that the panel pairs.
    places
        For each tile the numbers of its row block and its column block.
    spans
        First row and first column of each tile.
    scale
        Scale of the kernel.

    Returns
    -------
    The tiles, read-only.

    Notes
    -----
    Memory: one tile while it is made; none of its own later.

    Examples
    --------
    >>> import tempfile
    >>> block = kernel.factor_block(np.array([[0.0]]), np.ones((1, 1, 1)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tiles = read_or_make(f"{folder}/panel", [block], [(0, 0)], [(0, 0)], kernel.Scale(1.0))
    ...     np.array(tiles[0])
    array([[1.]])
    """
    tiles = []
    for number, ((i, j), (row, column)) in enumerate(zip(places, spans, strict=True)):
        file = Path(f"{path}-{number:03d}.npy")
        if not file.exists():
            own = scale.of(row, column, blocks[i], blocks[j])
            _write(file, kernel.kernel_tile(blocks[i], blocks[j], *own, on_diagonal=row == column))
        tiles.append(np.load(file, mmap_mode="r", allow_pickle=False))
    return tiles


def _write(file: Path, tile: Array) -> None:
    """Write one tile beside its place and move it there in one step."""
    partial = file.with_name(f"{file.name}.{uuid.uuid4().hex}.partial")
    try:
        with partial.open("wb") as handle:
            np.save(handle, tile, allow_pickle=False)
        os.replace(partial, file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
