"""The median distance, exactly, when the distances lie in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from manifold_observer.tasks.arrays import Array
from manifold_observer.tasks.engine import kernel
from manifold_observer.tasks.engine.protocols import Block


def brackets(sample: Array) -> Iterator[tuple[float, float]]:
    """Ever wider intervals that should hold the median, judged from a sample; the last holds all.

    Examples
    --------
    >>> list(brackets(np.arange(101.0)))[-1]
    (-inf, inf)
    """
    deviation = 0.5 / np.sqrt(len(sample))
    for width in (4 * deviation, 16 * deviation):
        if width < 0.5:
            low, high = np.quantile(sample, [0.5 - width, 0.5 + width])
            yield float(low), float(high)
    yield -np.inf, np.inf


def median_from(inside: Array, below: int, total: int) -> float | None:
    """Median of ``total`` numbers of which ``below`` lie below those ``inside``, if it is inside.

    Examples
    --------
    >>> median_from(np.array([3.0, 2.0]), 1, 4)
    2.5
    """
    low, high = (total - 1) // 2 - below, total // 2 - below
    if low < 0 or high >= len(inside):
        return None
    middle = np.partition(inside, [low, high])[[low, high]]
    return float(np.mean(middle, dtype=np.float64))


def median_between(blocks: Sequence[Block]) -> float:
    """Median distance over all pairs of frames of some small blocks."""
    distances = []
    for i, rows in enumerate(blocks):
        for j, columns in enumerate(blocks[i:]):
            tile = kernel.squared_distances(rows, columns)
            distances.append(tile[np.triu_indices(len(tile), 1)] if j == 0 else tile.ravel())
    return float(np.median(np.concatenate(distances)))
