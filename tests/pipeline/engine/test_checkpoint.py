"""A solve that was interrupted goes on after its last pass: whose folder it is, and what tells problems apart."""

import numpy as np
import pytest
import xarray as xr
from damage import digest_of
from interruptions import FRAMES, OPTIONS, KilledError, assert_same_bits, counted, interrupted, names, undisturbed
from numpy.testing import assert_allclose, assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine.blocks import check_moments, table
from manifold_observer.pipeline.engine.checkpoint import Checkpoint, fingerprint
from manifold_observer.pipeline.engine.config import EmbedConfig
from manifold_observer.pipeline.graph.progress import silent
from manifold_observer.tasks.engine import lanczos
from strategies import embed_options

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture(autouse=True)
def few_landmarks(monkeypatch):
    """So few that a solve which starts from them takes some passes."""
    monkeypatch.setattr("manifold_observer.pipeline.engine.landmarks._WARM_LANDMARKS", 20)


@pytest.mark.parametrize("at_pass", [2, 3])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_embed__goes_on_from_the_last_pass_with_the_same_result(tmp_path, monkeypatch, at_pass, alpha):
    monkeypatch.setitem(OPTIONS, "alpha", alpha)
    whole = mo.embed(FRAMES, **embed_options(**OPTIONS), preset="paper")
    interrupted(monkeypatch, tmp_path / "kept", at_pass + (alpha != 0))
    kept = len(list((tmp_path / "kept").glob("pass-*.npz")))
    assert kept == at_pass - 1
    products = counted(monkeypatch)
    resumed = mo.embed(FRAMES, **embed_options(checkpoint=tmp_path / "kept", **OPTIONS), preset="paper")
    assert resumed.attrs["passes"] == whole.attrs["passes"]
    assert len(products) == whole.attrs["passes"] - kept - (alpha != 0)
    assert_array_equal(resumed["coordinate"], whole["coordinate"])
    assert_array_equal(resumed["eigenvalue"], whole["eigenvalue"])


def test_embed__another_problem_starts_anew(tmp_path, monkeypatch):
    interrupted(monkeypatch, tmp_path / "kept", 3)
    other = FRAMES + 0.1 * FRAMES.isel(frame=slice(None, None, -1)).values
    fresh = mo.embed(other, **embed_options(**OPTIONS), preset="paper")
    assert_array_equal(
        mo.embed(other, **embed_options(checkpoint=tmp_path / "kept", **OPTIONS), preset="paper")["coordinate"],
        fresh["coordinate"],
    )


def test_checkpoint__leftovers_of_a_killed_write_are_not_read(tmp_path):
    folder = tmp_path / "kept"
    kept = Checkpoint(folder, {"n": 1})
    matrix = np.diag(np.arange(20.0))
    start = lanczos.random_block(20, 3, seed=0)
    state = lanczos.begin(start, matrix @ start)
    kept.save(state, np.ones(20), None)
    (folder / f"pass-002.npz.{'0' * 32}.partial").write_bytes(b"half")
    (folder / "thesis.partial").write_bytes(b"years of work")
    begun = Checkpoint(folder, {"n": 1}).load()
    assert begun.krylov.passes == 1
    assert_allclose(begun.krylov.basis, state.basis, atol=1e-14)
    assert begun.density_degrees is None
    assert names(folder) == ["manifold-observer-passes", "pass-001.npz", "thesis.partial"]


def test_checkpoint__without_a_folder_nothing_is_kept(tmp_path):
    kept = Checkpoint(None, {})
    kept.choose({"form": "quadratic"})
    assert kept.load() is None
    assert kept.choice == {}
    assert list(tmp_path.iterdir()) == []


def test_fingerprint__sees_values_and_names():
    one = fingerprint({"a": np.arange(3.0), "b": "x"})
    assert one == fingerprint({"b": "x", "a": np.arange(3.0)})
    assert len({one, fingerprint({"a": np.arange(3.0) + 1e-12, "b": "x"}), fingerprint({"a": np.arange(3.0)})}) == 3


def thesis(folder):
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")


FOREIGN = {
    "a folder": thesis,
    "a folder with names like ours": lambda place: (
        thesis(place),
        (place / "problem.json").write_text("{}"),
        (place / "pass-001.npz").write_bytes(b"years of work"),
    ),
    "a file": lambda place: place.write_text("years of work"),
    "a link": lambda place: (thesis(place.with_name("elsewhere")), place.symlink_to("elsewhere")),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_embed__a_folder_that_holds_something_else_is_refused_and_left(tmp_path, make):
    make(tmp_path / "kept")
    before = digest_of(tmp_path)
    with pytest.raises(ValueError, match=r"embed: checkpoint must be .*; got .*kept"):
        mo.embed(FRAMES, **embed_options(checkpoint=tmp_path / "kept", **OPTIONS), preset="paper")
    assert digest_of(tmp_path) == before


def test_embed__another_problem_replaces_our_files_and_leaves_others(tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    interrupted(monkeypatch, kept, 4)
    (kept / "thesis.txt").write_text("years of work")
    (kept / "pass-book.npz").mkdir()
    interrupted(monkeypatch, kept, 2, seed=1)
    assert names(kept) == ["manifold-observer-passes", "pass-001.npz", "pass-book.npz", "thesis.txt"]
    assert (kept / "thesis.txt").read_text() == "years of work"
    passes = counted(monkeypatch)
    assert_same_bits(
        mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS | {"seed": 1}), preset="paper"), undisturbed(seed=1)
    )
    assert len(passes) == undisturbed(seed=1).attrs["passes"] - 1


