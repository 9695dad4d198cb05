"""The paper's experiments: their works, what is claimed and drawn, and estimates made again in another way."""

import itertools
import re

import dask
import numpy as np
import pytest

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.paper import drift as paper_drift
from manifold_observer.pipeline.paper import sphere as paper_sphere
from manifold_observer.pipeline.paper.experiments import EXPERIMENTS
from manifold_observer.pipeline.paper.pictures import rendered

pytestmark = [pytest.mark.usefixtures("in_this_thread"), pytest.mark.filterwarnings("ignore:calibrate")]


def test_pieces__of_all_experiments_have_their_own_names_and_quick_is_less():
    for name, own in EXPERIMENTS.items():
        whole, quick = ([work.name for work in own.works(few)] for few in (False, True))
        assert len(set(whole)) == len(whole), name
        assert 1 <= len(quick) <= len(whole)


SMALL = {"drift_rate": 0.024, "n_samples": 60 * 700}


@pytest.fixture(scope="module")
def joined():
    """Every experiment of the sphere at a tiny size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper_sphere, "SAMPLES", 60 * 700)
        drift = {
            f"c{rate}-seed{seed}": paper_drift.drift_realisation(seed, rate, 60 * 700)
            for rate in (0.008, 0.024)
            for seed in (1, 2, 3)
        }
        return {
            "set-up": EXPERIMENTS["set-up"].join({str(c): paper_sphere.set_up_path(c, 1) for c in (0.008, 0.024)}),
            "sphere": EXPERIMENTS["sphere"].join({s: paper_sphere.sphere_realisation(s, **SMALL) for s in (1, 2, 3)}),
            "extension": EXPERIMENTS["extension"].join(
                {s: paper_sphere.extension_realisation(s, **SMALL, learnt=500) for s in (1, 2, 3)}
            ),
            "drift": EXPERIMENTS["drift"].join(drift),
        }


NAMES = ["set-up", "sphere", "extension", "drift"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:calibrate")
@pytest.mark.parametrize("name", NAMES)
def test_judge__gives_claims_with_numbers(joined, name):
    claims = EXPERIMENTS[name].judge(joined[name])
    assert claims
    for claim in claims:
        assert isinstance(claim.holds, bool)
        assert any(letter.isdigit() for letter in claim.measured)
        assert "|" not in claim.claim + claim.measured + claim.remedy + claim.figure  # cells of a table


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:calibrate")
@pytest.mark.parametrize("name", NAMES)
def test_draw__axes_are_labelled_with_units(joined, name):
    for picture, figure in EXPERIMENTS[name].draw(joined[name]).items():
        assert picture.isidentifier()
        titled = [axes for axes in figure.axes if axes.lines or axes.collections]
        assert titled
        labels = " ".join(axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes)
        assert "/" in labels or "frames" in labels
        assert tuple(figure.get_size_inches()) == (12.8, 7.2), "a slide of 16:9"
        assert figure.get_suptitle()
        found = rendered(figure, ["png"])
        assert re.search(r"\bn = \d", found.caption), "how many were drawn"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:calibrate")
def test_drift__names_stand_apart_and_the_future_is_marked(joined):
    figure = EXPERIMENTS["drift"].draw(joined["drift"])["correlation"]
    for panel in figure.axes:
        boxes = sorted((text.get_window_extent() for text in panel.texts), key=lambda box: box.y0)
        assert len(boxes) == len(panel.lines)
        assert all(above.y0 >= below.y0 + 0.9 * below.height for below, above in itertools.pairwise(boxes))
        assert all(figure.bbox.x1 >= box.x1 for box in boxes)
        dashed = [line for line in panel.lines if line.get_color() == "#009E73"]
        assert [line.get_linestyle() for line in dashed] == ["--"]
        assert any("future" in text.get_text() for text in panel.texts)


def test_drift__the_integrator_and_time_have_their_order(joined):
    mean = joined["drift"]["correlation"].mean(["drift_rate", "realisation", "component"])
    assert mean.sel(estimate="observer") > mean.sel(estimate="gamma_1") + 0.3
    held_out, in_sample = (joined["drift"][name] for name in ("correlation", "correlation_in_sample"))
    assert (held_out <= in_sample + 1e-3).mean() > 0.95, "a regression that is scored where it was fitted flatters"


def test_sphere__frames_without_time_tell_less(joined):
    mean = joined["sphere"]["correlation"].mean(["realisation", "component"])
    assert mean.sel(estimate="observer") > mean.sel(estimate="shuffled") + 0.1


@pytest.fixture(scope="module")
def recording():
    """One tiny recording: its frames, the angles, and the embedding."""
    with dask.config.set(scheduler="synchronous"):
        frames, truth = paper_sphere.simulate(3, 0.024, 60 * 700)
        return frames, truth.transpose("frame", "component").values, mo.embed(frames, n_modes=4, preset="paper")


def held_out(values, angles, n_folds=5):
    """Correlations with a regression of contiguous blocks, each fitted without its own."""
    parts = np.array_split(np.arange(len(angles)), n_folds)
    design = np.column_stack([np.ones(len(values)), values])
    reading = np.empty_like(angles)
    for part in parts:
        others = np.setdiff1d(np.arange(len(angles)), part)
        reading[part] = design[part] @ np.linalg.lstsq(design[others], angles[others], rcond=None)[0]
    return [np.corrcoef(reading[:, k], angles[:, k])[0, 1] for k in range(angles.shape[1])]


def slowest_linear(frames, lag):
    """Coordinates of the frames whose correlation at a lag is largest, by a generalised eigenproblem."""
    x = frames - frames.mean(axis=0)
    now, later = x[:-lag], x[lag:]
    c0 = (now.T @ now + later.T @ later) / 2
    values, vectors = np.linalg.eigh(c0)
    keep = values > 1e-9 * values.max()
    white = vectors[:, keep] / np.sqrt(values[keep])
    both = white.T @ ((now.T @ later + later.T @ now) / 2) @ white
    return x @ white @ np.linalg.eigh(both)[1][:, ::-1][:, :4]


def test_drift__diffusion_maps_tica_and_the_integrator_are_what_they_are_called(recording):
    frames, angles, embedding = recording
    found = paper_drift.drift_realisation(3, 0.024, 60 * 700)["correlation"]
    maps = held_out(embedding["coordinate"].transpose("frame", "mode").values, angles)
    np.testing.assert_allclose(found.sel(estimate="diffusion_maps"), maps, atol=1e-9)
    observer = held_out(mo.observe(embedding, frames, 0.85)["state"].transpose("frame", "mode").values, angles)
    np.testing.assert_allclose(found.sel(estimate="observer"), observer, atol=1e-9)
    if "tica" in found["estimate"].values:
        tica = held_out(slowest_linear(frames.values, 1), angles)
        np.testing.assert_allclose(found.sel(estimate="tica"), tica, atol=0.02)
    inputs = (frames.values - embedding["feature_mean"].values) @ np.linalg.pinv(embedding["lift"].values).T
    state, total = np.zeros(4), []
    for value in inputs * embedding["rate"].values:
        state = state + value
        total.append(state)
    np.testing.assert_allclose(found.sel(estimate="gamma_1"), held_out(np.array(total), angles), atol=1e-9)


def test_sphere__estimates_are_read_held_out_and_have_a_matched_null(recording):
    _, angles, embedding = recording
    found = paper_sphere.sphere_realisation(3, 0.024, 60 * 700)
    maps = held_out(embedding["coordinate"].transpose("frame", "mode").values, angles)
    np.testing.assert_allclose(found["correlation"].sel(estimate="diffusion_maps"), maps, atol=1e-9)
    assert (found["shrinkage_ratio"] > 1.1).all(), "shrinkage alone makes errors larger at the boundary"


def test_extension__is_read_as_the_embedded_frames_were():
    frames, truth = paper_sphere.simulate(3, 0.024, 60 * 700)
    angles, old, new = truth.transpose("frame", "component").values, frames[:500], frames[500:]
    embedding = mo.embed(old, n_modes=4, preset="paper")
    before = mo.observe(embedding, old, 0.85)
    after = mo.observe(embedding, new, 0.85, carry=before["carry"])["state"].transpose("frame", "mode").values
    design = np.column_stack([np.ones(500), before["state"].transpose("frame", "mode").values])
    weights = np.linalg.lstsq(design, angles[:500], rcond=None)[0]
    reading = np.column_stack([np.ones(len(after)), after]) @ weights
    expected = [np.corrcoef(reading[:, k], angles[500:, k])[0, 1] for k in (0, 1)]
    found = paper_sphere.extension_realisation(3, 0.024, 60 * 700, learnt=500)["correlation"]
    np.testing.assert_allclose(found.sel(estimate="observer"), expected, atol=1e-9)
