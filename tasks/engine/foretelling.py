r"""How much of the features some frames later the coordinates of a frame foretell, without any label.

What two candidates for the metric say can be compared: each gives coordinates of a few runs of frames, and what counts
is the share of the features' variance three and five frames later that a linear reading of the coordinates predicts,
on blocks that the reading has not seen. Coordinates that predict no more than they do of frames in another order hold
nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import eigsh

from manifold_observer.tasks.arrays import Floats, Integers, deviations, standardised

AHEAD = (3, 5)
"""Frames ahead."""
_FOLDS = 5
# Fewer pairs of frames than this a fold cannot tell.
_LEAST_PAIRS = 10
# Ridge of the reading, and how many features are foretold at most.
_RIDGE, _FEATURES = 1e-3, 8
# Distances below this share of the largest are those of equal frames, in single precision.
_EQUAL = 1e-6
# Random orders that the share is compared with.
_ORDERS = 19


class Foretold(NamedTuple):
    """Share of the features' variance that is predicted, and the largest share among random orders."""

    share: float
    by_chance: float


class Mapped(NamedTuple):
    """Diffusion coordinates (n, m), the scale of their kernel, and whether most pairs of frames are equal."""

    coordinates: Floats
    scale: float
    mostly_equal: bool


def coordinates(frames: Floats, precision: Floats, n_modes: int) -> Mapped:
    """Diffusion coordinates of a few thousand frames at most, all pairs in memory.

    Parameters
    ----------
    frames
        Shape (n, p).
    precision
        Inverse local covariances, shape (n, p, p).
    n_modes
        Coordinates wanted.

    Returns
    -------
    Coordinates of unit mean square; the scale is the median distance, of pairs that differ where most do not.

    Examples
    --------
    >>> line = np.linspace(-1, 1, 50)[:, None]
    >>> found = coordinates(line, np.ones((50, 1, 1)), 1)
    >>> bool(abs(np.corrcoef(found.coordinates[:, 0], line[:, 0])[0, 1]) > 0.95), found.mostly_equal
    (True, False)
    """
    squared = _squared(frames, precision)
    distance = (squared + squared.T) / 2
    pairs = distance[np.triu_indices(len(frames), 1)]
    differ = pairs > _EQUAL * pairs.max(initial=0)
    mostly_equal = 2 * np.count_nonzero(differ) <= len(pairs)
    middle = float(np.median(pairs[differ] if mostly_equal and differ.any() else pairs))
    kernel = np.exp(distance / -(middle if middle > 0 else 1.0))
    root = np.sqrt(kernel.sum(axis=1))
    kernel /= root[:, None] * root
    start = np.random.default_rng(0).normal(size=len(kernel)).astype(kernel.dtype)
    values, vectors = eigsh(kernel, n_modes + 1, which="LA", v0=start, tol=1e-4)
    psi = vectors[:, np.argsort(-values)[1:]].astype(np.float64) / root[:, None]
    deviation = np.sqrt(np.mean(psi**2, axis=0))
    return Mapped(psi / np.where(deviation > 0, deviation, 1.0), middle, bool(mostly_equal))


def foretold(coordinates: Floats, frames: Floats, run: Integers) -> Foretold:
    """Share of the leading features some frames later that a linear reading of the coordinates predicts.

    Parameters
    ----------
    coordinates
        Shape (n, m).
    frames
        Shape (n, p), those of most variance first.
    run
        Number of the run of consecutive frames that a frame belongs to, shape (n,), in order.

    Returns
    -------
    The mean share over features and horizons, none below 0, and the largest of 19 random orders of what follows. Both
    are 0 where fewer than 50 pairs of frames are there.

    Examples
    --------
    >>> walk = np.random.default_rng(0).normal(size=(500, 1)).cumsum(axis=0)
    >>> said = foretold(walk, walk, np.zeros(500, int))
    >>> said.share > 0.5 > said.by_chance
    True
    """
    target = frames[:, :_FEATURES] / deviations(frames[:, :_FEATURES])
    pairs = [(_followed(run, ahead), ahead) for ahead in AHEAD]
    if min(len(now) for now, _ in pairs) < _LEAST_PAIRS * _FOLDS:
        return Foretold(0.0, 0.0)
    later = [(coordinates[now], target[now + ahead]) for now, ahead in pairs]
    rng = np.random.default_rng(0)
    by_chance = [
        float(np.mean([_share(known, follows[rng.permutation(len(follows))]) for known, follows in later]))
        for _ in range(_ORDERS)
    ]
    return Foretold(float(np.mean([_share(known, follows) for known, follows in later])), max(by_chance))


def _squared(frames: Floats, precision: Floats) -> Floats:
    """Squared distances (i, j) under the precision of i, in single precision."""
    row, column = np.triu_indices(frames.shape[1])
    packed = (precision[:, row, column] * np.where(row == column, 1, 2)).astype(np.float32)
    image = np.einsum("npq,nq->np", precision, frames)
    squared = packed @ (frames[:, row] * frames[:, column]).T.astype(np.float32)
    squared -= (2 * image @ frames.T).astype(np.float32)
    squared += np.einsum("np,np->n", image, frames)[:, None].astype(np.float32)
    return np.maximum(squared, 0, out=squared)


def _followed(run: Integers, ahead: int) -> Integers:
    """Frames whose run goes on for so long."""
    return np.flatnonzero(run[:-ahead] == run[ahead:]) if len(run) > ahead else np.zeros(0, np.int64)


def _share(known: Floats, later: Floats) -> float:
    """What is predicted of ``later`` on contiguous blocks that are left out; mean over the columns, none below 0."""
    inputs = np.column_stack([np.ones(len(known)), known])
    block = np.arange(len(known)) * _FOLDS // len(known)
    left, total = np.zeros(later.shape[1]), np.full(later.shape[1], 1e-300)
    for fold in range(_FOLDS):
        learn, held = block != fold, block == fold
        squares = inputs[learn].T @ inputs[learn] + _RIDGE * learn.sum() * np.eye(inputs.shape[1])
        weights = np.linalg.solve(squares, inputs[learn].T @ later[learn])
        left += np.square(later[held] - inputs[held] @ weights).sum(axis=0)
        total += np.square(later[held] - later[learn].mean(axis=0)).sum(axis=0)
    return float(np.maximum(1 - left / total, 0).mean())


def both(frames: Floats, coordinates: Floats, n_linear: int) -> Floats:
    """The leading features beside the coordinates, in units of their deviation."""
    return standardised(np.hstack([coordinates, frames[:, :n_linear]]))
