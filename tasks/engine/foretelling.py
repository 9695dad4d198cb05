r"""How much of the features some frames later the coordinates of a frame foretell, without any label.

What two candidates for the metric say can be compared: each gives coordinates of a few runs of frames, and what counts
is the share of the features' variance three and five frames later that a linear reading of the coordinates predicts,
on blocks that the reading has not seen. Coordinates that predict no more than they do of frames in another order hold
nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats, Integers, deviations, standardised

AHEAD = (3, 5)
"""Frames ahead."""
_FOLDS = 5
# Fewer pairs of frames than this a fold cannot tell.
_LEAST_PAIRS = 10
# Ridge of the reading, and how many features are foretold at most.
_RIDGE, _FEATURES = 1e-3, 8
# What is foretold by frames nearby: frames ahead, how many of them are asked, and pieces in which errors are kept.
_NEARBY_AHEAD, _NEIGHBOURS, _PIECES = (4, 8), 10, 20
# Another setting must foretell so many times as much, and more by so many standard errors, over draws of pieces.
_MARGIN, _SURELY, _DRAWS = 1.1, 1.64, 200
# Distances below this share of the largest are those of equal frames, in single precision.
_EQUAL = 1e-6
# Random orders that the share is compared with.
_ORDERS = 19


class Foretold(NamedTuple):
    """Share of the features' variance that is predicted, and the largest share among random orders."""

    share: float
    by_chance: float


class Nearby(NamedTuple):
    """What frames nearby foretell: squared errors and squares of each piece, shape (horizons, 2, pieces, features).

    ``by_chance`` is the largest share among random orders of what follows.
    """

    squares: Floats
    by_chance: float

    @property
    def foretold(self) -> Foretold:
        """The mean share over features and horizons, none below 0, beside that by chance."""
        return Foretold(float(_shares(self.squares.sum(axis=2))), self.by_chance)


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
    from scipy.sparse.linalg import eigsh  # noqa: PLC0415 - slow to import

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


def foretold(
    coordinates: Floats, frames: Floats, run: Integers, first: int = 0, last: int = _FEATURES, orders: int = _ORDERS
) -> Foretold:
    """Share of some features some frames later that a linear reading of the coordinates predicts.

    Parameters
    ----------
    coordinates
        Shape (n, m).
    frames
        Shape (n, p), those of most variance first.
    run
        Number of the run of consecutive frames that a frame belongs to, shape (n,), in order.
    first, last
        Which features are foretold; the leading eight by default.
    orders
        Random orders that are tried.

    Returns
    -------
    The mean share over features and horizons, none below 0, and the largest of the random orders of what follows. Both
    are 0 where fewer than 50 pairs of frames are there.

    Examples
    --------
    >>> walk = np.random.default_rng(0).normal(size=(500, 1)).cumsum(axis=0)
    >>> said = foretold(walk, walk, np.zeros(500, int))
    >>> said.share > 0.5 > said.by_chance
    True
    """
    target = frames[:, first:last] / deviations(frames[:, first:last])
    pairs = [(_followed(run, ahead), ahead) for ahead in AHEAD]
    if min(len(now) for now, _ in pairs) < _LEAST_PAIRS * _FOLDS:
        return Foretold(0.0, 0.0)
    later = [(coordinates[now], target[now + ahead]) for now, ahead in pairs]
    rng = np.random.default_rng(0)
    by_chance = [
        float(np.mean([_share(known, follows[rng.permutation(len(follows))]) for known, follows in later]))
        for _ in range(orders)
    ]
    share = float(np.mean([_share(known, follows) for known, follows in later]))
    return Foretold(share, max(by_chance, default=0.0))


