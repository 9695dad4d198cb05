"""Passes on disk."""

import errno
import functools
import os
import re
import shutil

import damage
import numpy as np
import pytest
import xarray as xr
from damage import digest_of
from numpy.testing import assert_allclose, assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import exact as ways
from manifold_observer.pipeline.engine import passfile
from manifold_observer.pipeline.engine.blocks import check_moments, table
from manifold_observer.pipeline.engine.checkpoint import Checkpoint, fingerprint
from manifold_observer.pipeline.engine.config import EmbedConfig
from manifold_observer.pipeline.graph.compute import silent
from manifold_observer.tasks import atomic
from manifold_observer.tasks.engine import lanczos
from strategies import embed_options, smooth_motion

FRAMES = xr.DataArray(smooth_motion(np.random.default_rng(0), 300, 5), dims=("frame", "feature"))
OPTIONS = {
    "n_modes": 3,
    "window": 9,
    "home": "recomputed",
    "form": "quadratic",
    "tile": 150,
    "residual_tolerance": 1e-6,
}

PRODUCT = ways.recomputed_product
pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture(autouse=True)
def few_landmarks(monkeypatch):
    """So few that a solve which starts from them takes some passes."""
    monkeypatch.setattr("manifold_observer.pipeline.engine.landmarks._WARM_LANDMARKS", 20)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class KilledError(Exception):
    """Stands for a run that ends in mid-pass."""


def counted(monkeypatch):
    """A list that grows with every pass over the kernel."""
    made, passes = ways.recomputed_product, []

    def counting(*arguments):
        matmat = made(*arguments)
        return lambda x: passes.append(1) or matmat(x)

    monkeypatch.setattr(ways, "recomputed_product", counting)
    return passes


def interrupted(monkeypatch, folder, at_pass, frames=FRAMES, **options):
    """Embed until a pass, then stop as if killed in the middle of it."""
    made = ways.recomputed_product

    def failing(*arguments):
        matmat, calls = made(*arguments), []

        def product(x):
            calls.append(1)
            if len(calls) == at_pass:
                raise KilledError
            return matmat(x)

        return product

    with monkeypatch.context() as patched:
        patched.setattr(ways, "recomputed_product", failing)
        with pytest.raises(KilledError):
            mo.embed(frames, **embed_options(checkpoint=folder, **OPTIONS | options), preset="paper")


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


@functools.cache
def undisturbed(**options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "recomputed_product", PRODUCT)
        return mo.embed(FRAMES, **embed_options(**OPTIONS | options), preset="paper")


def assert_same_bits(one, other):
    for name in ("eigenvalue", "coordinate", "residual", "degree", "spectrum"):
        assert_array_equal(one[name], other[name], err_msg=name)
    assert one.attrs["passes"] == other.attrs["passes"]


# ---------------------------------------------------------------------------------------- whose folder it is


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


# -------------------------------------------------------------------------------------------- damaged passes


@pytest.fixture(scope="module")
def three_passes(tmp_path_factory):
    """What a run leaves that is stopped in its fourth pass."""
    folder = tmp_path_factory.mktemp("stopped") / "kept"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manifold_observer.pipeline.engine.landmarks._WARM_LANDMARKS", 20)
        interrupted(patch, folder, 4)
    return folder


@pytest.fixture
def kept(tmp_path, three_passes):
    """A copy of it."""
    return shutil.copytree(three_passes, tmp_path / "kept")


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("harm", damage.WAYS.values(), ids=damage.WAYS)
def test_embed__a_damaged_pass_is_made_again_with_the_same_result(kept, monkeypatch, harm, number):
    path = kept / f"pass-{number:03d}.npz"
    harm(path)
    passes = counted(monkeypatch)
    folder = path.is_dir()  # it is not ours, and stays
    with pytest.warns(UserWarning) as told:  # noqa: PT030 - matched below
        resumed = mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper")
    assert re.search(rf"embed: .*{path.name} cannot be used: it is .*; the solve resumes", str(told[0].message))
    assert len(told) == 1 + folder  # it cannot be kept either
    assert_same_bits(resumed, undisturbed())
    assert len(passes) == undisturbed().attrs["passes"] - (number - 1)
    assert path.is_dir() == folder
    if not folder:  # repaired on the way
        passes.clear()
        assert_same_bits(mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper"), undisturbed())
        assert passes == []


@pytest.mark.parametrize("number", [1, 2])
def test_embed__passes_after_a_hole_are_absent(kept, monkeypatch, number):
    (kept / f"pass-{number:03d}.npz").unlink()
    passes = counted(monkeypatch)
    with pytest.warns(UserWarning, match=rf"pass-{number:03d}.npz is missing, so that later passes cannot be used"):
        resumed = mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper")
    assert_same_bits(resumed, undisturbed())
    assert len(passes) == undisturbed().attrs["passes"] - (number - 1)


def tampered(**changes):
    """Change arrays of a pass and sign it again, as a faulty writer would."""

    def change(path):
        found = passfile.read(path)
        arrays = {name: changes.get(name, lambda values: values)(values) for name, values in found.arrays.items()}
        with path.open("wb") as file:
            passfile.write(file, found._replace(arrays=arrays))

    return change


def with_nan(values):
    values = values.copy()
    values[0, 0] = np.nan
    return values


TAMPERED = {
    "NaN": tampered(images=with_nan),
    "single precision": tampered(block=lambda values: values.astype(np.float32)),
    "whole numbers": tampered(images=lambda values: values.astype(np.int64)),
    "fewer frames": tampered(images=lambda values: values[1:]),
    "fewer vectors": tampered(block=lambda values: values[:, 1:]),
    "no vectors": tampered(block=lambda values: values[:, :0], images=lambda values: values[:, :0]),
    "one axis": tampered(block=np.ravel, images=np.ravel),
    "short row sums": tampered(degrees=lambda values: values[1:]),
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_embed__wrong_arrays_are_not_resumed_from(kept, change):
    change(kept / "pass-001.npz")
    with pytest.warns(UserWarning, match=r"pass-001.npz cannot be used: it"):
        resumed = mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper")
    assert_same_bits(resumed, undisturbed())


def test_embed__a_pass_that_follows_another_is_not_used(kept, monkeypatch):
    """Its numbers are whole; only the digest of the pass before tells that it belongs elsewhere."""
    tampered(images=lambda values: 2 * values)(kept / "pass-001.npz")
    load, seen = Checkpoint.load, []

    def stop(self):
        seen.append(load(self))
        raise KilledError

    monkeypatch.setattr(Checkpoint, "load", stop)
    with pytest.raises(KilledError):
        mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper")
    assert seen[0].krylov.passes == 1


def test_read__any_byte_may_be_flipped(tmp_path):
    path, rng = tmp_path / "pass", np.random.default_rng(0)
    whole = passfile.Pass({"block": rng.normal(size=(9, 2)), "images": rng.normal(size=(9, 2))}, {"number": 2})
    with path.open("wb") as file:
        passfile.write(file, whole)
    content = path.read_bytes()
    damaged, places = 0, range(0, len(content), 7)
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x81]) + content[place + 1 :])
        try:
            found = passfile.read(path)
        except passfile.DamagedError:
            damaged += 1
        else:  # a date in the archive, say
            assert found.digest == whole.digest
            assert_array_equal(found.arrays["images"], whole.arrays["images"])
    assert damaged > len(places) / 2


