"""Where things are cut: integers in, integers out, no arrays of data.

Throughout: a *span* is ``(start, stop)``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.engine.panel import Corner, Pair
from manifold_observer.tasks.engine.treesum import Node

from ..graph.spans import Integers, Span, blocks, segment_spans
from .windows import Segment

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
# Groups of blocks at least, and at most (about a hundred panels) where there are not more workers than that is for.
_LEAST_GROUPS = 2
_MOST_GROUPS = 16
MANY_PANELS = 200
"""Panels above which the caller adds up nothing itself, nor the scheduler counts single blocks."""
# Tasks a worker, at least, where several spans are joined to one, and workers for each span that one more is joined to.
_LEAST_TASKS, _WORKERS_A_SPAN = 4, 8
# Panels a worker, at least: with fewer the last ones would be waited for.
_WORKERS_PANELS = 4


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


def spans_together(n_spans: int, n_workers: int) -> int:
    """Spans that one task streams past the landmarks, one after the other; one at a time is in memory.

    A scheduler takes a millisecond a task whatever it does, and a span takes a core less than a second: with tens of
    workers more than one a task are wanted, and still four tasks a worker or more, so that all end together: as many
    as make the worker that has most to do no more than a twentieth slower. A power of two: the sums of one task are a
    node of the tree in which those of all spans are taken.

    Examples
    --------
    >>> [spans_together(2442, n_workers) for n_workers in (2, 16, 64, 256, 1000)]
    [1, 2, 8, 2, 1]
    """

    def longest(together: int) -> int:
        return -(-n_spans // (together * n_workers)) * together

    most = min(n_spans // (_LEAST_TASKS * n_workers), n_workers // _WORKERS_A_SPAN)
    choices = [2**level for level in range(max(most, 1).bit_length())]
    enough = 1.05 * min(map(longest, choices))
    return max(together for together in choices if longest(together) <= enough)


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


class Side(NamedTuple):
    """Blocks ``first`` to ``stop`` of a panel, and the node of the tree of all blocks that it sums over for them.

    Without a node it is their own diagonal, which is added last.
    """

    first: int
    stop: int
    node: Node | None


@dataclass(frozen=True)
class PanelPlan:
    """One panel: two sides, whose blocks it pairs with each other, or one, whose blocks it pairs among themselves.

    No tuple, and nothing but the sides: it travels with every task, and tuples are searched for what is delayed.
    """

    sides: tuple[Side, ...]

    @property
    def blocks(self) -> tuple[int, ...]:
        """The blocks, in the panel's own order."""
        return tuple(block for side in self.sides for block in range(side.first, side.stop))

    @property
    def n_tiles(self) -> int:
        """How many tiles."""
        lengths = [side.stop - side.first for side in self.sides]
        if len(lengths) > 1:
            return lengths[0] * lengths[1]
        return lengths[0] if self.sides[0].node is None else lengths[0] * (lengths[0] - 1) // 2

    @property
    def tiles(self) -> tuple[Pair, ...]:
        """Tiles as pairs of places in the blocks."""
        places, first = range(len(self.blocks)), self.sides[0].stop - self.sides[0].first
        if len(self.sides) > 1:
            return tuple(itertools.product(places[:first], places[first:]))
        return tuple((i, i) for i in places) if self.sides[0].node is None else tuple(itertools.combinations(places, 2))

    @property
    def numbers(self) -> list[Pair]:
        """The blocks of every tile."""
        blocks = self.blocks
        return [(blocks[i], blocks[j]) for i, j in self.tiles]

    def corners(self, lengths: Iterable[int]) -> list[Corner]:
        """First row and column of every tile in the panel's own rows, from the frames of its blocks."""
        offsets = list(itertools.accumulate(lengths, initial=0))
        return [(offsets[i], offsets[j]) for i, j in self.tiles]


