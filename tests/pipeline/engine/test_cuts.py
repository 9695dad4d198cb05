"""Where things are cut, as tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.pipeline.engine import cuts, windows
from manifold_observer.pipeline.frames import segments as cut_segments
from manifold_observer.pipeline.frames.segments import FrameRun
from manifold_observer.pipeline.graph import spans as cut_spans
from reference import dense
from strategies import chunkings


@pytest.mark.parametrize(
    ("segments", "frame", "hop", "runs", "unused"),
    [
        ([(0, 7)], 3, 3, [FrameRun(0, 0, 2)], 1),
        ([(0, 7)], 3, 1, [FrameRun(0, 0, 5)], 0),
        ([(0, 7)], 3, 5, [FrameRun(0, 0, 1)], 4),  # the samples from 3 on
        ([(0, 8)], 3, 5, [FrameRun(0, 0, 2)], 0),
        ([(0, 7), (7, 9), (9, 12)], 3, 3, [FrameRun(0, 0, 2), FrameRun(2, 9, 1)], 3),
        ([(0, 2)], 3, 3, [], 2),
        ([(0, 3)], 3, 3, [FrameRun(0, 0, 1)], 0),
        ([(0, 0)], 1, 1, [], 0),
    ],
)
def test_frame_runs__table(segments, frame, hop, runs, unused):
    assert cut_segments.frame_runs(segments, frame, hop, 1) == runs
    assert cut_segments.unused_samples(segments, frame, hop) == unused


def test_frame_runs__a_task_reads_about_its_bytes(monkeypatch):
    monkeypatch.setattr(
        "manifold_observer.pipeline.frames.segments.FEATURE_TASK_BYTES", 8 * 2 * 10 * 3
    )  # two channels, three frames of 10
    runs = cut_segments.frame_runs([(0, 75)], 10, 10, 2)
    assert [run.n_frames for run in runs] == [3, 3, 1]
    assert [run.samples(10, 10) for run in runs] == [(0, 30), (30, 60), (60, 70)]


@given(st.integers(1, 60).flatmap(chunkings), st.integers(1, 9), st.integers(1, 9))
def test_frame_runs__frames_follow_each_other_within_their_segment(lengths, frame, hop):
    stops = np.cumsum(lengths).tolist()
    segments = [(stop - length, stop) for stop, length in zip(stops, lengths, strict=True)]
    firsts = [
        (run.segment, run.first_sample + k * hop)
        for run in cut_segments.frame_runs(segments, frame, hop, 1)
        for k in range(run.n_frames)
    ]
    expected = [(k, first) for k, (start, stop) in enumerate(segments) for first in range(start, stop - frame + 1, hop)]
    assert firsts == expected


@pytest.mark.parametrize(
    ("segment", "spans", "restarts"),
    [
        ([], [], []),
        ([3], [(0, 1)], [True]),
        ([0, 0, 0], [(0, 3)], [True, False, False]),
        ([0, 0, 3, 1, 1], [(0, 2), (2, 3), (3, 5)], [True, False, True, True, False]),
    ],
)
def test_segments__table(segment, spans, restarts):
    assert cut_spans.segment_spans(np.array(segment, np.int64)) == spans
    assert cut_segments.restarts(np.array(segment, np.int64)).tolist() == restarts


@given(st.lists(st.integers(0, 12), min_size=1, max_size=3), st.integers(2, 8))
def test_window_starts__equal_the_reference(extra, window):
    segment = np.repeat(np.arange(len(extra)), [window + more for more in extra])
    expected = [members[0] for members in dense.windows(segment, window)]
    assert windows.window_starts(segment, window).tolist() == expected


@given(st.lists(st.integers(0, 30), min_size=1, max_size=4), st.integers(2, 8), st.integers(1, 40))
def test_shrinking_windows__a_span_has_its_part_of_all(extra, window, size):
    segment = np.repeat(np.arange(len(extra)), [window + more for more in extra])
    spans = cut_spans.blocks(len(segment), size)
    parts = [windows.shrinking_windows(segment, window, span)[0] for span in spans]
    assert np.concatenate(parts).tolist() == windows.window_starts(segment, window).tolist()


@pytest.mark.parametrize(
    ("n", "size", "spans"),
    [(5, 2, [(0, 2), (2, 4), (4, 5)]), (4, 2, [(0, 2), (2, 4)]), (1, 9, [(0, 1)]), (0, 3, [])],
)
def test_blocks__table(n, size, spans):
    assert cut_spans.blocks(n, size) == spans


@pytest.mark.parametrize(("n", "size"), [(3, 512), (8192, 512), (8193, 2048), (10**6, 2048)])
def test_tile_size__depends_on_the_number_of_frames_alone(n, size):
    assert cuts.tile_size(n) == size


@pytest.mark.parametrize("n_blocks", [1, 2, 3, 8, 25, 70])
@pytest.mark.parametrize("tile_bytes", [2**10, 2**20, 2**24, 2**27])
def test_panels__hold_every_tile_of_the_upper_triangle_once(n_blocks, tile_bytes):
    dealt = cuts.panels(n_blocks, tile_bytes)
    pairs = [(panel.blocks[i], panel.blocks[j]) for panel in dealt for i, j in panel.tiles]
    assert sorted(pairs) == [(i, j) for i in range(n_blocks) for j in range(i, n_blocks)]


@pytest.mark.parametrize(("n_blocks", "tile_bytes"), [(8, 2**24), (40, 2**20), (60, 2**20)])
def test_panels__are_no_larger_than_a_task_may_hold(n_blocks, tile_bytes):
    dealt = cuts.panels(n_blocks, tile_bytes)
    assert max(len(panel.tiles) for panel in dealt) * tile_bytes <= cuts.PANEL_BYTES
    assert len(dealt) > 1


@pytest.mark.parametrize(("n_blocks", "tile_bytes"), [(10, 2**24), (49, 2**24), (16, 2**20)])
def test_panels__large_ones_are_first_and_the_last_are_short(n_blocks, tile_bytes):
    sizes = [len(panel.tiles) for panel in cuts.panels(n_blocks, tile_bytes)]
    groups = [group.stop - group.first for group in cuts.deal(n_blocks, tile_bytes).groups(n_blocks)]
    n_between = len(groups) * (len(groups) - 1) // 2
    assert min(sizes[:n_between]) > max(sizes[n_between:])
    assert sizes[-len(groups) :] == groups


@pytest.mark.parametrize("n_workers", [1, 2, 8, 64, 1000])
@pytest.mark.parametrize("n_blocks", [1, 2, 10, 49, 489])
def test_panels__are_four_a_worker_as_long_as_tiles_are_that_many(n_blocks, n_workers):
    dealt = cuts.panels(n_blocks, 2**24, n_workers)
    assert len(dealt) >= min(4 * n_workers, n_blocks * (n_blocks + 1) // 2)
    assert len(dealt) == cuts.deal(n_blocks, 2**24, n_workers).panels(n_blocks)
    assert len(dealt) <= max(17 * 16, 20 * n_workers)  # a scheduler counts them all


@pytest.mark.parametrize("n_workers", [1, 2, 3, 8, 64, 1000])
@pytest.mark.parametrize("n_blocks", [1, 2, 3, 8, 25, 70])
def test_panels__hold_every_tile_once_for_any_workers(n_blocks, n_workers):
    dealt = cuts.panels(n_blocks, 2**24, n_workers)
    pairs = [pair for panel in dealt for pair in panel.numbers]
    assert sorted(pairs) == [(i, j) for i in range(n_blocks) for j in range(i, n_blocks)]
    assert all(panel.n_tiles == len(panel.tiles) for panel in dealt)


@pytest.mark.parametrize("n_workers", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("n_blocks", [1, 3, 8, 25])
def test_panels__sides_are_sums_over_whole_nodes(n_blocks, n_workers):
    for panel in cuts.panels(n_blocks, 2**24, n_workers):
        for side in panel.sides:
            met = {other for pair in panel.numbers for own, other in (pair, pair[::-1]) if own == side.first}
            if side.node is None:
                assert met == {side.first}
            else:
                level, index = side.node
                leaves = set(range(index << level, min((index + 1) << level, n_blocks)))
                assert met == leaves - {side.first}
