"""Lines with fewer points than frames that look the same: the least and the largest value of every bucket.

Throughout: a *bucket* is some consecutive frames that are drawn as one; an *edge* is where one begins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def bucket_edges(n: int, begins: Integers, most: int) -> Integers:
    """Where buckets of about equal length begin; none reaches over a place where a stretch begins.

    Parameters
    ----------
    n
        Number of frames.
    begins
        First frames of stretches, in order.
    most
        Number of buckets, about. Where more stretches begin than that, some buckets hold several.

    Returns
    -------
    Edges, shape (k + 1,), from 0 to n.

    Examples
    --------
    >>> bucket_edges(6, np.array([0, 4]), 2)
    array([0, 3, 4, 6])
    """
    even = np.linspace(0, n, min(most, n) + 1).astype(np.int64)
    return np.unique(np.concatenate([even, begins, [n]])) if len(begins) <= most else np.unique(even)


def extremes(values: Floats, edges: Integers) -> tuple[Floats, Floats]:
    """Least and largest value of every bucket; NaN only where nothing else is there.

    Parameters
    ----------
    values
        Shape (n, m).
    edges
        From 0 to n, growing, shape (k + 1,).

    Returns
    -------
    Two arrays of shape (k, m).

    Examples
    --------
    >>> low, high = extremes(np.array([[1.0], [np.nan], [3.0], [2.0]]), np.array([0, 2, 4]))
    >>> low.ravel(), high.ravel()
    (array([1., 2.]), array([1., 3.]))
    """
    return np.fmin.reduceat(values, edges[:-1]), np.fmax.reduceat(values, edges[:-1])


def means(values: Floats, edges: Integers) -> Floats:
    """Mean of every bucket, shape (k, m).

    Examples
    --------
    >>> means(np.array([[1.0], [3.0], [5.0]]), np.array([0, 2, 3])).ravel()
    array([2., 5.])
    """
    sums: Floats = np.add.reduceat(np.asarray(values, np.float64), edges[:-1])
    return sums / np.diff(edges)[:, None]


def with_gaps(values: NDArray[np.float64], starts: NDArray[np.bool_]) -> Floats:
    """Rows with one of NaN before every row where something begins, except the first: a line breaks there.

    Examples
    --------
    >>> with_gaps(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]))
    array([ 1.,  2., nan,  3.])
    """
    return np.insert(np.asarray(values, np.float64), _breaks(starts), np.nan, axis=0)


def times_with_gaps(time: NDArray[np.generic], starts: NDArray[np.bool_]) -> NDArray[np.generic]:
    """Times for :func:`with_gaps`: a break has the time of the row before it.

    Examples
    --------
    >>> times_with_gaps(np.array([1.0, 2.0, 9.0]), np.array([True, False, True]))
    array([1., 2., 2., 9.])
    """
    at = _breaks(starts)
    return np.insert(time, at, time[at - 1])


def _breaks(starts: NDArray[np.bool_]) -> Integers:
    """Rows before which a line breaks."""
    at = np.flatnonzero(starts)
    return at[at > 0]


def runs(codes: Integers) -> tuple[Integers, Integers]:
    """Where runs of equal numbers begin and end.

    Examples
    --------
    >>> runs(np.array([7, 7, 5]))
    (array([0, 2]), array([2, 3]))
    """
    begin = np.flatnonzero(np.concatenate([[True], np.diff(codes) != 0])) if len(codes) else np.zeros(0, np.int64)
    return begin, np.append(begin, len(codes))[1:].astype(np.int64)
