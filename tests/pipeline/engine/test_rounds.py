"""Landmarks with a residual that is tolerated: what is promised is measured, and what is there is kept."""

import functools
import re
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import promise, rounds, strips
from manifold_observer.pipeline.graph.say import heard
from manifold_observer.tasks.engine import expected, kernel, projected
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.forms import build_block
from manifold_observer.tasks.engine.slab import Metric, Slab
from reference import dense
from strategies import chunkings, embed_options, examples, smooth_motion

pytestmark = pytest.mark.usefixtures("in_this_thread")

N, WINDOW = 1000, 21
VALUES = smooth_motion(np.random.default_rng(0), N, 4)
FRAMES = xr.DataArray(VALUES, dims=("frame", "feature"), coords={"time": ("frame", 0.5 * np.arange(N))})
LANDMARKS = {"n_modes": 4, "method": "landmarks", "form": "quadratic", "precision": "float64", "tile": 256}


@pytest.fixture
def alone(monkeypatch):
    """No exact pass can be paid, as with many frames."""
    monkeypatch.setattr(expected.Prices, "of_passes", lambda _, count: 1e30 * count)


def embedded(frames=FRAMES, **options):
    return mo.embed(frames, **embed_options(**options), preset="paper")


@functools.cache
def distances():
    """All of them, by one tile that is tested elsewhere."""
    starts = np.array([members[0] for members in dense.windows(np.zeros(N), WINDOW)])
    slab = Slab(VALUES - VALUES.mean(axis=0), np.arange(N), starts, None)
    block = build_block(slab, Metric(WINDOW, PseudoInverse()), "quadratic")
    return kernel.symmetric(kernel.squared_distances(block, block))


def true_residuals(embedding, alpha=0.0):
    """Norms of S v - mu v, over the whole kernel."""
    affinities = np.exp(-distances() / float(embedding["epsilon"]))
    density = affinities.sum(axis=1) ** -alpha
    affinities *= density[:, None] * density
    degrees = affinities.sum(axis=1)
    psi, mu = embedding["coordinate"].values, embedding["eigenvalue"].values
    left = affinities @ psi / degrees[:, None] - mu * psi
    return np.sqrt(degrees @ np.square(left) / (degrees @ np.square(psi)))


def assert_equal(one, other):
    for name in ("eigenvalue", "coordinate", "degree", "residual", "epsilon"):
        assert_array_equal(one[name], other[name], err_msg=name)
    assert one.attrs == other.attrs


# --------------------------------------------------------------------------------------------- what is promised


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6])
def test_embed__exact_passes_make_the_residual_what_was_asked_for(tolerance, alpha):
    embedding = embedded(**LANDMARKS, residual_tolerance=tolerance, alpha=alpha)
    assert embedding.attrs["residual_from"] == "measured"
    assert embedding.attrs["residual_reached"] == "yes"
    assert embedding.attrs["passes"] > 0
    truth = true_residuals(embedding, alpha)
    assert_allclose(embedding["residual"], truth, rtol=0.02, atol=1e-9)
    assert truth.max() <= tolerance * float(embedding["eigenvalue"][0])


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-3])
def test_embed__landmarks_alone_keep_the_promise(tolerance, alpha):
    embedding = embedded(**LANDMARKS, residual_tolerance=tolerance, alpha=alpha)
    truth, largest = true_residuals(embedding, alpha), float(embedding["eigenvalue"][0])
    assert embedding.attrs["passes"] == 0
    assert embedding.attrs["residual_from"] == "estimated from 256 exact rows"
    assert truth.max() <= embedding.attrs["residual_at_most"] <= tolerance * largest
    assert (truth / 2 < embedding["residual"]).all()
    assert (embedding["residual"] < 3 * truth).all()  # what the density may be wrong by is added


