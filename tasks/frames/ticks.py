"""The rate of a stored clock, and its gaps: clocks are rounded, jitter, and lose samples.

Throughout: a *step* is the time from a sample to the next; a *tick* is the finest step that a clock can show; a clock
is *coarse* where its ticks are not far below its period. Times are in seconds, float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GAP_PERIODS = 1.5
"""A step longer than this many periods is a gap, unless ticks or jitter explain it."""

# Decimal places that are looked at for the tick of a clock.
_PLACES = 10
# A tick above this share of the period makes a clock coarse.
_COARSE = 0.02
# Longest step, in ticks, that may still belong to a clock whose period is about one tick.
_DELAYED = 5
# Samples after a long step within which late ones may have caught up.
_CATCH_UP = 32
# A tick above this share of the period hides who is late.
_BLUNT = 0.25
# Samples of a short stretch, over which jitter averages out.
_STRETCH = 32
_ROUNDS = 6
# Samples that are fitted, or looked at, at once.
_FITTED = 2**20
_MOST_DIGITS = 7


class Ticks(NamedTuple):
    """What times tell: seconds between samples, the samples that begin after a gap, and the error of the period.

    ``irregular`` is the share of steps that are neither gaps nor near the period; ``spread`` how many times as long as
    the shortest the longest period of short stretches is.
    """

    period: float
    gaps: NDArray[np.int64]
    error: float
    irregular: float = 0.0
    spread: float = 1.0


def read_ticks(times: Floats, *, tick: float = 0.0, period: float | None = None, longest: float | None = None) -> Ticks:
    r"""Fit the period of a clock over its gap-free stretches, and find its gaps.

    The slope over a stretch averages out rounding and jitter, which single steps do not: at 256 Hz, a clock
    in milliseconds has steps of 4 and 3 ms. A long step is a gap unless the tick of the clock explains it, or samples
    that came late catch up after it. Where the period is about one tick, long steps that recur more
    evenly than by chance are rounding, and others are gaps. The rate is a simple number if one lies within
    the error of the fit.

    Parameters
    ----------
    times
        Increasing, in seconds, shape (samples,).
    tick
        Resolution of the numbers they were stored in, in seconds, such as that of float32; decimals are found.
    period
        Seconds between samples, where it is known.
    longest
        Longest step that is no gap, where it is known.

    Returns
    -------
    The period and the gaps.

    Notes
    -----
    A few passes over the times, in memory: the times, their steps, and a copy of those for the median.

    Examples
    --------
    A clock at 700 Hz, in milliseconds, with 40 samples missing:

    >>> samples = np.r_[0:500, 540:1000]
    >>> found = read_ticks(np.floor(samples * 1000 / 700) / 1000)
    >>> round(1 / found.period, 6), found.gaps
    (700.0, array([500]))
    """
    steps = np.diff(times)
    if not len(steps):
        return Ticks(period or 1.0, np.zeros(0, np.int64), 0.0)
    tick = max(tick, resolution(times))
    usual = period or _usual(steps, tick)
    if not usual > 0:
        return Ticks(float(np.mean(steps)) or 1.0, np.zeros(0, np.int64), 0.0, irregular=1.0)
    rounded = _longest(steps, usual, tick, known=period is not None)
    fitted, gaps, error = usual, np.zeros(0, np.int64), 0.0
    for _ in range(_ROUNDS):
        if longest is None:
            found = _gaps(times, steps, fitted, max(GAP_PERIODS * fitted, rounded), tick)
        else:
            found = np.flatnonzero(steps > longest) + 1
        if period is None:
            fitted, error = _slope(times, found, fitted, tick)
        if np.array_equal(found, gaps):
            break
        gaps = found
    whole = fitted if period is not None else simple_period(fitted, error)
    return Ticks(whole, gaps, error, _odd(steps, gaps, fitted), _spread(times, gaps))


def resolution(times: Floats) -> float:
    """Tick of a clock: the decimal place at which all its times end, or the precision of the numbers.

    Examples
    --------
    >>> resolution(np.array([0.0, 0.004, 0.008, 0.011]))
    0.001
    """
    largest = max(abs(float(np.max(times, initial=0.0))), abs(float(np.min(times, initial=0.0))))
    precision = float(np.spacing(largest))
    for place in range(_PLACES):
        near = 1e-6 + 8 * precision * 10.0**place
        if near > 0.25:
            break
        if all(_ends_at(some, place, near) for some in (times[:: 1 + len(times) // 999], times)):
            return float(max(10.0**-place, precision))
    return precision


def _ends_at(times: Floats, place: int, near: float) -> bool:
    """Whether all times end at a decimal place."""
    return all(_all_near(times[start : start + _FITTED] * 10.0**place, near) for start in range(0, len(times), _FITTED))


def _all_near(scaled: Floats, near: float) -> bool:
    """Whether all numbers are about whole."""
    return bool(np.all(np.abs(scaled - np.rint(scaled)) <= near))


def simple_period(period: float, error: float) -> float:
    """The period whose rate, or which itself, has few digits, if just one such number lies within the error.

    Examples
    --------
    >>> simple_period(0.00390630, 1e-7), simple_period(0.0039, 1e-9)
    (0.00390625, 0.0039)
    """
    slack = max(error, 4 * float(np.spacing(period)))
    low, high = period - slack, period + slack
    if low <= 0:
        return period
    for digits in range(1, _MOST_DIGITS):
        for inverse in (True, False):
            bounds = (1 / high, 1 / low) if inverse else (low, high)
            found = _only_one(*bounds, digits)
            if found is not None:
                return 1 / found if inverse else found
    return period


def _only_one(low: float, high: float, digits: int) -> float | None:
    """The one number of so few digits between two bounds; None where there is none, or several."""
    place = digits - 1 - int(np.floor(np.log10(high)))
    first, last = np.ceil(low * 10.0**place - 1e-9), np.floor(high * 10.0**place + 1e-9)
    if first != last:
        return None
    return float(first / 10.0**place) if place >= 0 else float(first * 10.0**-place)


def _usual(steps: Floats, tick: float) -> float:
    """About the period: the median step, or the mean of those that its rounding makes of one period."""
    median = float(np.median(steps))
    if tick <= _COARSE * median or median <= 0:
        return median
    if median < 1.5 * tick:
        return float(np.mean(steps[steps < _widest(steps, tick)]))
    return float(np.mean(steps[np.abs(steps - median) < 1.5 * tick]))


def _longest(steps: Floats, usual: float, tick: float, *, known: bool) -> float:
    """Longest step that rounding to ticks makes of one period."""
    if tick <= _COARSE * usual:
        return 0.0
    whole = abs(usual / tick - np.rint(usual / tick)) < _COARSE
    if whole and (known or usual < 1.5 * tick):
        return 0.0  # such a clock is not rounded
    if usual < 2 * tick and not known:
        return _widest(steps, tick)
    return usual + 1.01 * tick


def _widest(steps: Floats, tick: float) -> float:
    """Where the period is about one tick: the longest step that is no gap, as long ones recur evenly, or not."""
    odd = (steps > 1.5 * tick) & (steps < (_DELAYED + 0.5) * tick)
    if not odd.any():
        return 1.5 * tick
    others = np.flatnonzero(odd if 2 * odd.sum() < len(steps) else ~odd)
    if not _evenly(others):
        return 1.5 * tick
    return float(np.quantile(steps[odd], 0.9, method="lower")) + 0.5 * tick


def _evenly(places: NDArray[np.int64]) -> bool:
    """Whether places recur more evenly than by chance, where the deviation of their distances is their mean."""
    apart = np.diff(places)
    if len(apart) < 3:
        return False
    spread = float(np.std(apart) / np.mean(apart))
    # Rounding alone makes distances that differ by one; the estimate of a spread has an error.
    return bool(np.ptp(apart) <= 1) or spread < 1 - 2.5 / np.sqrt(len(apart))


def _gaps(times: Floats, steps: Floats, period: float, longest: float, tick: float) -> NDArray[np.int64]:
    """Samples after a step that is too long, and after which late ones do not catch up."""
    found = np.flatnonzero(steps > longest) + 1
    if not len(found) or tick > _BLUNT * period:
        return found
    least, last, kept = (GAP_PERIODS - 1) * period * (1 - 1e-9), 0, []
    for at in found.tolist():
        before = _least_late(times, period, max(last, at - _CATCH_UP), at)
        if _least_late(times, period, at, at + _CATCH_UP) - before > least:
            kept.append(at)
            last = at
    return np.array(kept, np.int64)


def _least_late(times: Floats, period: float, start: int, stop: int) -> float:
    """How late the least late of some samples is, if the first of all came in time."""
    some = times[start:stop]
    return float(np.min(some - period * np.arange(start, start + len(some))))


def _slope(times: Floats, gaps: NDArray[np.int64], usual: float, tick: float) -> tuple[float, float]:
    """The one slope of all stretches between gaps, and its error; of many samples, some are fitted."""
    samples = np.arange(0, len(times), 1 + len(times) // _FITTED)
    number = np.searchsorted(gaps, samples, "right")
    own = times[samples] - times[np.concatenate([[0], gaps])][number]
    numbered = _centred(samples.astype(np.float64), number)
    own = _centred(own, number)
    spread = float(numbered @ numbered)
    if spread == 0:
        return usual, 0.0
    slope = float(numbered @ own) / spread
    rest = own - slope * numbered
    rounding = tick / np.sqrt(12) if tick > _COARSE * slope else 0.0
    noise = max(float(np.sqrt(np.mean(rest * rest))), rounding)
    longest = int(np.max(np.diff(np.concatenate([[0], gaps, [len(times)]]))))
    precision = 4 * float(np.spacing(max(abs(times[0]), abs(times[-1])))) / max(1, longest - 1)
    return slope, 3 * noise / float(np.sqrt(spread)) + precision


def _centred(values: Floats, number: NDArray[np.int64]) -> Floats:
    """Values without the mean of their stretch."""
    counts = np.maximum(1, np.bincount(number))
    centred: Floats = values - (np.bincount(number, values) / counts)[number]
    return centred


def _odd(steps: Floats, gaps: NDArray[np.int64], period: float) -> float:
    """Share of the steps that are far from one period, gaps left out unless they are many."""
    starts = range(0, len(steps), _FITTED)
    far = sum(int(np.sum(np.abs(steps[start : start + _FITTED] - period) > 0.5 * period)) for start in starts)
    if len(gaps) * 3 <= len(steps):
        far -= int(np.sum(np.abs(steps[gaps - 1] - period) > 0.5 * period))
    return far / len(steps)


def _spread(times: Floats, gaps: NDArray[np.int64]) -> float:
    """How far the periods of short stretches are apart, but for the rarest."""
    first = np.arange(0, len(times) - _STRETCH, _STRETCH)
    whole = np.searchsorted(gaps, first, "right") == np.searchsorted(gaps, first + _STRETCH, "right")
    if whole.sum() < 4:
        return 1.0
    periods = (times[first + _STRETCH] - times[first])[whole] / _STRETCH
    low, high = np.quantile(periods, [0.05, 0.95])
    return float(high / low) if low > 0 else np.inf
