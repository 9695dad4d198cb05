"""A panel: some tiles of the upper triangle of a symmetric matrix, worked on together.

Throughout: ``tiles[k]`` pairs row block I with column block J, I <= J; ``corners[k]`` says where in the
vectors that the panel is given, ``(first row, first column)``; equal numbers mean a tile on the diagonal.
A tile off the diagonal stands for its mirror image too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.engine import kernel
from manifold_observer.tasks.engine.protocols import Block
from manifold_observer.tasks.engine.treesum import TreeSum

Corner = tuple[int, int]
"""First row and first column of a tile."""
Pair = tuple[int, int]
"""Numbers of the row block and the column block that a tile pairs."""
# Numbers of a tile that are copied to float64 at a time, and that are finished together in single precision (1 MB).
_COPY_NUMBERS = 2**16
_STRIP_NUMBERS = 2**18
# Distances that are compared while they are in cache.
_LOOK_NUMBERS = 2**16
DIAGONAL_FRAMES = 256
"""Frames on the side of the tiles on the diagonal that a fused product computes whole."""


def stored_product(
    tiles: Sequence[Array], corners: Sequence[Corner], x: Floats, numbers: Sequence[Pair] | None = None
) -> Floats:
    """What the tiles of one panel add to the product of the whole matrix with ``x``.

    Parameters
    ----------
    tiles
        Tiles of the upper triangle, each (m, n), in one precision or another.
    corners
        First row and first column of each.
    x
        Vectors, shape (n_frames, b).
    numbers
        For each tile the numbers of its row block and its column block in the whole matrix, which say in which order
        sums are taken; where they are not given, blocks are counted within the panel.

    Returns
    -------
    Shape (n_frames, b), float64. Tiles in single precision are multiplied in it, a few rows at a time, so that
    only short sums are single; those are added up in float64. Relative error about 5e-7, as much as the
    storage itself costs, in a third of the time.

    Notes
    -----
    4 m n b operations for a tile off the diagonal.

    Examples
    --------
    The matrix [[1, 2], [2, 3]] as three tiles, times (1, 10):

    >>> tiles = [np.array([[1.0]]), np.array([[2.0]]), np.array([[3.0]])]
    >>> stored_product(tiles, [(0, 0), (0, 1), (1, 1)], np.array([[1.0], [10.0]])).ravel()
    array([21., 32.])
    """
    sums = _Sums(x.shape)
    for tile, (row, column), pair in zip(tiles, corners, numbers or _counted(corners), strict=True):
        product = _strips if tile.dtype == np.float32 else _product
        sums.add(row, column, pair, product(tile, row, column, x), tile.dtype)
    return sums.total()


def fused_product(
    blocks: Sequence[Block],
    places: Sequence[Pair],
    corners: Sequence[Corner],
    scale: kernel.Scale,
    x: Floats,
    numbers: Sequence[Pair] | None = None,
) -> Floats:
    """What the tiles of one panel add to the product, each tile made, used and forgotten.

    Parameters
    ----------
    blocks
        Blocks of frames that the panel pairs.
    places
        For each tile the numbers of its row block and its column block.
    corners
        First row and first column of each in ``x``.
    scale
        Scale of the kernel; where local, of the frames in the order of ``x``.
    x
        Vectors, shape (n_frames, b).
    numbers
        As :func:`stored_product` has them.

    Returns
    -------
    Shape (n_frames, b), float64. Tiles in single precision are multiplied in single precision, some rows
    at a time, and these sums are added up in float64: relative error about 5e-7.

    Notes
    -----
    Memory: one tile, and sums. Of a tile on the diagonal little more than the upper triangle is computed.
    """
    sums = _Sums(x.shape)
    side = max(block.n_frames for block in blocks)
    buffer = np.empty(side * side, blocks[0].precision)  # fresh memory for each tile would cost as much again
    for (i, j), (row, column), pair in zip(places, corners, numbers or _counted(corners), strict=True):
        made: Sums = (
            (_fused_triangle(blocks[i], row, scale, x, buffer), None)
            if row == column
            else _fused(blocks[i], blocks[j], row, column, scale, x, buffer)
        )
        sums.add(row, column, pair, made, buffer.dtype)
    return sums.total()


class _Sums:
    """Products of tiles, added up for the rows of each block in a fixed tree over the blocks that it meets.

    Sums are in the precision of the tiles at every node, for panels give them to each other in it: kept in
    another one within a panel, the last digits would show where panels end. The diagonal comes last.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._met: dict[int, TreeSum] = {}
        self._diagonal: dict[int, Array] = {}

    def add(self, row: int, column: int, pair: Pair, made: Sums, precision: np.dtype[Any]) -> None:
        """Add what one tile gives to its rows, and its mirror image to its columns."""
        to_rows, to_columns = made
        if to_columns is None:
            self._diagonal[row] = to_rows.astype(precision, copy=False)
            return
        self._met.setdefault(row, TreeSum()).add((0, pair[1]), to_rows.astype(precision, copy=False))
        self._met.setdefault(column, TreeSum()).add((0, pair[0]), to_columns.astype(precision, copy=False))

    def total(self) -> Floats:
        """The sums of all rows, 0 for those that no tile meets."""
        y = np.zeros(self._shape)
        for row, met in self._met.items():
            found = met.total()
            if found is not None:
                y[row : row + len(found)] = found
        for row, own in self._diagonal.items():
            y[row : row + len(own)] = y[row : row + len(own)].astype(own.dtype, copy=False) + own
        return y


