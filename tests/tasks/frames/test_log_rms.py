"""Logarithmic levels of one block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.frames.log_rms import SilentFrameError, log_rms
from reference import loops
from strategies import generators


@given(generators(), st.integers(0, 30), st.integers(1, 9), st.integers(1, 12), st.integers(1, 3))
def test_log_rms__is_the_reference_and_a_loop(rng, more, frame, hop, n_channels):
    samples = rng.normal(size=(frame + more, n_channels))
    assert_allclose(log_rms(samples, frame), loops.log_rms(samples, frame), atol=1e-14)
    pieces = [samples[first : first + frame] for first in range(0, more + 1, hop)]
    expected = [np.log(np.sqrt(np.mean(piece**2, axis=0))) for piece in pieces]
    assert_allclose(log_rms(samples, frame, hop), expected, atol=1e-14)


def test_log_rms__integers_do_not_wrap():
    assert_allclose(log_rms(np.full((4, 1), -32768, np.int16), 4), np.log(32768))


@pytest.mark.parametrize("kind", ["i1", "u1", "<i2", ">i2", "u2", "i4"])
@pytest.mark.parametrize(("frame", "channels"), [(200, 1), (200, 2), (1024, 8), (9000, 3), (100, 300)])
def test_log_rms__squares_of_integers_are_added_up_exactly(kind, frame, channels):
    limits = np.iinfo(kind)
    drawn = np.random.default_rng(0).integers(limits.min, limits.max, (3 * frame, channels), np.int64, endpoint=True)
    samples = np.clip(drawn, -(2**19), 2**19).astype(kind)
    exact = (samples.astype(np.int64).reshape(3, frame, channels) ** 2).sum(axis=1)
    assert_array_equal(log_rms(samples, frame), np.log(np.sqrt(exact / frame)))


def test_log_rms__silence_is_named():
    samples = np.array([[1.0, 1], [1, 1], [1, 0], [1, 0]])
    with pytest.raises(SilentFrameError, match="channel 1 is exactly zero in frame 1 of the block"):
        log_rms(samples, 2)


def test_log_rms__floor_raises_quiet_frames_only():
    levels = log_rms(np.array([[0.0, 3.0], [0.0, 3.0]]), 2, floor=0.5)
    assert_allclose(levels, [[np.log(0.5), np.log(3.0)]])


def test_log_rms__floor_of_zero_is_no_floor():
    with pytest.raises(SilentFrameError):
        log_rms(np.zeros((2, 1)), 2, floor=0.0)


def test_log_rms__no_whole_frame_is_no_frame():
    assert_array_equal(log_rms(np.ones((2, 3)), 4), np.zeros((0, 3)))


@pytest.mark.parametrize(("frame", "channels"), [(23, 8), (200, 1), (1025, 3), (9000, 1), (9000, 8), (50, 300)])
def test_log_rms__a_frame_has_the_same_bits_alone_and_among_others(frame, channels):
    samples = np.random.default_rng(0).normal(size=(5 * frame, channels)).astype(np.float32)
    together, overlapping = log_rms(samples, frame), log_rms(samples, frame, frame // 2)
    assert_allclose(together, loops.log_rms(samples.astype(np.float64), frame), atol=1e-13)
    for number in range(5):
        alone = log_rms(samples[number * frame : (number + 1) * frame], frame)[0]
        assert_array_equal(together[number], alone)
        assert_array_equal(overlapping[2 * number], log_rms(samples[2 * number * (frame // 2) :][:frame], frame)[0])


def test_log_rms__small_and_large_numbers_keep_their_digits():
    samples = np.array([1e-30, 3e38, 1e-30, 3e38], np.float32).reshape(2, 2)
    assert_allclose(log_rms(samples, 2), [np.log(samples[0].astype(np.float64))], rtol=1e-15)
