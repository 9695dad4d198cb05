"""Frames with the halo that their windows reach into, and their local covariances in the shape that a form needs.

Throughout: a *slab* (h, p) holds a block's frames with their halo; ``rows`` and ``starts`` say where in the slab a
frame and the first frame of its window stand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.engine import covariance, shrinkage
from manifold_observer.tasks.engine.shrinkage import Shrinkage

# Bytes of the windows whose covariances are made together.
_PART_BYTES = 2**23


class Metric(NamedTuple):
    """The local metric: window in frames (0 where covariances are given), how to invert, how to shrink if at all."""

    window: int
    inverse: covariance.PseudoInverse
    shrinkage: Shrinkage | None = None

    @property
    def within_window(self) -> bool:
        """Whether an inverse lies in what the frames of its window span."""
        return self.shrinkage is None and self.inverse.within_window

    def span(self, n_features: int) -> int:
        """Largest rank that a covariance of so many features can have."""
        return min(n_features, self.window - 1) if self.window and self.shrinkage is None else n_features

    def rank(self, n_features: int) -> int:
        """Largest rank of its inverse.

        Examples
        --------
        >>> Metric(21, covariance.PseudoInverse(rank=3)).rank(30), Metric(21, covariance.PseudoInverse()).rank(30)
        (3, 20)
        """
        return self.inverse.rank_of(self.span(n_features))


class Slab(NamedTuple):
    """Frames with halo (h, p), centred; rows (n,), starts (n,); covariances (n, p, p) where given.

    ``widths`` (n,) of the windows where they are not all as wide as the metric says; ``precisions`` (n, p, p) where
    they are known already.
    """

    frames: Floats
    rows: Integers
    starts: Integers
    covariances: Floats | None
    widths: Integers | None = None
    precisions: Floats | None = None

    def widths_of(self, window: int) -> Integers:
        """Frames of every window, where whole ones hold so many."""
        return np.full(len(self.starts), window) if self.widths is None else self.widths


def narrow(slab: Slab, first: int, stop: int, window: int) -> Slab:
    """The frames ``first`` .. ``stop`` of a slab, with no more halo than their windows need.

    Examples
    --------
    >>> whole = Slab(np.arange(5.0)[:, None], np.arange(5), np.array([0, 0, 1, 2, 2]), None)
    >>> narrow(whole, 3, 5, window=3).frames.ravel()
    array([2., 3., 4.])
    """
    rows, starts = slab.rows[first:stop], slab.starts[first:stop]
    if slab.covariances is not None:
        here = np.arange(len(rows))
        return Slab(slab.frames[rows], here, here, slab.covariances[first:stop])
    widths = None if slab.widths is None else slab.widths[first:stop]
    last = int(starts[-1]) + (window if widths is None else int(widths[-1]))
    low, high = min(int(starts[0]), int(rows[0])), max(last, int(rows[-1]) + 1)
    return Slab(slab.frames[low:high], rows - low, starts - low, None, widths)


def precisions(slab: Slab, metric: Metric) -> Floats:
    """Pseudo-inverses (n, p, p) of the block's own frames."""
    if slab.precisions is not None:
        return slab.precisions
    if slab.covariances is not None:
        return covariance.precisions(slab.covariances, metric.inverse)
    if metric.shrinkage is not None:
        return _shrunk(slab, metric, metric.shrinkage)
    return np.concatenate(_in_parts(slab, metric, covariance.window_precisions))


def mixing(slab: Slab, metric: Metric) -> tuple[Floats, Floats]:
    """Mixing matrices (n, r, w) and floors (n,) of the block's own frames."""
    if slab.covariances is not None:
        raise ValueError("the window form needs covariances of windows, not given ones")
    if metric.shrinkage is not None:
        raise ValueError("the window form needs covariances that are not shrunk")
    parts = _in_parts(slab, metric, covariance.window_mixing)
    rank = max(own.shape[1] for own, _ in parts)
    mixings = [np.pad(own, ((0, 0), (rank - own.shape[1], 0), (0, 0))) for own, _ in parts]
    return np.concatenate(mixings), np.concatenate([floor for _, floor in parts])


def factors(slab: Slab, metric: Metric) -> Array:
    """Factors (n, p, r) of the block's own frames."""
    if slab.covariances is not None:
        return covariance.factors(slab.covariances, metric.inverse)
    if not metric.within_window:
        values, vectors = np.linalg.eigh(precisions(slab, metric))
        return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    own, _ = mixing(slab, metric)
    return covariance.factors_from_mixing(slab.frames, slab.starts, own)


def _shrunk(slab: Slab, metric: Metric, how: Shrinkage) -> Floats:
    """Precisions of shrunk windows, a few at a time."""
    widths = slab.widths_of(metric.window)
    step = max(1, _PART_BYTES // (8 * metric.window * slab.frames.shape[1]))
    return np.concatenate(
        [
            shrinkage.precisions(slab.frames, slab.starts[first : first + step], widths[first : first + step], how)
            for first in range(0, len(slab.rows), step)
        ]
    )


def _in_parts(slab: Slab, metric: Metric, function: Callable[..., Any]) -> list[Any]:
    """Results for a few windows at a time, so that their frames fit into memory together."""
    step = max(1, _PART_BYTES // (8 * metric.window * slab.frames.shape[1]))
    parts = []
    for first in range(0, len(slab.rows), step):
        starts = slab.starts[first : first + step]
        try:
            parts.append(function(slab.frames, starts, metric.window, metric.inverse))
        except covariance.DegenerateCovarianceError as error:
            raise covariance.DegenerateCovarianceError(error.frames + first) from None
    return parts
