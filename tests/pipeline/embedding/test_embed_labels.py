"""Labels, Zarr and refusals of an embedding."""

import warnings

import numpy as np
import pytest
import xarray as xr
from embeddings import EXACT, FRAMES, SEGMENT, VALUES, N, P, as_frames, assert_same

import manifold_observer.pipeline as mo
from strategies import embed_options

pytestmark = pytest.mark.usefixtures("in_this_thread")


def test_embed__labels_units_and_dtypes(whole):
    assert whole["mode"].values.tolist() == [1, 2, 3]
    for name in ("time", "segment", "channel"):
        np.testing.assert_array_equal(whole[name], FRAMES[name])
    assert whole["coordinate"].dims == ("frame", "mode")
    assert whole["lift"].dims == ("feature", "mode")
    for name in ("eigenvalue", "coordinate", "rate", "lift", "feature_mean", "epsilon", "residual", "degree"):
        assert whole[name].dtype == np.float64
        assert whole[name].attrs["long_name"]
        assert whole[name].attrs["units"] == "1"
    np.testing.assert_array_equal(whole["reference"], VALUES)
    settings_kept = {"form": "quadratic", "precision": "float32", "window": 21, "rank": "none", "method": "exact"}
    assert whole.attrs.items() >= settings_kept.items()
    assert whole.attrs["frames_frame_period"] == 0.5


def test_embed__takes_whole_numbers_single_precision_and_turned_frames():
    rounded = np.round(VALUES * 100)
    expected = mo.embed(as_frames(rounded), **embed_options(n_modes=2, **EXACT), preset="paper")
    for dtype in (np.int32, np.float32):
        assert_same(
            mo.embed(as_frames(rounded.astype(dtype)), **embed_options(n_modes=2, **EXACT), preset="paper"),
            expected,
            within=1e-9,
        )
    assert_same(
        mo.embed(as_frames(rounded).T, **embed_options(n_modes=2, **EXACT), preset="paper"), expected, within=1e-9
    )


def test_embed__reference_stays_lazy():
    embedding = mo.embed(FRAMES.chunk(frame=30), n_modes=1, preset="paper")
    assert embedding["reference"].chunks is not None


def test_embed__goes_to_zarr_and_comes_back_whole(tmp_path):
    embedding = mo.embed(FRAMES, n_modes=3, epsilon="local", preset="paper")
    embedding.to_zarr(tmp_path / "embedding.zarr", zarr_format=3, consolidated=False)
    back = xr.open_zarr(tmp_path / "embedding.zarr", consolidated=False).load()
    xr.testing.assert_equal(back, embedding)
    assert back.attrs == embedding.attrs
    for name, variable in embedding.variables.items():
        assert back[name].attrs == variable.attrs, name
    state = mo.observe(embedding, FRAMES)
    np.testing.assert_array_equal(mo.observe(back, FRAMES)["state"], state["state"])


def test_embed__reports_its_stages():
    seen = {}
    mo.embed(FRAMES, n_modes=1, progress=lambda stage, done, total: seen.update({stage: (done, total)}), preset="paper")
    assert {"frames", "covariances", "distances", "kernel", "eigensolve", "lift"} <= set(seen)
    assert all(done == total for stage, (done, total) in seen.items() if stage != "eigensolve")


def spoilt(value, frame=40):
    values = VALUES.copy()
    values[frame, 1] = value
    return as_frames(values)


def silent(start, stop):
    values = VALUES.copy()
    values[start:stop] = values[start]
    return as_frames(values)


def zero_covariances(shape=(N, P, P), dims=("frame", "feature", "feature_1")):
    return xr.DataArray(np.zeros(shape), dims=dims)


