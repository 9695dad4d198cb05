"""Short-time Fourier magnitudes of one block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.frames.stft import stft_magnitude
from reference import loops
from strategies import generators


@given(generators(), st.integers(0, 30), st.integers(2, 17), st.integers(1, 20), st.integers(1, 3))
def test_stft__is_the_reference(rng, more, frame, hop, n_channels):
    samples = rng.normal(size=(frame + more, n_channels))
    for stride in (None, hop):
        expected = loops.stft(samples, frame, stride)
        assert_allclose(stft_magnitude(samples, frame, stride), expected, atol=1e-12 * frame)


def test_stft__other_windows_by_name():
    # a box over a whole number of cycles leaks nothing: 8 samples of amplitude 1 give 8 / 2
    wave = np.cos(2 * np.pi * 3 * np.arange(8) / 8)[:, None]
    assert_allclose(stft_magnitude(wave, 8, window="boxcar"), [[0, 0, 0, 4, 0]], atol=1e-14)


@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_stft__any_kind_of_sample(dtype):
    samples = (1000 * np.random.default_rng(0).normal(size=(24, 2))).astype(dtype)
    features = stft_magnitude(samples, 8)
    assert features.dtype == np.float64
    assert_allclose(features, loops.stft(samples, 8), rtol=1e-12, atol=1e-9)


def test_stft__integers_do_not_wrap():
    assert stft_magnitude(np.full((4, 1), 32767, np.int16), 4)[0, 0] == pytest.approx(2 * 32767)


def test_stft__silence_is_zero():
    assert not stft_magnitude(np.zeros((20, 2)), 5).any()


def test_stft__no_whole_frame_is_no_frame():
    assert stft_magnitude(np.zeros((3, 2)), 4).shape == (0, 6)


def test_stft__a_frame_has_the_same_bits_alone_and_among_others():
    samples = np.random.default_rng(0).normal(size=(40_000, 3)).astype(np.float32)
    together = stft_magnitude(samples, 250)
    for number in (0, 1, 79, 159):
        assert_array_equal(together[number], stft_magnitude(samples[number * 250 :][:250], 250)[0])
