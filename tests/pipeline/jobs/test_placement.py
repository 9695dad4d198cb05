"""A result never costs the user a file: names that were once taken, what is at OUT, names and permissions."""

import errno
import itertools
import os

import numpy as np
import pytest
import xarray as xr
from places import IDENTITY, VALUES, a_file, digest, fill, killed, state, write

from manifold_observer.pipeline.jobs import placement, store, workfolder
from manifold_observer.pipeline.jobs import run as job
from manifold_observer.pipeline.jobs.placement import rename_new
from manifold_observer.pipeline.jobs.progress import Stages
from manifold_observer.pipeline.jobs.run import run
from manifold_observer.pipeline.jobs.store import alone, check_space, writing
from manifold_observer.pipeline.jobs.stream import continue_run
from manifold_observer.pipeline.jobs.workfolder import work_folders
from manifold_observer.pipeline.paper.demo import demonstrate
from strategies import share

pytestmark = pytest.mark.usefixtures("in_this_thread")


def recording(path, values=VALUES):
    np.save(path, values)
    return path


def zarr_recording(path):
    data = xr.DataArray(VALUES, dims=("time", "channel"), coords={"time": np.arange(60) / 10.0})
    data.to_dataset(name="recording").to_zarr(path, zarr_format=3, consolidated=False)
    return path


def notes(path):
    path.mkdir()
    (path / "thesis.tex").write_text("years of work")


def linked_notes(path):
    notes(path.with_name(f"{path.name}.target"))
    path.symlink_to(f"{path.name}.target")


def empty_folder(path):
    path.mkdir()


def link_to_nothing(path):
    path.symlink_to("nothing")


def link_to_file(path):
    a_file(path.with_name(f"{path.name}.target"))
    path.symlink_to(f"{path.name}.target")


ANYTHING = [notes, a_file, empty_folder, linked_notes, link_to_file, link_to_nothing]
AUXILIARY = [".old", ".partial", ".checkpoint"]


@pytest.mark.slow
@pytest.mark.parametrize("make", share(ANYTHING, 3))
def test_run__leaves_neighbours_alone(tmp_path, make):
    for suffix in AUXILIARY:
        make(tmp_path / f"week.zarr{suffix}")
    source, before = recording(tmp_path / "a.npy"), digest(tmp_path)
    for overwrite in (False, True):
        run([source], tmp_path / "week.zarr", IDENTITY, overwrite=overwrite)
        assert digest(tmp_path, without=["week.zarr"]) == before


@pytest.mark.slow
def test_run__reads_inputs_by_such_names(tmp_path):
    sources = [zarr_recording(tmp_path / f"week.zarr{suffix}") for suffix in AUXILIARY]
    before = digest(tmp_path)
    for overwrite in (False, True):
        run(sources, tmp_path / "week.zarr", IDENTITY, overwrite=overwrite)
        assert digest(tmp_path, without=["week.zarr"]) == before
    assert np.isfinite(state(tmp_path / "week.zarr")).all()


@pytest.mark.slow
def test_demo_and_continue__leave_neighbours_alone(tmp_path):
    for name, suffix in itertools.product(("demo.zarr", "more", "000000.zarr"), AUXILIARY):
        notes(tmp_path / f"{name}{suffix}")
    before = digest(tmp_path)
    demonstrate("circle", tmp_path / "demo.zarr", {"n_frames": 60}, Stages())
    assert digest(tmp_path, without=["demo.zarr"]) == before
    run([recording(tmp_path / "a.npy")], tmp_path / "a.zarr", IDENTITY)
    new = recording(tmp_path / "b.npy")
    before = digest(tmp_path)
    assert continue_run(tmp_path / "a.zarr", [new], tmp_path / "more").added == 60
    assert digest(tmp_path, without=["more"]) == before


@pytest.mark.parametrize("make", ANYTHING)
@pytest.mark.parametrize("overwrite", [False, True])
def test_run__refuses_what_is_at_out_before_it_computes(tmp_path, monkeypatch, make, overwrite):
    make(tmp_path / "out.zarr")
    source, before = recording(tmp_path / "a.npy"), digest(tmp_path)
    monkeypatch.setattr(job, "open_recording", None)
    for refuse in (job.check, run):
        with pytest.raises(ValueError, match=r"store: .*out\.zarr"):
            refuse([source], tmp_path / "out.zarr", IDENTITY, overwrite=overwrite)
    assert digest(tmp_path) == before


@pytest.mark.parametrize("make", ANYTHING)
@pytest.mark.parametrize("overwrite", [False, True])
def test_writing__what_appears_at_out_meanwhile_stays_and_the_result_is_kept(tmp_path, make, overwrite):
    out = tmp_path / "out.zarr"
    kept = pytest.raises(ValueError, match=r"not replaced.* The finished result is kept at .*/result\.$")
    with kept, writing(out, overwrite=overwrite) as folder:
        fill(folder)
        make(out)
        made = digest(tmp_path, without=[folder.parent.name])
    (hidden,) = work_folders(tmp_path, "out.zarr")
    assert digest(tmp_path, without=[hidden.name]) == made
    # Later runs leave it, until it has been moved.
    out.rename(tmp_path / "aside")
    write(out, values=2 * VALUES)
    np.testing.assert_array_equal(state(hidden / "result"), VALUES)
    (hidden / "result").rename(tmp_path / "mine.zarr")
    write(out, overwrite=True)
    np.testing.assert_array_equal(state(tmp_path / "mine.zarr"), VALUES)
    assert not hidden.exists()


