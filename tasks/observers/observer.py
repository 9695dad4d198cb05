r"""The contracting observer, and every other affine scan, one block of frames at a time.

.. math:: \hat\psi' = (1 - \gamma) \Lambda \hat\psi + \gamma \Lambda \alpha^{\dagger} (z - \bar z),
          \qquad \Lambda = -\mathrm{diag}(\lambda)

Throughout: over one frame a state goes to ``transition @ state + drive``; the *drive* b (n, m) is what a
block's frames push with, linear in the centred frame z − z̄; the *transition* T is a diagonal (m,) or a
matrix (m, m). The observer, the Kalman filters and the backward pass of the smoother are such scans:
(carry, drives) -> (states, carry).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats
from manifold_observer.tasks.observers.recursion import recursion


class Filter(NamedTuple):
    """A filter of centred frames: its transition, and the matrices that read drive and start from a frame.

    ``transition`` (m,) or (m, m); ``drive`` (m, p); ``start`` (m, p): the state before a segment's first
    frame, such that this frame, lasting for ever, would not move it.
    """

    transition: Floats
    drive: Floats
    start: Floats


def contracting(inverse_lift: Floats, poles: Floats, gain: float) -> Filter:
    r"""The paper's observer, :math:`\hat\psi_i = a \hat\psi_{i-1} + (1 - a)\, g\, \alpha^{\dagger}(z_i - \bar z)`.

    Parameters
    ----------
    inverse_lift
        :math:`\alpha^{\dagger}`, shape (m, p).
    poles
        a, as :func:`poles` gives them, shape (m,).
    gain
        g, as :func:`steady_gain` gives it.

    Returns
    -------
    The filter.

    Examples
    --------
    >>> contracting(np.eye(1), np.array([0.25]), 1.0).drive
    array([[0.75]])
    """
    return Filter(poles, ((1 - poles) * gain)[:, None] * inverse_lift, gain * inverse_lift)


def contraction_factor(transition: Floats, metric: Floats | None = None) -> float:
    r"""Largest factor by which a frame can stretch the difference of two states; below 1 it contracts.

    Parameters
    ----------
    transition
        T, shape (m,) or (m, m).
    metric
        Symmetric positive definite V, shape (m, m): lengths are :math:`\sqrt{x^\top V^{-1} x}`; the
        posterior covariance of a Kalman filter. Euclidean by default.

    Returns
    -------
    The norm of T in that metric, without unit.

    Examples
    --------
    >>> contraction_factor(np.array([0.5, -0.9]))
    0.9
    """
    matrix = np.diag(transition) if transition.ndim == 1 else transition
    if metric is not None:
        root = np.linalg.cholesky(metric)
        matrix = np.linalg.solve(root, matrix @ root)
    return float(np.linalg.norm(matrix, 2))


def steady_gain(gamma: float, gain: str = "paper") -> float:
    r"""What a constant unit input settles to.

    The paper's gain, :math:`\gamma \Lambda \alpha^{\dagger}`, settles to :math:`-\gamma / (1 - \gamma)`:
    the sign is flipped, as printed. ``"unit"`` is the same filter scaled to settle to 1.

    Examples
    --------
    >>> round(steady_gain(0.85), 3), steady_gain(0.85, "unit")
    (-5.667, 1.0)
    """
    if gain == "unit":
        return 1.0
    return -gamma / (1 - gamma)


def poles(rates: Floats, gamma: float, step: str = "exact", substeps: int | None = None) -> Floats:
    r"""What is left of a state after one frame without input.

    .. math:: e^{-(1-\gamma)\lambda} \text{ (exact)}, \qquad
              \bigl(1 - (1-\gamma)\lambda / s\bigr)^s \text{ (euler, } s \text{ sub-steps)}

    Parameters
    ----------
    rates
        Decay of each mode over one frame, shape (m,), at least 0.
    gamma
        Weight of the measurement against the dynamics, 0 <= gamma < 1.
    step
        ``"exact"`` (zero-order hold, always contracting) or ``"euler"``.
    substeps
        Euler steps a frame; by default enough for the map to contract without oscillating.

    Returns
    -------
    Shape (m,); magnitude at most 1 where the map contracts.

    Examples
    --------
    >>> poles(np.array([2.0]), 0.5).round(3), poles(np.array([2.0]), 0.5, "euler", 1)
    (array([0.368]), array([0.]))
    """
    decay = (1 - gamma) * rates
    if step == "exact":
        return np.exp(-decay)
    count = substeps or contracting_substeps(rates, gamma)
    return (1 - decay / count) ** count


def contracting_substeps(rates: Floats, gamma: float) -> int:
    """Fewest Euler steps a frame for which no mode overshoots: (1 - gamma) * rate / steps <= 1.

    Examples
    --------
    >>> contracting_substeps(np.array([0.3, 2.5]), 0.0)
    3
    """
    return max(1, int(np.ceil((1 - gamma) * rates.max(initial=0.0))))


def project(frames: Floats, mean: Floats, matrix: Floats) -> Floats:
    r"""Centred frames of one block times a matrix: inputs :math:`u = \alpha^{\dagger} (z - \bar z)`, drives, starts.

    Parameters
    ----------
    frames
        Shape (n, p).
    mean
        Feature means of the embedded frames, shape (p,).
    matrix
        Shape (m, p).

    Returns
    -------
    Shape (n, m), without unit.
    """
    # Not a matrix product: BLAS rounds by the number of rows, and any chunking must give the same bits.
    return np.einsum("nj,kj->nk", frames - mean, matrix)


def scan(
    drives: Floats, restarts: Booleans, before: Floats, carry: Floats, transition: Floats
) -> tuple[Floats, Floats]:
    r"""Run a filter over one block.

    .. math:: x_i = T x_{i-1} + b_i

    The state of frame i has seen the frames up to i: the paper calls it :math:`\hat\psi(t_{i+1})`.

    Parameters
    ----------
    drives
        b, shape (n, m).
    restarts
        True at the first frame of every segment, where the state starts anew, shape (n,).
    before
        State to start from at each restart, in order, shape (number of restarts, m).
    carry
        State after the frame before this block, shape (m,); not used when the block starts anew.
    transition
        T, shape (m,) where it is diagonal, or (m, m).

    Returns
    -------
    states
        Shape (n, m), without unit.
    carry
        The last of them, shape (m,).

    Notes
    -----
    O(n m) time, O(n m^2) for a matrix. A scan of the whole equals a scan of a part followed by a scan of the
    rest, bit for bit.

    Examples
    --------
    A step of the input, followed with pole 1/2:

    >>> states, carry = scan(np.full((3, 1), 0.5), np.zeros(3, bool), np.zeros((0, 1)), np.zeros(1), np.array([0.5]))
    >>> states.ravel()
    array([0.5  , 0.75 , 0.875])
    """
    run = _run_diagonal if transition.ndim == 1 else _run_matrix
    states = np.empty_like(drives)
    firsts = np.flatnonzero(restarts)
    bounds = np.concatenate([[0], firsts[firsts > 0], [len(drives)]])
    starts = iter(before)
    for first, stop in itertools.pairwise(bounds):
        if first == stop:
            continue
        if restarts[first]:
            carry = next(starts)
        run(drives[first:stop], carry, transition, states[first:stop])
        carry = states[stop - 1]
    return states, carry.copy()


def scan_back(
    drives: Floats, ends: Booleans, after: Floats, carry: Floats, transition: Floats
) -> tuple[Floats, Floats]:
    r"""The same scan from the last frame to the first, :math:`x_i = T x_{i+1} + b_i`.

    Parameters
    ----------
    drives
        b, shape (n, m).
    ends
        True at the last frame of every segment, shape (n,).
    after
        State to start from at each end, in the order of time, shape (number of ends, m).
    carry
        State of the frame after this block, shape (m,); not used when the block ends a segment.
    transition
        T, shape (m,) or (m, m).

    Returns
    -------
    states
        Shape (n, m).
    carry
        The first of them, shape (m,).

    Examples
    --------
    >>> scan_back(np.ones((2, 1)), np.array([False, True]), np.zeros((1, 1)), np.zeros(1), np.array([0.5]))[0].ravel()
    array([1.5, 1. ])
    """
    states, first = scan(drives[::-1], ends[::-1], after[::-1], carry, transition)
    return states[::-1], first


def reconstruct(states: Floats, lift: Floats, mean: Floats) -> Floats:
    r"""Features that states stand for, :math:`\hat z = \bar z + \alpha \hat\psi`.

    Parameters
    ----------
    states
        Shape (n, m), in units of the coordinates.
    lift
        :math:`\alpha`, shape (p, m).
    mean
        :math:`\bar z`, shape (p,).

    Returns
    -------
    Shape (n, p), in feature units.

    Examples
    --------
    >>> reconstruct(np.array([[2.0]]), np.array([[1.0], [3.0]]), np.array([10.0, 20.0]))
    array([[12., 26.]])
    """
    return mean + np.einsum("nk,jk->nj", states, lift)


def moving_average(inputs: Floats, restarts: Booleans, width: int) -> Floats:
    """Causal mean of the last ``width`` frames of the segment; of fewer where it has just begun.

    Parameters
    ----------
    inputs
        Shape (n, m), the whole recording (a block would need the frames before it).
    restarts
        True at the first frame of every segment, shape (n,); the first of all begins one anyway.
    width
        Frames in the mean.

    Returns
    -------
    Shape (n, m).

    Examples
    --------
    >>> moving_average(np.array([[1.0], [3.0], [5.0]]), np.array([True, False, False]), 2).ravel()
    array([1., 2., 4.])
    """
    averaged = np.empty_like(inputs)
    bounds = np.unique(np.concatenate([[0], np.flatnonzero(restarts), [len(inputs)]]))
    for first, stop in itertools.pairwise(bounds):
        own, sums = inputs[first:stop], np.zeros_like(inputs[first:stop])
        for lag in range(min(width, stop - first) - 1, -1, -1):
            sums[lag:] += own[: len(own) - lag]
        counts = np.minimum(np.arange(1, stop - first + 1), width)
        averaged[first:stop] = sums / counts[:, None]
    return averaged


def _run_diagonal(drives: Floats, carry: Floats, poles: Floats, states: Floats) -> None:
    """One stretch without a restart: a first-order filter a mode."""
    for mode, pole in enumerate(poles):
        states[:, mode] = recursion(drives[:, mode], pole, carry[mode])


def _run_matrix(drives: Floats, carry: Floats, transition: Floats, states: Floats) -> None:
    """One stretch without a restart, frame after frame: products of blocks would round by the block."""
    for drive, state in zip(drives, states, strict=True):
        np.dot(transition, carry, state)
        np.add(state, drive, state)
        carry = state
