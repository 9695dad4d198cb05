r"""How far states mixed from a bank are from the coordinates without their noise, by frames since their segment began.

Throughout: a coordinate y (n, m) is :math:`y = s + v`, with s the part that persists from frame to frame and noise v
that is new in every frame. A state :math:`\hat y_i` is linear in the coordinates up to its own frame, in which it has
the weights :math:`W_0`, so that

.. math:: E (\hat y_i - s_i)^2 = E (\hat y_i - y_i)^2 + 2\, \mathrm{cov}(v, W_0^\top v) - \mathrm{var}\, v

Everything is measured on the same frames: the first term for a filter that started k frames ago, for every k of a
few, and the noise by the autocovariance at lags of a frame and more, brought back to lag 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats, Integers
from manifold_observer.tasks.observers import bank, exponentials
from manifold_observer.tasks.observers.bank import Memory, Mixture

AGES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Frames since a segment began at which deviations are measured; between them the younger one counts."""
_LAGS = 24
# Pairs of frames that a lag, and frames of an age that its error, is measured from at least.
_PAIRS, _FRAMES = 100, 50
# What autocovariances are made of: decays and turns a frame. What decays faster cannot be told from noise.
_DECAYS = (0.45, 0.6, 0.7, 0.8, 0.88, 0.93, 0.96, 0.98, 0.99, 0.999)
_TURNING_DECAYS = (0.8, 0.88, 0.93, 0.96, 0.98, 0.99, 0.999)
_TURNS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
# Turns are taken in where decays alone miss an autocovariance by this many times its sampling error, in squares.
_SURE = 2


class Runs(NamedTuple):
    """One direction of time: coordinates (n, m), where filters start anew (n,), their memory and mixture."""

    values: Floats
    anew: Booleans
    memory: Memory
    mixture: Mixture


def ages(anew: Booleans) -> Integers:
    """Frames before each frame since its filter started.

    Examples
    --------
    >>> ages(np.array([True, False, False, True]))
    array([0, 1, 2, 0])
    """
    numbers = np.arange(len(anew))
    return numbers - np.maximum.accumulate(np.where(anew, numbers, 0))


def aged_states(runs: Runs) -> tuple[list[Floats], list[Booleans]]:
    r"""States of a filter that started k frames before each frame, for every k of :data:`AGES`, and where it could.

    With F the bank that ran from the start, the bank of age k is :math:`F_i + a^k (y_{i-k} - F_{i-k})`; with a matrix
    in the place of a for learnt transitions, and what they start from in that of y.

    Returns
    -------
    Arrays (n, m) and (n,), as many as there are ages that enough frames reach.
    """
    own = ages(runs.anew)
    whole, _ = bank.scan(runs.values, runs.anew, np.zeros(runs.mixture.weights.shape[0]), runs.memory)
    apart = bank.started(runs.memory, runs.values) - whole
    states, reached = [], []
    for age in AGES:
        there = own >= age
        if age and np.count_nonzero(there) < _FRAMES:
            break
        young = whole + bank.faded(runs.memory, np.roll(apart, age, axis=0), age)
        states.append(runs.mixture.states(young))
        reached.append(there)
    return states, reached


def weights_of_own_frame(runs: Runs) -> tuple[Floats, Floats]:
    r"""What of its own frame a state holds, :math:`W_0` (m, m): at the first frame of a segment, and later."""
    scaled = runs.mixture.weights / runs.mixture.deviation[:, None]
    first, later = bank.entering(runs.memory, runs.values.shape[1])
    return first @ scaled, later @ scaled


