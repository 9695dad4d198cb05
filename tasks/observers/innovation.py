r"""Innovations: what a frame says beyond what was expected of it, and their size over time.

Throughout: the state before frame i predicts its features, :math:`\hat z_i = \bar z + \alpha\,(a\,x_{i-1})`; the
*innovation* is z − ẑ (n, p), its *size* (n,) the root mean square over the features, each in units of its own
deviation: 1 is as bad as predicting the mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats
from manifold_observer.tasks.observers.observer import moving_average, reconstruct

# A level above the largest on the embedded frames by this factor is no accident.
_BEYOND = 1.1


class Usual(NamedTuple):
    """Root mean square size of the innovations of the embedded frames, and the largest level relative to it."""

    size: float
    largest_level: float


def predicted_states(states: Floats, carry: Floats, restarts: Booleans, factor: Floats) -> Floats:
    """State that is expected at every frame from the one before it; 0, the mean, where nothing is before it.

    Parameters
    ----------
    states
        Shape (n, m).
    carry
        State of the frame before this block, shape (m,).
    restarts
        True at the first frame of every segment, shape (n,).
    factor
        What a state is multiplied by over one frame (decay, and the unit of the coordinates), shape (m,).

    Returns
    -------
    Shape (n, m).

    Examples
    --------
    >>> predicted_states(np.array([[2.0], [4.0]]), np.array([8.0]), np.array([False, False]), np.array([0.5])).ravel()
    array([4., 1.])
    """
    before = np.concatenate([carry[None], states[:-1]])[: len(states)]
    return np.where(restarts[:, None], 0.0, before * factor)


def innovations(frames: Floats, predicted: Floats, lift: Floats, mean: Floats) -> Floats:
    """Frames less what the predicted states stand for, shape (n, p), in feature units."""
    return frames - reconstruct(predicted, lift, mean)


def sizes(innovations: Floats, variance: Floats) -> Floats:
    """Root mean square over the features in units of their deviation, shape (n,); constant features do not count.

    Examples
    --------
    >>> sizes(np.array([[2.0, 5.0]]), np.array([4.0, 0.0]))
    array([1.])
    """
    moving = variance > 0
    return np.sqrt(np.mean(np.square(innovations[:, moving]) / variance[moving], axis=1))


def level(sizes: Floats, restarts: Booleans, width: int) -> Floats:
    """Root mean square of the last ``width`` sizes of the segment; of fewer where it has just begun, shape (n,).

    Examples
    --------
    >>> level(np.array([3.0, 4.0]), np.array([True, False]), 5).round(3)
    array([3.   , 3.536])
    """
    return np.sqrt(moving_average(np.square(sizes)[:, None], restarts, width)[:, 0])


def usual(sizes: Floats, restarts: Booleans, width: int) -> Usual:
    """What is usual: for the embedded frames themselves.

    Examples
    --------
    >>> usual(np.ones(4), np.arange(4) == 0, 2)
    Usual(size=1.0, largest_level=1.0)
    """
    size = float(np.sqrt(np.mean(np.square(sizes))))
    # The first frames of a segment are averaged over few: their levels scatter more.
    full = level(sizes, restarts, width)[min(width, len(sizes)) - 1 :]
    return Usual(size, float(full.max()) / size if size > 0 else 1.0)


def compare(sizes: Floats, restarts: Booleans, width: int, known: Usual) -> tuple[Floats, Booleans]:
    """Level of new frames relative to what is usual (n,), and whether it is beyond all that was seen (n,)."""
    relative = level(sizes, restarts, width) / (known.size if known.size > 0 else 1.0)
    return relative, relative > _BEYOND * known.largest_level
