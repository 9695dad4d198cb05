"""Comparisons of two methods over the same realisations.

Throughout: ``one`` and ``other`` (r,) are scores of two methods on r realisations, in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats


class Paired(NamedTuple):
    """Mean of one less other, half the width of its 95 % interval, and p of a t-test that one is no better."""

    difference: float
    half_width: float
    p: float


def compare(one: Floats, other: Floats) -> Paired:
    """Mean difference over realisations, and whether it is above 0.

    Parameters
    ----------
    one, other
        Scores, shape (r,), r >= 2.

    Returns
    -------
    The comparison; p is that of a one-sided paired t-test.

    Examples
    --------
    >>> compare(np.array([2.0, 3.0, 4.5]), np.array([1.0, 2.0, 3.0])).difference
    1.1666666666666667
    """
    from scipy import stats  # noqa: PLC0415 - slow to import

    found = stats.ttest_rel(one, other, alternative="greater")
    both = stats.ttest_rel(one, other).confidence_interval(0.95)
    return Paired(float(np.mean(one - other)), float(both.high - both.low) / 2, float(found.pvalue))


def outermost(truth: Floats, share: float = 0.1) -> Booleans:
    """Frames at the boundary of the data: the share of them that lie farthest from the mean, in deviations.

    Parameters
    ----------
    truth
        Shape (n, k).
    share
        Of the frames.

    Returns
    -------
    Shape (n,).

    Examples
    --------
    >>> outermost(np.array([[0.0], [1.0], [-1.0], [9.0]]), 0.25)
    array([False, False, False,  True])
    """
    scaled = (truth - truth.mean(axis=0)) / truth.std(axis=0)
    distance = np.square(scaled).sum(axis=1)
    return distance > np.quantile(distance, 1 - share)


def boundary_ratio(errors: Floats, truth: Floats) -> float:
    """Mean absolute error at the boundary of the data over that of the rest.

    Parameters
    ----------
    errors
        Shape (n, k).
    truth
        Shape (n, k).

    Examples
    --------
    >>> truth = np.linspace(-1, 1, 101)[:, None]
    >>> round(boundary_ratio(truth**2, truth), 1)
    3.3
    """
    outer = outermost(truth)
    size = np.abs(errors).mean(axis=1)
    return float(size[outer].mean() / size[~outer].mean())


def effective_window(poles: Floats) -> Floats:
    """Frames of the moving average that leaves as much white noise as a first-order filter, (1 + a) / (1 - a).

    Examples
    --------
    >>> effective_window(np.array([0.5]))
    array([3.])
    """
    return (1 + poles) / (1 - poles)


def cross_correlation(estimate: Floats, truth: Floats) -> Floats:
    """Magnitude of the correlation of every coordinate (n, m) with every column of the truth (n, k), shape (m, k).

    Examples
    --------
    >>> cross_correlation(np.array([[1.0], [2.0], [3.0]]), np.array([[3.0], [2.0], [1.0]])).round(6)
    array([[1.]])
    """
    m = estimate.shape[1]
    return np.abs(np.corrcoef(estimate.T, truth.T)[:m, m:])


def best_single(estimate: Floats, truth: Floats) -> Floats:
    """Largest magnitude of the correlation of one coordinate with each column of the truth, shape (k,).

    Examples
    --------
    >>> best_single(np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), np.array([[3.0], [2.0], [1.0]])).round(6)
    array([1.])
    """
    return cross_correlation(estimate, truth).max(axis=0)
