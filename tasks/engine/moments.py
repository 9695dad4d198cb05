"""Mean and variance of all frames, from one block at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats, digest
from manifold_observer.tasks.engine.conditioning import Conditioning, Look, both_looks, conditioned, look
from manifold_observer.tasks.engine.values import Values, together, values

# Widest features of which the scatter is kept.
_MAX_SCATTER = 256
_ROUNDING = 1e-13


class NotFiniteError(ValueError):
    """A frame of the block holds NaN or infinity; ``index`` is the first such frame."""

    def __init__(self, index: int, count: int) -> None:
        super().__init__(index, count)
        self.index, self.count = index, count


class Moments(NamedTuple):
    """Number of frames n, mean (p,), sum of squared deviations from it (p,), scatter (p, p), digest, look, values.

    The scatter is kept for up to 256 features only; the digest of the frames, and what their values look like, where
    they were asked for.
    """

    n: int
    mean: Floats
    squares: Floats
    scatter: Floats | None = None
    digest: bytes | None = None
    look: Look | None = None
    values: Values | None = None


class Axes(NamedTuple):
    """Where distances are taken: frames less their mean (p,), in the basis (p, r) of what they span, if known.

    Features that are constant, or tied to others as the cells of a histogram are, make the frames span
    less than all p directions. Distances in the span are the same, and cheaper. Conditioned features are turned to
    their leading axes; the mean is then that of conditioned features.
    """

    mean: Floats
    basis: Floats | None
    conditioning: Conditioning | None = None

    def condition(self, frames: Floats) -> Floats:
        """Frames (n, p) as the mean and the axes know them."""
        return conditioned(frames, self.conditioning)

    def apply(self, frames: Floats) -> Floats:
        """Frames (n, p) in these axes, (n, r)."""
        centred = self.condition(frames) - self.mean
        return centred if self.basis is None else centred @ self.basis

    def lift(self, values: Floats) -> Floats:
        """Back from these axes (r, k) to features (p, k)."""
        return values if self.basis is None else self.basis @ values

    @property
    def width(self) -> int:
        """Number of axes r."""
        return len(self.mean) if self.basis is None else self.basis.shape[1]


def moments(frames: Floats, digested: bool = False, looked: bool = False) -> Moments:
    """Moments of one block.

    Parameters
    ----------
    frames
        Shape (n, p), n >= 1.
    digested
        Whether to take a digest of the frames in their order, which the moments do not see.
    looked
        Whether to say what the values look like.

    Returns
    -------
    Count, mean, and sum of squared deviations of every feature.

    Raises
    ------
    NotFiniteError
        A frame holds NaN or infinity.
    TooLargeError
        A frame holds a number whose square is infinite.

    Examples
    --------
    >>> moments(np.array([[1.0], [3.0]])).squares
    array([2.])
    """
    finite = np.isfinite(frames).all(axis=1)
    if not finite.all():
        raise NotFiniteError(int(np.argmin(finite)), int(np.count_nonzero(~finite)))
    seen = values(frames)
    mean = frames.mean(axis=0)
    centred = frames - mean
    scatter = centred.T @ centred if frames.shape[1] <= _MAX_SCATTER else None
    squares = np.square(centred).sum(axis=0)
    own = digest(frames) if digested else None
    return Moments(len(frames), mean, squares, scatter, own, look(frames) if looked else None, seen)


def combine(parts: Iterable[Moments]) -> Moments:
    """Moments of all blocks together, combined in their order (Chan, Golub and LeVeque 1979).

    Examples
    --------
    >>> combine([moments(np.array([[1.0]])), moments(np.array([[3.0]]))])[:3]
    (2, array([2.]), array([2.]))
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
    weight = a.n * b.n / count
    scatter = (
        None if a.scatter is None or b.scatter is None else a.scatter + b.scatter + weight * np.outer(shift, shift)
    )
    both = None if a.digest is None or b.digest is None else hashlib.sha256(a.digest + b.digest).digest()
    seen = None if a.look is None or b.look is None else both_looks(a.look, b.look)
    shown = None if a.values is None or b.values is None else together(a.values, b.values)
    return Moments(count, mean, a.squares + b.squares + weight * np.square(shift), scatter, both, seen, shown)


def leading_axes(covariance: Floats, most: int) -> tuple[Floats, Floats]:
    """Variances and directions of the leading principal axes, ``most`` at most; what is rounding is left out.

    Examples
    --------
    >>> leading_axes(np.diag([1.0, 4.0, 0.0]), 5)[0]
    array([4., 1.])
    """
    values, vectors = np.linalg.eigh(covariance)
    kept = np.flatnonzero(values > _ROUNDING * values[-1])[::-1][:most]
    return values[kept], signed(vectors[:, kept])


def signed(directions: Floats) -> Floats:
    """Directions (p, r), turned so that the entry of largest magnitude is positive.

    Examples
    --------
    >>> signed(np.array([[0.6], [-0.8]])).ravel()
    array([-0.6,  0.8])
    """
    largest = np.argmax(np.abs(directions), axis=0)
    return directions * np.sign(directions[largest, np.arange(directions.shape[1])])


def span_axes(total: Moments) -> Axes:
    """Axes that the frames span, those of largest variance first.

    Directions below 1e-13 of the largest variance are rounding.

    Examples
    --------
    >>> span_axes(moments(np.array([[0.0, 1.0, 7.0], [1.0, 0.0, 7.0]]))).width
    1
    """
    if total.scatter is None:
        return Axes(total.mean, None)
    values, vectors = np.linalg.eigh(total.scatter)
    kept = values > _ROUNDING * values[-1]
    if kept.all():
        return Axes(total.mean, None)
    return Axes(total.mean, vectors[:, kept][:, ::-1])