Sums = tuple[Array, Floats | None]
"""What one tile adds to its rows, and to its columns; None for those of a tile on the diagonal."""


def _counted(corners: Sequence[Corner]) -> list[Pair]:
    """Numbers of blocks as they follow each other within a panel."""
    firsts = {first: number for number, first in enumerate(sorted({first for corner in corners for first in corner}))}
    return [(firsts[row], firsts[column]) for row, column in corners]


def _triangle(block: Block, row: int) -> Iterator[tuple[Block, Block, int, int]]:
    """A tile on the diagonal as smaller ones: pairs of blocks with their first row and column."""
    n = block.n_frames
    if n <= DIAGONAL_FRAMES:
        yield block, block, row, row
        return
    half = n // 2
    first, second = block.take(slice(half)), block.take(slice(half, n))
    yield from _triangle(first, row)
    yield first, second, row, row + half
    yield from _triangle(second, row + half)


def _fused_triangle(block: Block, first: int, scale: kernel.Scale, x: Floats, buffer: Array) -> Floats:
    """Product of a tile on the diagonal, made in smaller ones."""
    y = np.zeros((block.n_frames, x.shape[1]))
    for rows, columns, row, column in _triangle(block, first):
        to_rows, to_columns = _fused(rows, columns, row, column, scale, x, buffer)
        y[row - first : row - first + len(to_rows)] += to_rows
        if to_columns is not None:
            y[column - first : column - first + len(to_columns)] += to_columns
    return y


def _fused(
    rows: Block,
    columns: Block,
    row: int,
    column: int,
    scale: kernel.Scale,
    x: Floats,
    buffer: Array,
) -> Sums:
    """Make one tile in the buffer, and its product."""
    if row != column and scale.local is None and buffer.dtype == np.float32:
        tile = kernel.unclipped_distances(rows, columns, buffer)
        return _strips(tile, row, column, x, scale.epsilon)
    tile = kernel.kernel_tile(rows, columns, *scale.of(row, column, rows, columns), row == column, buffer)
    return _product(tile, row, column, x)


