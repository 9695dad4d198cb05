"""Local covariances and their inverses against NumPy, matrix by matrix."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.engine.covariance import (
    DegenerateCovarianceError,
    PseudoInverse,
    degenerate,
    factors,
    factors_from_mixing,
    precisions,
    window_frames,
    window_mixing,
    window_precisions,
)
from reference import dense
from strategies import generators, motions, smooth_motion, spd, spd_matrices


def starts_of(motion):
    return np.array([members[0] for members in dense.windows(motion.segment, motion.window)])


@given(motions(max_features=30))
def test_window_precisions__are_the_reference_whichever_is_smaller(motion):
    covariances = dense.window_covariances(motion.frames, motion.segment, motion.window)
    shares = np.linalg.eigvalsh(covariances) / np.linalg.eigvalsh(covariances)[:, -1:]
    assume(np.all(np.abs(shares / 1e-3 - 1) > 1e-2))
    expected = np.array([dense.pseudo_inverse(c) for c in covariances])
    made = window_precisions(motion.frames, starts_of(motion), motion.window, PseudoInverse())
    assert_allclose(made, expected, atol=1e-8 * np.abs(expected).max(), rtol=0)


@given(motions(max_features=30))
def test_window_mixing__makes_factors_of_the_precisions(motion):
    starts, how = starts_of(motion), PseudoInverse()
    mixing, floor = window_mixing(motion.frames, starts, motion.window, how)
    assert not floor.any()
    assert mixing.shape[1] <= min(motion.window - 1, motion.frames.shape[1])
    assert_allclose(mixing.sum(axis=2), 0, atol=1e-8 * np.abs(mixing).max())
    made = factors_from_mixing(motion.frames, starts, mixing)
    expected = window_precisions(motion.frames, starts, motion.window, how)
    size = np.abs(expected).max()
    assert_allclose(made @ np.swapaxes(made, 1, 2), expected, atol=1e-8 * size, rtol=0)


@given(st.data(), spd_matrices(n=5))
def test_factors__multiply_to_the_precisions(data, covariances):
    how = PseudoInverse(rank=data.draw(st.none() | st.integers(1, covariances.shape[1])))
    u = factors(covariances, how)
    assert u.shape[2] == (how.rank or covariances.shape[1])
    assert_allclose(u @ np.swapaxes(u, 1, 2), precisions(covariances, how), atol=1e-12)


@given(spd_matrices(n=4, condition=50.0))
def test_precisions__of_full_rank_are_inverses(covariances):
    assert_allclose(precisions(covariances, PseudoInverse()), np.linalg.inv(covariances), atol=1e-11)


@given(spd_matrices(n=3), st.floats(1e-3, 10))
def test_precisions__ridge_is_added_before(covariances, ridge):
    expected = np.linalg.inv(covariances + ridge * np.eye(covariances.shape[1]))
    made = precisions(covariances, PseudoInverse(tolerance=1e-6, regularization=ridge))
    assert_allclose(made, expected, atol=1e-10)


def test_precisions__tolerance_and_rank_by_hand():
    c = np.diag([4.0, 1.0, 0.1])[None]
    assert_allclose(precisions(c, PseudoInverse(rank=2))[0], np.diag([0.25, 1, 0]))
    assert_allclose(precisions(c, PseudoInverse(tolerance=0.25))[0], np.diag([0.25, 0, 0]))  # at it is cut
    assert_allclose(precisions(c, PseudoInverse(rank=9))[0], np.diag([0.25, 1, 10]))


def test_precisions__negative_directions_are_cut():
    assert_allclose(precisions(np.diag([2.0, -1.0])[None], PseudoInverse())[0], np.diag([0.5, 0]))


@pytest.mark.parametrize("p", [3, 40], ids=["window longer than p", "window shorter than p"])
@pytest.mark.parametrize("make", [window_precisions, window_mixing])
def test_windows__constant_ones_are_named(make, p):
    frames = smooth_motion(np.random.default_rng(0), 40, p)
    frames[12:25] = frames[12]
    starts = np.clip(np.arange(40) - 4, 0, 31)
    with pytest.raises(DegenerateCovarianceError) as caught:
        make(frames, starts, 9, PseudoInverse(smallest=1e-14))
    assert_array_equal(caught.value.frames, [16, 17, 18, 19, 20])  # windows 12..20 up to 16..24


@pytest.mark.parametrize("p", [3, 40])
@pytest.mark.parametrize("make", [window_precisions, window_mixing])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_windows__nan_is_named_with_or_without_ridge(make, p, ridge):
    frames = smooth_motion(np.random.default_rng(0), 20, p)
    frames[7, 1] = np.nan
    with pytest.raises(DegenerateCovarianceError) as caught:
        make(frames, np.arange(16), 5, PseudoInverse(regularization=ridge))
    assert_array_equal(caught.value.frames, [3, 4, 5, 6, 7])


@pytest.mark.parametrize("p", [3, 40])
def test_window_precisions__constant_windows_with_a_ridge_are_the_ridge(p):
    how = PseudoInverse(regularization=0.5)
    made = window_precisions(np.full((12, p), 0.1), np.arange(4), 9, how)
    assert_allclose(made, np.broadcast_to(2 * np.eye(p), made.shape), atol=1e-12)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_precisions__bad_covariances_are_named(bad):
    covariances = np.broadcast_to(np.eye(2), (5, 2, 2)).copy()
    covariances[[1, 3]] *= bad if bad == 0 else 1
    covariances[[1, 3], 0, 0] = bad
    for invert in (precisions, factors):
        with pytest.raises(DegenerateCovarianceError) as caught:
            invert(covariances, PseudoInverse())
        assert_array_equal(caught.value.frames, [1, 3])


def test_precisions__zero_covariance_with_a_ridge_is_the_ridge():
    how = PseudoInverse(regularization=0.25)
    assert_allclose(precisions(np.zeros((1, 2, 2)), how)[0], 4 * np.eye(2))
    u = factors(np.zeros((1, 2, 2)), how)[0]
    assert_allclose(u @ u.T, 4 * np.eye(2))


def test_degenerate__zero_small_and_not_finite():
    assert_array_equal(degenerate(np.array([0.0, 1e-9, 1.0, np.nan, np.inf]), 1e-8), [1, 1, 0, 1, 1])
    assert_array_equal(degenerate(np.array([0.0, 1e-300]), 0.0), [1, 0])


@given(generators(), st.integers(2, 6), st.integers(1, 5))
def test_window_frames__are_centred_windows(rng, window, p):
    frames = rng.normal(size=(12, p))
    starts = rng.integers(0, 12 - window + 1, 5)
    for made, first in zip(window_frames(frames, starts, window), starts, strict=True):
        own = frames[first : first + window]
        assert_allclose(made, own - own.mean(axis=0), atol=1e-14)


def test_precisions__low_rank_given_covariances_stay_finite():
    made = precisions(spd(np.random.default_rng(2), 6, 8, rank=2), PseudoInverse(tolerance=1e-12))
    assert np.isfinite(made).all()
    assert np.linalg.matrix_rank(made[0], tol=1e-6) == 2
