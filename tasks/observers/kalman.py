r"""Steady-state Kalman filters and their smoother, in as many dimensions as there are modes.

Throughout: the state x (m,) of a mode decays by its pole, :math:`x_i = a x_{i-1} + w_i` with process noise
Q (m, m); a frame measures :math:`z_i - \bar z = H x_i + v_i` with lift H (p, m). A *reading*
:math:`B (z_i - \bar z) = x_i + B v_i` (B (m, p), B H = I) holds all that the frame says when B weighs the
features by their noise (the information form): its noise R is (m, m), and no (p, p) matrix is formed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_discrete_are

from manifold_observer.tasks.arrays import Floats
from manifold_observer.tasks.observers.observer import Filter

# Share of the largest variance that a variance has at least: what is below it is rounding, and singular.
_FLOOR = 1e-9
# The smoother's deviations have settled when a frame more changes them by less than this share.
_SETTLED = 1e-9
_MOST_FRAMES = 10_000


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


def _floored(covariance: Floats) -> Floats:
    """The nearest symmetric matrix without eigenvalues below a floor: estimates may be indefinite."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    least = max(_FLOOR * float(values[-1]), np.finfo(np.float64).tiny)
    if values[0] >= least:
        return covariance
    return (vectors * np.maximum(values, least)) @ vectors.T
