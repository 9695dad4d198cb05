"""Through landmarks: near the exact way, and honest about how near."""

import functools

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import landmarks as landmarks_of_pipeline
from manifold_observer.pipeline.engine.blocks import table
from manifold_observer.pipeline.engine.config import EmbedConfig
from manifold_observer.tasks.engine import forms, kernel, landmarks, moments
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.forms import build_block
from manifold_observer.tasks.engine.slab import Metric, Slab
from reference import dense
from strategies import chunkings, embed_options, examples, smooth_motion

pytestmark = pytest.mark.usefixtures("in_this_thread")

N, WINDOW = 700, 21
VALUES = smooth_motion(np.random.default_rng(0), N, 4)
SEGMENT = np.repeat([0, 1], [300, 400])
FRAMES = xr.DataArray(
    VALUES, dims=("frame", "feature"), coords={"time": ("frame", 0.5 * np.arange(N)), "segment": ("frame", N * [0])}
)
OPTIONS = {"n_modes": 4, "method": "landmarks", "form": "quadratic", "precision": "float64"}


@functools.cache
def distances(segmented=False):
    """All of them, by one tile that is tested elsewhere."""
    starts = np.array([members[0] for members in dense.windows(SEGMENT if segmented else np.zeros(N), WINDOW)])
    slab = Slab(VALUES - VALUES.mean(axis=0), np.arange(N), starts, None)
    block = build_block(slab, Metric(WINDOW, PseudoInverse()), "quadratic")
    return kernel.symmetric(kernel.squared_distances(block, block))


def markov(epsilon, alpha=0.0, segmented=False):
    affinities = np.exp(-distances(segmented) / epsilon)
    weighted = affinities * affinities.sum(axis=1) ** -alpha
    return weighted / weighted.sum(axis=1, keepdims=True)


def residuals(embedding, **how):
    """Root mean square of W psi - mu psi, for psi of unit mean square."""
    psi, mu = embedding["coordinate"].values, embedding["eigenvalue"].values
    return np.sqrt(np.square(markov(float(embedding["epsilon"]), **how) @ psi - mu * psi).mean(axis=0))


def assert_same(one, other, within=1e-9):
    for name in ("eigenvalue", "coordinate", "lift", "epsilon", "degree", "residual"):
        size = float(np.abs(other[name]).max())
        assert_allclose(one[name], other[name], rtol=0, atol=within * size, err_msg=name)


@pytest.fixture(scope="module")
def whole():
    with dask.config.set(scheduler="synchronous"):
        return mo.embed(FRAMES, **embed_options(landmarks=150, **OPTIONS), preset="paper")


# ------------------------------------------------------------------------------------------ how near it is


@pytest.mark.parametrize("landmarks", [80, 200, 400])
@pytest.mark.parametrize(("route", "alpha"), [("nystrom", 0.0), ("nystrom", 0.5), ("diffusion", 0.0)])
def test_embed__residuals_are_estimated_within_a_factor_of_two(landmarks, route, alpha):
    embedding = mo.embed(
        FRAMES, **embed_options(landmarks=landmarks, landmark_route=route, alpha=alpha, **OPTIONS), preset="paper"
    )
    assert embedding.attrs["residual_from"] == "exact rows of 256 sampled frames"
    assert embedding.attrs["landmark_route"] == route
    assert (embedding.attrs["n_landmarks"], embedding.attrs["passes"]) == (landmarks, 0)
    ratio = embedding["residual"] / residuals(embedding, alpha=alpha)
    assert ratio.min() > 0.5
    assert ratio.max() < 2
    assert embedding["residual"].max() < 0.05


