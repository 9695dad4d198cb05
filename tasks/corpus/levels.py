"""Level and spread of every channel of a recording, from its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Array, Floats


class Levels(NamedTuple):
    """Finite samples, their means, and their squared deviations from these, a channel each (c,)."""

    n: Floats
    mean: Floats
    squares: Floats

    @property
    def deviation(self) -> Floats:
        """Standard deviations; 1 for a channel that does not vary."""
        variance = self.squares / np.maximum(self.n, 1)
        return np.sqrt(np.where(variance > 1e-28 * np.square(self.mean), variance, 1.0))


def levels(samples: Array) -> Levels:
    """Of one block (n, c); what is not finite is left out.

    Examples
    --------
    >>> levels(np.array([[1.0, 5.0], [3.0, np.nan]])).mean
    array([2., 5.])
    """
    values = np.asarray(samples, np.float64)
    known = np.isfinite(values)
    n = known.sum(axis=0).astype(np.float64)
    values = np.where(known, values, 0.0)
    mean = values.sum(axis=0) / np.maximum(n, 1)
    return Levels(n, mean, np.where(known, np.square(values - mean), 0.0).sum(axis=0))


def joined(parts: Sequence[Levels]) -> Levels:
    """Of all blocks, in their order.

    Examples
    --------
    >>> joined([levels(np.array([[1.0]])), levels(np.array([[3.0], [5.0]]))]).mean
    array([3.])
    """
    total = parts[0]
    for part in parts[1:]:
        n = total.n + part.n
        apart = part.mean - total.mean
        share = part.n / np.maximum(n, 1)
        squares = total.squares + part.squares + np.square(apart) * total.n * share
        total = Levels(n, total.mean + apart * share, squares)
    return total
