r"""How far frames lie outside what a map was fitted on: nearest distances, against those of frames that were held out.

Throughout: *nearest* is the distance of a frame to the nearest reference of the map; a frame is *outside* where that is
beyond the *reach* of the map, which a known share of frames is that were held out with their whole recordings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats, Integers


class Reach(NamedTuple):
    """How far frames of recordings lie from a map that was fitted without them."""

    limit: float
    """Nearest distance that the level of held-out frames exceeds."""
    median: float
    """Median nearest distance of held-out frames."""
    shares: Floats
    """Share of every held-out recording that lies outside, NaN for those of which nothing was held out."""


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
        return Reach(np.inf, 1.0, np.full(n_recordings, np.nan))
    held = nearest[known]
    limit = float(np.quantile(held, 1 - level, method="higher"))
    outside = np.bincount(recording[known], held > limit, minlength=n_recordings)
    counts = np.bincount(recording[known], minlength=n_recordings)
    shares = np.where(counts > 0, outside / np.maximum(counts, 1), np.nan)
    return Reach(limit, float(np.median(held)), shares)


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
