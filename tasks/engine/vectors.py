"""Long vectors side by side, of which there come more and more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from manifold_observer.tasks.arrays import Floats

# Vectors that lie together, at least.
_TOGETHER = 64


class Vectors:
    """A matrix V (n, k) that grows by columns, of which none is moved again.

    Vectors lie one after the other, so that products with V run along the memory; some 64 of them are one piece. Where
    pieces are cut depends on the widths of the blocks alone: products have the same bits however V came about.

    Examples
    --------
    >>> grown = Vectors(2).grown(np.array([[1.0], [2.0]])).grown(np.array([[3.0], [4.0]]))
    >>> np.asarray(grown)
    array([[1., 3.],
           [2., 4.]])
    >>> grown.mixed(np.array([[1.0], [1.0]])).ravel(), grown.against(np.array([[1.0], [0.0]])).ravel()
    (array([4., 6.]), array([1., 3.]))
    """

    def __init__(self, n: int, pieces: Sequence[_Piece] = ()) -> None:
        self._n = n
        self._pieces = tuple(pieces)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows n and columns k."""
        return self._n, sum(piece.width for piece in self._pieces)

    def grown(self, block: Floats) -> Vectors:
        """With the columns of a block (n, b) after its own; what was there is shared, and stays as it is."""
        if self._pieces and self._pieces[-1].width + block.shape[1] <= _TOGETHER:
            return Vectors(self._n, (*self._pieces[:-1], self._pieces[-1].grown(block)))
        return Vectors(self._n, (*self._pieces, _Piece.begun(block)))

    def against(self, x: Floats) -> Floats:
        """V^T x, shape (k, b), for vectors x (n, b)."""
        return np.concatenate([np.zeros((0, x.shape[1])), *(piece.values.T @ x for piece in self._pieces)])

    def mixed(self, weights: Floats) -> Floats:
        """V times weights (k, b): shape (n, b)."""
        total, first = np.zeros((weights.shape[1], self._n)), 0
        for piece in self._pieces:
            total += weights[first : first + piece.width].T @ piece.values.T
            first += piece.width
        return total.T

    def taken(self, first: int, stop: int) -> Floats:
        """Some columns that follow each other, in memory of their own."""
        found = np.empty((self._n, stop - first), order="F")
        start = 0
        for piece in self._pieces:
            low, high = max(first, start), min(stop, start + piece.width)
            if low < high:
                found[:, low - first : high - first] = piece.values[:, low - start : high - start]
            start += piece.width
        return found

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any:
        """All columns."""
        return self.taken(0, self.shape[1]).astype(dtype or np.float64, copy=False)


class _Piece:
    """Some columns, and room for a few more that whoever comes first fills."""

    def __init__(self, room: Floats, width: int, taken: list[int]) -> None:
        self._room, self.width, self._taken = room, width, taken

    @classmethod
    def begun(cls, block: Floats) -> _Piece:
        """A piece of one block."""
        n, width = block.shape
        room = np.empty((n, max(width, _TOGETHER)), order="F")
        room[:, :width] = block
        return cls(room, width, [width])

    @property
    def values(self) -> Floats:
        """Its columns."""
        return self._room[:, : self.width]

    def grown(self, block: Floats) -> _Piece:
        """With a block after it, which fits: in the same memory, unless something else is there already."""
        if self._taken[0] != self.width:
            return _Piece.begun(self.values).grown(block)
        self._taken[0] = width = self.width + block.shape[1]
        self._room[:, self.width : width] = block
        return _Piece(self._room, width, self._taken)
