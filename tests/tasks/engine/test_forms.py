"""From a slab to the block of a form."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.engine import forms, kernel
from manifold_observer.tasks.engine.covariance import DegenerateCovarianceError, PseudoInverse
from manifold_observer.tasks.engine.forms import build_block, cost
from manifold_observer.tasks.engine.probe import probe_forms
from manifold_observer.tasks.engine.slab import Metric, Slab
from reference import dense
from strategies import smooth_motion, spd


def slab_of(frames, window):
    n = len(frames)
    starts = np.clip(np.arange(n) - window // 2, 0, n - window)
    return Slab(frames - frames.mean(axis=0), np.arange(n), starts, None)


def slow_ridged(frames, window, ridge):
    covariances = dense.window_covariances(frames, np.zeros(len(frames)), window)
    return dense.distances(frames, [np.linalg.inv(c + ridge * np.eye(frames.shape[1])) for c in covariances])


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_build_block__precision_is_as_asked_and_row_numbers_stay_whole(form, dtype):
    block = build_block(
        slab_of(smooth_motion(np.random.default_rng(0), 20, 4), 5), Metric(5, PseudoInverse()), form, dtype
    )
    kinds = {part.dtype for part in block}
    assert kinds <= {np.dtype(dtype), np.dtype(np.int64)}
    assert np.dtype(dtype) in kinds
    assert block.n_frames == 20


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("p", [3, 30])
def test_build_block__silent_windows_are_named_in_every_form(form, p):
    frames = smooth_motion(np.random.default_rng(1), 60, p)
    frames[40:52] = frames[40]
    metric = Metric(9, PseudoInverse(smallest=1e-14))
    with pytest.raises(DegenerateCovarianceError) as caught:
        build_block(slab_of(frames, 9), metric, form)
    assert_array_equal(caught.value.frames, [44, 45, 46, 47])


@pytest.mark.parametrize("form", ["factor", "window"])
def test_build_block__silent_windows_are_named_where_windows_are_made_in_parts(form):
    # 2**23 bytes hold 104 windows of 25 frames of 400 features, so that frame 250 is in the third part
    frames = np.zeros((270, 400))
    frames[:, :6] = smooth_motion(np.random.default_rng(1), 270, 6)
    frames[238:263] = frames[238]
    with pytest.raises(DegenerateCovarianceError) as caught:
        build_block(slab_of(frames, 25), Metric(25, PseudoInverse(smallest=1e-14)), form)
    assert_array_equal(caught.value.frames, [250])


def assert_ridged(frames, window, ridge, form):
    expected = slow_ridged(frames, window, ridge)
    block = build_block(slab_of(frames, window), Metric(window, PseudoInverse(regularization=ridge)), form)
    assert_allclose(kernel.squared_distances(block, block), expected, atol=1e-9 * expected.max(), rtol=0)


def with_silence(p):
    frames = smooth_motion(np.random.default_rng(6), 30, p)
    frames[12:21] = frames[12]
    return frames


# The second feature jumps once: most windows see it at rest, where its precision is 1 / ridge.
WITH_A_JUMP = np.column_stack([np.sin(np.arange(40.0)), np.repeat([0.0, 1.0], 20), np.zeros((40, 4))])


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("ridge", [1e-3, 0.3, 10.0])
def test_build_block__with_a_ridge_silence_has_distances(form, p, ridge):
    assert_ridged(with_silence(p), 7, ridge, form)


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("ridge", [1e-3, 0.3, 10.0])
def test_build_block__with_a_ridge_silence_of_many_features_has_distances(form, ridge):
    assert_ridged(with_silence(12), 7, ridge, form)


@pytest.mark.parametrize("form", forms.FORMS)
def test_build_block__with_a_ridge_a_feature_that_rests_still_counts(form):
    assert_ridged(WITH_A_JUMP, 9, 0.1, form)


@pytest.mark.parametrize("form", forms.FORMS)
def test_build_block__with_a_ridge_a_feature_that_rests_in_a_short_window_still_counts(form):
    assert_ridged(WITH_A_JUMP, 4, 0.1, form)


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("ridge", [1e6, 1e9])
def test_build_block__a_ridge_above_all_variances_is_plain_distance(form, ridge):
    frames = 1e-4 * smooth_motion(np.random.default_rng(2), 30, 3)
    plain = np.sum((frames[:, None] - frames) ** 2, axis=2) / ridge
    block = build_block(slab_of(frames, 9), Metric(9, PseudoInverse(regularization=ridge)), form)
    assert_allclose(kernel.squared_distances(block, block), plain, atol=1e-6 * plain.max(), rtol=0)


@pytest.mark.parametrize("form", forms.FORMS)
def test_build_block__rank_of_all_features_is_no_rank(form):
    frames = smooth_motion(np.random.default_rng(3), 30, 8)
    tiles = []
    for rank in (None, 8):
        block = build_block(slab_of(frames, 4), Metric(4, PseudoInverse(rank)), form)
        tiles.append(kernel.squared_distances(block, block))
    assert_allclose(tiles[0], tiles[1], atol=1e-9 * tiles[0].max(), rtol=0)


def test_build_block__window_form_refuses_given_covariances():
    rows = np.arange(3)
    slab = Slab(np.zeros((3, 2)), rows, rows, spd(np.random.default_rng(0), 3, 2))
    with pytest.raises(ValueError, match="window form needs covariances of windows"):
        build_block(slab, Metric(0, PseudoInverse()), "window")


def test_probe_forms__times_each_form_and_measures_single_precision():
    slab = slab_of(smooth_motion(np.random.default_rng(4), 40, 5), 9)
    metric = Metric(9, PseudoInverse())
    blocks = {form: (build_block(slab, metric, form),) * 2 for form in forms.FORMS}
    found = probe_forms(blocks)
    assert set(found.seconds) == set(forms.FORMS)
    assert min(found.seconds.values()) > 0
    block = build_block(slab, metric, "quadratic")
    truth = kernel.squared_distances(block, block)
    assert found.median == pytest.approx(np.median(truth))
    for error in found.float32_error.values():
        assert 0 < error < 1e-2 * truth.max()


def test_probe_forms__overflow_of_single_precision_is_not_taken_for_exact():
    frames = 1e-21 * smooth_motion(np.random.default_rng(4), 40, 5)
    slab = slab_of(frames, 9)
    with np.errstate(all="ignore"):
        block = build_block(slab, Metric(9, PseudoInverse()), "quadratic")
        found = probe_forms({"quadratic": (block, block)})
    assert not found.float32_error["quadratic"] < np.inf


def test_cost__by_hand():
    # p = 3, r = 2, w = 5: 4 * 5; 2 * 2 * (3 + 60); 3 + 2 * 2 * (5 + 60)
    assert [cost(form, 3, 2, 5) for form in forms.FORMS] == [20, 252, 263]