@pytest.mark.usefixtures("alone")
def test_embed__a_residual_out_of_reach_is_reported_with_what_was_reached():
    with pytest.warns(
        UserWarning,
        match=r"above residual_tolerance=1e-09, after 300 landmarks and 0 exact passes.*"
        r"Give more than landmarks=300, or max_core_hours=",
    ):
        embedding = embedded(**LANDMARKS, residual_tolerance=1e-9, landmarks=300)
    assert embedding.attrs["residual_reached"] == "no"
    assert embedding.attrs["n_landmarks"] == 300
    assert true_residuals(embedding).max() <= embedding.attrs["residual_at_most"]


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [(1e14, "no eigenvalue beside the trivial one is above 0"), (1e-14, "the kernel is the identity")],
)
def test_embed__a_scale_at_which_no_frames_resemble_each_other_or_all_do_is_refused_in_a_sentence(epsilon, message):
    with pytest.raises(ValueError, match=f"^embed: .*{message}"):
        embedded(**LANDMARKS, residual_tolerance=1e-2, epsilon=epsilon)


@pytest.mark.usefixtures("alone")
def test_embed__all_frames_as_landmarks_are_the_exact_way():
    few = FRAMES[:400]
    embedding = embedded(few, **LANDMARKS, residual_tolerance=1e-6)
    known = embedded(few, **{**LANDMARKS, "method": "exact"}, epsilon=float(embedding["epsilon"]))
    assert embedding.attrs["n_landmarks"] == 400
    assert_allclose(embedding["eigenvalue"], known["eigenvalue"], rtol=1e-9)
    assert_allclose(embedding["coordinate"], known["coordinate"], atol=1e-6)


# ------------------------------------------------------------------------------------------ what is there is kept


@pytest.fixture(scope="module")
def whole():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expected.Prices, "of_passes", lambda _, count: 1e30 * count)
        return embedded(**LANDMARKS, residual_tolerance=1e-3)


@examples(4)
@given(chunkings(N))
def test_embed__any_chunking_gives_the_same(whole, chunks):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expected.Prices, "of_passes", lambda _, count: 1e30 * count)
        assert_equal(embedded(FRAMES.chunk(frame=chunks), **LANDMARKS, residual_tolerance=1e-3), whole)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("most", [-1, 0, 300], ids=["nothing", "blocks", "some strips"])
def test_embed__what_is_kept_on_the_workers_changes_nothing(whole, monkeypatch, most):
    monkeypatch.setattr(strips, "_room", lambda _, n_met=0: most - n_met)
    assert_equal(embedded(**LANDMARKS, residual_tolerance=1e-3), whole)


@pytest.fixture
def hopeful(alone, monkeypatch):
    """The first round promises too much, so that more follow."""
    monkeypatch.setattr(expected, "_CAUTION", 0.2)


