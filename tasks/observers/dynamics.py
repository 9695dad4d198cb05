r"""How fast coordinates really move, and how much of what is measured is noise.

Throughout: an *input* u (n, m) is one number a mode, u = x + v with a state x that forgets,
:math:`E\,x_i x_{i+k} = s\,e^{-k \tau \lambda}`, and noise v that is new in every frame. So the autocovariance
at lags k >= 1 tells the dynamics, and lag 0 holds the noise. The rates λ are those of the spectrum; the one
*time unit* τ is what the spectrum cannot know.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats, Integers
from manifold_observer.tasks.observers import exponentials
from manifold_observer.tasks.observers.exponentials import Autocovariance, Goodness, Own, Shared, autocovariance

# The lags reach as far as a typical mode takes to decay to this power of 1/e, in at most so many steps.
_REACH = 2.5
_FIRST_LAG = 8
_MOST_LAGS = 32
_NEAR = 4
_ROUNDS = 6
# A typical mode decays by at least this over the longest lag, and by at most so many e-foldings a frame.
_SLOWEST = 0.1
_FASTEST = 3.0
# A lag fits at least so often into the segments.
_TIMES = 10
# Correlation times that a recording must span for its dynamics to be told.
_LEAST_TIMES = 10
# How well a fit holds is judged over so many times as many lags as it was made from.
_FURTHER = 4
# Own exponentials explain at least this share of the autocovariance, and own units lie apart by less than this.
_LEAST_FIT = 0.8
_MOST_APART = 0.2
# First lags that miss the known decay by this share of them, and by so many standard errors, contradict it.
_MOST_BENT = 0.25
_SURE = 3
# Powers of the decay whose squares are below this leave nothing to be seen.
_NOTHING = 1e-12
# The signal has at least this share of the variance: a mode without any is all noise.
_LEAST_SIGNAL = 1e-6


class Signal(NamedTuple):
    """Variance of the states (m,), above 0 and at most that of the inputs, its standard error (m,), that of the noise.

    The error is infinite where the inputs do not decay as they should, so that no share of them is known to be signal.
    """

    variance: Floats
    error: Floats
    noise_error: Floats


class Dynamics(NamedTuple):
    """Time unit and its standard error, signal variance (m,), longest lag, what the sampling can show, and the fit.

    ``sampling``: ``"good"``; ``"sparse"`` where no mode remembers the frame before, so that the unit is a lower bound;
    ``"segments"`` where segments are too short for a decay; ``"slow"`` where the decay is slower than they can
    show; ``"short"`` where the recording spans fewer than ten correlation times of a typical mode; ``"bent"`` where
    no exponential follows the modes; ``"shape"`` where they decay by other ratios than the spectrum says.
    ``error`` (m,) is that of the rates, infinite in all of these but the last. ``own`` (m,) and ``own_error`` (m,) are
    the decays of modes by themselves; ``goodness`` is the share of its autocovariance that one unit explains of
    the mode where it explains least.
    """

    unit: float
    unit_error: float
    signal: Floats
    longest_lag: int
    sampling: str
    error: Floats
    own: Floats
    own_error: Floats
    goodness: float


def calibrate(inputs: Floats, segment: Integers, rates: Floats) -> Dynamics:
    r"""One time unit for the whole spectrum, from the decay of the autocovariance at lags of 1 and more.

    .. math:: \min_{\tau, s \ge 0} \sum_{k, \ell}
              \bigl(r_\ell(k) - s_\ell e^{-k \tau \lambda_\ell}\bigr)^2 / r_\ell(0)^2

    A mode counts by the share of its variance that is signal: noise cannot pull the unit, as it pulls
    the rate of its own mode to anything. Lags reach about two correlation times, for measured modes are
    mixtures whose first lags decay too fast.

    Parameters
    ----------
    inputs
        u, shape (n, m).
    segment
        Segment of every frame, shape (n,).
    rates
        λ per frame as the spectrum has them, at least 0 and not all 0, shape (m,).

    Returns
    -------
    The dynamics; the error of the unit is that of a jackknife over ten stretches of the recording.

    Notes
    -----
    O(n m) time for each of at most 32 lags, in at most six rounds.

    Examples
    --------
    A state that halves its autocovariance every frame, in noise:

    >>> rng = np.random.default_rng(0)
    >>> from scipy.signal import lfilter
    >>> state = lfilter([1.0], [1.0, -0.5], rng.normal(size=(50_000, 1)), axis=0)
    >>> found = calibrate(state + rng.normal(size=state.shape), np.zeros(50_000, int), np.array([0.1]))
    >>> round(found.unit * 0.1, 1), found.signal.round(1)
    (0.7, array([1.3]))
    """
    typical = float(np.median(rates[rates > 0]))
    most = _longest_lag(segment)
    bounds = (_SLOWEST / most / typical, _FASTEST / typical)
    longest = min(_FIRST_LAG, most)
    for _ in range(_ROUNDS):
        found = autocovariance(inputs, segment, lags(longest))
        unit = exponentials.best_unit(found, rates, bounds)
        wanted = int(np.clip(np.ceil(_REACH / (unit * typical)), min(4, most), most))
        if wanted == longest:
            break
        longest = wanted
    shared = exponentials.shared_unit(found, rates, bounds)
    own = exponentials.own_units(found, rates, bounds)
    # What oscillates looks like a fast decay until lags reach further than that.
    wide = autocovariance(inputs, segment, lags(min(_FURTHER * int(found.lags[-1]), most)))
    fits = [exponentials.goodness(wide, _misfits(wide, units * rates)) for units in (own.units, shared.unit)]
    signal = near_signal(inputs, segment, shared.unit * rates).variance
    sampling = _sampling(found, shared, shared.unit * typical * len(inputs))
    return _judged(Found(shared, own, (fits[0], fits[1]), signal, int(found.lags[-1])), rates, sampling)


class Found(NamedTuple):
    """Units of all modes and of each, how well both fit, signal variance (m,) and the longest lag."""

    shared: Shared
    own: Own
    fits: tuple[Goodness, Goodness]
    signal: Floats
    longest: int


def _judged(found: Found, rates: Floats, sampling: str) -> Dynamics:
    """The fit with all that speaks against it."""
    shared, own, fits = found.shared, found.own, found.fits
    apart, by_chance = exponentials.scatter(own)
    if sampling == "good" and fits[0].whole < _LEAST_FIT:
        sampling = "bent"
    error = shared.error if sampling == "good" else float("inf")
    if sampling == "good" and not by_chance and apart > _MOST_APART:
        sampling = "shape"
    return Dynamics(
        shared.unit,
        error,
        found.signal,
        found.longest,
        sampling,
        _times(_rate_errors(shared, error, own, apart), rates),
        own.units * rates,
        _times(own.units * own.errors, rates),
        fits[1].worst,
    )


def _times(errors: Floats, rates: Floats) -> Floats:
    """Errors of units as those of rates; of a rate of 0 nothing is known."""
    return np.multiply(errors, rates, out=np.full(len(rates), np.inf), where=rates > 0)


def _misfits(found: Autocovariance, decays: Floats) -> Floats:
    """Misfits of given decays, shape (m,)."""
    return exponentials.misfit(found.mean(), found, decays[None])[0]


def _rate_errors(shared: Shared, error: float, own: Own, apart: float) -> Floats:
    """Errors of the unit, a mode: where units of modes lie apart, that of each is as uncertain as that."""
    away = np.square(np.log(own.units / shared.unit))
    beyond = np.clip(1 - np.divide(np.square(own.errors), away, out=np.full(len(away), np.inf), where=away > 0), 0, 1)
    return np.asarray(
        np.sqrt(error**2 + np.maximum(apart**2 * shared.unit**2, beyond * (own.units - shared.unit) ** 2))
    )


def lags(longest: int) -> Integers:
    """Lags from 1 to the longest, evenly, at most 32 of them.

    Examples
    --------
    >>> lags(3)
    array([1, 2, 3])
    """
    return np.unique(np.linspace(1, longest, min(longest, _MOST_LAGS)).round().astype(np.int64))


def near_signal(inputs: Floats, segment: Integers, decay: Floats, decay_error: Floats | None = None) -> Signal:
    r"""How much of the variance is signal, as the first four lags tell it for known decay, by least squares.

    .. math:: \hat s = \textstyle\sum_k p_k r(k) / \sum_k p_k^2, \qquad p_k = e^{-k \tau \lambda}

    Products so near share their sampling error with lag 0.

    Parameters
    ----------
    inputs
        u, shape (n, m).
    segment
        Segment of every frame, shape (n,).
    decay
        Decay of each mode over one frame, shape (m,).
    decay_error
        Its standard error, shape (m,); none where it is known.

    Returns
    -------
    Signal is above 0 and at most the variance at lag 0; where it is clipped, the errors say how wrong it may be.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> near_signal(rng.normal(size=(9000, 1)), np.zeros(9000, int), np.array([0.1])).variance < 0.05
    array([ True])
    """
    near = autocovariance(inputs, segment, lags(min(_NEAR, _longest_lag(segment))))
    powers = np.exp(-near.lags[:, None] * decay)
    fitted, filled = _fitted(near.mean(), powers), near.filled()
    error, noise_error, bent = np.full(len(decay), np.inf), 0 * fitted, np.zeros(len(decay), bool)
    if len(filled) > 1:
        error, noise_error = _signal_errors(near, powers, filled)
        bent = (fitted - near.variance > _SURE * noise_error) | _bent(near, powers)
    if decay_error is not None:
        # A signal is told from lags 1 to 4: an error of the decay enters as often as a typical one of them is long.
        far = np.sum(near.lags[:, None] * powers**2, axis=0) / np.maximum(np.sum(powers**2, axis=0), _NOTHING)
        by_decay = np.abs(fitted) * far * np.minimum(decay_error, decay)
        error, noise_error = np.hypot(error, by_decay), np.hypot(noise_error, by_decay)
    variance = np.clip(fitted, _LEAST_SIGNAL * near.variance, near.variance)
    return Signal(variance, np.where(bent, np.inf, error), noise_error)


def _fitted(mean: Floats, powers: Floats) -> Floats:
    """Least squares; 0 where the decay leaves nothing at any lag."""
    total = np.sum(powers * powers, axis=0)
    return np.divide(np.sum(powers * mean, axis=0), total, out=np.zeros(len(total)), where=total > _NOTHING)


def _signal_errors(near: Autocovariance, powers: Floats, filled: list[int]) -> tuple[Floats, Floats]:
    """Standard errors (m,) of the signal and of what it leaves to the noise; infinite where nothing is left at any lag.

    Of a decay that leaves nothing the lags cannot tell signal from noise.
    """
    signal = np.array([_fitted(near.mean(row), powers) for row in filled])
    noise = np.array([near.variance_without(row) for row in filled]) - signal
    hidden = np.sum(powers * powers, axis=0) <= _NOTHING
    errors = [exponentials.jackknife(values) for values in (signal, noise)]
    return np.where(hidden, np.inf, errors[0]), np.where(hidden, 0.0, errors[1])


def _bent(near: Autocovariance, powers: Floats) -> Booleans:
    """Modes (m,) whose first lags do not decay as they should, by much and beyond chance."""
    mean, filled = near.mean(), near.filled()
    missed = mean - _fitted(mean, powers) * powers
    again = np.array([near.mean(row) - _fitted(near.mean(row), powers) * powers for row in filled])
    sampled = exponentials.jackknife(again)
    sure = np.square(missed).sum(axis=0) > _SURE**2 * np.square(sampled).sum(axis=0)
    return np.asarray(sure & (np.square(missed).sum(axis=0) > _MOST_BENT**2 * np.square(mean).sum(axis=0)))


def noise_variances(variance: Floats, lift: Floats, signal: Floats) -> Floats:
    r"""Noise of every feature, what the states do not explain.

    .. math:: \mathrm{var}\,z_j - \sum_\ell \alpha_{j\ell}^2 s_\ell

    Parameters
    ----------
    variance
        Of the features, shape (p,), squared feature units.
    lift
        α, shape (p, m).
    signal
        s, shape (m,).

    Returns
    -------
    Shape (p,), at least a hundredth of the variance.

    Examples
    --------
    >>> noise_variances(np.array([5.0, 1.0]), np.array([[1.0], [2.0]]), np.array([2.0]))
    array([3.  , 0.01])
    """
    return np.maximum(variance - np.square(lift) @ signal, 0.01 * variance)


def process_noise(poles: Floats, signal: Floats) -> Floats:
    """Process noise that keeps the variance of the states as it is, :math:`(1 - a^2) s`, shape (m, m).

    Examples
    --------
    >>> process_noise(np.array([0.5]), np.array([4.0]))
    array([[3.]])
    """
    return np.diag((1 - poles * poles) * signal)


def measurement_noise(inputs: Floats, signal: Floats) -> Floats:
    """Covariance of the noise of the inputs: theirs without the signal, its diagonal kept above 0, shape (m, m)."""
    covariance = inputs.T @ inputs / len(inputs)
    noise = covariance - np.diag(signal)
    values, vectors = np.linalg.eigh(noise)
    least = 1e-3 * float(np.trace(covariance)) / len(signal)
    return (vectors * np.maximum(values, least)) @ vectors.T


def _longest_lag(segment: Integers) -> int:
    """The longest lag that fits ten times into the segments, and twice into the longest of them; at least 1."""
    counts = np.diff(np.flatnonzero(np.concatenate([[True], np.diff(segment) != 0, [True]])))
    least, most = 1, max(1, int(counts.max()) // 2)
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if int((counts // middle).sum()) >= _TIMES else (least, middle - 1)
    return least


def _sampling(found: Autocovariance, shared: Shared, times: float) -> str:
    """Whether dynamics can be seen: beyond three standard errors of white noise, over enough correlation times."""
    count = max(int(found.counts[:, 0].sum()), 1)
    remembered = (found.mean()[0] > 3 / np.sqrt(count) * found.variance).any()
    if not remembered or shared.bound == "upper":
        return "sparse"
    if times < _LEAST_TIMES:
        return "short"
    if len(found.lags) < 3:
        return "segments"
    return "slow" if shared.bound == "lower" else "good"
