"""The paper's claim in numbers, recomputed from what a demonstration stores."""

import numpy as np
import pytest
import xarray as xr

from manifold_observer.pipeline.jobs.progress import Stages
from manifold_observer.pipeline.paper.demo import demonstrate
from reference import dense
from strategies import share


def correlations(estimate, truth):
    return dense.regression_scores(np.asarray(estimate), np.asarray(truth))[0]


def best_moving_average(tree):
    """Best causal mean of 2, 3 or 5 frames, per angle, by the slow reference."""
    frames, embedding = tree["frames"], tree["embedding"]
    centred = np.asarray(frames["frames"]) - np.asarray(embedding["feature_mean"])
    inputs = centred @ np.linalg.pinv(np.asarray(embedding["lift"])).T
    segment = np.asarray(frames["segment"])
    truth = tree["truth/angle"]
    return np.max([correlations(dense.moving_average(inputs, segment, width), truth) for width in (2, 3, 5)], axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", share([1, 2, 3, 4, 5], 5))
def test_sphere__observer_beats_diffusion_maps_and_keeps_up_with_the_best_moving_average(tmp_path, seed):
    result = demonstrate("sphere", tmp_path / "sphere.zarr", {"seed": seed}, Stages())
    tree = xr.open_datatree(tmp_path / "sphere.zarr")
    truth = tree["truth/angle"]
    observer = correlations(tree["state/state"], truth)
    maps = correlations(tree["embedding/coordinate"], truth)
    assert tree["state/state"].sizes["frame"] == 4000
    assert (observer >= np.array([0.86, 0.835]) - 0.01).all()
    assert (observer >= maps + 0.02 - 0.01).all()
    assert (observer >= best_moving_average(tree) - 0.01).all()
    np.testing.assert_allclose(result["scores"]["observer"]["correlation"], observer, atol=1e-4)
    np.testing.assert_allclose(result["scores"]["diffusion_maps"]["correlation"], maps, atol=1e-4)


@pytest.mark.slow
def test_circle__generator_rates_come_near_1_2_3_4():
    result = demonstrate("circle", None, {"seed": 1}, Stages())
    np.testing.assert_allclose(result["generator_rates"], [1, 2, 3, 4], rtol=0.2)


@pytest.mark.slow
def test_melody__notes_and_instruments_are_read_better_from_the_observer_than_from_diffusion_maps():
    scores = demonstrate("melody", None, {"seed": 1, "n_notes": 80}, Stages())["scores"]
    observer, maps = scores["observer"], scores["diffusion_maps"]
    assert observer["pitch_accuracy"] >= 0.95
    assert observer["instrument_accuracy"] >= 0.95
    assert observer["pitch_accuracy"] > maps["pitch_accuracy"]
    assert observer["instrument_accuracy"] > maps["instrument_accuracy"]
