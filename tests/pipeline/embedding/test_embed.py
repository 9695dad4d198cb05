"""The embedding equals the dense reference, however frames, tiles and workers are cut."""

import functools
import warnings

import dask
import numpy as np
import pytest
import scipy.linalg
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import cuts
from reference import dense
from strategies import chunkings, embed_options, examples, smooth_motion, spd

pytestmark = pytest.mark.usefixtures("in_this_thread")

N, P = 90, 3
EXACT = {"precision": "float64"}


def as_frames(values, segment=None):
    segment = np.zeros(len(values), np.int64) if segment is None else segment
    return xr.DataArray(
        values,
        dims=("frame", "feature"),
        coords={
            "time": ("frame", 0.5 * np.arange(len(values)) + 10.0 * segment),
            "segment": ("frame", segment),
            "channel": ("feature", np.array([f"sensor {k}" for k in range(values.shape[1])], object)),
        },
        attrs={"features": "sensors", "frame_period": 0.5, "units": "V"},
    )


VALUES = smooth_motion(np.random.default_rng(3), N, P)
FRAMES = as_frames(VALUES)
SEGMENT = np.repeat([0, 1, 2], [25, 21, 44])


@functools.cache
def reference_distances(window=21, rank=None, tolerance=1e-3, segmented=False, given=False):
    segment = SEGMENT if segmented else np.zeros(N, np.int64)
    covariances = given_covariances() if given else dense.window_covariances(VALUES, segment, window)
    return dense.distances(VALUES, [dense.pseudo_inverse(c, rank, tolerance) for c in covariances])


@functools.cache
def given_covariances():
    return spd(np.random.default_rng(5), N, P)


def assert_equals(embedding, kernel, alpha=0.0, values_within=1e-8, angle_within=1e-6):
    """Eigenvalues, the space the coordinates span, and each coordinate with its sign."""
    n_modes = embedding.sizes["mode"]
    mu, psi = dense.eigenpairs(kernel, alpha, n_modes)
    np.testing.assert_allclose(embedding["eigenvalue"], mu[1 : n_modes + 1], rtol=0, atol=values_within)
    assert scipy.linalg.subspace_angles(embedding["coordinate"].values, psi).max() < angle_within
    np.testing.assert_allclose(embedding["coordinate"], psi, rtol=0, atol=100 * angle_within)


def assert_same(one, other, within=1e-6):
    """The same embedding, signs included."""
    for name in ("eigenvalue", "coordinate", "lift", "epsilon", "degree", "rate"):
        scale = float(np.abs(other[name]).max())
        np.testing.assert_allclose(one[name], other[name], rtol=0, atol=within * scale, err_msg=name)


@pytest.fixture(scope="module")
def whole():
    """The embedding of unchunked frames, form and precision fixed."""
    with dask.config.set(scheduler="synchronous"):
        return mo.embed(FRAMES, n_modes=3, engine=mo.Engine(form="quadratic", precision="float32"), preset="paper")


# ---------------------------------------------------------------------------------------------- reference


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_embed__equals_the_reference(alpha):
    d = reference_distances()
    embedding = mo.embed(FRAMES, **embed_options(n_modes=3, alpha=alpha, **EXACT), preset="paper")
    assert float(embedding["epsilon"]) == pytest.approx(dense.epsilon_median(d), rel=1e-10)
    assert_equals(embedding, dense.kernel(d, dense.epsilon_median(d)), alpha)


@pytest.mark.parametrize("form", ["quadratic", "factor", "window"])
def test_embed__every_form_equals_the_reference(form):
    d = reference_distances()
    assert_equals(
        mo.embed(FRAMES, **embed_options(n_modes=3, form=form, **EXACT), preset="paper"),
        dense.kernel(d, dense.epsilon_median(d)),
    )


@pytest.mark.parametrize("home", ["local", "resident", "recomputed", "disk"])
def test_embed__every_home_of_the_tiles_equals_the_reference(home):
    d = reference_distances()
    embedding = mo.embed(
        FRAMES, **embed_options(n_modes=3, home=home, tile=32, residual_tolerance=1e-9, **EXACT), preset="paper"
    )
    assert embedding.attrs["home"] == home
    assert_equals(embedding, dense.kernel(d, dense.epsilon_median(d)))


def test_embed__automatic_precision_is_close_enough():
    d = reference_distances()
    embedding = mo.embed(FRAMES, n_modes=3, preset="paper")
    assert_equals(embedding, dense.kernel(d, dense.epsilon_median(d)), values_within=1e-5, angle_within=1e-5)


