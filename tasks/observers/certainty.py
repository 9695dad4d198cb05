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
from manifold_observer.tasks.observers.bank import Mixture

AGES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Frames since a segment began at which deviations are measured; between them the younger one counts."""
_LAGS = 24
# Pairs of frames that a lag, and frames of an age that its error, is measured from at least.
_PAIRS, _FRAMES = 100, 50
# What autocovariances are made of: decays and turns a frame. What decays faster cannot be told from noise.
_DECAYS = (0.3, 0.5, 0.65, 0.8, 0.88, 0.93, 0.96, 0.98, 0.99, 0.999)
_TURNS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)


class Runs(NamedTuple):
    """One direction of time: coordinates (n, m), where filters start anew (n,), their poles and mixture."""

    values: Floats
    anew: Booleans
    poles: Floats
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

    With F the bank that ran from the start, the bank of age k is :math:`F_i + a^k (y_{i-k} - F_{i-k})`.

    Returns
    -------
    Arrays (n, m) and (n,), as many as there are ages that enough frames reach.
    """
    own = ages(runs.anew)
    whole, _ = bank.scan(runs.values, runs.anew, np.zeros(runs.mixture.weights.shape[0]), runs.poles)
    apart = np.tile(runs.values, len(runs.poles)) - whole
    kept = bank.transition(runs.poles, runs.values.shape[1])
    states, reached = [], []
    for age in AGES:
        there = own >= age
        if age and np.count_nonzero(there) < _FRAMES:
            break
        young = whole + kept**age * np.roll(apart, age, axis=0)
        states.append(runs.mixture.states(young))
        reached.append(there)
    return states, reached


def weights_of_own_frame(runs: Runs) -> tuple[Floats, Floats]:
    r"""What of its own frame a state holds, :math:`W_0` (m, m): at the first frame of a segment, and later."""
    m = runs.values.shape[1]
    scaled = runs.mixture.weights / runs.mixture.deviation[:, None]
    later = (1 - bank.transition(runs.poles, m))[:, None] * scaled
    shape = (len(runs.poles), m, m)
    return scaled.reshape(shape).sum(axis=0), later.reshape(shape).sum(axis=0)


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
    Variances (c,), and standard errors of the first ones, of a jackknife over ten stretches; infinite where too few
    frames follow another.

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
    found, parts = exponentials.autocovariance(columns, segment, lags), _parts(lags)
    rows = [
        _noise(found.variance_without(row)[:doubted], found.mean(row)[:, :doubted], parts) for row in found.filled()
    ]
    return _noise(found.variance, found.mean(), parts), exponentials.jackknife(np.array(rows))


def _lags(segment: Integers) -> Integers:
    """Lags at which enough frames have another one."""
    return np.array(
        [lag for lag in range(1, _LAGS + 1) if np.count_nonzero(segment[lag:] == segment[:-lag]) >= _PAIRS], np.int64
    )


def _parts(lags: Integers) -> Floats:
    """Autocovariances of variance 1 at the lags, shape (k, number of decays and turns)."""
    decays, turns = (grid.ravel() for grid in np.meshgrid(_DECAYS, _TURNS))
    return np.asarray(decays ** lags[:, None] * np.cos(turns * lags[:, None]))


def _noise(variance: Floats, mean: Floats, parts: Floats) -> Floats:
    """What is left of the variances (c,), given autocovariances (k, c)."""
    from scipy.optimize import nnls  # noqa: PLC0415 - slow to import

    size = np.where(variance > 0, variance, 1.0)
    persists = np.array([nnls(parts, column)[0].sum() for column in (mean / size).T])
    return np.asarray(np.maximum(1 - persists, 0.0) * variance)


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
    values, m = ahead.values, ahead.values.shape[1]
    ahead_weights = weights_of_own_frame(ahead)
    both_weights = [(one + other) / 2 for one in ahead_weights for other in weights_of_own_frame(back)]
    mixed = [values @ weights for weights in (*ahead_weights, *both_weights)]
    columns = np.hstack([values, *(values + x for x in mixed), *(values - x for x in mixed)])
    variances, doubt = noise_of(columns, segment, m)
    sums, differences = variances[m:].reshape(2, len(mixed), m)
    noise, shared = variances[:m], (sums - differences) / 4
    forwards, there = aged_states(ahead)
    backwards, before = aged_states(back)
    one = [
        _error(state[own], values[own], noise, shared[min(k, 1)], doubt)
        for k, (state, own) in enumerate(zip(forwards, there, strict=True))
    ]
    both = np.empty((len(forwards), len(backwards), m))
    for k, (state, own) in enumerate(zip(forwards, there, strict=True)):
        for j, (late, late_own) in enumerate(zip(backwards, before, strict=True)):
            both_there = own & late_own[::-1]
            # Segments of few lengths have no frame for some pairs of ages; no frame will ask for them either.
            place = both_there if np.count_nonzero(both_there) >= _FRAMES else np.ones(len(own), bool)
            both[k, j] = _error(
                (state + late[::-1])[place] / 2, values[place], noise, shared[2 + 2 * min(k, 1) + min(j, 1)], doubt
            )
    return Errors(np.array(one), both)


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
