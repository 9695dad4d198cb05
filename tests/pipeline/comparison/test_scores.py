"""Scores equal the reference in the sample, and held-out blocks are read by the others."""

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from reference import dense

N = 60
RNG = np.random.default_rng(0)
TRUTH = xr.DataArray(RNG.normal(size=(N, 2)), dims=("frame", "component"), coords={"component": ["polar", "azimuth"]})
CLOSE = xr.DataArray(TRUTH.values @ [[1, 2], [-1, 1]] + 0.3 * RNG.normal(size=(N, 2)) + 5, dims=("frame", "mode"))
NOISE = xr.DataArray(RNG.normal(size=(N, 3)), dims=("frame", "mode"))


def test_scores__equal_the_reference():
    table = mo.scores({"close": CLOSE, "noise": NOISE}, TRUTH)
    assert table["component"].values.tolist() == ["polar", "azimuth"]
    for name, estimate in (("close", CLOSE), ("noise", NOISE)):
        correlation, error = dense.regression_scores(estimate, TRUTH)
        np.testing.assert_allclose(table["correlation"].sel(estimate=name), correlation, rtol=1e-10)
        np.testing.assert_allclose(table["nrmse_db"].sel(estimate=name), error, rtol=1e-10)
    assert (table["correlation"].sel(estimate="close") > 0.9).all()
    assert (table["correlation"].sel(estimate="noise") < 0.6).all()


def test_scores__held_out_blocks_are_contiguous_and_read_by_the_others():
    table = mo.scores({"close": CLOSE}, TRUTH, n_folds=3)
    reading = np.empty((N, 2))
    for block in np.array_split(np.arange(N), 3):
        rest = np.setdiff1d(np.arange(N), block)
        design = np.column_stack([np.ones(N), CLOSE])
        weights, *_ = np.linalg.lstsq(design[rest], TRUTH.values[rest], rcond=None)
        reading[block] = design[block] @ weights
    for k in range(2):
        expected = np.corrcoef(reading[:, k], TRUTH.values[:, k])[0, 1]
        assert float(table["correlation_held_out"][0, k]) == pytest.approx(expected, rel=1e-10)
        error = np.sqrt(np.mean((TRUTH.values[:, k] - reading[:, k]) ** 2)) / TRUTH.values[:, k].std()
        assert float(table["nrmse_db_held_out"][0, k]) == pytest.approx(20 * np.log10(error), rel=1e-10)


def test_scores__hold_out_flatters_less():
    table = mo.scores({"noise": NOISE}, TRUTH)
    assert (table["correlation_held_out"] < table["correlation"]).all()
    assert (table["nrmse_db_held_out"] > table["nrmse_db"]).all()


def test_scores__units_and_settings():
    table = mo.scores({"close": CLOSE}, TRUTH, n_folds=4)
    assert table["nrmse_db"].attrs["units"] == "dB"
    assert table.attrs == {"n_folds": 4, "n_frames": N}


def test_scores__frames_of_unknown_truth_are_left_out():
    unknown = TRUTH.copy(deep=True)
    unknown[10:20, 1] = np.nan
    table = mo.scores({"close": CLOSE}, unknown)
    known = np.r_[0:10, 20:N]
    assert table.attrs["n_frames"] == N - 10
    expected = dense.regression_scores(CLOSE.values[known], TRUTH.values[known])[0]
    np.testing.assert_allclose(table["correlation"][0], expected, rtol=1e-10)


def test_scores__results_stand_for_their_coordinates_or_state():
    estimates = {
        "array": CLOSE,
        "embedding": xr.Dataset({"coordinate": CLOSE}),
        "observer": xr.Dataset({"state": CLOSE.T, "coordinate": NOISE[:, :2]}),
    }
    table = mo.scores(estimates, TRUTH)
    for name in ("embedding", "observer"):
        np.testing.assert_array_equal(
            table["correlation"].sel(estimate=name), table["correlation"].sel(estimate="array")
        )


