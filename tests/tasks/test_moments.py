"""Mean and variance by blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from manifold_observer.tasks.moments import NotFiniteError, combine, moments
from strategies import chunkings, generators, spans


@given(st.data(), generators(), st.integers(1, 40), st.integers(1, 4), st.sampled_from([0.0, 1e6]))
def test_combine__any_blocks_give_the_moments_of_the_whole(data, rng, n, p, offset):
    frames = offset + rng.normal(size=(n, p))
    cut = spans(data.draw(chunkings(n)))
    total = combine(moments(frames[start:stop]) for start, stop in cut)
    assert total.n == n
    assert_allclose(total.mean, frames.mean(axis=0), rtol=1e-14, atol=1e-14)
    assert_allclose(total.squares, n * frames.var(axis=0), rtol=1e-7, atol=1e-8)


def test_combine__equal_frames_have_no_spread():
    parts = [moments(np.full((n, 2), 0.1)) for n in (3, 1, 7)]
    assert combine(parts).squares == pytest.approx(0, abs=1e-30)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_moments__names_the_first_bad_frame_and_their_number(value):
    frames = np.ones((6, 2))
    frames[[2, 4], 1] = value
    with pytest.raises(NotFiniteError) as caught:
        moments(frames)
    assert (caught.value.index, caught.value.count) == (2, 2)


def test_combine__refuses_nothing():
    with pytest.raises(ValueError, match="no blocks"):
        combine([])
