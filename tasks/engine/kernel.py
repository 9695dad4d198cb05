r"""Affinities of one tile: what distances become at a scale.

Throughout: a *tile* (m, n) pairs a row block with a column block of one form of the distance, which is already
squared and symmetric,

.. math:: d(i, j) = \tfrac12 (z_i - z_j)^\top (C_i^{+} + C_j^{+}) (z_i - z_j).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.engine.cache import add_transposed, rows_at_a_time
from manifold_observer.tasks.engine.protocols import Block


def squared_distances(rows: Block, columns: Block, out: Array | None = None) -> Array:
    """Modified Mahalanobis distances of one tile, already squared.

    Parameters
    ----------
    rows
        Block of m frames.
    columns
        Block of n frames, of the same form and precision.
    out
        Memory of at least m n numbers to use for the tile, in the quadratic form.

    Returns
    -------
    Shape (m, n), without unit, at least 0: what rounding leaves below 0 is set to 0.

    Notes
    -----
    Multiplications a pair: 2q in the quadratic form, 2 p r in the factor form, p + 2 w r in the window
    form (p + w r + p r where the windows of one side share few rows). Memory: the tile twice, four times in the window
    form.

    Examples
    --------
    >>> from manifold_observer.tasks.engine.factor import factor_block
    >>> block = factor_block(np.array([[0.0], [2.0]]), np.ones((2, 1, 1)))
    >>> squared_distances(block, block)
    array([[0., 4.],
           [4., 0.]])
    """
    distances = unclipped_distances(rows, columns, out)
    return np.maximum(distances, 0, out=distances)


def unclipped_distances(rows: Block, columns: Block, out: Array | None = None) -> Array:
    """As :func:`squared_distances`, with what rounding leaves below 0."""
    if type(rows) is not type(columns):
        raise TypeError(f"squared_distances: both blocks must be of one form, got {type(rows)}, {type(columns)}")
    return rows.distances(columns, out)


class Scale(NamedTuple):
    """Scale of the kernel: one number, and where it is local the scale of every frame (n,)."""

    epsilon: float
    local: Floats | None = None

    def of(self, row: int, column: int, rows: Block, columns: Block) -> tuple[float, Floats | None, Floats | None]:
        """The number, and the local scales of two blocks that begin at ``row`` and ``column``."""
        if self.local is None:
            return self.epsilon, None, None
        ends = row + rows.n_frames, column + columns.n_frames
        return self.epsilon, self.local[row : ends[0]], self.local[column : ends[1]]


def kernel_tile(
    rows: Block,
    columns: Block,
    epsilon: float,
    row_scales: Floats | None = None,
    column_scales: Floats | None = None,
    on_diagonal: bool = False,
    out: Array | None = None,
) -> Array:
    r"""Affinities of one tile, from its frames.

    Parameters
    ----------
    rows, columns
        Blocks of m and n frames, of one form and precision.
    epsilon
        Scale of the kernel :math:`\exp(-d / \varepsilon)`, not used where there are local scales.
    row_scales, column_scales
        Scales of the frames, shapes (m,) and (n,), for :math:`\exp(-d_{ij} / \sqrt{s_i s_j})`; or None.
    on_diagonal
        The tile lies on the diagonal of the matrix: it is made exactly symmetric, with ones on it.
    out
        Memory to use, as in :func:`squared_distances`.

    Returns
    -------
    Shape (m, n), between 0 and 1.

    Notes
    -----
    Memory: one tile, two where it is on the diagonal.

    Examples
    --------
    >>> from manifold_observer.tasks.engine.factor import factor_block
    >>> block = factor_block(np.array([[0.0], [2.0]]), np.ones((2, 1, 1)))
    >>> kernel_tile(block, block, epsilon=4 / np.log(2), on_diagonal=True)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    tile = unclipped_distances(rows, columns, out)
    if on_diagonal:
        tile = symmetric(tile)
    if row_scales is None or column_scales is None:
        return to_affinities(tile, epsilon)
    return kernel_local(np.maximum(tile, 0, out=tile), row_scales, column_scales)


def to_affinities(tile: Array, epsilon: float) -> Array:
    """A tile of distances, of which rounding may have left some below 0, as affinities in its own memory.

    Some rows at a time: they stay in cache between the steps.

    Examples
    --------
    >>> to_affinities(np.array([[-1e-9, np.log(2.0)]]), 1.0)
    array([[1. , 0.5]])
    """
    for first in range(0, len(tile), step := rows_at_a_time(tile.shape[1] * tile.itemsize)):
        rows = tile[first : first + step]
        kernel_from_distances(np.maximum(rows, 0, out=rows), epsilon, out=rows)
    return tile


def symmetric(tile: Array) -> Array:
    """A tile of distances on the diagonal made exactly symmetric, with an exact zero diagonal."""
    both = tile.copy()
    add_transposed(both, tile)
    both /= 2
    np.fill_diagonal(both, 0)
    return both


def kernel_from_distances(distances: Array, epsilon: float, out: Array | None = None) -> Array:
    r"""Affinities :math:`K = \exp(-d / \varepsilon)` of one tile.

    Parameters
    ----------
    distances
        Squared distances, shape (m, n).
    epsilon
        Scale, in the unit of the distances, above 0.
    out
        Where to write; may be ``distances`` itself.

    Returns
    -------
    Shape (m, n), between 0 and 1.

    Examples
    --------
    >>> kernel_from_distances(np.array([[0.0, np.log(2.0)]]), 1.0)
    array([[1. , 0.5]])
    """
    scaled = np.multiply(distances, distances.dtype.type(-1 / epsilon), out=out)
    return np.exp(scaled, out=scaled)


def kernel_local(distances: Array, row_scales: Floats, column_scales: Floats) -> Array:
    r"""Affinities with a scale of each frame's own, :math:`\exp(-d_{ij} / \sqrt{s_i s_j})`."""
    inverse_rows = (-1 / np.sqrt(row_scales)).astype(distances.dtype)
    inverse_columns = (1 / np.sqrt(column_scales)).astype(distances.dtype)
    # Both scales first: a product of three in another order would differ in the last digit from its mirror image.
    scaled = np.multiply.outer(inverse_rows, inverse_columns)
    scaled *= distances
    return np.exp(scaled, out=scaled)
