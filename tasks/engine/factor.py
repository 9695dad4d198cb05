r"""The factor form: distances as squared norms of differences of images, :math:`|U_i^\top z_j - U_i^\top z_i|^2`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.engine.cache import add_transposed, rows_at_a_time
from manifold_observer.tasks.engine.protocols import Form
from manifold_observer.tasks.engine.slab import Metric, Slab, factors


class FactorBlock(NamedTuple):
    """Frames (n, p), factors U (n, r, p) and the images ``U^T z`` (n, r) of the frames themselves."""

    frames: Array
    factors: Array
    images: Array

    @property
    def n_frames(self) -> int:
        """Frames in the block."""
        return len(self.frames)

    @property
    def precision(self) -> np.dtype[np.floating]:
        """Floating-point precision of the block."""
        return self.frames.dtype

    def astype(self, dtype: DTypeLike) -> FactorBlock:
        """The same block in another precision."""
        return FactorBlock(*(np.ascontiguousarray(part, dtype) for part in self))

    def take(self, chosen: Integers | slice) -> FactorBlock:
        """The chosen frames."""
        return FactorBlock(self.frames[chosen], self.factors[chosen], self.images[chosen])

    def join(self, others: Sequence[FactorBlock]) -> FactorBlock:
        """The block and others, one after the other."""
        rank = max(block.factors.shape[1] for block in (self, *others))
        parts = [block.padded(rank) for block in (self, *others)]
        return FactorBlock(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def padded(self, rank: int) -> FactorBlock:
        """The block with ``rank`` rows a factor, the first ones zero."""
        more = rank - self.factors.shape[1]
        return self._replace(
            factors=np.pad(self.factors, ((0, 0), (more, 0), (0, 0))), images=np.pad(self.images, ((0, 0), (more, 0)))
        )

    def distances(self, columns: FactorBlock, out: Array | None = None) -> Array:
        """Half the sum of both sides; ``out`` does not serve here."""
        tile = factor_side(self.images, lambda some: self.factors[some], columns.frames)
        add_transposed(tile, factor_side(columns.images, lambda some: columns.factors[some], self.frames))
        tile *= 0.5
        return tile


class Factor(Form):
    """The form of given covariances of small rank: 2 p r multiplications a pair."""

    name = "factor"

    def block(self, slab: Slab, metric: Metric) -> FactorBlock:
        """The block of a slab's own frames."""
        return factor_block(slab.frames[slab.rows], factors(slab, metric))

    def points(self, frames: Floats) -> FactorBlock:
        """Block of centred frames (m, p) without covariances: their factors are zero."""
        return factor_block(frames, np.zeros((*frames.shape, 1)))

    def multiplications(self, n_features: int, rank: int, window: int) -> int:
        """Multiplications a pair of frames."""
        return 2 * rank * n_features

    def reduced(self, rank: int) -> int:
        """Intermediate numbers a pair that are squared and added up."""
        return 2 * rank

    def numbers(self, n_features: int, rank: int, window: int) -> int:
        """Numbers that a block holds for each frame."""
        return n_features + rank * (n_features + 1)


def factor_block(frames: Floats, factors: Floats) -> FactorBlock:
    """Block of the factor form from centred frames (n, p) and factors U (n, p, r).

    Examples
    --------
    >>> block = factor_block(np.array([[0.0], [2.0]]), np.ones((2, 1, 1)))
    >>> block.distances(block)
    array([[0., 4.],
           [4., 0.]])
    """
    transposed = np.ascontiguousarray(np.swapaxes(factors, 1, 2))
    return FactorBlock(frames, transposed, np.einsum("nrp,np->nr", transposed, frames))


def factor_side(own: Array, factors_of: Callable[[slice], Array], frames: Array) -> Array:
    """``|U_i^T z_j - U_i^T z_i|^2``, a few rows at a time so that the product stays in cache.

    Parameters
    ----------
    own
        Images ``U_i^T z_i`` of the row frames, shape (m, r).
    factors_of
        Factors (k, r, p) of some row frames.
    frames
        Column frames, shape (n, p).

    Returns
    -------
    One side of a tile, shape (m, n).
    """
    (m, r), n = own.shape, len(frames)
    tile = np.empty((m, n), frames.dtype)
    step = rows_at_a_time(r * n * tile.itemsize)
    buffer = np.empty((step * r, n), tile.dtype)
    for first in range(0, m, step):
        some = slice(first, min(first + step, m))
        stacked = factors_of(some).reshape(-1, frames.shape[1])
        images = np.matmul(stacked, frames.T, out=buffer[: len(stacked)]).reshape(-1, r, n)
        images -= own[some, :, None]
        np.einsum("irn,irn->in", images, images, out=tile[some])
    return tile