def test_embed__the_mark_may_be_damaged(tmp_path, monkeypatch):
    interrupted(monkeypatch, tmp_path / "kept", 3)
    (tmp_path / "kept" / "manifold-observer-passes").write_bytes(b"garbage\x00")
    passes = counted(monkeypatch)
    assert_same_bits(
        mo.embed(FRAMES, **embed_options(checkpoint=tmp_path / "kept", **OPTIONS), preset="paper"), undisturbed()
    )
    assert len(passes) == undisturbed().attrs["passes"] - 2


def counts():
    """Frames whose order no moment sees: their mean is 4, so that all sums are whole numbers."""
    half = np.random.default_rng(1).integers(0, 9, (150, 4))
    return xr.DataArray(np.concatenate([half, 8 - half]).astype(np.int16), dims=("frame", "feature"))


@pytest.mark.parametrize("order", [slice(None, None, -1), np.random.default_rng(2).permutation(300)])
def test_embed__frames_in_another_order_are_another_problem(tmp_path, monkeypatch, order):
    kept = tmp_path / "kept"
    interrupted(monkeypatch, kept, 3, frames=counts())
    other = counts().isel(frame=order)
    passes = counted(monkeypatch)
    found = mo.embed(other, **embed_options(checkpoint=kept, **OPTIONS), preset="paper")
    assert len(passes) == found.attrs["passes"]
    assert_same_bits(found, mo.embed(other, **embed_options(**OPTIONS), preset="paper"))


def test_embed__covariances_in_another_order_are_another_problem(tmp_path, monkeypatch):
    factors = np.random.default_rng(3).integers(-3, 4, (300, 5, 5)).astype(float)
    values = factors @ factors.transpose(0, 2, 1) + np.eye(5)
    given = xr.DataArray(values, dims=("frame", "feature", "feature_1"))
    kept = tmp_path / "kept"
    interrupted(monkeypatch, kept, 3, covariance=given)
    other = given.isel(frame=slice(None, None, -1))
    passes = counted(monkeypatch)
    found = mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS | {"covariance": other}), preset="paper")
    assert len(passes) == found.attrs["passes"]
    passes.clear()
    again = mo.embed(
        FRAMES, **embed_options(checkpoint=kept, **OPTIONS | {"covariance": other.chunk(frame=70)}), preset="paper"
    )
    assert passes == []
    assert_array_equal(again["coordinate"], found["coordinate"])


def test_embed__more_passes_resume_after_those_that_were_not_enough(tmp_path, monkeypatch):
    passes = counted(monkeypatch)
    with pytest.raises(RuntimeError, match="max_passes=2"):
        mo.embed(FRAMES, **embed_options(checkpoint=tmp_path, **OPTIONS | {"max_passes": 2}), preset="paper")
    found = mo.embed(FRAMES, **embed_options(checkpoint=tmp_path, **OPTIONS | {"max_passes": 60}), preset="paper")
    assert_same_bits(found, undisturbed())
    assert len(passes) == found.attrs["passes"]


def problems(frames, **options):
    """The fingerprint of a problem, without solving it."""
    seen = []

    def stop(self, folder, problem):
        seen.append(fingerprint(problem))
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "__init__", stop)
        with pytest.raises(KilledError):
            mo.embed(frames, **embed_options(checkpoint="unused", **OPTIONS | options), preset="paper")
    return seen[0]


def test_problem__is_told_by_everything_that_changes_the_numbers(monkeypatch):
    base = problems(FRAMES)
    one = FRAMES.copy(deep=True)
    one[7, 2] = np.nextafter(one[7, 2].item(), 10)
    cut = FRAMES.assign_coords(segment=("frame", np.repeat([0, 1], [150, 150])))
    others = [problems(one), problems(cut), problems(FRAMES[:, ::-1]), problems(FRAMES[1:])]
    for name, value in {"seed": 3, "alpha": 0.5, "n_modes": 4, "rank": 2, "epsilon_factor": 2.0, "tile": 65}.items():
        others.append(problems(FRAMES, **{name: value}))
    for package in ("manifold-observer", "numpy", "scipy"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("manifold_observer.pipeline.embedding.embed.version", lambda name, p=package: f"{name == p}")
            others.append(problems(FRAMES))
    assert len({base, *others}) == 1 + len(others)
    assert problems(FRAMES, max_passes=7) == base


@pytest.mark.parametrize("bytes_a_task", [2**22, 8 * 5 * 70])
def test_problem__does_not_see_chunks_and_storage(monkeypatch, bytes_a_task):
    monkeypatch.setattr("manifold_observer.pipeline.graph.slabs.ROWS_BYTES", bytes_a_task)
    single = FRAMES.astype(np.float32)
    base = problems(single)
    for frames in (single.chunk(frame=70), single.chunk(frame=41, feature=2), single.astype(np.float64), single.T):
        assert problems(frames) == base


def test_check_moments__takes_a_digest_where_one_is_asked_for():
    rows = table(FRAMES, None, EmbedConfig(window=9))
    assert check_moments(rows, silent)[1].digest is None
    assert len(check_moments(rows, silent, digested=True)[1].digest) == 32
