"""A panel: some tiles of the upper triangle of a symmetric matrix, worked on together.

Throughout: ``tiles[k]`` pairs row block I with column block J, I <= J; ``corners[k]`` says where in the
vectors that the panel is given, ``(first row, first column)``; equal numbers mean a tile on the diagonal.
A tile off the diagonal stands for its mirror image too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from manifold_observer.tasks.arrays import Array, Booleans, Floats, Integers
from manifold_observer.tasks.engine import kernel
from manifold_observer.tasks.engine.protocols import Block

Corner = tuple[int, int]
"""First row and first column of a tile."""
Pair = tuple[int, int]
"""Numbers of the row block and the column block that a tile pairs."""
# Numbers of a tile that are copied to float64 at a time, and that are finished together in single precision (1 MB).
_COPY_NUMBERS = 2**17
_STRIP_NUMBERS = 2**18
DIAGONAL_FRAMES = 256
"""Frames on the side of the tiles on the diagonal that a fused product computes whole."""


def stored_product(tiles: Sequence[Array], corners: Sequence[Corner], x: Floats) -> Floats:
    """What the tiles of one panel add to the product of the whole matrix with ``x``.

    Parameters
    ----------
    tiles
        Tiles of the upper triangle, each (m, n), in one precision or another.
    corners
        First row and first column of each.
    x
        Vectors, shape (n_frames, b).

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
    y = np.zeros(x.shape)
    for tile, (row, column) in zip(tiles, corners, strict=True):
        if tile.dtype == np.float32:
            _add_strips(y, tile, row, column, x, None)
        else:
            _add_product(y, tile, row, column, x)
    return y


def fused_product(
    blocks: Sequence[Block],
    places: Sequence[Pair],
    corners: Sequence[Corner],
    scale: kernel.Scale,
    x: Floats,
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

    Returns
    -------
    Shape (n_frames, b), float64. Tiles in single precision are multiplied in single precision, some rows
    at a time, and these sums are added up in float64: relative error about 5e-7.

    Notes
    -----
    Memory: one tile. Of a tile on the diagonal little more than the upper triangle is computed.
    """
    y = np.zeros(x.shape)
    side = max(block.n_frames for block in blocks)
    buffer = np.empty(side * side, blocks[0].precision)  # fresh memory for each tile would cost as much again
    for (i, j), (row, column) in zip(places, corners, strict=True):
        pairs = _triangle(blocks[i], row) if row == column else [(blocks[i], blocks[j], row, column)]
        for pair in pairs:
            _add_fused(y, *pair, scale, x, buffer)
    return y


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


def _add_fused(
    y: Floats,
    rows: Block,
    columns: Block,
    row: int,
    column: int,
    scale: kernel.Scale,
    x: Floats,
    buffer: Array,
) -> None:
    """Make one tile in the buffer and add its product."""
    if row != column and scale.local is None and buffer.dtype == np.float32:
        tile = kernel.unclipped_distances(rows, columns, buffer)
        _add_strips(y, tile, row, column, x, scale.epsilon)
        return
    tile = kernel.kernel_tile(rows, columns, *scale.of(row, column, rows, columns), row == column, buffer)
    _add_product(y, tile, row, column, x)


def _add_product(y: Floats, tile: Array, row: int, column: int, x: Floats) -> None:
    """Add one tile's product in float64, some rows at a time so that their copy stays in cache."""
    m, n = tile.shape
    rows, columns = (x[first : first + k].astype(np.float64, copy=False) for first, k in ((row, m), (column, n)))
    step = max(1, _COPY_NUMBERS // n)
    for first in range(0, m, step):
        exact = tile[first : first + step].astype(np.float64, copy=False)
        y[row + first : row + first + len(exact)] += exact @ columns
        if row != column:
            y[column : column + n] += exact.T @ rows[first : first + step]


def _add_strips(y: Floats, tile: Array, row: int, column: int, x: Floats, epsilon: float | None) -> None:
    """Add the product of one tile in single precision, a few rows at a time.

    With ``epsilon`` the tile holds distances, which go to affinities and to sums while they are in cache,
    in place; without, it holds affinities.
    """
    m, n = tile.shape
    rows, columns = (x[first : first + k].astype(np.float32, copy=False) for first, k in ((row, m), (column, n)))
    step = max(1, _STRIP_NUMBERS // n)
    for first in range(0, m, step):
        strip = tile[first : first + step]
        if epsilon is not None:
            kernel.to_affinities(strip, epsilon)
        y[row + first : row + first + len(strip)] += strip @ columns
        if row != column:
            y[column : column + n] += strip.T @ rows[first : first + step]


def assemble(matrix: Floats, tiles: Sequence[Array], corners: Sequence[Corner], rows: Integers) -> None:
    """Put the tiles of one panel, and their mirror images, into the whole matrix.

    Parameters
    ----------
    matrix
        The whole, shape (n_frames, n_frames), written to.
    tiles
        Tiles of the panel.
    corners
        First row and first column of each in the panel's own rows.
    rows
        Row of the matrix for each of the panel's own rows; those of a tile follow each other.

    Examples
    --------
    >>> whole = np.zeros((2, 2))
    >>> assemble(whole, [np.array([[5.0]])], [(0, 1)], np.array([0, 1]))
    >>> whole
    array([[0., 5.],
           [5., 0.]])
    """
    for tile, (row, column) in zip(tiles, corners, strict=True):
        m, n = tile.shape
        first, second = rows[row], rows[column]
        matrix[first : first + m, second : second + n] = tile
        if row != column:
            matrix[second : second + n, first : first + m] = tile.T


def whole_product(matrix: Floats, x: Floats) -> Floats:
    """Product of a whole symmetric matrix with a few vectors.

    Parameters
    ----------
    matrix
        Shape (n_frames, n_frames).
    x
        Vectors, shape (n_frames, b).

    Returns
    -------
    Shape (n_frames, b), column after column in memory.

    Notes
    -----
    As rows times the matrix: BLAS takes half the time for few long rows that it takes for few long columns.

    Examples
    --------
    >>> whole_product(np.array([[1.0, 2.0], [2.0, 3.0]]), np.array([[1.0], [10.0]])).ravel()
    array([21., 32.])
    """
    return (np.ascontiguousarray(x.T) @ matrix).T


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
        yield tile[_upper(tile)] if row == column else tile.ravel()


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
    below, inside = 0, []
    for entries in above_diagonal(tiles, corners):
        below += int(np.count_nonzero(entries < low))
        inside.append(entries[(entries >= low) & (entries <= high)])
    return below, np.concatenate(inside)


def _upper(tile: Array) -> Booleans:
    """Where a diagonal tile holds pairs i < j."""
    return np.triu(np.ones(tile.shape, dtype=bool), 1)
