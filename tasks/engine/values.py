"""What the numbers of all frames look like, from one block at a time: enough to say why nothing can come of them.

Throughout: a *spread* is a robust width of a feature, its interquartile range within blocks and the way its median
moves between them; a *change* is a difference between frames.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats

# Frames of a block of which quartiles and changes are taken.
_SAMPLE, _RUN = 256, 512
_LEAST_RUN = 8
_NARROW = 12
# Squares of larger numbers, summed over frames and features, leave float64.
MOST = 1e150
"""Largest magnitude of a feature."""
# Of frames that alternate: squared changes from one to the next, and to the next but one, over their variance.
_NEXT, _NEXT_BUT_ONE = 3.5, 0.05


class TooLargeError(ValueError):
    """A number is too large for its square; ``index`` is the first such frame, ``feature`` and ``value`` say which."""

    def __init__(self, index: int, feature: int, value: float) -> None:
        super().__init__(index, feature, value)
        self.index, self.feature, self.value = index, feature, value


class Values(NamedTuple):
    """Least and greatest number of every feature, quartiles of every block (3, p), and squared changes (3, p).

    The changes are summed over one run of each block: from its mean, from frame to frame, and over two frames.
    """

    least: Floats
    greatest: Floats
    quartiles: tuple[Floats, ...]
    changes: Floats

    @property
    def centre(self) -> Floats:
        """Median of every feature, about."""
        return np.asarray(np.median([block[1] for block in self.quartiles], axis=0))

    @property
    def spread(self) -> Floats:
        """Robust width of every feature; outliers do not widen it."""
        blocks = np.stack(self.quartiles)
        moved = np.ptp(blocks[:, 1], axis=0)
        return np.asarray((blocks[:, 2] - blocks[:, 0]).max(axis=0) + moved)

    @property
    def reach(self) -> Floats:
        """Distance of every feature's farthest number from its centre."""
        centre = self.centre
        return np.maximum(self.greatest - centre, centre - self.least)


def values(frames: Floats) -> Values:
    """Look at one block of finite numbers.

    Parameters
    ----------
    frames
        Shape (n, p), n >= 1.

    Raises
    ------
    TooLargeError
        A square would be infinite.

    Examples
    --------
    >>> seen = values(np.array([[0.0], [1.0], [2.0], [900.0]]))
    >>> seen.greatest, seen.centre, seen.spread
    (array([900.]), array([1.5]), array([225.75]))
    """
    # Along short rows NumPy compares number by number.
    columns = np.ascontiguousarray(frames.T) if frames.shape[1] < _NARROW else frames.T
    least, greatest = columns.min(axis=1), columns.max(axis=1)
    if max(-least.min(), greatest.max()) > MOST:
        large = np.abs(frames) > MOST
        index = int(np.argmax(large.any(axis=1)))
        feature = int(np.argmax(large[index]))
        raise TooLargeError(index, feature, float(frames[index, feature]))
    sample = frames[:: -(-len(frames) // _SAMPLE)]
    quartiles = np.percentile(sample, [25, 50, 75], axis=0)
    return Values(least, greatest, (quartiles,), _changes(frames[:_RUN]))


def together(a: Values, b: Values) -> Values:
    """What two blocks show together."""
    return Values(
        np.minimum(a.least, b.least),
        np.maximum(a.greatest, b.greatest),
        a.quartiles + b.quartiles,
        a.changes + b.changes,
    )


def alternate(seen: Values) -> bool:
    """Tell whether every second frame is alike and neighbours differ.

    Examples
    --------
    >>> alternate(values(np.tile([[0.0], [1.0]], (20, 1)))), alternate(values(np.arange(40.0)[:, None]))
    (True, False)
    """
    alive = seen.changes[0] > 0
    if not alive.any():
        return False
    _, following, second = seen.changes[:, alive] / seen.changes[0, alive]
    return bool(np.median(following) > _NEXT and np.median(second) < _NEXT_BUT_ONE)


def _changes(run: Floats) -> Floats:
    """Squared changes in consecutive frames."""
    if len(run) < _LEAST_RUN:
        return np.zeros((3, run.shape[1]))
    changes = (run - run.mean(axis=0), run[1:] - run[:-1], run[2:] - run[:-2])
    return np.stack([np.square(change).mean(axis=0) * len(run) for change in changes])