def test_embed__windows_stay_in_their_segment():
    d = reference_distances(window=15, segmented=True)
    embedding = mo.embed(as_frames(VALUES, SEGMENT), **embed_options(n_modes=3, window=15, **EXACT), preset="paper")
    assert_equals(embedding, dense.kernel(d, dense.epsilon_median(d)))
    assert np.abs(d - reference_distances(window=15)).max() > 1.0  # the segments do matter


def test_embed__takes_covariances_that_are_given():
    covariance = xr.DataArray(given_covariances(), dims=("frame", "feature", "feature_1"))
    d = reference_distances(given=True)
    embedding = mo.embed(
        FRAMES, **embed_options(n_modes=3, covariance=covariance.chunk(frame=17), **EXACT), preset="paper"
    )
    assert_equals(embedding, dense.kernel(d, dense.epsilon_median(d)))
    np.testing.assert_array_equal(embedding["reference_covariance"], covariance)


@pytest.mark.parametrize(("rank", "tolerance"), [(1, 1e-3), (2, 1e-3), (None, 0.3)])
def test_embed__rank_and_tolerance_cut_the_covariances(rank, tolerance):
    d = reference_distances(rank=rank, tolerance=tolerance)
    embedding = mo.embed(FRAMES, **embed_options(n_modes=2, rank=rank, tolerance=tolerance, **EXACT), preset="paper")
    assert_equals(embedding, dense.kernel(d, dense.epsilon_median(d)))


def test_embed__a_ridge_is_added_to_the_covariances():
    covariances = dense.window_covariances(VALUES, np.zeros(N), 21)
    d = dense.distances(VALUES, [np.linalg.inv(c + 0.05 * np.eye(P)) for c in covariances])
    embedding = mo.embed(FRAMES, **embed_options(n_modes=2, regularization=0.05, **EXACT), preset="paper")
    assert_equals(embedding, dense.kernel(d, dense.epsilon_median(d)))


def test_embed__epsilon_is_a_number_a_factor_or_local():
    d = reference_distances()
    assert_equals(
        mo.embed(FRAMES, **embed_options(n_modes=3, epsilon=40.0, **EXACT), preset="paper"), dense.kernel(d, 40.0)
    )
    factor = mo.embed(FRAMES, **embed_options(n_modes=3, epsilon_factor=0.7, **EXACT), preset="paper")
    assert_equals(factor, dense.kernel(d, dense.epsilon_median(d, 0.7)))
    scales = dense.local_scales(d, 7)
    local = mo.embed(FRAMES, **embed_options(n_modes=3, epsilon="local", neighbours=7, **EXACT), preset="paper")
    np.testing.assert_allclose(local["scale"], scales, rtol=1e-9)
    assert_equals(local, dense.kernel_local(d, scales))


