"""Baselines equal the reference, side by side with the frames' labels."""

import importlib

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from reference import dense
from strategies import smooth_motion

pytestmark = pytest.mark.usefixtures("in_this_thread")

N, P, M = 80, 4, 2
RNG = np.random.default_rng(0)
SEGMENT = np.repeat([0, 1], [30, 50])
VALUES = smooth_motion(RNG, N, P)
FRAMES = xr.DataArray(
    VALUES,
    dims=("frame", "feature"),
    coords={"segment": ("frame", SEGMENT), "time": ("frame", np.arange(N) * 1.0)},
)
EMBEDDING = xr.Dataset(
    {
        "lift": (("feature", "mode"), RNG.normal(size=(P, M))),
        "feature_mean": ("feature", VALUES.mean(axis=0)),
        "rate": ("mode", [0.2, 0.7]),
        "coordinate": (("frame", "mode"), RNG.normal(size=(N, M))),
    }
)
INPUTS = (VALUES - VALUES.mean(axis=0)) @ np.linalg.pinv(EMBEDDING["lift"].values).T


@pytest.fixture(scope="module", params=[N, 7], ids=["one chunk", "chunks of 7"])
def estimates(request):
    return mo.baselines(EMBEDDING, FRAMES.chunk(frame=request.param), gamma=0.6, widths=(2, 4))


def test_baselines__names_dims_and_labels(estimates):
    assert list(estimates) == ["diffusion_maps", "moving_average_2", "moving_average_4", "pca", "smoothed_pca"]
    for estimate in estimates.values():
        assert estimate.sizes == {"frame": N, "mode": M}
        np.testing.assert_array_equal(estimate["time"], FRAMES["time"])


def test_baselines__diffusion_maps_are_the_coordinates(estimates):
    np.testing.assert_array_equal(estimates["diffusion_maps"], EMBEDDING["coordinate"])


@pytest.mark.parametrize("width", [2, 4])
def test_baselines__moving_averages_equal_the_reference(estimates, width):
    expected = dense.moving_average(INPUTS, SEGMENT, width)
    np.testing.assert_allclose(estimates[f"moving_average_{width}"], expected, rtol=1e-10, atol=1e-12)


def test_baselines__pca_equals_the_reference_up_to_sign(estimates):
    expected = dense.pca(VALUES, M)
    signs = np.sign(np.sum(estimates["pca"].values * expected, axis=0))
    np.testing.assert_allclose(estimates["pca"].values * signs, expected, rtol=1e-9, atol=1e-9)


def test_baselines__pca_is_smoothed_like_the_observer(estimates):
    components = estimates["pca"].values
    pole = np.exp(-(1 - 0.6) * np.array([0.2, 0.7]))
    expected = np.empty_like(components)
    for i in range(N):
        before = components[i] if i in (0, 30) else expected[i - 1]
        expected[i] = pole * before + (1 - pole) * components[i]
    np.testing.assert_allclose(estimates["smoothed_pca"], expected, rtol=1e-10, atol=1e-12)


def test_baselines__fewer_features_than_modes_give_fewer_components():
    narrow = EMBEDDING.isel(feature=[0])
    found = mo.baselines(narrow, FRAMES[:, :1])
    assert found["pca"].sizes["mode"] == found["smoothed_pca"].sizes["mode"] == 1
    assert found["moving_average_2"].sizes["mode"] == M


def test_baselines__features_too_wide_for_pca_are_refused(monkeypatch):
    module = importlib.import_module("manifold_observer.pipeline.comparison.baselines")
    monkeypatch.setattr(module, "_MAX_FEATURES", P - 1)
    with pytest.raises(ValueError, match="features must be at most 3 for PCA; got 4"):
        mo.baselines(EMBEDDING, FRAMES)


def test_baselines__new_frames_have_no_diffusion_maps():
    new = mo.baselines(EMBEDDING, FRAMES[30:], gamma=0.6, widths=(2,))
    assert list(new) == ["moving_average_2", "pca", "smoothed_pca"]
    np.testing.assert_allclose(new["moving_average_2"], dense.moving_average(INPUTS[30:], SEGMENT[30:], 2), atol=1e-12)


def test_scores__have_equally_smoothed_pca_among_them():
    truth = xr.DataArray(VALUES[:, :2], dims=("frame", "component"))
    table = mo.scores(
        {"mine": FRAMES[:, :1].rename(feature="mode")}, truth, embedding=EMBEDDING, frames=FRAMES, gamma=0.6
    )
    assert table["estimate"].values.tolist() == ["mine", "smoothed_pca"]
    expected = dense.regression_scores(mo.baselines(EMBEDDING, FRAMES, gamma=0.6)["smoothed_pca"], truth)[0]
    np.testing.assert_allclose(table["correlation"].sel(estimate="smoothed_pca"), expected)
    own = xr.DataArray(np.zeros((N, 1)), dims=("frame", "mode"))
    brought = mo.scores({"smoothed_pca": own}, truth, embedding=EMBEDDING, frames=FRAMES)
    assert brought["estimate"].values.tolist() == ["smoothed_pca"]
    with pytest.raises(ValueError, match="must be given together"):
        mo.scores({"mine": own}, truth, frames=FRAMES)


def test_baselines__channels_in_another_order_give_the_same():
    recording = xr.DataArray(
        smooth_motion(np.random.default_rng(1), 400, 3) * [1, 3, 9],
        dims=("time", "channel"),
        coords={"time": np.arange(400) / 10, "channel": ["x", "y", "z"]},
    )
    frames = mo.identity(recording)
    embedding = mo.embed(frames, n_modes=2)
    expected = mo.baselines(embedding, frames)
    for name, found in mo.baselines(embedding, mo.identity(recording[:, ::-1])).items():
        np.testing.assert_array_equal(found, expected[name])
    with pytest.raises(ValueError, match="baselines: frames must have the channels of the embedding; got 'x' missing"):
        mo.baselines(embedding, mo.identity(recording[:, 1:]))


def test_baselines__as_many_new_frames_have_no_diffusion_maps():
    embedding = EMBEDDING.assign_coords(time=FRAMES["time"])
    assert "diffusion_maps" in mo.baselines(embedding, FRAMES)
    assert "diffusion_maps" not in mo.baselines(embedding, FRAMES.assign_coords(time=FRAMES["time"] + 1000))
