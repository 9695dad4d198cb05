"""Whether a claim about many realisations is shown: differences with intervals, and one chance of error for all.

Throughout: ``one`` and ``other`` (r,) are scores of two methods on r realisations, in the same order; p is the
chance of numbers as good as these if the claim just fails to be true. Where fewer than two realisations are there,
nothing is shown and p is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from manifold_observer.tasks.arrays import Booleans, Floats

LEVEL = 0.05
"""Chance that any claim of a family is accepted although it is wrong."""


class Finding(NamedTuple):
    """What was found, the ends of its 95 % interval, and p of a one-sided test."""

    value: float
    low: float
    high: float
    p: float


def exceeds(one: Floats, other: Floats | float, margin: float = 0.0) -> Finding:
    """Whether the mean of one less other is above a margin: a one-sided paired t-test.

    A margin below 0 asks whether one is no worse than other by more than that.

    Examples
    --------
    >>> exceeds(np.array([2.0, 3.0, 4.5]), np.array([1.0, 2.0, 3.0])).p < 0.05
    True
    """
    difference = np.asarray(one - other, np.float64)
    r, mean = len(difference), float(difference.mean())
    if r < 2:
        return Finding(mean, -np.inf, np.inf, 1.0)
    error = float(difference.std(ddof=1)) / np.sqrt(r)
    half = error * float(stdtrit(r - 1, 0.975))
    return Finding(mean, mean - half, mean + half, _p_above(mean - margin, error, r))


def exceeds_everywhere(pairs: Iterable[tuple[Floats, Floats | float]], margin: float = 0.0) -> Finding:
    """Whether one exceeds other in each of several places; p is the largest of theirs, which needs no correction.

    The value and its interval are those of the place where the difference is smallest.

    Examples
    --------
    >>> one, other = np.array([2.0, 3.0, 4.5]), np.array([1.0, 2.0, 3.0])
    >>> exceeds_everywhere([(one, other), (other, one)]).p > 0.9
    True
    """
    found = [exceeds(one, other, margin) for one, other in pairs]
    return min(found, key=lambda place: place.value)._replace(p=max(place.p for place in found))


def within(values: Floats, truth: Floats, tolerance: float) -> Finding:
    """Whether the means of several numbers are all within a share of the truth: two one-sided t-tests each.

    Parameters
    ----------
    values
        Shape (r, m).
    truth
        Shape (m,), never 0.
    tolerance
        Share of the truth.

    Returns
    -------
    Relative error of the number that is farthest off, its interval, and the largest p of all.

    Examples
    --------
    >>> within(np.array([[1.0], [1.1], [1.05]]), np.array([1.0]), 0.15).p < 0.05
    True
    """
    errors = (values / truth - 1).T
    found = [(exceeds(own, 0.0), exceeds(own, 0.0, -tolerance), exceeds(-own, 0.0, -tolerance)) for own in errors]
    worst = max((mean for mean, _, _ in found), key=lambda mean: abs(mean.value))
    return worst._replace(p=max(max(above.p, below.p) for _, above, below in found))


def holm(p: Sequence[float]) -> Floats:
    """Chances of each of several claims, raised so that all may be compared with one level (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    raised = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted


def shown(p: Sequence[float], level: float = LEVEL) -> Booleans:
    """Which of several claims are shown, at one chance of error for all.

    Examples
    --------
    >>> shown([0.01, 0.04])
    array([ True,  True])
    """
    return holm(p) < level


def shrunk_reading(truth: Floats, reading: Floats, rng: np.random.Generator) -> Floats:
    """A reading that knows nothing but the truth and white noise, as correlated with the truth as another one.

    It is shrunk towards the mean as a regression shrinks, so that its errors grow towards the ends of the data for that
    reason alone.

    Parameters
    ----------
    truth, reading
        Shape (n, k).
    rng
        Of the noise.

    Returns
    -------
    Shape (n, k), in the unit of the truth.

    Examples
    --------
    >>> truth = np.random.default_rng(0).normal(size=(5000, 1))
    >>> made = shrunk_reading(truth, 0.8 * truth + 0.48 * truth[::-1], np.random.default_rng(1))
    >>> bool(abs(np.corrcoef(made[:, 0], truth[:, 0])[0, 1] - 0.86) < 0.02)
    True
    """
    centred = truth - truth.mean(axis=0)
    other = reading - reading.mean(axis=0)
    r = np.sum(centred * other, axis=0) / np.sqrt(np.sum(centred**2, axis=0) * np.sum(other**2, axis=0))
    noise = rng.normal(size=truth.shape) * centred.std(axis=0)
    return np.asarray(truth.mean(axis=0) + r**2 * centred + r * np.sqrt(1 - r**2) * noise, np.float64)


def _p_above(excess: float, error: float, r: int) -> float:
    """Of a mean that exceeds by so much with such a standard error; a difference without spread is as it is."""
    if error == 0:
        return 0.0 if excess > 0 else 1.0
    return float(stdtr(r - 1, -excess / error))
