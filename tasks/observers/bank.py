r"""A bank of contracting observers with fixed poles, and the mixture of them that predicts best.

Every coordinate y is followed by one observer a pole, :math:`x_i = a\,x_{i-1} + (1 - a)\,y_i`, which starts from the
first frame of its segment. The state is a fixed linear mixture of all of them, learnt by ridge regression on the
coordinates of the next frame: it rotates and decays as the coordinates do, and it contracts whatever the weights are,
because the mixture is outside of the recursion. Throughout: y (n, m) are coordinates in units of their deviation;
the *bank* (n, k) holds m columns a pole, k in all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats
from manifold_observer.tasks.observers import observer

POLES = (0.0, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98)
"""What is left of a state after a frame; frames that move little in 50 frames are smoothed over about 50."""
# Ridge of the mixture, in units of the bank's variance.
_PENALTY = 0.1


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


def scan(coordinates: Floats, restarts: Booleans, carry: Floats, poles: Floats) -> tuple[Floats, Floats]:
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
        One an observer.

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
    kept = transition(poles, coordinates.shape[1])
    inputs = np.tile(coordinates, len(poles))
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
    before, after = sums.before / sums.pairs, sums.after / sums.pairs
    shift = before - mean
    gram = sums.gram / sums.pairs - np.outer(before, before) + np.outer(shift, shift)
    cross = sums.cross / sums.pairs - np.outer(mean, after)
    squares = gram / np.outer(deviation, deviation) + _PENALTY * np.eye(k)
    return Mixture(mean, deviation, np.linalg.solve(squares, cross / deviation[:, None]))
