r"""Learnt transitions: dynamics that rotate, as a Kalman filter of the coordinates whose steady gain is learnt.

.. math:: s_i = A\,s_{i-1} + w_i, \qquad y_i = s_i + v_i, \qquad
          x_i = (I - K) A\, x_{i-1} + K y_i

Expectation and maximisation learn A and the covariances Q of w and R of v, with the steady state of filter and
smoother in every frame. The filter contracts in the metric of its posterior covariance, and is given in the basis
where that is the identity, so that the spectral norm of its transition is below 1. Throughout: y (n, m) are
coordinates in units of their deviation.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats, Integers
from manifold_observer.tasks.observers import bank, observer
from manifold_observer.tasks.observers.bank import Mixture
from manifold_observer.tasks.observers.observer import Filter
from manifold_observer.tasks.observers.recursion import recursion

MOST = 0.98
"""Spectral norm of the transition of a filter at most, as of the slowest pole of a bank."""
_ROUNDS = 40
# Share of the variance that process and noise have at least, and ridge of the transitions: what is less is rounding.
_LEAST = 1e-4
# Fewer frames than this a coordinate cannot tell one transition from another.
_FRAMES = 5
# Blocks that are left out, and how many of them end a comparison that transitions lose.
_BLOCKS, _ENOUGH = 5, 2
# Doublings: 16,384 frames settle what can be told of a few thousand.
_DOUBLINGS = 14
# More of the next frame's variance that must be foretold, beside its standard error over the blocks.
_CLEARLY = 0.05
# Frames beside a block that is left out which are left out too: a window and the longest short memory.
_BESIDE = 20
# What pushes and what disturbs at first, and ridge of the first transitions, in units of the mean variance.
_GUESSED, _GUESSED_RIDGE = 0.3, 0.05
# Eigenvectors that are nearer than this to another one do not tell what a transition does.
_APART = 1e6


class Learnt(NamedTuple):
    """Dynamics A (m, m), the filter of coordinates, and its states to the coordinates of the next frame.

    ``at_bound``: the fit ended at its bound, and says little of how long the coordinates last.
    """

    dynamics: Floats
    filter: Filter
    mixture: Mixture
    at_bound: bool


class Shares(NamedTuple):
    """Share of the next frame's variance that is foretold on blocks that are left out, (b,): by each."""

    poles: Floats
    transitions: Floats

    @property
    def clearly_better(self) -> bool:
        """Whether transitions foretell a twentieth of the variance more, and more than the standard error of that."""
        gain = self.transitions - self.poles
        return bool(gain.mean() > max(_CLEARLY, gain.std(ddof=1) / np.sqrt(len(gain))))


class _Model(NamedTuple):
    """A, Q, R, the variance S of s, and whether A was at its bound."""

    dynamics: Floats
    process: Floats
    noise: Floats
    signal: Floats
    at_bound: bool


class _Gains(NamedTuple):
    """Of the steady state: K, error covariances before and after the frame, and the gain of the smoother."""

    gain: Floats
    predicted: Floats
    posterior: Floats
    backward: Floats


def learn(values: Floats, anew: Booleans) -> Learnt | None:
    """Learn transitions and the filter that goes with them.

    Parameters
    ----------
    values
        Coordinates, shape (n, m).
    anew
        Where the filter starts anew, shape (n,); no transition leads over it.

    Returns
    -------
    None where too few frames follow another.

    Notes
    -----
    O(n m^2) time in each of 40 rounds. Covariances of the steady state stand for those near the start of a segment.

    Examples
    --------
    A point that goes round, seen in noise:

    >>> turn = np.exp(0.3j * np.arange(600))
    >>> y = np.column_stack([turn.real, turn.imag]) + 0.5 * np.random.default_rng(0).normal(size=(600, 2))
    >>> learnt = learn(y, np.arange(600) == 0)
    >>> float(np.angle(np.linalg.eigvals(learnt.dynamics)).max().round(1))
    0.3
    >>> bool(np.linalg.norm(learnt.filter.transition, 2) < 1)
    True
    """
    now = np.flatnonzero(~anew[1:])
    if len(now) < _FRAMES * values.shape[1]:
        return None
    try:
        model = _first(values, now)
        for _ in range(_ROUNDS):
            model = _again(model, values, anew, now)
        gains = _gains(model)
    except np.linalg.LinAlgError:
        return None
    return _contracting(model, gains)


