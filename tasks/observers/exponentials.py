r"""How fast autocovariances decay: fits of exponentials, their errors, and how well they fit.

Throughout: r (k, m) is the autocovariance of m modes at k lags of one frame and more; the *decay* of a mode over one
frame is a *unit* :math:`\tau` times the rate :math:`\lambda` that the spectrum gives it,
:math:`r_\ell(k) \approx s_\ell e^{-k \tau \lambda_\ell}`. Errors are those of a jackknife: ten *stretches* of the
recording are left out in turn.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats, Integers

# Stretches of the recording that are left out in turn, for the uncertainty.
_STRETCHES = 10
# A deviation from ten stretches is itself uncertain: Student's quantile for nine degrees of freedom, over the normal.
_STUDENT = 2.262 / 1.960
_GRID = 200
# Finer grids around the best unit, each of a twentieth of the step before, and units of each: the last step is below a
# millionth of the unit.
_FINER, _FINER_GRID = 4, 41
# A mode is seen where its autocovariance is this many times its sampling error, in squares.
_SEEN = 4


class Autocovariance(NamedTuple):
    """Sums of products by stretch and lag (j, k, m), how many (j, k), lags (k,), and at lag 0: variance (m,).

    Beside them the sums of squares (j, m) and the number of frames (j,) of every stretch.
    """

    sums: Floats
    counts: Integers
    lags: Integers
    variance: Floats
    squares: Floats
    frames: Integers

    def mean(self, left_out: int | None = None) -> Floats:
        """Autocovariance (k, m), of all stretches or of all but one."""
        kept = np.arange(len(self.sums)) != left_out
        return self.sums[kept].sum(axis=0) / np.maximum(self.counts[kept].sum(axis=0), 1)[:, None]

    def variance_without(self, left_out: int) -> Floats:
        """Variance (m,) of all stretches but one."""
        kept = np.arange(len(self.squares)) != left_out
        return self.squares[kept].sum(axis=0) / max(int(self.frames[kept].sum()), 1)

    def filled(self) -> list[int]:
        """Stretches that hold pairs of frames."""
        return [row for row in range(len(self.counts)) if self.counts[row].any()]


class Shared(NamedTuple):
    """One unit for all modes with its error, and the bound of the search at which it was found, or ``""``."""

    unit: float
    error: float
    bound: str


class Own(NamedTuple):
    """A unit for every mode (m,), the errors of their logarithms (m,), infinite at a bound, and the misfits (m,)."""

    units: Floats
    errors: Floats
    misfits: Floats


def autocovariance(inputs: Floats, segment: Integers, lags: Integers) -> Autocovariance:
    """Products of inputs some frames apart, within segments, by stretches of the recording.

    Parameters
    ----------
    inputs
        u of mean 0, shape (n, m).
    segment
        Segment of every frame, shape (n,).
    lags
        Frames apart, each at least 1, shape (k,).

    Returns
    -------
    Sums and counts.

    Examples
    --------
    >>> found = autocovariance(np.array([[1.0], [2.0], [3.0]]), np.array([0, 0, 1]), np.array([1]))
    >>> found.mean()
    array([[2.]])
    """
    n, m = inputs.shape
    sums = np.zeros((_STRETCHES, len(lags), m))
    counts = np.zeros((_STRETCHES, len(lags)), np.int64)
    stretch = np.arange(n) * _STRETCHES // max(n, 1)
    for place, lag in enumerate(lags):
        together = np.flatnonzero(segment[lag:] == segment[:-lag])
        sums[:, place], counts[:, place] = _by_stretch(inputs[together] * inputs[together + lag], stretch[together])
    squares, frames = _by_stretch(inputs * inputs, stretch)
    return Autocovariance(sums, counts, lags, np.mean(inputs * inputs, axis=0), squares, frames)


def best_unit(found: Autocovariance, rates: Floats, bounds: tuple[float, float]) -> float:
    """The unit of :func:`shared_unit`, without its error."""
    return _fit(found.mean(), found, rates, bounds)[0]


def shared_unit(found: Autocovariance, rates: Floats, bounds: tuple[float, float]) -> Shared:
    """One unit for all modes: on a grid, then between its neighbours there.

    Parameters
    ----------
    found
        Autocovariance.
    rates
        Of the spectrum, shape (m,).
    bounds
        Least and largest unit of the search.

    Returns
    -------
    The unit. Its error is infinite at a bound, and where fewer than three lags leave the decay open.
    """
    unit, bound = _fit(found.mean(), found, rates, bounds)
    filled = found.filled()
    if bound or len(filled) < 2 or len(found.lags) < 3:
        return Shared(unit, float("inf"), bound)
    units = np.array([_fit(found.mean(row), found, rates, bounds)[0] for row in filled])
    return Shared(unit, float(jackknife(units)), bound)


def own_units(found: Autocovariance, rates: Floats, bounds: tuple[float, float]) -> Own:
    """The unit of every mode by itself.

    Parameters
    ----------
    found, rates, bounds
        As for :func:`shared_unit`.

    Returns
    -------
    Units; where the spectrum has the right shape they agree within their errors.
    """
    grid = np.geomspace(*bounds, _GRID)
    best, misfits, inside = _each(misfit(found.mean(), found, grid[:, None] * rates), grid)
    filled = found.filled()
    if len(filled) < 2 or len(found.lags) < 3:
        return Own(best, np.full(len(rates), np.inf), misfits)
    logs = [np.log(_each(misfit(found.mean(row), found, grid[:, None] * rates), grid)[0]) for row in filled]
    return Own(best, np.where(inside & (rates > 0), jackknife(np.array(logs)), np.inf), misfits)


def scatter(own: Own) -> tuple[float, bool]:
    """How far the units of modes lie apart beyond their errors, as a deviation of logarithms, and whether by chance.

    DerSimonian and Laird's estimate for random effects; the test is an F test, for the errors have nine degrees
    of freedom themselves.

    Examples
    --------
    >>> apart, by_chance = scatter(Own(np.array([1.0, 4.0]), np.array([0.1, 0.1]), np.zeros(2)))
    >>> round(apart, 1), by_chance
    (1.0, False)
    """
    from scipy.special import fdtri  # noqa: PLC0415 - slow to import

    known = np.isfinite(own.errors)
    count = int(known.sum())
    if count < 2:
        return 0.0, True
    # A mode's ten stretches can agree by luck: no mode outweighs the others without bound.
    errors = np.maximum(own.errors[known], 0.25 * np.median(own.errors[known]))
    weights, logs = 1 / np.square(np.maximum(errors, 1e-3)), np.log(own.units[known])
    apart = float(weights @ np.square(logs - weights @ logs / weights.sum()))
    spread = weights.sum() - np.square(weights).sum() / weights.sum()
    by_chance = _STUDENT**2 * apart / (count - 1) <= fdtri(count - 1, _STRETCHES - 1, 0.99)
    return float(np.sqrt(max(0.0, (apart - (count - 1)) / spread))), bool(by_chance)


def misfit(mean: Floats, found: Autocovariance, decays: Floats) -> Floats:
    """Sum of squares of every mode for each of several decays (g, m), each with its own best signal."""
    power = np.exp(-decays[:, None, :] * found.lags[None, :, None])
    total = np.sum(power * power, axis=1)
    size = np.maximum(np.divide(np.sum(power * mean, axis=1), total, out=np.zeros_like(total), where=total > 0), 0.0)
    return np.square(mean - size[:, None, :] * power).sum(axis=1) * _weight(found)


class Goodness(NamedTuple):
    """Share of the autocovariance that a fit explains, sampling errors aside, at most 1: of all modes, of the worst."""

    whole: float
    worst: float


def goodness(found: Autocovariance, misfits: Floats) -> Goodness:
    """How well a fit explains the autocovariance.

    Parameters
    ----------
    found
        Autocovariance.
    misfits
        As :func:`misfit` gives them for one decay, shape (m,).

    Returns
    -------
    Shares. Modes of which most is sampling error are not looked at for the worst.
    """
    weight, filled = _weight(found), found.filled()
    squares = np.square(found.mean()).sum(axis=0) * weight
    if len(filled) < 2 or not squares.any():
        return Goodness(1.0, 1.0)
    sampled = np.square(jackknife(np.array([found.mean(row) for row in filled]))).sum(axis=0) * weight
    beyond, seen = np.maximum(misfits - sampled, 0.0), squares > _SEEN * sampled
    whole = 1.0 - max(0.0, float(misfits.sum() - sampled.sum())) / float(squares.sum())
    return Goodness(whole, 1.0 - float(np.max(beyond[seen] / squares[seen], initial=0.0)))


def jackknife(values: Floats) -> Floats:
    """Standard error of an estimate from those with one stretch left out, shape (j, ...), wide enough for so few."""
    count = len(values)
    return np.asarray(_STUDENT * np.sqrt((count - 1) / count * np.square(values - values.mean(axis=0)).sum(axis=0)))


def _by_stretch(values: Floats, stretch: Integers) -> tuple[Floats, Integers]:
    """Sums (j, m) and counts (j,) of rows by ascending stretch."""
    first = np.searchsorted(stretch, np.arange(_STRETCHES + 1))
    sums = [values[start:stop].sum(axis=0) for start, stop in itertools.pairwise(first)]
    return np.array(sums), np.diff(first)


def _weight(found: Autocovariance) -> Floats:
    """Modes count by the share of their variance that is signal."""
    return np.divide(1.0, found.variance**2, out=np.zeros(len(found.variance)), where=found.variance > 0)


def _fit(mean: Floats, found: Autocovariance, rates: Floats, bounds: tuple[float, float]) -> tuple[float, str]:
    """The best unit, and the bound at which it lies."""
    grid = np.geomspace(*bounds, _GRID)
    best = _least(mean, found, rates, grid)
    bound = {0: "lower", _GRID - 1: "upper"}.get(best, "")
    for _ in range(_FINER):
        grid = np.geomspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], _FINER_GRID)
        best = _least(mean, found, rates, grid)
    return float(grid[best]), bound


def _least(mean: Floats, found: Autocovariance, rates: Floats, units: Floats) -> int:
    """Number of the unit that fits best."""
    return int(np.argmin(misfit(mean, found, units[:, None] * rates).sum(axis=1)))


def _each(misfits: Floats, grid: Floats) -> tuple[Floats, Floats, Booleans]:
    """Best unit of every mode on a grid, by a parabola through its neighbours; misfits, and where it is inside."""
    best, modes = np.argmin(misfits, axis=0), np.arange(misfits.shape[1])
    inside = (best > 0) & (best < len(grid) - 1)
    place = np.clip(best, 1, len(grid) - 2)
    left, middle, right = (misfits[place + step, modes] for step in (-1, 0, 1))
    bend = left - 2 * middle + right
    shift = np.divide((left - right) / 2, bend, out=np.zeros(len(modes)), where=inside & (bend > 0))
    step = np.log(grid[1] / grid[0])
    return grid[best] * np.exp(np.clip(shift, -1, 1) * step), misfits[best, modes], inside
