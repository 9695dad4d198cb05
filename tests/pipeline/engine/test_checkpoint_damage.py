"""Passes that are damaged are made again, and a disk that fails costs one warning."""

import errno
import os
import re
import shutil

import damage
import numpy as np
import pytest
from interruptions import (
    FRAMES,
    OPTIONS,
    KilledError,
    assert_same_bits,
    counted,
    failing,
    interrupted,
    names,
    undisturbed,
)
from numpy.testing import assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import passfile
from manifold_observer.pipeline.engine.checkpoint import Checkpoint
from manifold_observer.tasks import atomic
from strategies import embed_options

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture(autouse=True)
def few_landmarks(monkeypatch):
    """So few that a solve which starts from them takes some passes."""
    monkeypatch.setattr("manifold_observer.pipeline.engine.landmarks._WARM_LANDMARKS", 20)


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
