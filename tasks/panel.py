"""A panel: some tiles of the upper triangle of a symmetric matrix, worked on together.

Throughout: ``tiles[k]`` pairs row block I with column block J, I <= J; ``spans[k]`` says where,
``(first row, first column)``. A tile off the diagonal stands for its mirror image too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from manifold_observer.tasks.arrays import Array, Booleans, Floats

Span = tuple[int, int]


def symmetric_product(tiles: Sequence[Array], spans: Sequence[Span], x: Floats) -> Floats:
    """What the tiles of one panel add to the product of the whole matrix with ``x``.

    Parameters
    ----------
    tiles
        Tiles of the upper triangle, each (m, n), in any precision.
    spans
        First row and first column of each.
    x
        Vectors, shape (n_frames, b), float64.

    Returns
    -------
    Shape (n_frames, b), accumulated in float64.

    Notes
    -----
    4 m n b operations for a tile off the diagonal, one float64 copy of one tile at a time.

    Examples
    --------
    The matrix [[1, 2], [2, 3]] as three tiles, times (1, 10):

    >>> tiles = [np.array([[1.0]]), np.array([[2.0]]), np.array([[3.0]])]
    >>> symmetric_product(tiles, [(0, 0), (0, 1), (1, 1)], np.array([[1.0], [10.0]])).ravel()
    array([21., 32.])
    """
    y = np.zeros_like(x)
    for tile, (row, column) in zip(tiles, spans, strict=True):
        exact = tile.astype(np.float64, copy=False)
        m, n = exact.shape
        y[row : row + m] += exact @ x[column : column + n]
        if row != column:
            y[column : column + n] += exact.T @ x[row : row + m]
    return y


def nearest(tiles: Sequence[Array], spans: Sequence[Span], n_frames: int, k: int) -> Array:
    """The k smallest distances that one panel knows of every frame, itself left out.

    Parameters
    ----------
    tiles
        Tiles of distances.
    spans
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
    for tile, (row, column) in zip(tiles, spans, strict=True):
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


def above_diagonal(tiles: Sequence[Array], spans: Sequence[Span]) -> Iterator[Array]:
    """Entries of each tile that belong to pairs i < j, flat."""
    for tile, (row, column) in zip(tiles, spans, strict=True):
        yield tile[_upper(tile)] if row == column else tile.ravel()


def sample_entries(tiles: Sequence[Array], spans: Sequence[Span], stride: int) -> Array:
    """Every ``stride``-th entry above the diagonal: a cheap look at the distribution."""
    return np.concatenate([entries[::stride] for entries in above_diagonal(tiles, spans)])


def count_and_collect(tiles: Sequence[Array], spans: Sequence[Span], low: float, high: float) -> tuple[int, Array]:
    """How many entries above the diagonal lie below ``low``, and those from ``low`` to ``high``.

    Examples
    --------
    >>> tile = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    >>> count_and_collect([tile], [(0, 0)], 2.0, 2.5)
    (1, array([2.]))
    """
    below, inside = 0, []
    for entries in above_diagonal(tiles, spans):
        below += int(np.count_nonzero(entries < low))
        inside.append(entries[(entries >= low) & (entries <= high)])
    return below, np.concatenate(inside)


def _upper(tile: Array) -> Booleans:
    """Where a diagonal tile holds pairs i < j."""
    return np.triu(np.ones(tile.shape, dtype=bool), 1)