def _product(tile: Array, row: int, column: int, x: Floats) -> Sums:
    """One tile's product in float64, some rows at a time so that their copy stays in cache.

    Sums for columns are made as rows: BLAS takes half the time for few long ones.
    """
    m, n = tile.shape
    rows, columns = (x[first : first + k].astype(np.float64, copy=False) for first, k in ((row, m), (column, n)))
    to_rows, to_columns = np.empty((m, x.shape[1])), None if row == column else np.zeros((x.shape[1], n))
    step = max(1, _COPY_NUMBERS // n)
    copy = np.empty((min(step, m), n))
    for first in range(0, m, step):
        exact = copy[: min(step, m - first)]
        exact[...] = tile[first : first + step]
        np.matmul(exact, columns, out=to_rows[first : first + step])
        if to_columns is not None:
            to_columns += rows[first : first + step].T @ exact
    return to_rows, None if to_columns is None else to_columns.T


def _strips(tile: Array, row: int, column: int, x: Floats, epsilon: float | None = None) -> Sums:
    """The product of one tile in single precision, a few rows at a time.

    With ``epsilon`` the tile holds distances, which go to affinities and to sums while they are in cache,
    in place; without, it holds affinities.
    """
    m, n = tile.shape
    rows, columns = (x[first : first + k].astype(np.float32, copy=False) for first, k in ((row, m), (column, n)))
    to_rows = np.empty((m, x.shape[1]), np.float32)
    to_columns = None if row == column else np.zeros((n, x.shape[1]))
    step = max(1, _STRIP_NUMBERS // n)
    for first in range(0, m, step):
        strip = tile[first : first + step]
        if epsilon is not None:
            kernel.to_affinities(strip, epsilon)
        np.matmul(strip, columns, out=to_rows[first : first + step])
        if to_columns is not None:
            to_columns += strip.T @ rows[first : first + step]
    return to_rows, to_columns


def exact_product(
    tiles: Sequence[Array],
    corners: Sequence[Corner],
    x: Floats,
    over: Callable[..., Iterable[Sums]] = map,
) -> Floats:
    """Product of a whole symmetric matrix with a few vectors, in float64 whatever its tiles are in.

    Parameters
    ----------
    tiles
        All tiles of the upper triangle, each (m, n).
    corners
        First row and first column of each in the matrix.
    x
        Vectors, shape (n_frames, b).
    over
        A ``map``, such as that of a pool of threads: tiles are multiplied each by itself.

    Returns
    -------
    Shape (n_frames, b), float64; the same numbers whatever ``over`` is, and the order of the tiles.

    Notes
    -----
    4 m n b operations for a tile off the diagonal. The triangle in single precision is a quarter of the whole matrix
    in float64, and is converted while it is in cache.

    Examples
    --------
    >>> tiles = [np.array([[1.0]]), np.array([[2.0]]), np.array([[3.0]])]
    >>> exact_product(tiles, [(0, 0), (0, 1), (1, 1)], np.array([[1.0], [10.0]])).ravel()
    array([21., 32.])
    """
    y = np.zeros(x.shape)
    numbers = sorted(range(len(tiles)), key=corners.__getitem__)
    made = over(lambda number: _product(tiles[number], *corners[number], x), numbers)
    for number, (to_rows, to_columns) in zip(numbers, made, strict=True):
        row, column = corners[number]
        y[row : row + len(to_rows)] += to_rows
        if to_columns is not None:
            y[column : column + len(to_columns)] += to_columns
    return y


def nearest(tiles: Sequence[Array], corners: Sequence[Corner], n_frames: int, k: int) -> Array:
    """The k smallest distances that one panel knows of every frame, itself left out.

    Parameters
    ----------
    tiles
        Tiles of distances.
    corners
        First row and first column of each.
    n_frames
        Frames in the whole matrix.
    k
        How many.

    Returns
    -------
    Shape (n_frames, k), ascending; infinity where the panel knows fewer.

    Examples
    --------
    >>> nearest([np.array([[0.0, 3.0], [3.0, 0.0]])], [(0, 0)], 2, 1)
    array([[3.],
           [3.]])
    """
    smallest = np.full((n_frames, k), np.inf)
    for tile, (row, column) in zip(tiles, corners, strict=True):
        m, n = tile.shape
        if row == column:
            _merge_nearest(smallest[row : row + m], tile + np.diag(np.full(m, np.inf, tile.dtype)))
        else:
            _merge_nearest(smallest[row : row + m], tile)
            _merge_nearest(smallest[column : column + n], tile.T)
    return smallest


def merge_nearest(known: Array, more: Array) -> Array:
    """The k smallest of two tables (n, k) of smallest distances, ascending."""
    return np.sort(np.concatenate([known, more], axis=1), axis=1)[:, : known.shape[1]]


def _merge_nearest(known: Array, tile: Array) -> None:
    """Merge the smallest entries of every row of a tile into ``known``, in place."""
    k = min(known.shape[1], tile.shape[1])
    smallest = np.partition(tile, k - 1, axis=1)[:, :k]
    known[:] = np.sort(np.concatenate([known, smallest], axis=1), axis=1)[:, : known.shape[1]]


def above_diagonal(tiles: Sequence[Array], corners: Sequence[Corner]) -> Iterator[Array]:
    """Entries of each tile that belong to pairs i < j, flat."""
    for tile, (row, column) in zip(tiles, corners, strict=True):
        if row != column:
            yield tile.ravel()
            continue
        # Row by row: a mask of the triangle takes two to four times as long.
        yield np.concatenate([tile[:0, 0], *(tile[number, number + 1 :] for number in range(len(tile)))])


def sample_entries(tiles: Sequence[Array], corners: Sequence[Corner], stride: int) -> Array:
    """Every ``stride``-th entry above the diagonal: a cheap look at the distribution."""
    return np.concatenate([entries[::stride] for entries in above_diagonal(tiles, corners)])


def count_and_collect(tiles: Sequence[Array], corners: Sequence[Corner], low: float, high: float) -> tuple[int, Array]:
    """How many entries above the diagonal lie below ``low``, and those from ``low`` to ``high``.

    Examples
    --------
    >>> tile = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    >>> count_and_collect([tile], [(0, 0)], 2.0, 2.5)
    (1, array([2.]))
    """
    below, inside = 0, [np.empty(0, tiles[0].dtype)]
    for entries in above_diagonal(tiles, corners):
        for first in range(0, len(entries), _LOOK_NUMBERS):
            part = entries[first : first + _LOOK_NUMBERS]
            under = part < low
            below += int(np.count_nonzero(under))
            inside.append(part[np.flatnonzero((part <= high) > under)])
    return below, np.concatenate(inside)
