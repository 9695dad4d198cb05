"""Which frames a block is made from, against a look at every frame."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.pipeline.engine import windows
from manifold_observer.pipeline.frames.segments import Segments
from strategies import chunkings


def by_frame(segment, window, span, how):
    """First and last frame of the window of each frame, found one by one."""
    found = []
    for frame in range(*span):
        own = np.flatnonzero(segment == segment[frame])
        width = min(window, len(own))
        first = max(frame - window + 1, own[0]) if how == "causal" else frame - width // 2
        last = frame if how == "causal" else min(max(first, own[0]), own[-1] - width + 1) + width - 1
        found.append((last + 1 - width if how != "causal" else first, last))
    return np.array(found)


@given(
    st.integers(20, 60).flatmap(chunkings),
    st.integers(1, 7),
    st.sampled_from(["whole", "shrinking", "causal"]),
    st.data(),
)
def test_reach__holds_the_windows_of_all_frames_and_nothing_else(lengths, window, how, data):
    if how == "whole":
        lengths = [length + window for length in lengths]
    segment = np.repeat(np.arange(len(lengths)), lengths)
    first = data.draw(st.integers(0, len(segment) - 1))
    span = first, data.draw(st.integers(first + 1, len(segment)))
    expected = by_frame(segment, window, span, how)
    for given_as in (segment, Segments.of([segment])):
        reached = windows.reach(given_as, window, span, windows=how)
        low, high = reached.span
        assert low == min(expected[:, 0].min(), span[0])
        assert high == max(expected[:, 1].max() + 1, span[1])
        assert (reached.rows.expand() + low).tolist() == list(range(*span))
        assert (reached.starts.expand() + low).tolist() == expected[:, 0].tolist()
        if how == "whole":
            assert reached.stops is None
        else:
            assert (reached.stops.expand() + low).tolist() == (expected[:, 1] + 1).tolist()


@pytest.mark.parametrize("how", ["whole", "shrinking", "causal"])
def test_reach__far_from_the_ends_of_a_segment_it_is_said_in_three_numbers(how):
    segment = Segments.of([np.zeros(10**6, np.int64)])
    reached = windows.reach(segment, 21, (5000, 9000), windows=how)
    lengths = [runs.lengths.tolist() for runs in (reached.rows, reached.starts, reached.stops) if runs is not None]
    assert lengths == [[4000]] * (2 if how == "whole" else 3)
    assert reached.span == ((4980, 9000) if how == "causal" else (4990, 9010))
