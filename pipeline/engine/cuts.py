"""Where things are cut: integers in, integers out, no arrays of data.

Throughout: a *span* is ``(start, stop)``; a frame never leaves its segment; a window never leaves
its segment either, it is shifted inwards at the ends.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.engine.panel import Pair

from ..frames.segments import Segments
from ..graph.spans import Integers, Runs, Span, blocks, runs_of, segment_spans

Segment = Integers | Segments
# Up to here every distance takes part in the median; beyond it a seeded sample does.
EXACT_MEDIAN_FRAMES = 8192
# Bytes of tiles that one panel holds, about; one task multiplies one panel.
PANEL_BYTES = 2**26
LANDMARK_SPAN = 4096
"""Frames that one task streams past the landmarks, at most: the same at 100,000 frames as at a million."""
GATHER_SPAN = 16384
"""Frames that one task reads to take landmarks from, at most."""
# Bytes of frames that such a task reads, at most, and one that adds up links between landmarks.
_SPAN_BYTES, _LINK_BYTES = 2**25, 2**26
# Spans whose links are added up one by one: a task's are m x m numbers whatever its span, so that few are sent.
_LINK_SPANS = 32
# Spans of frames at least, so that all workers have some.
_LEAST_SPANS = 16
# Groups of blocks at least (some panels for every worker) and at most (about a hundred panels).
_LEAST_GROUPS = 2
_MOST_GROUPS = 14


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


def sample_spans(n_frames: int, run: int, most: int) -> list[Span]:
    """Spans of consecutive frames, evenly spread, all frames where they are few: what a sample is taken from.

    Examples
    --------
    >>> sample_spans(10, 4, 100), sample_spans(100, 4, 8)
    ([(0, 4), (4, 8), (8, 10)], [(0, 4), (96, 100)])
    """
    if n_frames <= most:
        return blocks(n_frames, run)
    count = max(most // run, 1)
    firsts = np.linspace(0, n_frames - run, count).astype(int).tolist() if count > 1 else [(n_frames - run) // 2]
    return [(first, first + run) for first in firsts]


def run_numbers(segment: Segment, spans: list[Span]) -> Integers:
    """Number of the run of consecutive frames of one segment that every frame of some spans belongs to.

    Examples
    --------
    >>> run_numbers(np.array([0, 0, 1, 1, 1, 1]), [(0, 3), (3, 4), (5, 6)])
    array([0, 0, 1, 1, 2])
    """
    return numbered_runs([segment[slice(*span)] for span in spans], spans)


def numbered_runs(segments: list[Integers], spans: list[Span]) -> Integers:
    """As :func:`run_numbers`, where only the segments of the frames in the spans are at hand, span by span.

    Examples
    --------
    >>> numbered_runs([np.array([0, 0, 1]), np.array([1]), np.array([1])], [(0, 3), (3, 4), (5, 6)])
    array([0, 0, 1, 1, 2])
    """
    found, number, before = [], -1, (-1, -1)
    for segment, (start, stop) in zip(segments, spans, strict=True):
        for first, last in segment_spans(segment):
            number += not (first == 0 and before == (start, segment[0]))
            found.append(np.full(last - first, number))
        before = stop, int(segment[-1])
    return np.concatenate(found)


def landmark_spans(n_frames: int, n_features: int) -> list[Span]:
    """Spans of frames that stream past the landmarks.

    Examples
    --------
    >>> len(landmark_spans(1000, 30)), len(landmark_spans(1_000_000, 30)), len(landmark_spans(1_000_000, 10_000))
    (16, 245, 2387)
    """
    return blocks(n_frames, landmark_rows(n_frames, n_features))


def landmark_rows(n_frames: int, n_features: int) -> int:
    """Frames of such a span."""
    return _rows_within(min(LANDMARK_SPAN, -(-n_frames // _LEAST_SPANS)), n_features, _SPAN_BYTES)


def gather_rows(n_frames: int, n_features: int) -> int:
    """Frames that one task reads to take landmarks from."""
    return _rows_within(min(GATHER_SPAN, n_frames), n_features, _SPAN_BYTES)


def link_rows(n_frames: int, n_features: int) -> int:
    """Frames whose links between landmarks one task adds up."""
    return _rows_within(max(GATHER_SPAN, -(-n_frames // _LINK_SPANS)), n_features, _LINK_BYTES)


def _rows_within(rows: int, n_features: int, n_bytes: int) -> int:
    """No more rows of float64 than so many bytes hold."""
    return max(1, min(rows, n_bytes // (8 * n_features)))


def tile_size(n_frames: int) -> int:
    """Frames on the side of a tile; it depends on the number of frames alone."""
    return 512 if n_frames <= EXACT_MEDIAN_FRAMES else 2048


class PanelPlan(NamedTuple):
    """One panel: the blocks that it pairs, in its own order, and its tiles as pairs of places in them."""

    blocks: tuple[int, ...]
    tiles: tuple[Pair, ...]


def panels(n_blocks: int, tile_bytes: int) -> list[PanelPlan]:
    """Deal the tiles of the upper triangle into panels: the pairs of two groups of blocks, and those within one.

    Panels depend on the frames and the tile size alone, never on the number of workers, so that sums
    over them are the same everywhere. A panel needs the frames of its groups only. The largest come first:
    handed out in this order, all workers end at about the same time.

    Parameters
    ----------
    n_blocks
        Blocks of frames.
    tile_bytes
        Bytes of one tile.

    Returns
    -------
    Panels of two groups, then the pairs of different blocks within each group, then the diagonal.

    Examples
    --------
    >>> [panel.blocks for panel in panels(2, 2**26)]
    [(0, 1), (0,), (1,)]
    """
    groups = panel_groups(n_blocks, tile_bytes)
    between = [_between(rows, columns) for rows, columns in itertools.combinations(groups, 2)]
    within = [PanelPlan(group, tuple(itertools.combinations(range(len(group)), 2))) for group in groups]
    diagonal = [PanelPlan(group, tuple((i, i) for i in range(len(group)))) for group in groups]
    return [panel for panel in (*between, *within, *diagonal) if panel.tiles]


def _between(rows: tuple[int, ...], columns: tuple[int, ...]) -> PanelPlan:
    """The panel of all pairs of two groups."""
    places = range(len(rows), len(rows) + len(columns))
    return PanelPlan(rows + columns, tuple(itertools.product(range(len(rows)), places)))


def panel_groups(n_blocks: int, tile_bytes: int) -> list[tuple[int, ...]]:
    """Groups of blocks, as even as can be: small enough for a panel, few enough for the scheduler."""
    side = max(1, math.isqrt(PANEL_BYTES // tile_bytes))
    count = min(max(math.ceil(n_blocks / side), min(n_blocks, _LEAST_GROUPS)), _MOST_GROUPS)
    bounds = [n_blocks * k // count for k in range(count + 1)]
    return [tuple(range(a, b)) for a, b in itertools.pairwise(bounds)]
