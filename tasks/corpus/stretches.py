"""Which frames of which recordings a sample of a corpus holds; integers only.

Throughout: a *stretch* is a run of consecutive frames of one recording, long enough for local covariances and for
filters to settle.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from manifold_observer.tasks.arrays import Integers

Span = tuple[int, int]


def allotted(counts: Sequence[int], total: int, *, equal: bool) -> Integers:
    """Frames that every recording gives to a sample.

    Parameters
    ----------
    counts
        Frames that each recording has.
    total
        Frames of the sample, about.
    equal
        The same number from every recording, as far as it has them; or else in proportion to its frames.

    Returns
    -------
    One number a recording, at most what it has; ``total`` in all where there are as many.

    Examples
    --------
    >>> allotted([10, 100, 1000], 210, equal=True), allotted([10, 100, 1000], 222, equal=False)
    (array([ 10, 100, 100]), array([  2,  20, 200]))
    """
    there = np.asarray(counts, np.int64)
    weights = np.ones(len(there)) if equal else there.astype(np.float64)
    given = np.zeros(len(there), np.int64)
    wanted = min(total, int(there.sum()))
    while given.sum() < wanted:
        open_ = np.flatnonzero(given < there)
        left = wanted - int(given.sum())
        more = np.floor(left * weights[open_] / weights[open_].sum()).astype(np.int64)
        if not more.any():  # the last few go to the first recordings
            more[:left] = 1
        given[open_] += np.minimum(more, there[open_] - given[open_])
    return given


def spread_out(n: int, chosen: int) -> Integers:
    """Numbers of some of n things, evenly spread from the first to the last.

    Examples
    --------
    >>> spread_out(9, 3), spread_out(2, 5)
    (array([0, 4, 8]), array([0, 1]))
    """
    if chosen >= n:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, max(chosen, 1)).round().astype(np.int64))


def stretches(n: int, wanted: int, length: int, name: str, seed: int) -> list[Span]:
    """Stretches of one recording: one at random in every part of it.

    Parameters
    ----------
    n
        Frames of the recording.
    wanted
        Frames to take.
    length
        Frames of a stretch, about.
    name
        Of the recording: where its stretches lie depends on it and the seed, on no other recording.
    seed
        Of the sample.

    Returns
    -------
    Spans of frames in order, which do not overlap; those that touch are one.

    Examples
    --------
    >>> stretches(10, 10, 4, "a", 0), sum(stop - start for start, stop in stretches(1000, 100, 20, "a", 0))
    ([(0, 10)], 100)
    """
    if wanted >= n:
        return [(0, n)] if n else []
    number = max(1, round(wanted / length))
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    sizes = np.diff(wanted * np.arange(number + 1) // number)
    parts = n * np.arange(number + 1) // number
    found: list[Span] = []
    for low, high, size in zip(parts[:-1].tolist(), parts[1:].tolist(), sizes.tolist(), strict=True):
        first = low + int(rng.integers(max(high - low - size, 0) + 1))
        if found and found[-1][1] >= first:
            found[-1] = found[-1][0], first + size
        else:
            found.append((first, first + size))
    return found