@pytest.mark.parametrize("choice", ["uniform", "kmeans++", "farthest"])
def test_embed__every_choice_of_landmarks_is_near_the_exact_way(choice):
    exact = mo.embed(FRAMES, **embed_options(**{**OPTIONS, "method": "exact"}), preset="paper")
    near = mo.embed(
        FRAMES,
        **embed_options(landmarks=200, landmark_choice=choice, epsilon=float(exact["epsilon"]), **OPTIONS),
        preset="paper",
    )
    assert_allclose(near["eigenvalue"], exact["eigenvalue"], atol=0.05)
    for mode, least in ((0, 0.999), (1, 0.95)):
        assert abs(np.corrcoef(near["coordinate"][:, mode], exact["coordinate"][:, mode])[0, 1]) > least
    assert_allclose(np.mean(np.square(near["coordinate"]), axis=0), 1, rtol=1e-12)
    assert_allclose(near["degree"], exact["degree"], rtol=0.5)
    assert (near["coordinate"].max("frame") >= -near["coordinate"].min("frame")).all()


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("landmarks", [N, N + 200])
def test_embed__with_all_frames_as_landmarks_is_the_exact_way(landmarks, alpha):
    embedding = mo.embed(FRAMES, **embed_options(landmarks=landmarks, alpha=alpha, **OPTIONS), preset="paper")
    exact = mo.embed(FRAMES, **embed_options(alpha=alpha, **{**OPTIONS, "method": "exact"}), preset="paper")
    assert embedding.attrs["n_landmarks"] == N
    assert embedding["residual"].max() < 1e-10
    for name in ("eigenvalue", "coordinate", "lift", "epsilon", "degree"):
        assert_allclose(embedding[name], exact[name], atol=1e-7 * np.abs(exact[name]).max().item(), err_msg=name)


def test_embed__refinement_brings_residuals_down(whole):
    worst = [float(whole["residual"].max())]
    for refine in (1, 2):
        embedding = mo.embed(FRAMES, **embed_options(landmarks=150, refine=refine, **OPTIONS), preset="paper")
        assert embedding.attrs["residual_from"] == "all frames"
        assert (embedding.attrs["passes"], embedding.attrs["refine"]) == (refine, refine)
        worst.append(float(embedding["residual"].max()))
        psi, mu = embedding["coordinate"].values, embedding["eigenvalue"].values
        root = np.sqrt(embedding["degree"].values)[:, None]  # the norm of the symmetric kernel
        left = np.linalg.norm(root * (markov(float(embedding["epsilon"])) @ psi - mu * psi), axis=0)
        ratio = embedding["residual"] / (left / np.linalg.norm(root * psi, axis=0))
        assert ratio.min() > 0.99
        assert ratio.max() < 2
    assert worst[0] > 1.2 * worst[1] > 12 * worst[2]


@pytest.mark.parametrize("home", ["resident", "recomputed", "disk"])
def test_embed__refinement_is_the_same_wherever_tiles_are(home):
    options = {"landmarks": 150, "refine": 2, "alpha": 0.5, **OPTIONS}
    assert_same(
        mo.embed(FRAMES, **embed_options(home=home, tile=300, **options), preset="paper"),
        mo.embed(FRAMES, **embed_options(home="local", **options), preset="paper"),
        1e-7,
    )


# ------------------------------------------------------------------------------- the same however it is cut


@examples(6)
@given(chunkings(N))
def test_embed__any_chunking_of_the_frames_gives_the_same(whole, chunks):
    assert_same(
        mo.embed(FRAMES.chunk(frame=chunks), **embed_options(landmarks=150, **OPTIONS), preset="paper"), whole, within=0
    )


@pytest.mark.parametrize("route", ["nystrom", "diffusion"])
def test_embed__any_span_of_a_task_gives_the_same(route, monkeypatch):
    options = {"landmarks": 150, "landmark_route": route, **OPTIONS}
    one = mo.embed(FRAMES, **embed_options(**options), preset="paper")
    monkeypatch.setattr("manifold_observer.pipeline.engine.cuts.LANDMARK_SPAN", 97)
    monkeypatch.setattr("manifold_observer.pipeline.engine.cuts.GATHER_SPAN", 97)
    monkeypatch.setattr("manifold_observer.tasks.engine.landmarks.FRAMES_TOGETHER", 31)
    assert_same(mo.embed(FRAMES, **embed_options(**options), preset="paper"), one)


