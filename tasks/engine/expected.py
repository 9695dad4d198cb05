r"""How many landmarks, and how many passes over the whole kernel, a residual takes: counted, never timed.

Throughout: a *residual* is the largest of the wanted modes; r(m) is that through m landmarks, which falls as a power
of m; a pass over the kernel divides it by a *gain* that the spectrum tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from manifold_observer.tasks.arrays import Floats

RATE = 4e10
"""Multiplications a second that a core is taken to do, where a bound on work is given in hours."""
SAMPLE = 256
"""Frames whose exact rows judge a residual."""
LEAST = 256
"""Landmarks to begin with, at least; rounds double them."""
# What a residual is taken to be above its estimate: a promise that is not kept costs a round.
_CAUTION = 1.25
# Powers of m that residuals were seen to fall with, and the one that is taken where nothing is known.
_SLOWEST, _FASTEST, _USUAL = -0.25, -2.5, -1.5
# Multiplications by which the decompositions of m x m numbers count for each m^3: they are slower than products.
_DECOMPOSING = 60
# Gains of a pass, at least and at most: the spectrum of a sample tells them roughly.
_LEAST_GAIN, _MOST_GAIN = 2.0, 30.0


class Seen(NamedTuple):
    """Landmarks and the residual through them."""

    landmarks: int
    residual: float


class Bounds(NamedTuple):
    """The most passes over the whole kernel and multiplications, and landmarks that are done."""

    passes: int
    work: float = math.inf
    done: int = 0


class Prices(NamedTuple):
    """Frames; multiplications of a pair, of one with a landmark, and those that a pass adds for its vectors."""

    n_frames: int
    pair: float
    apart: float
    vectors: float

    def of_landmarks(self, m: int) -> float:
        """Multiplications of one way through m landmarks."""
        return self.n_frames * ((m + SAMPLE) * self.apart + m * m) + _DECOMPOSING * m**3

    def of_passes(self, count: int) -> float:
        """Multiplications of passes over the whole kernel."""
        return count * self.n_frames**2 / 2 * (self.pair + self.vectors)


class Expected(NamedTuple):
    """What is to be done: landmarks, passes after them, the residual that they should leave, whether that is enough."""

    landmarks: int
    passes: int
    residual: float
    enough: bool


def ladder(least: int, most: int) -> list[int]:
    """Numbers of landmarks that are tried: doublings, and the most.

    Examples
    --------
    >>> ladder(256, 1500), ladder(256, 100)
    ([256, 512, 1024, 1500], [100])
    """
    rungs = []
    while least < most:
        rungs.append(least)
        least *= 2
    return [*rungs, most]


def through(seen: Sequence[Seen], landmarks: int, n_frames: float = math.inf) -> float:
    """The residual to expect through so many landmarks; all frames leave none.

    Examples
    --------
    >>> through([Seen(256, 4e-3), Seen(512, 1e-3)], 1024, 10_000)
    0.00025
    """
    if landmarks >= n_frames:
        return 0.0
    last, power = seen[-1], _USUAL
    if len(seen) > 1 and seen[-2].residual > 0 < last.residual:
        before = seen[-2]
        power = math.log(last.residual / before.residual) / math.log(last.landmarks / before.landmarks)
    return float(last.residual * (landmarks / last.landmarks) ** min(max(power, _FASTEST), _SLOWEST))


def gain(eigenvalues: Floats, wanted: int, width: int) -> float:
    r"""By how much a pass divides the residual: a Chebyshev polynomial grows so outside the eigenvalues that it damps.

    Parameters
    ----------
    eigenvalues
        Descending.
    wanted
        Modes that are wanted.
    width
        Vectors of a pass.

    Examples
    --------
    >>> import numpy as np
    >>> round(gain(np.array([0.3, 0.2, 0.1, 0.02, 0.01]), 2, 3), 1)
    30.0
    """
    if len(eigenvalues) < wanted or not len(eigenvalues):
        return _LEAST_GAIN
    damped = max(float(eigenvalues[min(width, len(eigenvalues) - 1)]), 1e-6)
    beyond = max(2 * float(eigenvalues[wanted - 1]) / damped - 1, 1.0)
    return float(min(max(beyond + math.sqrt(beyond * beyond - 1), _LEAST_GAIN), _MOST_GAIN))


def passes_for(residual: float, tolerance: float, per_pass: float) -> int:
    """Passes that bring a residual down: the first measures what the landmarks gave, each more divides it.

    Examples
    --------
    >>> passes_for(1e-3, 1e-3, 10.0), passes_for(1e-2, 1e-4, 10.0)
    (1, 3)
    """
    return 1 + max(0, math.ceil(math.log(max(residual, 1e-300) / tolerance) / math.log(per_pass) - 1e-9))


def expect(
    seen: Sequence[Seen], tolerance: float, per_pass: float, prices: Prices, numbers: Sequence[int], bounds: Bounds
) -> Expected | None:
    """The cheapest way that should leave a residual within the tolerance.

    Parameters
    ----------
    seen
        Landmarks and residuals so far, ascending.
    tolerance
        Largest residual that is wanted.
    per_pass
        What a pass divides the residual by.
    prices
        What everything costs.
    numbers
        Landmarks to choose from; at most ``bounds.done`` cost nothing more, and are no way without passes.
    bounds
        The most passes, and what is done.

    Returns
    -------
    What to do next. Where nothing is enough, what comes nearest; None where nothing more can be paid.

    Examples
    --------
    >>> prices, seen = Prices(100_000, 462, 462, 40), [Seen(256, 4e-3), Seen(512, 1e-3)]
    >>> expect(seen, 1e-3, 10.0, prices, [256, 512, 1024, 2048], Bounds(60))
    Expected(landmarks=1024, passes=0, residual=0.00025, enough=True)
    >>> expect(seen, 1e-3, 10.0, prices, [512], Bounds(60, done=512))
    Expected(landmarks=512, passes=2, residual=0.0001, enough=True)
    """
    ways = [
        (_price(prices, m, count, bounds), after(seen, m, count, per_pass, tolerance, prices.n_frames))
        for m in numbers
        for count in _counts(through(seen, m, prices.n_frames), tolerance, per_pass, m > bounds.done, bounds.passes)
    ]
    affordable = [way for way in ways if way[0] <= bounds.work]
    enough = [way for way in affordable if way[1].enough]
    if enough:
        return min(enough)[1]
    return min((way for _, way in affordable), key=lambda way: way.residual, default=None)


def _counts(residual: float, tolerance: float, per_pass: float, new: bool, most: int) -> list[int]:
    """Passes that may follow landmarks: none where the landmarks are new, and as many as bring the residual down."""
    needed = min(passes_for(_CAUTION * residual, tolerance, per_pass), most)
    return sorted({0, needed}) if new else [needed]


def after(
    seen: Sequence[Seen], landmarks: int, count: int, per_pass: float, tolerance: float, n_frames: int
) -> Expected:
    """What landmarks and passes after them should leave.

    Examples
    --------
    >>> after([Seen(512, 1e-3)], 512, 2, 10.0, 1e-3, 100_000)
    Expected(landmarks=512, passes=2, residual=0.0001, enough=True)
    """
    residual = through(seen, landmarks, n_frames) / per_pass ** max(count - 1, 0)
    return Expected(landmarks, count, residual, (residual if count else _CAUTION * residual) <= tolerance)


def _price(prices: Prices, landmarks: int, count: int, bounds: Bounds) -> float:
    """What is still to be paid."""
    return (prices.of_landmarks(landmarks) if landmarks > bounds.done else 0.0) + prices.of_passes(count)