def noise_of(columns: Floats, segment: Integers, doubted: int) -> tuple[Floats, Floats]:
    """Noise of several series: their variance less what their autocovariances say that persists.

    An autocovariance is fitted by decaying exponentials and cosines of weights of at least 0, which add up to lag 0.

    Parameters
    ----------
    columns
        Shape (n, c).
    segment
        Segment of every frame, shape (n,).
    doubted
        For how many of the columns, the first ones, errors are wanted.

    Returns
    -------
    Variances (c,), by chance below 0 where there is no noise, and standard errors of the first ones, of a jackknife
    over ten stretches; infinite where too few frames follow another.

    Examples
    --------
    >>> rng, slow = np.random.default_rng(0), np.sin(np.arange(4000) / 30)
    >>> variance, error = noise_of((slow + 0.5 * rng.normal(size=4000))[:, None], np.zeros(4000, int), 1)
    >>> variance.round(1), bool(error[0] < 0.05)
    (array([0.2]), True)
    """
    lags = _lags(segment)
    if len(lags) < 2:
        return np.zeros(columns.shape[1]), np.full(doubted, np.inf)
    found = exponentials.autocovariance(columns, segment, lags)
    parts = _parts(found, lags)
    rows = [(found.variance_without(row)[:doubted], found.mean(row)[:, :doubted]) for row in found.filled()]
    again = np.array([_noise(variance, mean, parts) for variance, mean in rows])
    return _noise(found.variance, found.mean(), parts), exponentials.jackknife(again)


def _parts(found: exponentials.Autocovariance, lags: Integers) -> list[Floats]:
    """What the autocovariance of each column is made of: decays, and turns where those alone miss it."""
    plain, turning = _decaying(lags), _turning(lags)
    sampled = np.square(exponentials.jackknife(np.array([found.mean(row) for row in found.filled()]))).sum(axis=0)
    missed = [_persists(column, plain)[1] for column in found.mean().T]
    return [turning if far > _SURE * chance else plain for far, chance in zip(missed, sampled, strict=True)]


def _noise(variance: Floats, mean: Floats, parts: list[Floats]) -> Floats:
    """What is left of the variances (c,), given autocovariances (k, c)."""
    return variance - np.array([_persists(column, own)[0] for column, own in zip(mean.T, parts, strict=False)])


def _lags(segment: Integers) -> Integers:
    """Lags at which enough frames have another one."""
    return np.array(
        [lag for lag in range(1, _LAGS + 1) if np.count_nonzero(segment[lag:] == segment[:-lag]) >= _PAIRS], np.int64
    )


def _decaying(lags: Integers) -> Floats:
    """Autocovariances of variance 1 at the lags that decay, shape (k, number of them)."""
    return np.asarray(np.array(_DECAYS) ** lags[:, None], np.float64)


def _turning(lags: Integers) -> Floats:
    """Autocovariances of variance 1 at the lags that decay, or turn as they do, shape (k, number of them)."""
    decays, turns = (grid.ravel() for grid in np.meshgrid(_TURNING_DECAYS, _TURNS))
    turning = decays ** lags[:, None] * np.cos(turns * lags[:, None])
    return np.hstack([_decaying(lags), turning])


def _persists(mean: Floats, parts: Floats) -> tuple[float, float]:
    """Variance at lag 0 of the best mixture of parts for an autocovariance (k,), and its sum of squared residuals."""
    from scipy.optimize import nnls  # noqa: PLC0415 - slow to import

    size = float(np.abs(mean).max())
    if size == 0:
        return 0.0, 0.0
    weights, residual = nnls(parts, mean / size)
    return size * float(weights.sum()), float(np.square(size * residual))


class Errors(NamedTuple):
    """Error variances of states (ages, m) forwards, and (ages, ages, m) of the mean with backward ones."""

    forwards: Floats
    both: Floats


def errors(ahead: Runs, back: Runs, segment: Integers) -> Errors:
    """Error variances by frames since the start of a segment, and for the mean by frames to its end too.

    Parameters
    ----------
    ahead
        Frames in their order.
    back
        The same frames in reverse order.
    segment
        Segment of every frame, in their order.

    Returns
    -------
    Infinite where the noise is not known.

    Notes
    -----
    O(n k (k + m)) time for m coordinates at k = 17 ages. Estimates are kept from falling below what they may be by
    chance: where a coordinate is all noise, its state has at least its own variance as an error.
    """
    noise = _noises(ahead, back, segment)
    forwards, there = aged_states(ahead)
    backwards, before = aged_states(back)
    one = [
        _error_at(k, state, own, ahead.values, noise)
        for k, (state, own) in enumerate(zip(forwards, there, strict=True))
    ]
    both = _of_means((forwards, there), (backwards, before), ahead.values, noise)
    return Errors(np.array(one), both)