def test_embed__lift_rates_and_residuals_are_those_of_its_coordinates():
    embedding = mo.embed(FRAMES, **embed_options(n_modes=3, **EXACT), preset="paper")
    np.testing.assert_allclose(embedding["lift"], dense.lift(VALUES, embedding["coordinate"].values), atol=1e-10)
    np.testing.assert_allclose(embedding["feature_mean"], VALUES.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(embedding["rate"], -np.log(embedding["eigenvalue"]), rtol=1e-12)
    np.testing.assert_allclose(np.mean(np.square(embedding["coordinate"]), axis=0), 1.0, rtol=1e-12)
    d = reference_distances()
    np.testing.assert_allclose(embedding["degree"], dense.kernel(d, dense.epsilon_median(d)).sum(axis=1), rtol=1e-9)
    assert (embedding["residual"] <= 1e-9).all()


def test_embed__without_n_modes_stops_at_the_spectral_gap():
    d = reference_distances()
    mu, _ = dense.eigenpairs(dense.kernel(d, dense.epsilon_median(d)), 0.0, 1)
    embedding = mo.embed(FRAMES, **embed_options(**EXACT), preset="paper")
    assert embedding.sizes["mode"] == dense.spectral_gap(mu[1:11])
    np.testing.assert_allclose(embedding["spectrum"], mu[1:11], atol=1e-8)


def test_embed__few_frames_are_enough():
    for n, n_modes in ((3, 1), (4, 2)):
        covariances = dense.window_covariances(VALUES[:n], np.zeros(n), 2)
        d = dense.distances(VALUES[:n], [dense.pseudo_inverse(c) for c in covariances])
        embedding = mo.embed(FRAMES[:n], **embed_options(n_modes=n_modes, window=2, **EXACT), preset="paper")
        assert_equals(embedding, dense.kernel(d, dense.epsilon_median(d)))


# ------------------------------------------------------------------------------- the same however it is cut


@examples(8)
@given(st.tuples(chunkings(N), chunkings(P)))
def test_embed__any_chunking_of_the_frames_gives_the_same(whole, chunks):
    frames = FRAMES.chunk(frame=chunks[0], feature=chunks[1])
    assert_same(
        mo.embed(frames, n_modes=3, engine=mo.Engine(form="quadratic", precision="float32"), preset="paper"), whole
    )


@pytest.mark.parametrize("tile", [1, 7, 32, N, 1000])
def test_embed__any_tile_size_gives_the_same(whole, tile):
    embedding = mo.embed(
        FRAMES, n_modes=3, engine=mo.Engine(form="quadratic", precision="float32", tile=tile), preset="paper"
    )
    assert embedding.attrs["tile"] == min(tile, N)
    assert_same(embedding, whole)


def test_embed__any_panel_size_gives_the_same(whole, monkeypatch):
    monkeypatch.setattr(cuts, "PANEL_BYTES", 4 * 16 * 16)
    assert_same(
        mo.embed(FRAMES, n_modes=3, engine=mo.Engine(form="quadratic", precision="float32", tile=16), preset="paper"),
        whole,
    )


@pytest.mark.parametrize("form", ["factor", "window"])
def test_embed__every_form_gives_the_same_where_precision_is_automatic(form):
    one = mo.embed(FRAMES, n_modes=3, engine=mo.Engine(form="quadratic"), preset="paper")
    assert_same(mo.embed(FRAMES, n_modes=3, engine=mo.Engine(form=form), preset="paper"), one, within=1e-5)


def test_embed__threads_give_the_same(whole):
    with dask.config.set(scheduler="threads", num_workers=3):
        embedding = mo.embed(
            FRAMES.chunk(frame=13),
            n_modes=3,
            engine=mo.Engine(form="quadratic", precision="float32", tile=16),
            preset="paper",
        )
    assert_same(embedding, whole)


def test_embed__one_and_two_workers_give_the_same(whole, workers_here):
    options = {"n_modes": 3, "form": "quadratic", "precision": "float32", "tile": 16}
    made = []
    with workers_here(1) as (cluster, client):
        for n_workers in (1, 2):
            cluster.scale(n_workers)
            client.wait_for_workers(n_workers, timeout=60)
            made.append(mo.embed(FRAMES.chunk(frame=13), **embed_options(**options), preset="paper"))
        state = mo.observe(made[0], FRAMES.chunk(frame=13))["state"].compute()
    for embedding in made:
        assert_same(embedding, whole)
    np.testing.assert_array_equal(made[0]["coordinate"], made[1]["coordinate"])
    np.testing.assert_allclose(state, mo.observe(made[0], FRAMES)["state"], rtol=1e-12)


def test_embed__the_same_seed_gives_the_same_bytes_and_another_the_same_answer():
    options = {"n_modes": 3, "form": "quadratic", "precision": "float32"}
    one, again = (mo.embed(FRAMES, **embed_options(**options), preset="paper") for _ in range(2))
    xr.testing.assert_identical(one, again)
    other = mo.embed(FRAMES, **embed_options(seed=7, **options), preset="paper")
    assert other.attrs["seed"] == 7
    assert not np.array_equal(other["coordinate"], one["coordinate"])  # other start vectors
    assert_same(other, one)


# ------------------------------------------------------------------------------------- labels, Zarr, errors


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


# ------------------------------------------------------------------------------------------ generator rates


@pytest.mark.parametrize(("alpha", "factor"), [(0.0, 1.0), (0.5, 2.0)])
def test_generator_rates__follow_the_formula(alpha, factor):
    embedding = mo.embed(FRAMES, n_modes=2, alpha=alpha, preset="paper")
    rates = mo.generator_rates(embedding, burst_duration=0.02)
    expected = -factor * np.log(embedding["eigenvalue"]) / (float(embedding["epsilon"]) * 0.02)
    np.testing.assert_allclose(rates, expected, rtol=1e-12)
    assert rates.dims == ("mode",)
    assert rates.attrs["units"] == "1/s"


def test_generator_rates__refuse_in_one_sentence(whole):
    with pytest.raises(ValueError, match="burst_duration must be above 0 seconds; got 0"):
        mo.generator_rates(whole, 0.0)
    with pytest.raises(ValueError, match=r"alpha must be 0 or 0\.5; got 1"):
        mo.generator_rates(whole.assign_attrs(alpha=1.0), 0.1)
    with pytest.raises(ValueError, match="one scale; got epsilon='local'"):
        mo.generator_rates(whole.assign(scale=whole["degree"]), 0.1)