def nearby(coordinates: Floats, frames: Floats, run: Integers) -> Nearby:
    """How much of the leading features four and eight frames later followed the frames with the nearest coordinates.

    Parameters
    ----------
    coordinates, frames, run
        As for :func:`foretold`.

    Returns
    -------
    Squares of what was left on blocks that held none of the frames that were asked; all 0 where fewer than 50 pairs of
    frames are there.

    Examples
    --------
    Where the future is a bent function of the coordinate, no line foretells it:

    >>> phase = np.arange(600) / 9 + np.random.default_rng(0).normal(size=600).cumsum() / 9
    >>> coordinate, feature = np.cos(phase)[:, None], np.cos(2 * phase)[:, None]
    >>> alone = np.zeros(600, int)
    >>> nearby(coordinate, feature, alone).foretold.share > foretold(coordinate, feature, alone).share + 0.05
    True
    """
    target = frames[:, :_FEATURES] / deviations(frames[:, :_FEATURES])
    pairs = [(_followed(run, ahead), ahead) for ahead in _NEARBY_AHEAD]
    if min(len(now) for now, _ in pairs) < _LEAST_PAIRS * _FOLDS:
        return Nearby(np.zeros((len(pairs), 2, _PIECES, target.shape[1])), 0.0)
    rng, found, shuffled = np.random.default_rng(0), [], []
    for now, ahead in pairs:
        near = _nearest(coordinates[now])
        later = target[now + ahead]
        found.append(_left(near, later))
        orders = [later[rng.permutation(len(later))] for _ in range(_ORDERS)]
        shuffled.append([_left(near, order).sum(axis=1) for order in orders])
    by_chance = max(_shares(np.stack(order)) for order in zip(*shuffled, strict=True))
    return Nearby(np.stack(found), float(by_chance))


def surely_more(own: Nearby, other: Nearby) -> bool:
    """Whether one foretells a tenth more than the other, and more than the luck of the recording can tell.

    Luck is what the difference varies by over draws of a twentieth of the frames each, with replacement.
    """
    if own.foretold.share <= _MARGIN * other.foretold.share:
        return False
    drawn = np.random.default_rng(0).multinomial(_PIECES, np.full(_PIECES, 1 / _PIECES), size=_DRAWS).astype(float)
    more = np.subtract(*(_shares(np.einsum("db,hsbk->dhsk", drawn, one.squares)) for one in (own, other)))
    return bool(more.mean() > _SURELY * more.std())


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


def _shares(squares: Floats) -> Floats:
    """Mean shares from squared errors and squares (..., horizons, 2, features), none of a feature below 0."""
    left, total = squares[..., 0, :], squares[..., 1, :]
    known = total > 0
    return np.asarray(np.maximum(np.where(known, 1 - left / np.where(known, total, 1.0), 0), 0).mean(axis=(-2, -1)))


def _blocks_of(n: int, number: int) -> Integers:
    """Number of the contiguous block of every frame."""
    return np.arange(n) * number // n


def _nearest(coordinates: Floats) -> Integers:
    """The frames of other blocks that are nearest to every frame, (n, neighbours)."""
    from scipy.spatial import KDTree  # noqa: PLC0415 - slow to import

    fold = _blocks_of(len(coordinates), _FOLDS)
    found = np.empty((len(coordinates), _NEIGHBOURS), np.int64)
    for number in range(_FOLDS):
        learn, held = np.flatnonzero(fold != number), fold == number
        scale = deviations(coordinates[learn])
        found[held] = learn[KDTree(coordinates[learn] / scale).query(coordinates[held] / scale, k=_NEIGHBOURS)[1]]
    return found


def _left(near: Integers, later: Floats) -> Floats:
    """Squared errors of what followed the nearest frames, and squares about the mean of all asked, by pieces."""
    n, fold = len(later), _blocks_of(len(later), _FOLDS)
    means = np.stack([later[fold != number].mean(axis=0) for number in range(_FOLDS)])
    squares = np.stack([np.square(later - later[near].mean(axis=1)), np.square(later - means[fold])])
    starts = np.searchsorted(_blocks_of(n, _PIECES), np.arange(_PIECES))
    return np.add.reduceat(squares, starts, axis=1)


def both(frames: Floats, coordinates: Floats, n_linear: int) -> Floats:
    """The leading features beside the coordinates, in units of their deviation."""
    return standardised(np.hstack([coordinates, frames[:, :n_linear]]))
