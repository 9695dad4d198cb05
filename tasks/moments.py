"""Mean and variance of all frames, from one block at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats


class NotFiniteError(ValueError):
    """A frame of the block holds NaN or infinity; ``index`` is the first such frame."""

    def __init__(self, index: int, count: int) -> None:
        super().__init__(index, count)
        self.index, self.count = index, count


class Moments(NamedTuple):
    """Number of frames n, mean (p,), and sum of squared deviations from it (p,)."""

    n: int
    mean: Floats
    squares: Floats


def moments(frames: Floats) -> Moments:
    """Moments of one block.

    Parameters
    ----------
    frames
        Shape (n, p), n >= 1.

    Returns
    -------
    Count, mean, and sum of squared deviations of every feature.

    Raises
    ------
    NotFiniteError
        A frame holds NaN or infinity.

    Examples
    --------
    >>> moments(np.array([[1.0], [3.0]])).squares
    array([2.])
    """
    finite = np.isfinite(frames).all(axis=1)
    if not finite.all():
        raise NotFiniteError(int(np.argmin(finite)), int(np.count_nonzero(~finite)))
    mean = frames.mean(axis=0)
    return Moments(len(frames), mean, np.square(frames - mean).sum(axis=0))


def combine(parts: Iterable[Moments]) -> Moments:
    """Moments of all blocks together, combined in their order (Chan, Golub and LeVeque 1979).

    Examples
    --------
    >>> combine([moments(np.array([[1.0]])), moments(np.array([[3.0]]))])
    Moments(n=2, mean=array([2.]), squares=array([2.]))
    """
    total: Moments | None = None
    for part in parts:
        total = part if total is None else _pair(total, part)
    if total is None:
        raise ValueError("combine: no blocks")
    return total


def _pair(a: Moments, b: Moments) -> Moments:
    """Moments of two blocks together."""
    count = a.n + b.n
    shift = b.mean - a.mean
    mean = a.mean + shift * (b.n / count)
    return Moments(count, mean, a.squares + b.squares + np.square(shift) * (a.n * b.n / count))
