"""Which frames a block is made from: its own, and those of their windows; integers in, integers out.

Throughout: a *span* is ``(start, stop)``; a window never leaves its segment, it is shifted inwards at the ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..frames.segments import Segments
from ..graph.spans import Integers, Runs, Span, runs_of, segment_spans

Segment = Integers | Segments


def window_starts(segment: Segment, window: int) -> Integers:
    """First frame of every frame's window: centred, shifted inwards at the ends of its segment.

    Parameters
    ----------
    segment
        Segment of every frame, shape (n,); every segment holds at least ``window`` frames.
    window
        Frames in a window.

    Returns
    -------
    Shape (n,).

    Examples
    --------
    >>> window_starts(np.array([0, 0, 0, 0, 1, 1, 1]), 3)
    array([0, 0, 1, 1, 4, 4, 4])
    """
    return shrinking_windows(segment, window, (0, len(segment)))[0]


class Reach(NamedTuple):
    """Frames that a block is made from; within them the rows of its own frames, and of the first of each window.

    ``used`` are the rows that are taken, None for all; rows and starts then count in those. ``stops`` are the rows
    after the windows, where these are not all equally wide.
    """

    span: Span
    rows: Runs
    starts: Runs
    used: Runs | None = None
    stops: Runs | None = None


def reach(segment: Segment, window: int, span: Span, chosen: Integers | None = None, windows: str = "whole") -> Reach:
    """What the frames of a span, or some ``chosen`` ones of them, reach into with their windows.

    Parameters
    ----------
    segment
        Segment of every frame.
    window
        Frames in a window, 0 where covariances are given.
    span
        Frames of the block.
    chosen
        Frames of the span that are wanted, ascending; a block of landmarks that kept the frames between them would
        hold all there are.
    windows
        ``"whole"``, ``"shrinking"`` to short segments, or ``"causal"``.

    Returns
    -------
    Frames, rows and starts.

    Examples
    --------
    >>> reach(np.zeros(9), 3, (4, 6)).span, reach(np.zeros(9), 3, (0, 9), np.array([1, 7])).used.expand()
    ((3, 7), array([0, 1, 2, 6, 7, 8]))
    """
    if chosen is None and window and _far_inside(segment, window, span):
        return _reach_inside(window, span, windows)
    numbers = np.arange(*span) if chosen is None else chosen
    if not window:
        here = runs_of(np.arange(len(numbers)))
        return Reach(span, here, here, None if chosen is None else runs_of(chosen - span[0]))
    cut = shrinking_windows(segment, window, span, windows == "causal")
    starts, stops = (ends[numbers - span[0]] for ends in cut)
    low, high = min(int(starts[0]), int(numbers[0])), max(int(stops[-1]), int(numbers[-1]) + 1)
    varied = windows != "whole"
    if chosen is None:
        after = runs_of(stops - low) if varied else None
        return Reach((low, high), runs_of(numbers - low), runs_of(starts - low), None, after)
    within = np.minimum(starts[:, None] + np.arange(window), stops[:, None] - 1)
    used = np.unique(within)  # a frame lies within its window
    rows, first = (runs_of(np.searchsorted(used, wanted)) for wanted in (numbers, starts))
    after = runs_of(np.searchsorted(used, stops - 1) + 1) if varied else None
    return Reach((low, high), rows, first, runs_of(used - low), after)


def _far_inside(segment: Segment, window: int, span: Span) -> bool:
    """Whether no window of a span comes near an end of its segment."""
    low, high = span[0] - window, span[1] + window
    if low < 0 or high > len(segment):
        return False
    if isinstance(segment, Segments):
        first, last = np.searchsorted(segment.firsts, (low, high - 1), side="right")
        return bool(first == last)
    return bool((segment[low:high] == segment[low]).all())


def _reach_inside(window: int, span: Span, windows: str) -> Reach:
    """:func:`reach` where no window is shifted, or shorter than others: all that counts is how far it begins before."""
    before = window - 1 if windows == "causal" else window // 2

    def counting_from(first: int) -> Runs:
        return Runs(np.array([first]), np.array([span[1] - span[0]]))

    stops = counting_from(window) if windows != "whole" else None
    low = span[0] - before
    return Reach((low, span[1] + window - 1 - before), counting_from(before), counting_from(0), None, stops)


def shrinking_windows(segment: Segment, window: int, span: Span, causal: bool = False) -> tuple[Integers, Integers]:
    """First frame of the window of every frame in a span, and the frame after its last.

    Windows are centred and shifted inwards at the ends of a segment, and as short as a segment that is shorter than
    they are; or, where they are ``causal``, they end with their frame and grow from the start of its segment on.

    Examples
    --------
    >>> shrinking_windows(np.array([0, 0, 1, 1, 1, 1]), 3, (0, 6))
    (array([0, 0, 2, 2, 3, 3]), array([2, 2, 5, 5, 6, 6]))
    >>> shrinking_windows(np.array([0, 0, 1, 1, 1, 1]), 3, (2, 6), causal=True)
    (array([2, 2, 2, 3]), array([3, 4, 5, 6]))

    Notes
    -----
    O(span + window).
    """
    low, high = max(span[0] - window, 0), min(span[1] + window, len(segment))
    starts, stops = np.empty(high - low, np.int64), np.empty(high - low, np.int64)
    for start, stop in segment_spans(segment[low:high]):
        frames = np.arange(start, stop)
        if causal:
            starts[start:stop], stops[start:stop] = np.maximum(frames - window + 1, start), frames + 1
        else:
            width = min(window, stop - start)
            starts[start:stop] = np.clip(frames - width // 2, start, stop - width)
            stops[start:stop] = starts[start:stop] + width
    own = slice(span[0] - low, span[1] - low)
    return starts[own] + low, stops[own] + low
