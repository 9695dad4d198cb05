r"""The contracting observer, one block of frames at a time.

.. math:: \hat\psi' = (1 - \gamma) \Lambda \hat\psi + \gamma \Lambda \alpha^{\dagger} (z - \bar z),
          \qquad \Lambda = -\mathrm{diag}(\lambda)

Throughout: an *input* u = α†(z − z̄) (n, m) is one number a mode; over one frame the state of a mode
goes to ``pole * state + (1 - pole) * gain * input``, where ``gain`` is what a constant input
settles to. A block is a scan: (carry, inputs) -> (states, carry).
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.signal import lfilter

from manifold_observer.tasks.arrays import Booleans, Floats


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


def project(frames: Floats, mean: Floats, inverse_lift: Floats) -> Floats:
    r"""Inputs :math:`u = \alpha^{\dagger} (z - \bar z)` of one block.

    Parameters
    ----------
    frames
        Shape (n, p).
    mean
        Feature means of the embedded frames, shape (p,).
    inverse_lift
        Pseudo-inverse of the lift, shape (m, p).

    Returns
    -------
    Shape (n, m), without unit.
    """
    # Not a matrix product: BLAS rounds by the number of rows, and any chunking must give the same bits.
    return np.einsum("nj,kj->nk", frames - mean, inverse_lift)


def scan(
    inputs: Floats, restarts: Booleans, before: Floats, carry: Floats, poles: Floats, gain: float
) -> tuple[Floats, Floats]:
    r"""Run the observer over one block.

    .. math:: \hat\psi_i = a \hat\psi_{i-1} + (1 - a)\, g\, u_i

    The state of frame i has seen the frames up to i: the paper calls it :math:`\hat\psi(t_{i+1})`.

    Parameters
    ----------
    inputs
        u, shape (n, m).
    restarts
        True at the first frame of every segment, where the state starts anew, shape (n,).
    before
        State to start from at each restart, in order, shape (number of restarts, m).
    carry
        State after the frame before this block, shape (m,); not used when the block starts anew.
    poles
        a, shape (m,).
    gain
        g, what a constant unit input settles to.

    Returns
    -------
    states
        Shape (n, m), without unit.
    carry
        The last of them, shape (m,).

    Notes
    -----
    O(n m) time. A scan of the whole equals a scan of a part followed by a scan of the rest, bit for bit.

    Examples
    --------
    A step of the input, followed with pole 1/2:

    >>> states, carry = scan(
    ...     np.ones((3, 1)), np.zeros(3, bool), np.zeros((0, 1)), np.zeros(1), np.array([0.5]), 1.0
    ... )
    >>> states.ravel()
    array([0.5  , 0.75 , 0.875])
    """
    states = np.empty_like(inputs)
    firsts = np.flatnonzero(restarts)
    bounds = np.concatenate([[0], firsts[firsts > 0], [len(inputs)]])
    starts = iter(before)
    for first, stop in itertools.pairwise(bounds):
        if first == stop:
            continue
        if restarts[first]:
            carry = next(starts)
        states[first:stop] = _run(inputs[first:stop], carry, poles, gain)
        carry = states[stop - 1]
    return states, carry.copy()


def steady_starts(inputs: Floats, restarts: Booleans, gain: float) -> Floats:
    """The gain's own steady state for the first frame of every segment, shape (number of restarts, m)."""
    return gain * inputs[restarts]


def moving_average(inputs: Floats, restarts: Booleans, width: int) -> Floats:
    """Causal mean of the last ``width`` frames of the segment; of fewer where it has just begun.

    Parameters
    ----------
    inputs
        Shape (n, m), the whole recording (a block would need the frames before it).
    restarts
        True at the first frame of every segment, shape (n,).
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
    bounds = np.concatenate([np.flatnonzero(restarts), [len(inputs)]])
    taps = np.ones(width)
    for first, stop in itertools.pairwise(bounds):
        sums = lfilter(taps, [1.0], inputs[first:stop], axis=0)
        counts = np.minimum(np.arange(1, stop - first + 1), width)
        averaged[first:stop] = sums / counts[:, None]
    return averaged


def _run(inputs: Floats, carry: Floats, poles: Floats, gain: float) -> Floats:
    """One stretch without a restart: a first-order filter a mode."""
    states = np.empty_like(inputs)
    for mode, pole in enumerate(poles):
        weights, recursion = [(1 - pole) * gain], [1.0, -pole]
        states[:, mode], _ = lfilter(weights, recursion, inputs[:, mode], zi=[pole * carry[mode]])
    return states
