"""Frames of one block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from manifold_observer.tasks.frames.framing import frame_view


@given(st.integers(0, 30), st.integers(1, 6), st.integers(1, 9), st.integers(1, 3))
def test_frame_view__is_the_loop(more, frame, hop, n_channels):
    samples = np.arange((frame + more) * n_channels).reshape(-1, n_channels)
    firsts = range(0, len(samples) - frame + 1, hop)
    assert_array_equal(frame_view(samples, frame, hop), [samples[first : first + frame] for first in firsts])


@pytest.mark.parametrize("hop", [2, 3, 5])
def test_frame_view__copies_nothing(hop):
    samples = np.zeros((12, 2))
    assert np.shares_memory(frame_view(samples, 3, hop), samples)


def test_frame_view__no_whole_frame_is_no_frame():
    assert frame_view(np.zeros((2, 4)), 3, 3).shape == (0, 3, 4)


def test_frame_view__no_whole_frame_is_no_frame_for_any_hop():
    assert frame_view(np.zeros((2, 4)), 3, 1).shape == (0, 3, 4)
