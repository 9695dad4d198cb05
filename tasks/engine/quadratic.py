r"""The quadratic form: distances as inner products of row features, one matrix product a tile.

.. math:: (z_j - z_i)^\top M_i (z_j - z_i)
          = \langle M_i, z_j z_j^\top \rangle - 2 (M_i z_i) \cdot z_j + z_i^\top M_i z_i
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.engine.protocols import Form
from manifold_observer.tasks.engine.slab import Metric, Slab, precisions


class QuadraticBlock(NamedTuple):
    """Row features ``[Φ(M) | Φ(z)]`` (n, 2q), q = (p + 1)(p + 2) / 2; a tile is one product."""

    features: Array

    @property
    def n_frames(self) -> int:
        """Frames in the block."""
        return len(self.features)

    @property
    def precision(self) -> np.dtype[np.floating]:
        """Floating-point precision of the block."""
        return self.features.dtype

    def astype(self, dtype: DTypeLike) -> QuadraticBlock:
        """The same block in another precision."""
        return QuadraticBlock(np.ascontiguousarray(self.features, dtype))

    def take(self, chosen: Integers | slice) -> QuadraticBlock:
        """The chosen frames."""
        return QuadraticBlock(self.features[chosen])

    def join(self, others: Sequence[QuadraticBlock]) -> QuadraticBlock:
        """The block and others, one after the other."""
        return QuadraticBlock(np.concatenate([self.features, *(block.features for block in others)]))

    def distances(self, columns: QuadraticBlock, out: Array | None = None) -> Array:
        """Both halves of the distance in one product; rounding may leave some below 0."""
        shape = len(self.features), len(columns.features)
        place = None if out is None else out.reshape(-1)[: shape[0] * shape[1]].reshape(shape)
        half = self.features.shape[1] // 2
        swapped = np.concatenate([columns.features[:, half:], columns.features[:, :half]], axis=1)
        return np.matmul(self.features, swapped.T, out=place)


class Quadratic(Form):
    """The form of narrow features: 2q multiplications a pair, q = (p + 1)(p + 2) / 2, at the rate of the BLAS."""

    name = "quadratic"

    def block(self, slab: Slab, metric: Metric) -> QuadraticBlock:
        """The block of a slab's own frames."""
        return quadratic_block(slab.frames[slab.rows], precisions(slab, metric))

    def points(self, frames: Floats) -> QuadraticBlock:
        """Block of centred frames (m, p) without covariances: their precisions are zero."""
        n, p = frames.shape
        return quadratic_block(frames, np.zeros((n, p, p)))

    def multiplications(self, n_features: int, rank: int, window: int) -> int:
        """Multiplications a pair of frames."""
        return (n_features + 1) * (n_features + 2)

    def numbers(self, n_features: int, rank: int, window: int) -> int:
        """Numbers that a block holds for each frame."""
        return (n_features + 1) * (n_features + 2)

    def making(self, n_features: int) -> int:
        """Precisions, their upper triangles and images."""
        return 3 * n_features * n_features


def quadratic_block(frames: Floats, precisions: Floats) -> QuadraticBlock:
    r"""Features whose inner products are distances.

    .. math:: (z_j - z_i)^\top M_i (z_j - z_i)
              = \langle M_i, z_j z_j^\top \rangle - 2 (M_i z_i) \cdot z_j + z_i^\top M_i z_i

    Parameters
    ----------
    frames
        Centred features, shape (n, p). Centring matters: the terms cancel.
    precisions
        Pseudo-inverse local covariances, shape (n, p, p).

    Returns
    -------
    The block; 2 (p + 1)(p + 2) / 2 numbers a frame.

    Notes
    -----
    O(n p^2) time and memory.

    Examples
    --------
    Two points one unit apart, the second twice as precise along the first axis:

    >>> points = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> block = quadratic_block(points, np.stack([np.eye(2), np.diag([4.0, 1.0])]))
    >>> block.distances(block)
    array([[0. , 2.5],
           [2.5, 0. ]])
    """
    p = frames.shape[1]
    upper = np.triu_indices(p)
    twice = np.where(upper[0] == upper[1], 0.5, 1.0)  # half of M, off-diagonal entries counted twice
    images = np.einsum("npk,nk->np", precisions, frames)
    constant = 0.5 * np.einsum("np,np->n", images, frames)[:, None]
    metric = [precisions[:, upper[0], upper[1]] * twice, -images, constant]
    point = [frames[:, upper[0]] * frames[:, upper[1]], frames, np.ones_like(constant)]
    return QuadraticBlock(np.concatenate(metric + point, axis=1))
