"""Spans of numbers: ``(start, stop)``, as slices have them; and runs of numbers that count up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int]

Integers = NDArray[np.int64]


def blocks(n: int, size: int) -> list[Span]:
    """Cut n into spans of ``size``, the last one shorter.

    Examples
    --------
    >>> blocks(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def together(lengths: Sequence[int], most: int) -> tuple[int, ...]:
    """Lengths of neighbours that are joined as long as they are ``most`` at most; longer ones stay as they are.

    Examples
    --------
    >>> together((3, 3, 3, 9, 1), 7)
    (6, 3, 9, 1)
    """
    joined = list(lengths[:1])
    for length in lengths[1:]:
        if joined[-1] + length <= most:
            joined[-1] += length
        else:
            joined.append(length)
    return tuple(joined)


def spread(n: int, run: int, most: int) -> list[Span]:
    """All of n as one span, or where they are more than ``most``, evenly spread runs of as many in all.

    Examples
    --------
    >>> spread(8, 2, 8), spread(100, 2, 4)
    ([(0, 8)], [(0, 2), (98, 100)])
    """
    if n <= most:
        return [(0, n)]
    firsts = np.linspace(0, n - run, most // run).astype(np.int64).tolist()
    return [(first, first + run) for first in firsts]


def segment_spans(segment: Integers) -> list[Span]:
    """Spans of equal values.

    Examples
    --------
    >>> segment_spans(np.array([0, 0, 3]))
    [(0, 2), (2, 3)]
    """
    cuts = np.flatnonzero(np.diff(segment)) + 1
    bounds = [0, *(int(cut) for cut in cuts), len(segment)]
    return [(a, b) for a, b in itertools.pairwise(bounds) if b > a]


class Runs(NamedTuple):
    """Whole numbers that mostly count up by one, as (offset from counting, how many) pairs: a task's graph is small."""

    offsets: Integers
    lengths: Integers

    def expand(self) -> Integers:
        """The numbers."""
        return np.repeat(self.offsets, self.lengths) + np.arange(int(self.lengths.sum()))


def runs_of(numbers: Integers) -> Runs:
    """Pack whole numbers.

    Examples
    --------
    >>> runs_of(np.array([3, 4, 5, 9])).lengths
    array([3, 1])
    """
    offsets = numbers - np.arange(len(numbers))
    spans = segment_spans(offsets)
    return Runs(offsets[[start for start, _ in spans]], np.array([stop - start for start, stop in spans]))
