"""Diffusion maps of frames against the dense reference, and the same however they are cut."""

import functools

import dask
import numpy as np
import pytest
import scipy.linalg
import xarray as xr
from embeddings import EXACT, FRAMES, SEGMENT, VALUES, N, P, as_frames, assert_same
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import cuts
from reference import dense
from strategies import chunkings, embed_options, examples, spd

pytestmark = pytest.mark.usefixtures("in_this_thread")


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