REFUSALS = {
    "constant frames": (lambda: mo.embed(as_frames(np.ones((N, P))), preset="paper"), "all 90 frames are equal"),
    "NaN": (lambda: mo.embed(spoilt(np.nan), preset="paper"), "must be finite; frame 40 is the first of 1 "),
    "infinity": (lambda: mo.embed(spoilt(np.inf, 7), preset="paper"), "must be finite; frame 7 is the first of 1 "),
    "one frame": (lambda: mo.embed(FRAMES[:1], preset="paper"), "at least 3 frames; got 1"),
    "two frames": (lambda: mo.embed(FRAMES[:2], window=2, preset="paper"), "at least 3 frames; got 2"),
    "window longer than all": (
        lambda: mo.embed(FRAMES[:20], preset="paper"),
        "at least window=21 frames; got 20 in segment 0",
    ),
    "window longer than a segment": (
        lambda: mo.embed(as_frames(VALUES, SEGMENT), window=22, preset="paper"),
        r"at least window=22 frames; got 21 in segment 1 \(frames 25 \.\. 45\)",
    ),
    "silence": (
        lambda: mo.embed(silent(30, 60), preset="paper"),
        r"must not be zero; got zero .* at frames 40 \.\. 49 \(10\)",
    ),
    "most frames equal": (
        lambda: mo.embed(silent(10, N), geometry=mo.Geometry(regularization=1e-3), preset="paper"),
        "median distance .* is 0",
    ),
    "silence has no local scale": (
        lambda: mo.embed(silent(30, 60), geometry=mo.Geometry(regularization=1e-3), epsilon="local", preset="paper"),
        r"frame \d+ has 16 neighbours at distance 0",
    ),
    "modes beyond frames": (
        lambda: mo.embed(FRAMES, n_modes=N - 1, preset="paper"),
        "n_modes must be at most 88 for 90 frames; got 89",
    ),
    "modes beyond positive eigenvalues": (
        lambda: mo.embed(FRAMES, **embed_options(n_modes=N - 2, **EXACT), preset="paper"),
        r"n_modes must be at most \d+, the number of eigenvalues above 0; got 88",
    ),
    "landmarks of local scale": (
        lambda: mo.embed(FRAMES, epsilon="local", engine=mo.Engine(method="landmarks"), preset="paper"),
        "needs neighbours among all frames, so method must not be",
    ),
    "diffusion route with alpha": (
        lambda: mo.embed(
            FRAMES, alpha=0.5, engine=mo.Engine(method="landmarks", landmark_route="diffusion"), preset="paper"
        ),
        r"alpha must be 0 with landmark_route='diffusion', which .*; got 0\.5",
    ),
    "scale too small": (
        lambda: mo.embed(FRAMES, epsilon=1e-9, preset="paper"),
        "no frame has a neighbour at this scale",
    ),
    "dims": (lambda: mo.embed(FRAMES.rename(frame="when"), preset="paper"), r"must have dims \(frame, feature\)"),
    "covariance shape": (
        lambda: mo.embed(FRAMES, covariance=zero_covariances((N, P, 2)), preset="paper"),
        r"shape \(90, 3, 3\)",
    ),
    "covariance zero": (
        lambda: mo.embed(FRAMES, covariance=zero_covariances(), preset="paper"),
        r"frames 0 \.\. 89 \(90\).*as given",
    ),
    "rank and ridge": (
        lambda: mo.embed(FRAMES, rank=2, geometry=mo.Geometry(regularization=1.0), preset="paper"),
        "must not be given together",
    ),
    "n_modes": (lambda: mo.embed(FRAMES, n_modes=0, preset="paper"), "n_modes must be at least 1, or None; got 0"),
    "n_modes no whole number": (lambda: mo.embed(FRAMES, n_modes=2.5, preset="paper"), "n_modes must be at least 1"),
    "window": (lambda: mo.embed(FRAMES, window=1, preset="paper"), "window must be at least 2 frames; got 1"),
    "rank": (lambda: mo.embed(FRAMES, rank=0, preset="paper"), "rank must be at least 1"),
    "tolerance": (
        lambda: mo.embed(FRAMES, tolerance=1.0, preset="paper"),
        r"tolerance must lie in \[1e-12, 1\); got 1\.0",
    ),
    "alpha": (lambda: mo.embed(FRAMES, alpha=1.5, preset="paper"), r"alpha must lie in \[0, 1\]; got 1\.5"),
    "epsilon": (
        lambda: mo.embed(FRAMES, epsilon="mean", preset="paper"),
        "epsilon must be 'median', 'local' or a number above 0",
    ),
    "epsilon not finite": (lambda: mo.embed(FRAMES, epsilon=np.nan, preset="paper"), "epsilon must be 'median'"),
    "factor": (lambda: mo.embed(FRAMES, epsilon_factor=0.0, preset="paper"), "epsilon_factor must be above 0"),
    "neighbours": (lambda: mo.embed(FRAMES, neighbours=0, preset="paper"), "neighbours must be at least 1"),
    "ridge": (
        lambda: mo.embed(FRAMES, geometry=mo.Geometry(regularization=-1.0), preset="paper"),
        "regularization must be at least 0",
    ),
    "precision": (
        lambda: mo.embed(FRAMES, engine=mo.Engine(precision="float16"), preset="paper"),
        "precision must be one of 'auto', 'float32'",
    ),
    "form": (lambda: mo.embed(FRAMES, engine=mo.Engine(form="fast"), preset="paper"), "form must be one of"),
    "home": (lambda: mo.embed(FRAMES, engine=mo.Engine(home="attic"), preset="paper"), "home must be one of"),
    "tile": (lambda: mo.embed(FRAMES, engine=mo.Engine(tile=0), preset="paper"), "tile must be at least 1"),
    "method": (
        lambda: mo.embed(FRAMES, engine=mo.Engine(method="magic"), preset="paper"),
        "method must be one of 'auto', 'exact', 'landmarks'",
    ),
    "seed": (lambda: mo.embed(FRAMES, engine=mo.Engine(seed=-1), preset="paper"), "seed must be at least 0"),
    "passes": (
        lambda: mo.embed(FRAMES, engine=mo.Engine(max_passes=0), preset="paper"),
        "max_passes must be at least 1",
    ),
    "residual": (
        lambda: mo.embed(FRAMES, engine=mo.Engine(residual_tolerance=2.0), preset="paper"),
        r"residual_tolerance must lie in \(0, 1\)",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_embed__refuses_in_one_sentence(name):
    call, message = REFUSALS[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_embed__says_when_it_does_not_converge():
    with pytest.raises(RuntimeError, match=r"did not converge: .*max_passes=1"):
        mo.embed(FRAMES, n_modes=3, engine=mo.Engine(max_passes=1), preset="paper")


def test_embed__tiles_that_do_not_fit_are_refused_or_recomputed(monkeypatch):
    monkeypatch.setattr("manifold_observer.pipeline.engine.decide._SHARE", 0.0)
    monkeypatch.setattr("manifold_observer.pipeline.engine.decide.LOCAL_BYTES", 0)
    with pytest.raises(ValueError, match=r"resident tiles must fit .*home='recomputed'"):
        mo.embed(FRAMES, engine=mo.Engine(home="resident"), preset="paper")
    assert mo.embed(FRAMES, n_modes=1, preset="paper").attrs["home"] == "recomputed"


def test_embed__warns_when_the_dynamics_look_frozen():
    with pytest.warns(
        UserWarning, match=r"first eigenvalue is 0\.99\d\d: the dynamics look frozen.*epsilon='local'"
    ) as told:
        mo.embed(FRAMES, n_modes=1, epsilon=1.5, preset="paper")
    assert told[0].filename == __file__


def test_embed__warns_when_the_frames_fall_into_pieces():
    values = np.concatenate([VALUES[:45], VALUES[45:] + 50])
    with pytest.warns(UserWarning, match="the frames fall into 2 or more pieces") as told:
        mo.embed(as_frames(values, np.repeat([0, 1], 45)), n_modes=1, epsilon=20.0, preset="paper")
    assert told[0].filename == __file__


def test_embed__warns_when_a_frame_stands_alone():
    values = VALUES.copy()
    values[-1] += 1e3
    covariance = xr.DataArray(np.tile(np.eye(P), (N, 1, 1)), dims=("frame", "feature", "feature_1"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "embed: the first eigenvalue")
        with pytest.warns(UserWarning, match=r"1 of 90 frames have no neighbour .*first is frame 89") as told:
            mo.embed(as_frames(values), n_modes=1, covariance=covariance, epsilon=1.0, preset="paper")
        assert told[0].filename == __file__
