"""Whether quantities of many recordings drift with time: robust slopes, and chance judged by random orders.

Throughout: R recordings, q quantities of each, *when* each was made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats

LEAST_RECORDINGS = 5
"""Fewer recordings have too few orders for one of them to be unlikely."""
# Random orders that the true one is compared with.
_ORDERS = 1999
# Numbers of the random orders that are held at a time.
_HELD = 2**22


class Trends(NamedTuple):
    """Of every quantity (q,): slope, rank correlation with time, and the chance that some quantity shows as much."""

    slopes: Floats
    correlations: Floats
    p: Floats


def trends(values: Floats, when: Floats, seed: int = 0) -> Trends:
    """Trends of many quantities over recordings.

    Parameters
    ----------
    values
        Shape (R, q).
    when
        Times of the recordings, shape (R,).
    seed
        Of the random orders.

    Returns
    -------
    Slopes by Theil and Sen, the median of those of all pairs; rank correlations by Spearman; p adjusted for the
    number of quantities by Westfall and Young: the share of random orders of the recordings in which the largest
    correlation of all quantities is as large. Quantities that do not vary, or hold NaN, have none.

    Notes
    -----
    Recordings count as independent of one another but for the trend: what wanders from night to night looks like a
    trend, too.

    Examples
    --------
    >>> found = trends(np.column_stack([np.arange(12.0), np.tile([1.0, -1.0], 6)]), np.arange(12.0))
    >>> found.slopes[0], found.p[0] < 0.01, found.p[1] > 0.5
    (np.float64(1.0), np.True_, np.True_)
    """
    from scipy.stats import theilslopes  # noqa: PLC0415 - slow to import

    usable = np.isfinite(values).all(axis=0) & (np.ptp(values, axis=0) > 0 if len(values) else False)
    slopes, correlations, p = (np.full(values.shape[1], np.nan) for _ in range(3))
    if len(values) < LEAST_RECORDINGS or not usable.any() or np.ptp(when) == 0:
        return Trends(slopes, correlations, p)
    ranks, order = _ranks(values[:, usable]), _ranks(when[:, None])[:, 0]
    correlations[usable] = order @ ranks
    largest = _largest(ranks, order, seed)
    as_large = largest[:, None] >= np.abs(correlations[usable]) - 1e-12
    p[usable] = (1 + as_large.sum(axis=0)) / (1 + len(largest))

    slopes[usable] = [theilslopes(column, when)[0] for column in values[:, usable].T]
    return Trends(slopes, correlations, p)


def _ranks(values: Floats) -> Floats:
    """Ranks of every column, centred, of norm 1."""
    from scipy.stats import rankdata  # noqa: PLC0415 - slow to import

    ranks = rankdata(values, axis=0)
    ranks -= ranks.mean(axis=0)
    return np.asarray(ranks / np.linalg.norm(ranks, axis=0))


def _largest(ranks: Floats, order: Floats, seed: int) -> Floats:
    """Largest correlation of all quantities in random orders."""
    rng, found = np.random.default_rng(seed), []
    at_a_time = max(1, _HELD // max(ranks.shape))
    for first in range(0, _ORDERS, at_a_time):
        rows = rng.permuted(np.tile(order, (min(at_a_time, _ORDERS - first), 1)), axis=1)
        found.append(np.abs(rows @ ranks).max(axis=1))
    return np.concatenate(found)