class Dealing(NamedTuple):
    """How blocks are dealt: ``2**level`` to a group, whole or, on one side of every panel, in halves."""

    level: int
    halved: bool

    def groups(self, n_blocks: int, columns: bool = False) -> list[Side]:
        """Groups of blocks, or what stands on the other side of a panel; the last may be shorter."""
        level = self.level - (columns and self.halved)
        firsts = range(0, n_blocks, 2**level)
        return [Side(first, min(first + 2**level, n_blocks), (level, first >> level)) for first in firsts]

    def units(self, n_blocks: int) -> list[Span]:
        """Blocks whose sums are made together: the finest groups that panels have."""
        return [(side.first, side.stop) for side in self.groups(n_blocks, columns=True)]

    def panels(self, n_blocks: int) -> int:
        """Panels in all: of a group and another one or its halves, of two halves, and pairs and diagonal of each."""
        firsts = np.arange(0, n_blocks, 2**self.level)
        fine = np.arange(0, n_blocks, 2 ** (self.level - self.halved))
        lengths = np.minimum(2 ** (self.level - self.halved), n_blocks - fine)
        between = int((fine >> self.level).sum()) + (len(fine) - len(firsts))
        return between + int(np.count_nonzero(lengths > 1)) + len(fine)


def panels(n_blocks: int, tile_bytes: int, n_workers: int = 1) -> list[PanelPlan]:
    """Deal the tiles of the upper triangle into panels: the pairs of two groups of blocks, and those within one.

    Halves make twice as many panels of the inputs of as many: the scheduler counts what tasks ask for, too.

    Sums over panels are the same however many there are: a panel adds up for each of its blocks a node of one
    fixed tree over all blocks (:mod:`~manifold_observer.tasks.engine.treesum`). A panel needs the frames of its groups
    only. The largest come first: handed out in this order, all workers end at about the same time.

    Parameters
    ----------
    n_blocks
        Blocks of frames.
    tile_bytes
        Bytes of one tile.
    n_workers
        Workers, each of which shall have four panels or more.

    Returns
    -------
    Panels of two groups, and the pairs of different blocks within each, by descending size; the diagonal.

    Examples
    --------
    >>> [panel.blocks for panel in panels(2, 2**26)]
    [(0, 1), (0,), (1,)]
    >>> [len(panels(49, 2**24, n_workers)) for n_workers in (1, 16, 64)]
    [103, 103, 349]
    """
    dealing = deal(n_blocks, tile_bytes, n_workers)
    groups, columns = dealing.groups(n_blocks), dealing.groups(n_blocks, columns=True)
    pairs = [(one, other) for one in groups for other in columns if one.stop <= other.first]
    if dealing.halved:
        pairs += zip(columns[::2], columns[1::2], strict=False)
    between = [PanelPlan((one._replace(node=other.node), other._replace(node=one.node))) for one, other in pairs]
    large = sorted((*between, *(PanelPlan((group,)) for group in columns)), key=lambda panel: -panel.n_tiles)
    diagonal = [PanelPlan((group._replace(node=None),)) for group in columns]
    return [panel for panel in (*large, *diagonal) if panel.n_tiles]


def deal(n_blocks: int, tile_bytes: int, n_workers: int = 1) -> Dealing:
    """Sizes of the groups: powers of two, so that each is a node of the tree of all blocks.

    They are small enough for a panel, few enough for the scheduler, and enough for all workers.

    Examples
    --------
    >>> deal(489, 2**24), deal(489, 2**24, 64), deal(489, 2**24, 1000)
    (Dealing(level=5, halved=False), Dealing(level=5, halved=True), Dealing(level=3, halved=True))
    """
    dealing = Dealing(max(1, math.isqrt(PANEL_BYTES // tile_bytes)).bit_length() - 1, halved=False)
    while -(-n_blocks // 2**dealing.level) > _MOST_GROUPS:
        dealing = Dealing(dealing.level + 1, halved=False)
    while dealing.level and -(-n_blocks // 2**dealing.level) < min(n_blocks, _LEAST_GROUPS):
        dealing = Dealing(dealing.level - 1, halved=False)
    while dealing.level and dealing.panels(n_blocks) < _WORKERS_PANELS * n_workers:
        finer = dealing.level - dealing.halved
        dealing = Dealing(finer, halved=not dealing.halved and finer > 0)
    return dealing