def shares(values: Floats, segment: Integers, anew: Booleans, poles: Floats) -> Shares | None:
    """What poles and transitions foretell of the next frame, on contiguous blocks that are left out.

    Where transitions foretell less on the first two blocks, no other is tried.

    Parameters
    ----------
    values
        Coordinates, shape (n, m).
    segment
        Segment of every frame, shape (n,): no pair of frames lies in two.
    anew
        Where filters start anew, shape (n,).
    poles
        Those of the bank.

    Returns
    -------
    None where there are too few frames to tell.
    """
    now, m = np.flatnonzero(segment[1:] == segment[:-1]), values.shape[1]
    if len(now) < _BLOCKS * _FRAMES * m:
        return None
    rows, _ = bank.scan(values, anew, np.zeros(bank.width(poles, m)), poles)
    bounds = np.arange(_BLOCKS + 1) * len(values) // _BLOCKS
    told = []
    for first, stop in itertools.pairwise(bounds):
        held = now[(now >= first) & (now + 1 < stop)]
        known = now[(now + 1 < first - _BESIDE) | (now >= stop + _BESIDE)]
        found = _without(values, anew, known)
        if not len(held) or found is None:
            return None
        turning, _ = bank.scan(values, anew, np.zeros(m), found.filter)
        said = [_mixed(rows, values, known).states(rows[held]), found.mixture.states(turning[held])]
        apart = values[held + 1] - values[known + 1].mean(axis=0)
        total = max(float(np.square(apart).sum()), _LEAST)
        told.append([1 - float(np.square(apart - one).sum()) / total for one in said])
        if len(told) >= _ENOUGH and np.diff(told).mean() <= 0:
            break  # the other blocks would have to make up for these, at most of the cost
    return Shares(*np.array(told).T)


def _mixed(rows: Floats, values: Floats, known: Integers) -> Mixture:
    """The mixture of a bank (n, k) that predicts the next frame, learnt from some frames."""
    nothing = bank.nothing(rows.shape[1], values.shape[1])
    return bank.learn(bank.add(nothing, rows[known], values[known + 1], np.ones(len(known), bool)))


def _without(values: Floats, anew: Booleans, known: Integers) -> Learnt | None:
    """Transitions learnt from the pairs of frames that begin at some frames."""
    some = np.union1d(known, known + 1)
    return learn(values[some], anew[some] | np.concatenate([[True], np.diff(some) > 1]))


def _first(values: Floats, now: Integers) -> _Model:
    """A guess: frames are told from the one before, and what pushes and what disturbs are alike.

    A guess of all noise and no push would be left very slowly.
    """
    m = values.shape[1]
    variance = values.T @ values / len(values)
    size = max(float(np.trace(variance)) / m, _LEAST)
    signal = variance + _GUESSED_RIDGE * size * np.eye(m)
    lagged = values[now + 1].T @ values[now] / len(now)
    dynamics, at_bound = _bounded(_solve(signal, lagged.T).T, signal, len(values))
    guessed = _GUESSED * size * np.eye(m)
    return _Model(dynamics, guessed, guessed, signal, at_bound)


def _again(model: _Model, values: Floats, anew: Booleans, now: Integers) -> _Model:
    """One round: smooth, and take the moments of what was smoothed."""
    gains, n = _gains(model), len(values)
    states = _smoothed(model, gains, values, anew)
    spread = _spread(gains)
    before, after = states[now], states[now + 1]
    signal = before.T @ before / len(now) + spread
    lagged = after.T @ before / len(now) + spread @ gains.backward.T
    later = after.T @ after / len(now) + spread
    dynamics, at_bound = _bounded(_solve(signal + _LEAST * np.eye(len(signal)), lagged.T).T, signal, n)
    process = later - dynamics @ lagged.T - lagged @ dynamics.T + dynamics @ signal @ dynamics.T
    apart = values - states
    return _Model(dynamics, _positive(process), _positive(apart.T @ apart / n + spread), signal, at_bound)


def _bounded(dynamics: Floats, signal: Floats, n: int) -> tuple[Floats, bool]:
    """Transitions that forget at least 1 / n a frame, in the metric of the signal; whether they had to be bounded."""
    root = _root(_positive(signal))
    left, values, right = np.linalg.svd(_solve(root, np.asarray(dynamics @ root)))
    most = 1 - 1 / n
    kept: Floats = np.asarray(left * np.minimum(values, most) @ right, np.float64)
    return np.asarray(root @ _solve(root.T, kept.T).T, np.float64), bool(values[0] > most)


