"""Mean and variance by blocks, and the axes that frames span."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from manifold_observer.tasks.engine.moments import NotFiniteError, combine, moments, span_axes
from reference import dense
from strategies import chunkings, generators, smooth_motion, spans


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


def tied(rng, n, p):
    """Frames of p free features, then one constant, and two tied to the others: p axes in p + 3 features."""
    free = smooth_motion(rng, n, p, noise=0.3)
    return np.column_stack([free, np.full(n, 7.0), free.sum(axis=1), 3 - 2 * free[:, 0]])


def window_distances(frames, window):
    covariances = dense.window_covariances(frames, np.zeros(len(frames)), window)
    return dense.distances(frames, [dense.pseudo_inverse(c, tolerance=1e-6) for c in covariances])


@given(st.data(), generators(), st.integers(1, 5))
def test_span_axes__constant_and_tied_features_drop_out(data, rng, p):
    frames = tied(rng, 40, p)
    cut = spans(data.draw(chunkings(40)))
    axes = span_axes(combine(moments(frames[start:stop]) for start, stop in cut))
    assert axes.width == p
    assert axes.basis.shape == (p + 3, p)
    assert_allclose(axes.basis.T @ axes.basis, np.eye(p), atol=1e-12)
    variances = axes.apply(frames).var(axis=0)
    assert (np.diff(variances) <= 1e-9 * variances[0]).all()


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("window", [6, 15])
def test_span_axes__distances_are_those_in_all_features(p, window):
    frames = tied(np.random.default_rng(p), 40, p)
    expected = window_distances(frames, window)
    found = window_distances(span_axes(moments(frames)).apply(frames), window)
    assert_allclose(found, expected, atol=1e-9 * expected.max(), rtol=0)


@pytest.mark.parametrize("p", [1, 4, 257])
def test_span_axes__frames_that_span_all_or_are_too_wide_keep_their_features(p):
    frames = np.random.default_rng(0).normal(size=(20, p))
    axes = span_axes(moments(frames))
    assert axes.basis is None
    assert axes.width == p
    assert_allclose(axes.apply(frames), frames - frames.mean(axis=0), atol=1e-14)
    values = np.ones((p, 2))
    assert axes.lift(values) is values


@given(generators(), st.integers(1, 4))
def test_span_axes__lift_goes_back_to_all_features(rng, p):
    frames = tied(rng, 30, p)
    axes = span_axes(moments(frames))
    psi = rng.normal(size=(30, 2))
    expected = (frames - frames.mean(axis=0)).T @ psi
    assert_allclose(axes.lift(axes.apply(frames).T @ psi), expected, atol=1e-10 * np.abs(expected).max())


def test_moments__a_digest_sees_the_order_that_the_moments_do_not():
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = [moments(frames, digested=True) for frames in (rows, rows[::-1], np.asfortranarray(rows))]
    assert found[0].digest != found[1].digest
    assert found[0].digest == found[2].digest
    assert moments(rows).digest is None


def test_combine__digests_in_the_order_of_the_blocks():
    one, other = (moments(np.full((2, 1), value), digested=True) for value in (1.0, 2.0))
    assert combine([one, other]).digest not in (None, combine([other, one]).digest)
    assert combine([one, moments(np.ones((1, 1)))]).digest is None