def test_embed__threads_give_the_same(whole):
    with dask.config.set(scheduler="threads", num_workers=3):
        assert_same(mo.embed(FRAMES.chunk(frame=90), **embed_options(landmarks=150, **OPTIONS), preset="paper"), whole)


def test_embed__every_form_and_single_precision_give_the_same(whole):
    for form in ("factor", "window"):
        assert_same(
            mo.embed(FRAMES, **embed_options(landmarks=150, **{**OPTIONS, "form": form}), preset="paper"),
            whole,
            within=1e-6,
        )
    assert_same(
        mo.embed(FRAMES, **embed_options(landmarks=150, **{**OPTIONS, "precision": "float32"}), preset="paper"),
        whole,
        within=1e-3,
    )


# ------------------------------------------------------------------------------------------------ the rest


def test_embed__lift_is_that_of_its_coordinates(whole):
    expected = (VALUES - VALUES.mean(axis=0)).T @ whole["coordinate"].values / N
    assert_allclose(whole["lift"], expected, atol=1e-10 * np.abs(VALUES).max())


def test_embed__windows_stay_in_their_segment():
    frames = FRAMES.assign_coords(segment=("frame", SEGMENT))
    embedding = mo.embed(frames, **embed_options(landmarks=N, **OPTIONS), preset="paper")
    assert residuals(embedding, segmented=True).max() < 1e-9
    assert residuals(embedding).max() > 1e-6  # the segments do matter


def test_embed__takes_covariances_that_are_given():
    covariances = dense.window_covariances(VALUES, np.zeros(N), WINDOW)
    given_ones = xr.DataArray(covariances, dims=("frame", "feature", "feature_1")).chunk(frame=123)
    options = {"landmarks": 150, **OPTIONS}
    assert_same(
        mo.embed(FRAMES, **embed_options(covariance=given_ones, **options), preset="paper"),
        mo.embed(FRAMES, **embed_options(**options), preset="paper"),
        within=1e-6,
    )


def test_observe__runs_on_it(whole):
    state = mo.observe(whole, FRAMES)
    assert state["state"].shape == (N, 4)
    assert np.isfinite(state["state"]).all()
    again = mo.observe(whole, FRAMES.chunk(frame=100))
    assert_array_equal(again["state"], state["state"])


def test_embed__refuses_local_scales():
    with pytest.raises(ValueError, match=r"epsilon='local' needs neighbours among all frames.*method='exact'"):
        mo.embed(FRAMES, **embed_options(epsilon="local", **OPTIONS), preset="paper")


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_embed__a_frame_that_no_landmark_reaches_is_told_and_spoils_nothing(alpha):
    values = VALUES.copy()
    values[100] += 1e4  # between two landmarks
    covariance = xr.DataArray(np.tile(np.eye(4), (N, 1, 1)), dims=("frame", "feature", "feature_1"))
    frames, options = FRAMES.copy(data=values), {"landmarks": 50, "alpha": alpha, "covariance": covariance, **OPTIONS}
    with pytest.warns(UserWarning, match=r"1 of 700 frames are beyond the reach .*first is frame 100") as told:
        found = mo.embed(frames, **embed_options(**options), preset="paper")
    assert told[0].filename == __file__
    assert_array_equal(found["coordinate"][100], 0)
    assert found["degree"][100] == 1
    assert all(np.isfinite(found[name]).all() for name in ("coordinate", "eigenvalue", "residual", "lift", "degree"))