def _gains(model: _Model) -> _Gains:
    """Steady state of the filter and of its smoother."""
    predicted = _predicted(model)
    gain = _solve(predicted + model.noise, predicted).T
    posterior = _positive(predicted - gain @ predicted)
    return _Gains(gain, predicted, posterior, _solve(predicted, model.dynamics @ posterior).T)


def _predicted(model: _Model) -> Floats:
    """Error covariance before a frame, from the Riccati equation by doubling: after k rounds that of 2^k frames."""
    identity = np.eye(len(model.noise))
    forward, told, known = model.dynamics.T, np.linalg.inv(model.noise), model.process
    for _ in range(_DOUBLINGS):
        mixed = _solve(identity + told @ known, np.hstack([forward, told @ forward.T]))
        step, seen = np.hsplit(mixed, 2)
        known = known + forward.T @ known @ step
        told = told + forward @ seen
        forward = forward @ step
    return _positive(known)


def _smoothed(model: _Model, gains: _Gains, values: Floats, anew: Booleans) -> Floats:
    """States from all frames of their segment."""
    closed = (np.eye(len(gains.gain)) - gains.gain) @ model.dynamics
    started = values @ _solve(model.signal + model.noise, model.signal)
    states = _run(values @ gains.gain.T, started, anew, closed)
    drives = states - states @ (gains.backward @ model.dynamics).T
    ends = np.concatenate([[True], anew[:0:-1]])
    return _run(drives[::-1], states[::-1], ends, gains.backward)[::-1]


def _spread(gains: _Gains) -> Floats:
    """Error covariance of the smoother far from both ends, by doubling."""
    spread = gains.posterior - gains.backward @ gains.predicted @ gains.backward.T
    backward = gains.backward
    for _ in range(_DOUBLINGS):
        spread, backward = spread + backward @ spread @ backward.T, backward @ backward
    return _positive(spread)


def _contracting(model: _Model, gains: _Gains) -> Learnt:
    """The filter in the basis in which its posterior covariance is the identity."""
    root, m = _root(gains.posterior), len(gains.gain)
    closed = (np.eye(m) - gains.gain) @ model.dynamics
    transition = _solve(root, closed @ root)
    norm = float(np.linalg.norm(transition, 2))
    start = _solve(model.signal + model.noise, model.signal).T
    drive, start = _solve(root, gains.gain), _solve(root, start)
    made = Filter(transition * min(1.0, MOST / norm if norm else 1.0), drive, start)
    mixture = Mixture(np.zeros(m), np.ones(m), (model.dynamics @ root).T)
    return Learnt(model.dynamics, made, mixture, model.at_bound or norm > MOST)


def _solve(matrix: Floats, right: Floats) -> Floats:
    """What gives the right side when multiplied by the matrix."""
    return np.asarray(np.linalg.solve(matrix, right), np.float64)


def _root(matrix: Floats) -> Floats:
    """Lower triangle L of a positive matrix, L times its transpose."""
    return np.asarray(np.linalg.cholesky(matrix), np.float64)


def _positive(matrix: Floats) -> Floats:
    """The nearest symmetric matrix whose eigenvalues are well above 0."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray(vectors * np.maximum(values, _LEAST * max(values[-1], _LEAST)) @ vectors.T)


def _run(drives: Floats, started: Floats, anew: Booleans, transition: Floats) -> Floats:
    """The scan of a filter while it is learnt, in the basis of its eigenvectors: many times faster, not to the bit."""
    poles, vectors = np.linalg.eig(transition)
    if np.linalg.cond(vectors) > _APART:
        first = np.where(anew[:, None], started, drives)
        before = np.zeros((int(anew.sum()), len(poles)))
        return observer.scan(first, anew, before, np.zeros(len(poles)), transition)[0]
    turned = np.linalg.solve(vectors, drives.T.astype(complex))
    turned[:, anew] = np.linalg.solve(vectors, started[anew].T.astype(complex))
    begins = np.flatnonzero(anew)
    lengths = np.diff([*begins, len(drives)])
    for length in np.unique(lengths):  # runs of one length at once: calls cost more than short runs do
        runs = begins[lengths == length, None] + np.arange(length)
        for row, pole in zip(turned, poles, strict=True):
            row[runs] = recursion(row[runs].T, pole).T
    return np.ascontiguousarray((vectors @ turned).real.T)