def test_scores__single_columns():
    table = mo.scores({"line": CLOSE[:, 0]}, TRUTH[:, 0].drop_vars("component"))
    assert table["correlation"].shape == (1, 1)
    expected = dense.regression_scores(CLOSE.values[:, :1], TRUTH.values[:, :1])[0]
    np.testing.assert_allclose(table["correlation"][0], expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("estimate", "truth", "options", "message"),
    [
        (CLOSE[1:], TRUTH, {}, "mine must have the 60 frames of the truth; got 59"),
        (CLOSE.where(CLOSE.min() < CLOSE), TRUTH, {}, "mine must be finite"),
        (CLOSE, TRUTH * np.nan, {}, "n_folds must lie between 2 and .* known truth, 0; got 5"),
        (CLOSE, TRUTH, {"n_folds": 1}, "n_folds must lie between 2 and .*, 60; got 1"),
    ],
)
def test_scores__refuse_in_one_sentence(estimate, truth, options, message):
    with pytest.raises(ValueError, match=message):
        mo.scores({"mine": estimate}, truth, **options)


LABELS = xr.DataArray(np.arange(N) // 2 % 3, dims="frame")
TELLING = xr.DataArray(LABELS.values[:, None] + 0.1 * RNG.normal(size=(N, 1)), dims=("frame", "mode"))


def test_class_scores__tell_what_an_estimate_knows():
    table = mo.class_scores({"telling": TELLING, "noise": NOISE}, LABELS)
    assert float(table["balanced_accuracy"].sel(estimate="telling")) == 1.0
    assert float(table["balanced_accuracy"].sel(estimate="noise")) < 0.6


def test_class_scores__unknown_labels_are_left_out():
    spoilt = TELLING.copy(deep=True)
    spoilt[::5] = 77.0
    unknown = LABELS.copy(deep=True)
    unknown[::5] = -1
    table = mo.class_scores({"telling": spoilt}, unknown)
    assert float(table["balanced_accuracy"][0]) == 1.0
    assert table.attrs["n_frames"] == N - 12
    assert float(mo.class_scores({"telling": spoilt}, LABELS)["balanced_accuracy"][0]) < 1.0


def test_class_scores__refuse_what_is_no_class():
    with pytest.raises(TypeError, match="labels must be whole numbers; got dtype float64"):
        mo.class_scores({"telling": TELLING}, LABELS * 0.5)
    with pytest.raises(ValueError, match="n_folds must lie between"):
        mo.class_scores({"telling": TELLING}, LABELS * 0 - 1)


def test_scores__a_single_estimate_and_plain_arrays_are_understood():
    values = np.random.default_rng(0).normal(size=(60, 2))
    one = xr.DataArray(values, dims=("frame", "mode"))
    by_name = mo.scores({"estimate": one}, xr.DataArray(values[:, 0], dims="frame"))
    xr.testing.assert_identical(mo.scores(one, values[:, 0]), by_name)


def test_class_scores__words_are_classes_and_empty_ones_left_out():
    numbers = np.repeat([-1, 0, 1, 0, 1], 20)
    one = xr.DataArray(numbers[:, None] + np.linspace(0, 0.1, 100)[:, None], dims=("frame", "mode"))
    expected = mo.class_scores({"estimate": one}, xr.DataArray(numbers, dims="frame"))
    for words in (np.array(["", "sleep", "wake"])[numbers + 1], np.array(["", "a", "b"], object)[numbers + 1]):
        xr.testing.assert_identical(mo.class_scores(one, xr.DataArray(words, dims="frame")), expected)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda e: mo.scores([e], np.zeros(60)), TypeError, "scores: estimates must be a dict of results.*got a list"),
        (lambda e: mo.scores(e, [0.0] * 60), TypeError, "scores: truth must be an array.*got a list"),
        (lambda e: mo.scores(e, e), ValueError, "scores: truth must have dims .frame,. or .frame, component.; got"),
        (
            lambda e: mo.class_scores(e, np.linspace(0, 1, 60)),
            TypeError,
            "whole numbers; got dtype float64 of shape",
        ),
    ],
)
def test_scores__what_is_no_estimate_or_truth_is_refused_in_words(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call(xr.DataArray(np.zeros((60, 2)), dims=("frame", "mode")))
