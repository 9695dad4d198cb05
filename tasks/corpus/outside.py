r"""How far frames lie outside what a map was fitted on: nearest distances, against those of frames that were held out.

Throughout: *nearest* is the distance of a frame to the nearest reference of the map; a frame is *outside* where that is
beyond the *reach* of the map, which a known share of frames is that were held out with their whole recordings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats, Integers

# A recording is farther off than others where its median distance lies this many deviations above theirs, and by this
# share at least; by more where there are fewer recordings than this, whose medians hardly tell how much they scatter.
_DEVIATIONS, _LEAST_MORE, _FEW = 4.0, 0.15, 8


class Reach(NamedTuple):
    """How far frames of recordings lie from a map that was fitted without them."""

    limit: float
    """Nearest distance that the level of held-out frames exceeds."""
    median: float
    """Median nearest distance of held-out frames."""
    shares: Floats
    """Share of every held-out recording that lies outside, NaN for those of which nothing was held out."""
    ratios: Floats
    """Median nearest distance of every held-out recording, in that of all of them; NaN as above."""


def reach_of(nearest: Floats, recording: Integers, n_recordings: int, level: float) -> Reach:
    """What held-out frames say about the reach of a map.

    Parameters
    ----------
    nearest
        Nearest distances of held-out frames, shape (n,); NaN where nothing is known.
    recording
        Number of the recording that each is from, shape (n,).
    n_recordings
        How many there are.
    level
        Share of held-out frames that count as outside.

    Examples
    --------
    >>> found = reach_of(np.arange(100.0), np.repeat([0, 1], 50), 2, 0.1)
    >>> found.limit, found.shares.tolist()
    (90.0, [0.0, 0.18])
    """
    known = ~np.isnan(nearest)
    if not known.any():
        return Reach(float(np.finfo(np.float64).max), 1.0, *np.full((2, n_recordings), np.nan))
    held, owner = nearest[known], recording[known]
    limit = float(np.quantile(held, 1 - level, method="higher"))
    own = [held[owner == number] for number in range(n_recordings)]
    shares = np.array([np.mean(each > limit) if len(each) else np.nan for each in own])
    median = float(np.median(held))
    ratios = np.array([distance_ratio(each, median) if len(each) else np.nan for each in own])
    return Reach(limit, median, shares, ratios)


def ratio_limit(ratios: Floats) -> float:
    """Distance ratio beyond which a recording is farther off than those that were held out.

    Examples
    --------
    >>> round(ratio_limit(np.array([0.9, 1.0, 1.1])), 2), round(ratio_limit(np.array([1.0, np.nan])), 2)
    (1.76, 1.42)
    """
    known = np.log(np.maximum(ratios[np.isfinite(ratios)], 1e-300))
    if not len(known):
        return np.inf
    centre = float(np.median(known))
    spread = 1.4826 * float(np.median(np.abs(known - centre)))
    least = 1 + _LEAST_MORE * np.sqrt(max(1.0, _FEW / len(known)))
    return float(max(np.exp(centre + _DEVIATIONS * spread), least))


def outside(nearest: Floats, limit: float) -> Booleans:
    """Which frames lie outside; what is too far to tell how far does.

    Examples
    --------
    >>> outside(np.array([1.0, 3.0, np.inf, np.nan]), 2.0)
    array([False,  True,  True,  True])
    """
    return ~(nearest <= limit)


def distance_ratio(nearest: Floats, median: float) -> float:
    """How many times farther than a held-out frame the middle frame of a recording lies.

    Examples
    --------
    >>> distance_ratio(np.array([2.0, 4.0, 5.0]), 2.0)
    2.0
    """
    middle = float(np.median(np.nan_to_num(nearest, nan=np.inf, posinf=np.finfo(np.float64).max)))
    return min(middle / max(median, 1e-300), float(np.finfo(np.float32).max))