def test_embed__a_solve_that_starts_from_landmarks_survives_a_frame_that_none_reaches(monkeypatch):
    monkeypatch.setattr("manifold_observer.pipeline.engine.landmarks._WARM_LANDMARKS", 50)
    values = VALUES.copy()
    values[100] += 1e4
    covariance = xr.DataArray(np.tile(np.eye(4), (N, 1, 1)), dims=("frame", "feature", "feature_1"))
    options = {"covariance": covariance, "alpha": 0.5, "n_modes": 2, "precision": "float32", "form": "quadratic"}
    made = []
    for home in ("local", "recomputed"):
        with pytest.warns(UserWarning, match="embed: ") as told:
            made.append(
                mo.embed(FRAMES.copy(data=values), **embed_options(home=home, epsilon=4.0, **options), preset="paper")
            )
        assert told[0].filename == __file__
    assert_allclose(made[0]["eigenvalue"], made[1]["eigenvalue"], atol=1e-4)


def test_embed__names_silent_frames():
    values = VALUES.copy()
    values[400:440] = values[400]
    with pytest.raises(ValueError, match=r"must not be zero; got zero .* of block"):
        mo.embed(FRAMES.copy(data=values), **embed_options(landmarks=100, **OPTIONS), preset="paper")


# ------------------------------------------------------------------------------- a few frames carry their own rows


def parts_of(values):
    """What the blocks of the window form are made from."""
    rows = table(xr.DataArray(values, dims=("frame", "feature")).chunk(frame=100), None, EmbedConfig(window=WINDOW))
    axes = moments.Axes(moments.moments(values).mean, None)
    return rows, Distance(Metric(WINDOW, PseudoInverse()), axes, "window", "float64")


@pytest.mark.parametrize("span", [16384, 97])
@pytest.mark.parametrize("count", [10, 20, 60])
def test_gather__a_block_holds_the_rows_of_its_windows_once(monkeypatch, count, span):
    monkeypatch.setattr("manifold_observer.pipeline.engine.cuts.GATHER_SPAN", span)
    rows, distance = parts_of(VALUES)
    chosen = landmarks.uniform(N, count)
    block = landmarks_of_pipeline._gather(rows, distance, chosen).compute()
    starts = np.clip(chosen - WINDOW // 2, 0, N - WINDOW)
    if span > N:
        assert len(block.halo) == len(np.unique(starts[:, None] + np.arange(WINDOW)))
    assert len(block.halo) <= count * WINDOW
    assert_array_equal(block.halo[block.rows], VALUES[chosen] - VALUES.mean(axis=0))
    for first, start in zip(block.starts, starts, strict=True):
        assert_array_equal(block.halo[first : first + WINDOW], VALUES[start : start + WINDOW] - VALUES.mean(axis=0))


def test_near__the_start_of_a_solve_holds_the_rows_of_its_windows(monkeypatch):
    monkeypatch.setattr("manifold_observer.pipeline.engine.landmarks._WARM_LANDMARKS", 15)
    joined, join = [], forms.join
    monkeypatch.setattr(forms, "join", lambda blocks: joined.append(join(blocks)) or joined[-1])
    mo.embed(
        FRAMES,
        **embed_options(**{**OPTIONS, "method": "exact", "form": "window", "home": "recomputed", "tile": 100}),
        preset="paper",
    )
    assert [len(block.halo) for block in joined if block.n_frames == 15] == [15 * WINDOW]


def test_embed__given_covariances_of_landmarks_come_with_their_frames():
    rows, distance = parts_of(VALUES)
    distance = distance._replace(metric=distance.metric._replace(window=0), form="factor")
    covariances = dense.window_covariances(VALUES, np.zeros(N), WINDOW)
    rows = rows._replace(covariance=da.from_array(covariances, chunks=(130, -1, -1)))
    chosen = np.array([3, 150, 151, 699])
    block = landmarks_of_pipeline._gather(rows, distance, chosen).compute()
    assert_array_equal(block.frames, VALUES[chosen] - VALUES.mean(axis=0))
    expected = distance.block(Slab(block.frames, np.arange(4), np.arange(4), covariances[chosen]))
    assert_allclose(block.factors, expected.factors)
