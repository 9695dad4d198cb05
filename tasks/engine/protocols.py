"""What a form of the distance offers: blocks of frames, tiles of two blocks, and what both cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.engine.slab import Metric, Slab


class Block(Protocol):
    """Some frames with what one form of the distance needs of them.

    Blocks are named tuples of arrays: tasks align the arrays of tuples on arrival.
    """

    @property
    def n_frames(self) -> int:
        """Frames in the block."""

    @property
    def precision(self) -> np.dtype[np.floating]:
        """Floating-point precision of the block."""

    def astype(self, dtype: DTypeLike) -> Self:
        """The same block in another precision."""

    def take(self, chosen: Integers | slice) -> Self:
        """The chosen frames."""

    def join(self, others: Sequence[Self]) -> Self:
        """The block and others, one after the other."""

    def distances(self, columns: Any, out: Array | None = None) -> Array:
        """One tile of distances to a block of the same form; rounding may leave some below 0."""


class Form(Protocol):
    """How blocks are made, and what they and a tile of them cost. The defaults are those of a plain product."""

    name: str
    """What users call it."""
    needs_windows: bool = False
    """Whether it works with covariances of windows only, not with given ones."""

    def block(self, slab: Slab, metric: Metric) -> Block:
        """The block of a slab's own frames, in float64."""

    def points(self, frames: Floats) -> Block:
        """Block of centred frames (m, p) without covariances, in float64: their precisions are zero."""

    def multiplications(self, n_features: int, rank: int, window: int) -> int:
        """Multiplications a pair of frames."""

    def multiplications_apart(self, n_features: int, rank: int, window: int, rows: float) -> float:
        """The same with one side's frames far apart, so that each brings ``rows`` rows of halo."""
        return self.multiplications(n_features, rank, window)

    def reduced(self, rank: int) -> int:
        """Intermediate numbers a pair that are squared and added up."""
        return 0

    def numbers(self, n_features: int, rank: int, window: int) -> int:
        """Numbers that a block holds for each frame."""

    def halo_rows(self, window: int) -> int:
        """Rows of frames that a block holds besides; where its frames are far apart, for each of them."""
        return 0

    def making(self, n_features: int) -> int:
        """Numbers a frame that making a block takes besides windows and decompositions."""
        return 0

    def beside(self, pairs: int, apart: bool) -> int:
        """Numbers that lie beside a tile of so many pairs while it is made; ``apart``: of frames far apart."""
        return 0
