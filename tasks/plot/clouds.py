"""Clouds of points with fewer marks than points: samples spread over time, and counts in cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def spread_sample(n: int, most: int, seed: int = 0) -> NDArray[np.int64]:
    """Numbers of frames spread over a recording, one drawn from each of ``most`` stretches; all where there are fewer.

    Drawn rather than every k-th, so that no rhythm of the recording is met in the same phase each time.

    Examples
    --------
    >>> spread_sample(3, 5)
    array([0, 1, 2])
    >>> len(spread_sample(1000, 10))
    10
    """
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, most + 1).astype(np.int64)
    drawn = np.random.default_rng(seed).random(most)
    return edges[:-1] + (drawn * np.diff(edges)).astype(np.int64)


def counts(points: Floats, x_edges: Floats, y_edges: Floats) -> NDArray[np.int64]:
    """How many points lie in each cell, shape (x cells, y cells).

    Parameters
    ----------
    points
        Shape (n, 2); those outside the edges, and NaN, count nowhere.
    x_edges, y_edges
        Equally spaced edges of the cells.

    Examples
    --------
    >>> counts(np.array([[0.5, 0.5], [0.6, 0.4], [1.5, 0.1]]), np.array([0.0, 1, 2]), np.array([0.0, 1]))
    array([[2],
           [1]])
    """
    known = points[np.isfinite(points).all(axis=1)]
    found, _, _ = np.histogram2d(known[:, 0], known[:, 1], bins=[x_edges, y_edges])
    return found.astype(np.int64)
