r"""Kalman filters, steady or from a prior, and their smoother, in as many dimensions as there are modes.

Throughout: the state x (m,) of a mode decays by its pole, :math:`x_i = a x_{i-1} + w_i` with process noise
Q (m, m); a frame measures :math:`z_i - \bar z = H x_i + v_i` with lift H (p, m). A *reading*
:math:`B (z_i - \bar z) = x_i + B v_i` (B (m, p), B H = I) holds all that the frame says when B weighs the
features by their noise (the information form): its noise R is (m, m), and no (p, p) matrix is formed.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_discrete_are

from manifold_observer.tasks.arrays import Booleans, Floats, Integers
from manifold_observer.tasks.observers import observer
from manifold_observer.tasks.observers.observer import Filter

# Share of the largest variance that a variance has at least: what is below it is rounding, and singular.
_FLOOR = 1e-9
# The smoother's deviations have settled when a frame more changes them by less than this share.
_SETTLED = 1e-9
_MOST_FRAMES = 10_000
# A gain that varies has settled when a frame more changes its covariance by less than this share; it is held after so
# many frames at the latest.
_STILL = 1e-11
_MOST_GAINS = 4096


class Model(NamedTuple):
    """Poles a (m,), process noise Q (m, m), reading B (m, p) and its noise R (m, m)."""

    poles: Floats
    process: Floats
    reading: Floats
    noise: Floats


class Steady(NamedTuple):
    """Steady state of a filter: gain (m, m) on the reading, error covariances before and after the frame.

    ``backward`` (m, m) is the gain of the smoother.
    """

    gain: Floats
    predicted: Floats
    posterior: Floats
    backward: Floats


class Schedule(NamedTuple):
    """A filter that starts from its prior: everything (k, m, m) by frames since the segment began.

    ``transition`` and ``gain`` (on the reading) lead to the state of the frame, ``posterior`` is its error covariance,
    and ``backward`` the gain of the smoother from the next frame, whose error covariance beforehand is ``predicted``.
    The last row holds beyond.
    """

    transition: Floats
    gain: Floats
    posterior: Floats
    predicted: Floats
    backward: Floats

    def rows(self, ages: Integers) -> Integers:
        """Row of every frame, whose age is the number of frames before it in its segment."""
        return np.minimum(ages, len(self.gain) - 1)

    @property
    def contraction(self) -> float:
        """Largest factor by which a frame brings two states together, each in the metric of its posterior."""
        roots = np.linalg.cholesky(self.posterior)
        before, after = np.concatenate([roots[:-1], roots[-1:]]), np.concatenate([roots[1:], roots[-1:]])
        transition = np.concatenate([self.transition[1:], self.transition[-1:]])
        return float(np.linalg.norm(np.linalg.solve(after, transition @ before), 2, axis=(1, 2)).max())


def weighted_reading(lift: Floats, feature_noise: Floats) -> tuple[Floats, Floats]:
    r"""Reading of least noise, :math:`B = (H^\top N^{-1} H)^{-1} H^\top N^{-1}`, and the noise it would have.

    Parameters
    ----------
    lift
        H, shape (p, m), of rank m.
    feature_noise
        Diagonal of N, shape (p,), squared feature units; features with 0 never change, and have no weight.

    Returns
    -------
    reading
        B, shape (m, p).
    noise
        :math:`(H^\top N^{-1} H)^{-1}`, shape (m, m), if the noise of the features were independent.

    Examples
    --------
    The second feature is three times as noisy, and counts a third:

    >>> weighted_reading(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]))[0]
    array([[0.75, 0.25]])
    """
    weight = np.divide(1.0, feature_noise, out=np.zeros(len(feature_noise)), where=feature_noise > 0)
    # By the pseudo-inverse of the scaled lift: squaring it first would square its condition.
    root = np.sqrt(weight)
    inverse: Floats = np.linalg.pinv(root[:, None] * lift).astype(np.float64, copy=False)
    return inverse * root, inverse @ inverse.T


def steady(model: Model) -> Steady:
    r"""Steady state of the filter, from the discrete Riccati equation.

    .. math:: P = A P A^\top - A P (P + R)^{-1} P A^\top + Q

    Parameters
    ----------
    model
        Dynamics and noise.

    Returns
    -------
    Gains and error covariances.

    Examples
    --------
    A random walk measured as noisily as it moves is corrected by the golden ratio:

    >>> one = np.eye(1)
    >>> steady(Model(np.ones(1), one, one, one)).gain.round(4)
    array([[0.618]])
    """
    transition, unit = np.diag(model.poles), np.eye(len(model.poles))
    process, noise = _floored(model.process), _floored(model.noise)
    predicted = solve_discrete_are(transition.T, unit, process, noise)
    predicted = (predicted + predicted.T) / 2
    gain = np.linalg.solve((predicted + noise).T, predicted.T).T
    posterior = (unit - gain) @ predicted
    backward = np.linalg.solve(predicted.T, transition @ posterior.T).T
    return Steady(gain, predicted, (posterior + posterior.T) / 2, backward)


def schedule(model: Model) -> Schedule:
    r"""The filter from the first frame of a segment on, which knows the stationary variance and nothing else.

    .. math:: P_0 = A P_0 A^\top + Q, \quad G_i = P_i (P_i + R)^{-1}, \quad P^{+}_i = (I - G_i) P_i,
              \quad P_{i+1} = A P^{+}_i A^\top + Q

    Parameters
    ----------
    model
        Dynamics and noise, every pole within the unit circle.

    Returns
    -------
    Rows until the covariance has settled.

    Notes
    -----
    From this prior :math:`P_1 \le P_0`, and the recursion is monotone, so that :math:`P_i` decreases to the steady
    covariance; a gain that is held too early is that of a covariance too large, never too small. It contracts: with
    :math:`V_i = \delta^\top (P^{+}_i)^{-1} \delta` the difference of two states obeys :math:`V_i \le c_i V_{i-1}`,
    because :math:`A^\top P_i^{-1} A \le (P^{+}_{i-1})^{-1}` and :math:`P^{+}_i \le c_i P_i` with c the largest
    eigenvalue of :math:`(I + P_i R^{-1})^{-1}`, below 1.

    Examples
    --------
    The first frame is weighed by the prior, the last ones by the steady gain:

    >>> half = np.full((1, 1), 0.5)
    >>> schedule(Model(np.sqrt(half[0]), half, np.eye(1), np.eye(1))).gain[[0, -1], 0, 0].round(3)
    array([0.5  , 0.414])
    """
    poles, unit = model.poles, np.eye(len(model.poles))
    process, noise = _floored(model.process), _floored(model.noise)
    predicted = process / (1 - np.multiply.outer(poles, poles))
    rows: list[tuple[Floats, ...]] = []
    while len(rows) < _MOST_GAINS:
        gain = np.linalg.solve((predicted + noise).T, predicted.T).T
        posterior = (unit - gain) @ predicted
        posterior = (posterior + posterior.T) / 2
        ahead = np.multiply.outer(poles, poles) * posterior + process
        backward = np.linalg.solve(ahead.T, poles[:, None] * posterior.T).T
        rows.append(((unit - gain) * poles, gain, posterior, ahead, backward))
        if np.abs(ahead - predicted).max() <= _STILL * np.abs(predicted).max():
            break
        predicted = ahead
    return Schedule(*(np.array(parts) for parts in zip(*rows, strict=True)))


def run(readings: Floats, ages: Integers, carry: Floats, known: Schedule) -> tuple[Floats, Floats]:
    r"""Run a filter from its prior over one block, :math:`x_i = (I - G_i) A x_{i-1} + G_i B (z_i - \bar z)`.

    Parameters
    ----------
    readings
        :math:`B (z - \bar z)`, shape (n, m).
    ages
        Frames before each frame in its segment, shape (n,): at 0 the state starts from 0, the mean.
    carry
        State of the frame before this block, shape (m,).
    known
        Gains.

    Returns
    -------
    states
        Shape (n, m).
    carry
        The last of them.

    Examples
    --------
    >>> known = schedule(Model(np.array([0.5]), np.full((1, 1), 0.75), np.eye(1), np.eye(1)))
    >>> run(np.ones((2, 1)), np.array([0, 1]), np.zeros(1), known)[0].round(3).ravel()
    array([0.5, 0.6])
    """
    states, last = np.empty_like(readings), len(known.gain) - 1
    settled = ages > last
    bounds = np.flatnonzero(np.concatenate([[True], settled[1:] != settled[:-1], [True]]))
    for first, stop in itertools.pairwise(bounds):
        own = slice(first, stop)
        if settled[first]:
            drives = observer.project(readings[own], np.zeros(len(carry)), known.gain[-1])
            nowhere = np.zeros(stop - first, bool)
            states[own], carry = observer.scan(drives, nowhere, readings[:0], carry, known.transition[-1])
        else:
            carry = _run_varying(readings[own], ages[own], carry, known, states[own])
    return states, carry.copy()


def _run_varying(readings: Floats, ages: Integers, carry: Floats, known: Schedule, states: Floats) -> Floats:
    """Frames of which each has its own gain; products of one frame, which round alike in any block."""
    for reading, age, row, state in zip(readings, ages, known.rows(ages), states, strict=True):
        np.dot(known.gain[row], reading, state)
        if age:
            np.add(state, np.dot(known.transition[row], carry), state)
        carry = state
    return carry


def smoothed(filtered: Floats, ages: Integers, ends: Booleans, carry: Floats, known: Schedule, poles: Floats) -> Floats:
    r"""Smoothed states of one block from its end, :math:`\hat x_i = x_i + C_i (\hat x_{i+1} - A x_i)`, shape (n, m).

    Parameters
    ----------
    filtered
        x, shape (n, m).
    ages
        Frames before each frame in its segment, shape (n,).
    ends
        True at the last frame of every segment, which keeps its filtered state, shape (n,).
    carry
        Smoothed state of the frame after this block, shape (m,).
    known, poles
        Gains and A.
    """
    states, rows = np.empty_like(filtered), known.rows(ages)
    for place in range(len(filtered) - 1, -1, -1):
        state = filtered[place]
        carry = state if ends[place] else state + np.dot(known.backward[rows[place]], carry - poles * state)
        states[place] = carry
    return states


def kalman(model: Model, known: Steady) -> Filter:
    r"""The steady filter, :math:`x_i = (I - G) A x_{i-1} + G B (z_i - \bar z)`.

    Parameters
    ----------
    model, known
        Dynamics and noise, and their steady state.

    Returns
    -------
    The filter.
    """
    unit = np.eye(len(model.poles))
    transition = (unit - known.gain) * model.poles
    drive = known.gain @ model.reading
    settled: Floats = np.linalg.solve(unit - transition, drive).astype(np.float64, copy=False)
    return Filter(transition, drive, settled)


def backward(model: Model, known: Steady) -> Filter:
    r"""The backward pass of the smoother (Rauch, Tung and Striebel 1965) as a scan of filtered states x.

    .. math:: \hat x_i = C \hat x_{i+1} + (I - C A) x_i

    Parameters
    ----------
    model, known
        Dynamics and noise, and their steady state.

    Returns
    -------
    A filter of filtered states (m of them in place of the p features) that runs from the end; from its
    start, A x, the last frame of a segment keeps its filtered state.
    """
    ahead = known.backward * model.poles
    return Filter(known.backward, np.eye(len(ahead)) - ahead, np.diag(model.poles))


def smoothed_variances(known: Steady) -> Floats:
    r"""Error variances of the smoother by frames to the end of the segment, shape (k, m); the last row holds beyond.

    .. math:: \hat P_i = P^{+} + C (\hat P_{i+1} - P) C^\top
    """
    covariance, rows = known.posterior, [np.diag(known.posterior)]
    while len(rows) < _MOST_FRAMES:
        covariance = known.posterior + known.backward @ (covariance - known.predicted) @ known.backward.T
        rows.append(np.diag(covariance))
        if np.abs(rows[-1] - rows[-2]).max() <= _SETTLED * rows[0].max():
            break
    return np.array(rows)


def segment_variances(known: Schedule, length: int) -> Floats:
    r"""Error variances of the smoother in one segment, shape (length, m).

    .. math:: \hat P_i = P^{+}_i + C_i (\hat P_{i+1} - P_{i+1}) C_i^\top
    """
    rows = known.rows(np.arange(length))
    covariance = known.posterior[rows[-1]]
    found = [np.diag(covariance)]
    for row in rows[-2::-1]:
        back = known.backward[row]
        covariance = known.posterior[row] + back @ (covariance - known.predicted[row]) @ back.T
        found.append(np.diag(covariance))
    return np.array(found[::-1])


def settling(known: Schedule) -> int:
    """Frames from the end of a long segment after which the smoother's variances stay as they are."""
    held = Steady(known.gain[-1], known.predicted[-1], known.posterior[-1], known.backward[-1])
    return len(smoothed_variances(held))


def _floored(covariance: Floats) -> Floats:
    """The nearest symmetric matrix without eigenvalues below a floor: estimates may be indefinite."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    least = max(_FLOOR * float(values[-1]), np.finfo(np.float64).tiny)
    if values[0] >= least:
        return covariance
    return (vectors * np.maximum(values, least)) @ vectors.T