@pytest.mark.parametrize("full", [False, True])
def test_writing__a_finished_result_that_cannot_be_renamed_is_kept(tmp_path, monkeypatch, full):
    def fail(*_args):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(store, "rename_new", fail)
        if full:  # not even room for the sign that it is to be kept
            patched.setattr(workfolder.WorkFolder, "_say", lambda *_: None)
        with pytest.raises(ValueError, match=r"cannot be written: Read-only file system\. The finished result is kept"):
            write(tmp_path / "out.zarr")
    (hidden,) = work_folders(tmp_path, "out.zarr")
    np.testing.assert_array_equal(state(hidden / "result"), VALUES)


@pytest.mark.parametrize("make", [a_file, empty_folder, notes, link_to_nothing, link_to_file])
@pytest.mark.parametrize("system", [True, False])
def test_rename_new__replaces_nothing(tmp_path, monkeypatch, make, system):
    if not system:
        monkeypatch.setattr(placement, "_renamed_by_system", lambda *_: False)
    notes(tmp_path / "result")
    make(tmp_path / "out")
    before = digest(tmp_path)
    with pytest.raises(FileExistsError):
        rename_new(tmp_path / "result", tmp_path / "out")
    assert digest(tmp_path) == before
    rename_new(tmp_path / "result", tmp_path / "other")
    assert (tmp_path / "other" / "thesis.tex").exists()


def test_rename_new__says_what_the_system_says(tmp_path):
    with pytest.raises(FileNotFoundError):
        rename_new(tmp_path / "nothing", tmp_path / "other")


@pytest.mark.parametrize("name", ["-x.zarr", ".hidden.zarr", "x" * 250 + ".zarr", "ä" * 120 + ".zarr", "a\nb"])
def test_writing__any_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    killed(tmp_path / name)
    write(tmp_path / name)
    assert os.listdir(tmp_path) == [name]


def test_writing__relative_places_and_trailing_slashes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(["a.zarr", "./b.zarr/", "../c.zarr"]):
        write(workfolder.Path(name), values=number + VALUES)
        np.testing.assert_array_equal(state(workfolder.Path(name)), number + VALUES)
    (tmp_path.parent / "c.zarr").rename(tmp_path / "c.zarr")
    assert sorted(os.listdir(tmp_path)) == ["a.zarr", "b.zarr", "c.zarr"]


@pytest.mark.parametrize("out", [".", "..", "/"])
def test_writing__a_folder_that_stands_for_itself(tmp_path, monkeypatch, out):
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    for overwrite, message in ((False, "already exists"), (True, "is not a result")):
        with pytest.raises(ValueError, match=message):
            write(workfolder.Path(out), overwrite=overwrite)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o027])
def test_writing__permissions_are_the_usual_ones(tmp_path, umask):
    before = os.umask(umask)
    try:
        write(tmp_path / "out.zarr")
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").touch()
    finally:
        os.umask(before)
    of_folder, of_file = ((tmp_path / name).stat().st_mode for name in ("folder", "file"))
    for path in [tmp_path / "out.zarr", *(tmp_path / "out.zarr").rglob("*")]:
        assert path.stat().st_mode == (of_folder if path.is_dir() else of_file), path


def test_writing__a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(workfolder.Path, "mkdir", refuse)
        with pytest.raises(OSError, match=r"store: the folder of .*out\.zarr must be writable; got: Read-only file"):
            write(tmp_path / "out.zarr")
    assert os.listdir(tmp_path) == []


def test_check_space__refuses_what_cannot_fit(tmp_path):
    check_space(tmp_path, 10)
    with pytest.raises(ValueError, match=r"needs 1048576\.00 GiB on disk, but only .* GiB are free"):
        check_space(tmp_path, 2**50)


def test_alone__an_empty_folder_of_the_user_stays(tmp_path):
    (tmp_path / "mine").mkdir()
    for name in ("mine", "new"):
        with alone(tmp_path / name):
            assert (tmp_path / name).is_dir()
    assert os.listdir(tmp_path) == ["mine"]


def test_writing__everything_is_on_disk_before_it_appears(tmp_path, monkeypatch):
    synced, fsync = set(), os.fsync

    def record(handle):
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    def rename(source, target):
        inside = {path.stat().st_ino for path in itertools.chain([source], source.rglob("*"))}
        assert inside <= synced
        synced.clear()
        rename_new(source, target)

    monkeypatch.setattr(os, "fsync", record)
    monkeypatch.setattr(store, "rename_new", rename)
    write(tmp_path / "out.zarr")
    assert tmp_path.stat().st_ino in synced