@pytest.mark.usefixtures("hopeful")
def test_embed__rounds_add_to_the_landmarks_that_are_there(monkeypatch):
    met = []
    real = projected.strip
    monkeypatch.setattr(projected, "strip", lambda *met_by: met.append(met_by[1].n_frames) or real(*met_by))
    embedding = embedded(**LANDMARKS, residual_tolerance=5e-4)
    numbers = [int(one.split(":")[0]) for one in embedding.attrs["landmark_rounds"].split(", ")]
    assert len(numbers) > 1
    groups = [256, *np.diff([0, *numbers])]  # the sample's rows, and what each round adds
    assert sorted(set(met)) == sorted(set(groups))
    assert len(met) == len(groups) * -(-N // 256)  # once a block


@pytest.mark.usefixtures("hopeful")
def test_embed__a_run_that_was_stopped_between_two_rounds_resumes_after_the_first(monkeypatch, tmp_path):
    options = {**LANDMARKS, "residual_tolerance": 5e-4}
    expected_embedding, real, made = embedded(**options), rounds._round, []

    def stopping(course, m, *others):
        made.append(m)
        if len(made) == 2:
            raise KeyboardInterrupt
        return real(course, m, *others)

    monkeypatch.setattr(rounds, "_round", stopping)
    with pytest.raises(KeyboardInterrupt):
        embedded(**options, checkpoint=tmp_path)
    found = embedded(**options, checkpoint=tmp_path)
    assert made[1] == made[2] > made[0]  # the first is not made again
    assert_equal(found, expected_embedding)


@pytest.mark.usefixtures("hopeful")
def test_embed__more_core_hours_as_advised_resume_after_the_rounds_that_were_made(monkeypatch, tmp_path):
    options = {**LANDMARKS, "residual_tolerance": 5e-4}
    real, made = rounds._round, []

    def noted(course, m, *others):
        made.append(m)
        return real(course, m, *others)

    def stopping(course, m, *others):
        if made:
            raise KeyboardInterrupt
        return noted(course, m, *others)

    monkeypatch.setattr(rounds, "_round", stopping)
    with pytest.raises(KeyboardInterrupt):
        embedded(**options, max_core_hours=20.0, checkpoint=tmp_path)
    monkeypatch.setattr(rounds, "_round", noted)
    embedded(**options, max_core_hours=48.0, checkpoint=tmp_path)
    assert len(made) == len(set(made)) > 1


# ------------------------------------------------------------------------------------------- what is said of it


def test_plan__says_what_is_expected_and_embed_says_it_before_it_begins():
    engine = mo.Engine(method="landmarks", residual_tolerance=1e-4)
    found, said = mo.plan(FRAMES, n_modes=4, engine=engine), []
    with heard(said.append):
        embedding = mo.embed(FRAMES, n_modes=4, engine=engine)
    assert found.landmarks > 0
    assert found.residual <= 1e-4
    assert found.reasons[1].startswith(f"a residual of 0.0001 is expected to take {found.landmarks} landmarks")
    assert said[0].startswith("embed: a residual of 0.0001 is expected to take")
    assert f"{embedding.attrs['expected_landmarks']} landmarks" in said[0]
    assert len(said) == 1 + len(embedding.attrs["landmark_rounds"].split(","))


def test_plan__says_that_a_residual_is_out_of_reach():
    engine = mo.Engine(method="landmarks", residual_tolerance=1e-9, landmarks=200, max_passes=2)
    found = mo.plan(FRAMES, n_modes=4, engine=engine)
    assert "is not expected to be reached: 200 landmarks and 2 exact passes should leave about" in found.reasons[1]
    assert found.residual > 1e-9


def test_plan__counts_the_exact_passes_that_are_asked_for_beside_a_residual():
    engine = mo.Engine(method="landmarks", residual_tolerance=1e-2, refine=3)
    assert mo.plan(FRAMES, n_modes=4, engine=engine).passes == 3


def test_remedy__asks_for_more_hours_than_there_were():
    prices, hour = expected.Prices(1_000_000, 100.0, 100.0, 40.0), 3600 * expected.RATE
    foresight = SimpleNamespace(prices=prices, bounds=expected.Bounds(60, 4 * hour))
    outcome = SimpleNamespace(last=SimpleNamespace(landmarks=8192), rounds=(rounds.Judged(8192, 0.1, 0.1),), passes=0)
    found = re.search(r"max_core_hours=(\d+)", promise._remedy(foresight, outcome, mo.EmbedConfig()))
    assert int(found[1]) * hour >= prices.of_landmarks(8192) + prices.of_landmarks(16384) + prices.of_passes(1)


@pytest.mark.parametrize("other", [{"landmark_choice": "farthest"}, {"landmark_route": "diffusion"}])
def test_embed__settings_of_landmarks_that_a_tolerance_has_no_use_for_are_refused(other):
    with pytest.raises(ValueError, match=rf"{next(iter(other))} must be .* residual_tolerance .*Leave out one"):
        embedded(**LANDMARKS, **other, residual_tolerance=1e-2)


def test_embed__landmarks_without_a_tolerance_promise_nothing():
    embedding = embedded(**LANDMARKS, landmarks=200)
    assert "residual_reached" not in embedding.attrs
    assert embedding.attrs["n_landmarks"] == 200


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
@pytest.mark.filterwarnings("ignore:extend")  # one of them is farther from the others than most
def test_embed__what_was_promised_places_frames_and_is_observed():
    embedding = mo.embed(FRAMES, n_modes=4, engine=mo.Engine(method="landmarks", residual_tolerance=1e-3))
    assert embedding.attrs["passes"] == 0
    back = mo.extend(embedding, FRAMES[300:500])["coordinate"][10:-10]  # whose windows are whole
    assert_allclose(back, embedding["coordinate"][310:490], atol=0.02)
    known = mo.embed(FRAMES, n_modes=4, epsilon=float(embedding["epsilon"]))
    near, found = (mo.observe(each, FRAMES)["state"].values for each in (known, embedding))
    inputs = np.column_stack([np.ones(N), found])
    left = near - inputs @ np.linalg.lstsq(inputs, near, rcond=None)[0]
    assert np.sqrt(np.square(left).mean() / near.var(axis=0).mean()) < 0.02
