r"""A bank of contracting observers with fixed poles, and the mixture of them that foretells best.

Every coordinate y is followed by one observer a pole, :math:`x_i = a\,x_{i-1} + (1 - a)\,y_i`, which starts from the
first frame of its segment. The state is a fixed linear mixture of all of them, learnt by ridge regression on the
coordinates of the frames to come: it rotates and decays as the coordinates do, and it contracts whatever the weights
are, because the mixture is outside of the recursion. Throughout: y (n, m) are coordinates in units of their deviation;
the *bank* (n, k) holds m columns a pole, k in all. What stands in for the bank, such as the learnt transitions of
:mod:`~manifold_observer.tasks.observers.transitions`, is a :class:`~manifold_observer.tasks.observers.observer.Filter`
of coordinates; either is called a *memory*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats
from manifold_observer.tasks.observers import observer
from manifold_observer.tasks.observers.observer import Filter

POLES = (0.0, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98)
"""What is left of a state after a frame; frames that move little in 50 frames are smoothed over about 50."""
AHEAD = (1, 2, 4, 8)
"""Frames ahead that a state foretells. One alone keeps nothing of what shows only later, as the phase of a pulse."""
Memory = Floats | Filter
"""Poles of a bank, or the filter that stands in for it, whose ``start`` leads to its state after a first frame."""
# Ridge of the mixture, in units of the bank's variance.
_PENALTY = 0.1
# What a later frame counts beside the next one, in deviations, and pairs of frames that tell of it at least.
_LATER, _PAIRS = 0.5, 100
# Pole of the plain observer that mixtures are drawn towards, and by how much.
_PLAIN, _TOWARDS = 0.7, 0.2


class Mixture(NamedTuple):
    """State from a bank: mean and deviation of every column (k,), and weights (k, m)."""

    mean: Floats
    deviation: Floats
    weights: Floats

    def states(self, bank: Floats) -> Floats:
        """States (n, m) of a bank (n, k); the same bits wherever a frame stands in its block."""
        return np.einsum("nk,km->nm", (bank - self.mean) / self.deviation, self.weights)


class Sums(NamedTuple):
    """What a mixture is learnt from.

    Frames, their sums and squares (k,); pairs of a frame and the next, with sums (k,), products of the bank with
    itself (k, k) and with the next coordinates (k, m), and sums of the next coordinates (m,).
    """

    frames: int
    total: Floats
    squares: Floats
    pairs: int
    before: Floats
    gram: Floats
    cross: Floats
    after: Floats


def transition(poles: Floats, n_coordinates: int) -> Floats:
    """Pole of every column of the bank, shape (k,).

    Examples
    --------
    >>> transition(np.array([0.0, 0.5]), 2)
    array([0. , 0. , 0.5, 0.5])
    """
    return np.repeat(poles, n_coordinates)


def width(memory: Memory, n_coordinates: int) -> int:
    """Numbers k that a memory hands on.

    Examples
    --------
    >>> width(np.array([0.0, 0.5]), 3)
    6
    """
    return len(memory.transition) if isinstance(memory, Filter) else len(memory) * n_coordinates


def contraction(memory: Memory) -> float:
    """Largest factor by which a frame can stretch the difference of two memories; below 1 they contract.

    Examples
    --------
    >>> contraction(np.array([0.0, 0.5]))
    0.5
    """
    return observer.contraction_factor(memory.transition if isinstance(memory, Filter) else memory)


def started(memory: Memory, coordinates: Floats) -> Floats:
    """What a memory holds that starts at each of the frames, shape (n, k)."""
    if isinstance(memory, Filter):
        return observer.project(coordinates, np.zeros(1), memory.start)
    return np.tile(coordinates, len(memory))


def faded(memory: Memory, states: Floats, n_frames: int) -> Floats:
    """What is left of states (n, k) of a memory after so many frames."""
    if isinstance(memory, Filter):
        return states @ np.linalg.matrix_power(memory.transition, n_frames).T
    return transition(memory, states.shape[1] // len(memory)) ** n_frames * states


def entering(memory: Memory, n_coordinates: int) -> tuple[Floats, Floats]:
    """What of its own frame a memory takes in, (m, k): at the first frame of a segment, and later."""
    if isinstance(memory, Filter):
        return memory.start.T, memory.drive.T
    first = np.tile(np.eye(n_coordinates), len(memory))
    return first, (1 - transition(memory, n_coordinates)) * first


def scan(coordinates: Floats, restarts: Booleans, carry: Floats, poles: Memory) -> tuple[Floats, Floats]:
    """Run the bank over one block of coordinates.

    Parameters
    ----------
    coordinates
        y, shape (n, m).
    restarts
        True at the first frame of every segment, shape (n,).
    carry
        Bank after the frame before this block, shape (k,); not used when the block starts anew.
    poles
        One an observer; or a filter that stands in for the bank.

    Returns
    -------
    bank
        Shape (n, k).
    carry
        Its last row.

    Examples
    --------
    >>> bank, _ = scan(np.array([[0.0], [1.0]]), np.array([True, False]), np.zeros(2), np.array([0.0, 0.5]))
    >>> bank[-1]
    array([1. , 0.5])
    """
    if isinstance(poles, Filter):
        drives = observer.project(coordinates, np.zeros(1), poles.drive)
        drives[restarts] = started(poles, coordinates[restarts])
        before = np.zeros((int(restarts.sum()), len(carry)))
        return observer.scan(drives, restarts, before, carry, poles.transition)
    kept = transition(poles, coordinates.shape[1])
    inputs = started(poles, coordinates)
    return observer.scan((1 - kept) * inputs, restarts, inputs[restarts], carry, kept)


def nothing(n_columns: int, n_coordinates: int) -> Sums:
    """Sums over no frame."""
    k, m = n_columns, n_coordinates
    return Sums(0, np.zeros(k), np.zeros(k), 0, np.zeros(k), np.zeros((k, k)), np.zeros((k, m)), np.zeros(m))


def add(sums: Sums, bank: Floats, later: Floats, followed: Booleans) -> Sums:
    """Sums with one more block.

    Parameters
    ----------
    sums
        Of the blocks before.
    bank
        Shape (n, k).
    later
        Coordinates of the next frame, shape (n, m); anything where there is none.
    followed
        Whether the next frame is of the same segment, shape (n,).
    """
    now, then = bank[followed], later[followed]
    return Sums(
        sums.frames + len(bank),
        sums.total + bank.sum(axis=0),
        sums.squares + np.square(bank).sum(axis=0),
        sums.pairs + len(now),
        sums.before + now.sum(axis=0),
        sums.gram + now.T @ now,
        sums.cross + now.T @ then,
        sums.after + then.sum(axis=0),
    )


def learn(sums: Sums) -> Mixture:
    r"""Mixture that predicts the coordinates of the next frame, by ridge regression.

    .. math:: W = (B^\top B / n + 0.1\,I)^{-1} B^\top Y_{+1} / n

    with B the bank in units of its deviations. Without any pair of frames the state is the first column of every
    coordinate: what the fastest observer says.

    Examples
    --------
    >>> y = np.sin(np.arange(400.0) / 5)[:, None]
    >>> bank, _ = scan(y, np.arange(400) == 0, np.zeros(2), np.array([0.0, 0.9]))
    >>> mixed = learn(add(nothing(2, 1), bank, np.roll(y, -1, axis=0), np.arange(400) < 399)).states(bank)
    >>> bool(np.corrcoef(mixed[:-1, 0], y[1:, 0])[0, 1] > 0.99)
    True
    """
    mean = sums.total / max(sums.frames, 1)
    deviation = np.sqrt(np.maximum(sums.squares / max(sums.frames, 1) - np.square(mean), 0))
    deviation = np.where(deviation > 1e-12, deviation, 1.0)
    k, m = sums.cross.shape
    if not sums.pairs:
        return Mixture(np.zeros(k), np.ones(k), np.eye(k, m))
    cross = sums.cross / sums.pairs - np.outer(mean, sums.after / sums.pairs)
    squares = _squares(sums, mean, deviation) + _PENALTY * np.eye(k)
    weights = np.asarray(np.linalg.solve(squares, cross / deviation[:, None]), np.float64)
    return Mixture(mean, deviation, weights)


def foretell(several: Sequence[Sums]) -> Mixture:
    r"""Mixture of as many columns as there are coordinates that holds most of what a bank says of the frames to come.

    With :math:`W_h` the mixture that predicts the coordinates h frames later, and G the products of the bank: the
    leading m directions of :math:`W^\top G W,\ W = [W_1, W_2 / 2, W_4 / 2, \dots]` (reduced-rank regression), turned
    to lie as near to :math:`W_1` as they can, so that every column still estimates one coordinate; each is scaled to
    estimate it best.

    Parameters
    ----------
    several
        Of the same frames, with the coordinates 1, 2, 4, ... frames later. Those with few pairs are left out.

    Examples
    --------
    >>> y = np.sin(np.arange(400.0) / 5)[:, None]
    >>> bank, _ = scan(y, np.arange(400) == 0, np.zeros(2), np.array([0.0, 0.9]))
    >>> ahead = [add(nothing(2, 1), bank, np.roll(y, -h, axis=0), np.arange(400) < 400 - h) for h in (1, 4)]
    >>> mixed = foretell(ahead).states(bank)
    >>> bool(np.corrcoef(mixed[:-1, 0], y[1:, 0])[0, 1] > 0.9)
    True
    """
    nearest = learn(several[0])
    later = [_LATER * learn(sums).weights for sums in several[1:] if sums.pairs >= _PAIRS]
    if not later:
        return nearest
    m, weights = nearest.weights.shape[1], np.hstack([nearest.weights, *later])
    squares = _squares(several[0], nearest.mean, nearest.deviation)
    leading = weights @ np.linalg.eigh(weights.T @ squares @ weights)[1][:, -m:]
    left, _, right = np.linalg.svd(leading.T @ squares @ nearest.weights)
    turned = leading @ (left @ right)
    size, alike = (np.einsum("km,kj,jm->m", turned, squares, other) for other in (turned, nearest.weights))
    scaled = turned * np.where(size > 1e-12, alike / np.maximum(size, 1e-12), 0.0)
    return nearest._replace(weights=np.asarray(scaled, np.float64))


def steadied(mixture: Mixture, poles: Floats) -> Mixture:
    """The mixture drawn by a fifth towards a plain observer of every coordinate, the one whose pole is nearest to 0.7.

    A ridge draws weights towards 0, which no state is. What frames share by overlapping foretells the next ones as well
    as what lasts does; a plain observer has learnt nothing from it.

    Examples
    --------
    >>> learnt = Mixture(np.zeros(2), np.ones(2), np.array([[1.0], [0.0]]))
    >>> steadied(learnt, np.array([0.0, 0.7])).weights.ravel()
    array([0.8, 0.2])
    """
    k, m = mixture.weights.shape
    plain, own = np.zeros((k, m)), int(np.abs(poles - _PLAIN).argmin()) * m + np.arange(m)
    plain[own, np.arange(m)] = mixture.deviation[own]
    return mixture._replace(weights=(1 - _TOWARDS) * mixture.weights + _TOWARDS * plain)


def _squares(sums: Sums, mean: Floats, deviation: Floats) -> Floats:
    """Mean products (k, k) of a bank in units of its deviations, over the frames that are followed."""
    before = sums.before / sums.pairs
    shift = before - mean
    products = sums.gram / sums.pairs - np.outer(before, before) + np.outer(shift, shift)
    return np.asarray(products / np.outer(deviation, deviation), np.float64)
