r"""How fast coordinates really move, and how much of what is measured is noise.

Throughout: an *input* u (n, m) is one number a mode, u = x + v with a state x that forgets,
:math:`E\,x_i x_{i+k} = s\,e^{-k \tau \lambda}`, and noise v that is new in every frame. So the autocovariance
at lags k >= 1 tells the dynamics, and lag 0 holds the noise. The rates λ are those of the spectrum; the one
*time unit* τ is what the spectrum cannot know.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats, Integers

# Stretches of the recording that are left out in turn, for the uncertainty.
_STRETCHES = 10
# The lags reach as far as a typical mode takes to decay to this power of 1/e, in at most so many steps.
_REACH = 2.5
_FIRST_LAG = 8
_MOST_LAGS = 32
_NEAR = 4
_ROUNDS = 6
# A typical mode decays by at least this over the longest lag, and by at most so many e-foldings a frame.
_SLOWEST = 0.1
_FASTEST = 3.0
_GRID = 200
# Correlation times that a recording must span for its dynamics to be told.
_LEAST_TIMES = 10
# The signal has at least this share of the variance: a mode without any is all noise.
_LEAST_SIGNAL = 1e-6


class Autocovariance(NamedTuple):
    """Sums of products by stretch and lag (j, k, m), how many (j, k), lags (k,), variance at lag 0 (m,)."""

    sums: Floats
    counts: Integers
    lags: Integers
    variance: Floats

    def mean(self, left_out: int | None = None) -> Floats:
        """Autocovariance (k, m), of all stretches or of all but one."""
        kept = np.arange(len(self.sums)) != left_out
        return self.sums[kept].sum(axis=0) / np.maximum(self.counts[kept].sum(axis=0), 1)[:, None]


class Dynamics(NamedTuple):
    """Time unit and its standard error, signal variance (m,), longest lag, and what the sampling can show.

    ``sampling``: ``"good"``; ``"sparse"`` where no mode remembers the frame before, so that the unit is a
    lower bound; ``"short"`` where the recording spans fewer than ten correlation times of a typical mode.
    """

    unit: float
    unit_error: float
    signal: Floats
    longest_lag: int
    sampling: str


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
        first = np.searchsorted(stretch[together], np.arange(_STRETCHES))
        counts[:, place] = np.diff(np.append(first, len(together)))
        products = inputs[together] * inputs[together + lag]
        for row in range(_STRETCHES):
            sums[row, place] = products[first[row] : first[row] + counts[row, place]].sum(axis=0)
    return Autocovariance(sums, counts, lags, np.mean(inputs * inputs, axis=0))


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
    longest = min(_FIRST_LAG, most)
    for _ in range(_ROUNDS):
        found = autocovariance(inputs, segment, lags(longest))
        bounds = (_SLOWEST / most / typical, _FASTEST / typical)
        unit = _fit(found.mean(), found, rates, bounds)
        wanted = int(np.clip(np.ceil(_REACH / (unit * typical)), min(4, most), most))
        if wanted == longest:
            break
        longest = wanted
    return Dynamics(
        unit,
        _jackknife(found, rates, bounds),
        near_signal(inputs, segment, unit * rates),
        int(found.lags[-1]),
        _sampling(found, unit * typical, len(inputs)),
    )


def lags(longest: int) -> Integers:
    """Lags from 1 to the longest, evenly, at most 32 of them.

    Examples
    --------
    >>> lags(3)
    array([1, 2, 3])
    """
    return np.unique(np.linspace(1, longest, min(longest, _MOST_LAGS)).round().astype(np.int64))


def near_signal(inputs: Floats, segment: Integers, decay: Floats) -> Floats:
    """The :func:`signal` that the first four lags tell: products so near share their sampling error with lag 0.

    Parameters
    ----------
    inputs
        u, shape (n, m).
    segment
        Segment of every frame, shape (n,).
    decay
        Decay of each mode over one frame, shape (m,).

    Returns
    -------
    Shape (m,).
    """
    near = lags(min(_NEAR, _longest_lag(segment)))
    return signal(autocovariance(inputs, segment, near), decay)


def signal(found: Autocovariance, decay: Floats) -> Floats:
    """Variance of the states at lag 0, as later lags tell it: least squares for known decay.

    Parameters
    ----------
    found
        Autocovariance, best at near lags.
    decay
        Decay of each mode over one frame, shape (m,).

    Returns
    -------
    Shape (m,), above 0 and at most the variance at lag 0.
    """
    powers = np.exp(-found.lags[:, None] * decay)
    fitted = np.sum(powers * found.mean(), axis=0) / np.sum(powers * powers, axis=0)
    return np.clip(fitted, _LEAST_SIGNAL * found.variance, found.variance)


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
    """A tenth of the longest segment, at least 1."""
    counts = np.diff(np.flatnonzero(np.concatenate([[True], np.diff(segment) != 0, [True]])))
    return max(1, int(counts.max()) // 10)


def _misfit(mean: Floats, found: Autocovariance, decays: Floats) -> Floats:
    """Sum of squares for each of several decays (g, m), each with its own best signal."""
    power = np.exp(-decays[:, None, :] * found.lags[None, :, None])
    size = np.maximum(np.sum(power * mean, axis=1) / np.sum(power * power, axis=1), 0.0)
    squares = np.square(mean - size[:, None, :] * power).sum(axis=1)
    weight = np.divide(1.0, found.variance**2, out=np.zeros(len(found.variance)), where=found.variance > 0)
    return squares @ weight


def _fit(mean: Floats, found: Autocovariance, rates: Floats, bounds: tuple[float, float]) -> float:
    """The best unit: on a grid, then between its neighbours there."""
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - slow to import

    grid = np.geomspace(*bounds, _GRID)
    best = int(np.argmin(_misfit(mean, found, grid[:, None] * rates)))
    around = np.log(grid[[max(best - 1, 0), min(best + 1, _GRID - 1)]])
    refined = minimize_scalar(
        lambda log: _misfit(mean, found, np.exp(log) * rates[None])[0], bounds=tuple(around), method="bounded"
    )
    return float(np.exp(refined.x))


def _jackknife(found: Autocovariance, rates: Floats, bounds: tuple[float, float]) -> float:
    """Standard error of the unit from leaving out a stretch at a time."""
    filled = [row for row in range(_STRETCHES) if found.counts[row].any()]
    if len(filled) < 2:
        return float("inf")
    units = np.array([_fit(found.mean(row), found, rates, bounds) for row in filled])
    return float(np.sqrt((len(units) - 1) / len(units) * np.square(units - units.mean()).sum()))


def _sampling(found: Autocovariance, typical_decay: float, n_frames: int) -> str:
    """Whether dynamics can be seen: beyond three standard errors of white noise, over enough correlation times."""
    count = max(int(found.counts[:, 0].sum()), 1)
    remembered = (found.mean()[0] > 3 / np.sqrt(count) * found.variance).any()
    if not remembered or typical_decay > 0.95 * _FASTEST:
        return "sparse"
    return "short" if typical_decay * n_frames < _LEAST_TIMES else "good"