# ---------------------------------------------------------------------------------------------- a failing disk


def failing(monkeypatch, step, number, passes):
    """Let a step of writing some passes fail."""
    made = getattr(atomic.os, step)
    written = []

    def fail(*arguments):
        if step == "replace" and "pass-" in str(arguments[1]):
            written.append(int(str(arguments[1])[-7:-4]))
            if written[-1] not in passes:
                return made(*arguments)
            raise OSError(number, os.strerror(number))
        return made(*arguments)

    monkeypatch.setattr(atomic.os, step, fail)
    return written


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("first", [1, 3])
def test_embed__a_pass_that_cannot_be_kept_costs_one_warning(tmp_path, monkeypatch, number, first):
    kept = tmp_path / "kept"
    failing(monkeypatch, "replace", number, range(first, 100))
    would = "resume after pass 2" if first == 3 else "start at the beginning"
    with pytest.warns(UserWarning, match="could not be kept") as told:
        found = mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper")
    assert [str(one.message) for one in told] == [
        f"embed: pass {first} could not be kept: {os.strerror(number)}; a stopped run would {would}. Passes are kept "
        f"in {kept}."
    ]
    assert_same_bits(found, undisturbed())
    assert names(kept) == ["manifold-observer-passes", "pass-001.npz", "pass-002.npz"][:first]


def test_embed__a_pass_that_could_not_be_kept_is_kept_with_the_next(tmp_path, monkeypatch):
    kept, fails = tmp_path / "kept", iter([True])
    replace = os.replace

    def fail_once(partial, place):
        if "pass-002" in str(place) and next(fails, False):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(partial, place)

    monkeypatch.setattr(atomic.os, "replace", fail_once)
    with pytest.warns(UserWarning, match=r"pass 2 could not be kept: No space left .* would resume after pass 1"):
        found = mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper")
    assert len(names(kept)) == 1 + found.attrs["passes"]
    passes = counted(monkeypatch)
    assert_same_bits(mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper"), undisturbed())
    assert passes == []


def test_embed__a_folder_that_vanishes_costs_one_warning(tmp_path, monkeypatch):
    kept = tmp_path / "kept"

    def vanish(stage, done, _total):
        if (stage, done) == ("eigensolve", 2):
            for path in kept.iterdir():
                path.unlink()
            kept.rmdir()

    with pytest.warns(UserWarning, match=r"pass 3 could not be kept: No such file .* start at the beginning") as told:
        found = mo.embed(FRAMES, **embed_options(checkpoint=kept, progress=vanish, **OPTIONS), preset="paper")
    assert len(told) == 1
    assert_same_bits(found, undisturbed())
    assert not kept.exists()


def test_embed__a_folder_that_cannot_be_made_costs_one_warning(tmp_path):
    (tmp_path / "file").write_text("years of work")
    with pytest.warns(UserWarning, match=r"pass 1 could not be kept: Not a directory") as told:
        found = mo.embed(FRAMES, **embed_options(checkpoint=tmp_path / "file/kept", **OPTIONS), preset="paper")
    assert len(told) == 1
    assert_same_bits(found, undisturbed())


def test_embed__files_that_the_system_cuts_short_leave_nothing(tmp_path):
    with damage.files_of_at_most(20_000), pytest.warns(UserWarning, match=r"pass 1 could not be kept: File too large"):
        found = mo.embed(FRAMES, **embed_options(checkpoint=tmp_path / "kept", **OPTIONS), preset="paper")
    assert_same_bits(found, undisturbed())
    assert names(tmp_path / "kept") == ["manifold-observer-passes"]


# ---------------------------------------------------------------------------------- what tells problems apart


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