def oldest_errors(ahead: Runs, back: Runs, segment: Integers) -> Floats:
    """The last row of the forward :func:`errors`, shape (m,): those of states whose segment began long ago."""
    noise = _noises(ahead, back, segment)
    forwards, there = aged_states(ahead)
    return _error_at(len(forwards) - 1, forwards[-1], there[-1], ahead.values, noise)


class _Noises(NamedTuple):
    """Noise of every coordinate (m,), what of it states share, forwards and both ways (6, m), and its error (m,)."""

    noise: Floats
    shared: Floats
    doubt: Floats


def _noises(ahead: Runs, back: Runs, segment: Integers) -> _Noises:
    """Noise of the coordinates, and what of it is in the states."""
    values, m = ahead.values, ahead.values.shape[1]
    ahead_weights = weights_of_own_frame(ahead)
    both_weights = [(one + other) / 2 for one in ahead_weights for other in weights_of_own_frame(back)]
    mixed = [values @ weights for weights in (*ahead_weights, *both_weights)]
    columns = np.hstack([values, *(values + x for x in mixed), *(values - x for x in mixed)])
    variances, doubt = noise_of(columns, segment, m)
    sums, differences = variances[m:].reshape(2, len(mixed), m)
    return _Noises(np.maximum(variances[:m], 0.0), (sums - differences) / 4, doubt)


def _error_at(k: int, states: Floats, own: Booleans, values: Floats, noise: _Noises) -> Floats:
    """Error variance of forward states of the k-th age, at the frames that are so old."""
    return _error(states[own], values[own], noise.noise, noise.shared[min(k, 1)], noise.doubt)


def _of_means(
    ahead: tuple[list[Floats], list[Booleans]],
    back: tuple[list[Floats], list[Booleans]],
    values: Floats,
    noises: _Noises,
) -> Floats:
    """Error variances of the means of forward and backward states, by the ages of both, shape (ages, ages, m)."""
    noise, shared, doubt = noises.noise, noises.shared[2:], noises.doubt
    both = np.empty((len(ahead[0]), len(back[0]), values.shape[1]))
    for k, (state, own) in enumerate(zip(*ahead, strict=True)):
        for j, (late, late_own) in enumerate(zip(*back, strict=True)):
            place = own & late_own[::-1]
            if (k or j) and np.count_nonzero(place) < _FRAMES:
                # Segments are too short for both ages: an older filter is no worse than a younger one.
                both[k, j] = np.min([both[max(k - 1, 0), j], both[k, max(j - 1, 0)]][k == 0 : 2 - (j == 0)], axis=0)
                continue
            mean = (state + late[::-1])[place] / 2
            both[k, j] = _error(mean, values[place], noise, shared[2 * min(k, 1) + min(j, 1)], doubt)
    return both


def _error(states: Floats, values: Floats, noise: Floats, shared: Floats, doubt: Floats) -> Floats:
    """Error variance of one age, shape (m,)."""
    apart = np.square(states - values).mean(axis=0) + 2 * shared - noise
    # What noise is in excess, the state shares by its own weight: the more it does, the less that matters.
    weight = np.divide(shared, noise, out=np.zeros(len(noise)), where=noise > 0)
    unsure = doubt * np.abs(1 - 2 * np.clip(weight, 0, 1))
    # The part that persists is known to the error of the noise only: of a coordinate that is all noise, nothing is.
    weak = np.maximum(np.square(values).mean(axis=0) - noise, 0.0) < 3 * doubt
    least = np.where(weak, np.minimum(np.square(states).mean(axis=0), doubt), 0.25 * unsure)
    variance = np.maximum(apart, least)
    share = np.minimum(unsure / np.maximum(variance, 1e-300), 1.0)
    return np.where(np.isfinite(doubt), variance * np.square(1 + np.square(share) / 2), np.inf)
