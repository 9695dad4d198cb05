"""Nothing of the user's beside an output is ever changed: the whole folder is digested before and after."""

import contextlib
import errno
import hashlib
import itertools
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import xarray as xr
import zarr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs import mark, placement, store, workfolder
from manifold_observer.pipeline.jobs import run as job
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.load import load
from manifold_observer.pipeline.jobs.placement import rename_new
from manifold_observer.pipeline.jobs.progress import Stages
from manifold_observer.pipeline.jobs.run import run
from manifold_observer.pipeline.jobs.store import alone, check_space, passes_beside, start, write_group, writing
from manifold_observer.pipeline.jobs.stream import continue_run
from manifold_observer.pipeline.jobs.workfolder import holding, work_folders
from manifold_observer.pipeline.paper.demo import demonstrate
from strategies import share

pytestmark = pytest.mark.usefixtures("in_this_thread")

IDENTITY = RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=1))
VALUES = np.random.default_rng(0).normal(size=(60, 3)).cumsum(axis=0)


def digest(folder, *, without=()):
    """What every path below a folder is: kind, permissions, and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] in without:
            continue
        how = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        found[name] = stat.filemode(how.st_mode), hashlib.sha256(repr(content).encode()).hexdigest()
    return found


def recording(path, values=VALUES):
    np.save(path, values)
    return path


def zarr_recording(path):
    data = xr.DataArray(VALUES, dims=("time", "channel"), coords={"time": np.arange(60) / 10.0})
    data.to_dataset(name="recording").to_zarr(path, zarr_format=3, consolidated=False)
    return path


def write(out, *, values=VALUES, overwrite=False):
    with writing(out, overwrite=overwrite) as folder:
        fill(folder, values)


def fill(folder, values=VALUES):
    start(folder, {})
    write_group(folder, "state", xr.Dataset({"state": (("frame", "mode"), values)}))


def state(out):
    return load(out)["state/state"].values


def notes(path):
    path.mkdir()
    (path / "thesis.tex").write_text("years of work")


def linked_notes(path):
    notes(path.with_name(f"{path.name}.target"))
    path.symlink_to(f"{path.name}.target")


def a_file(path):
    path.write_text("years of work")


def empty_folder(path):
    path.mkdir()


def link_to_nothing(path):
    path.symlink_to("nothing")


def link_to_file(path):
    a_file(path.with_name(f"{path.name}.target"))
    path.symlink_to(f"{path.name}.target")


ANYTHING = [notes, a_file, empty_folder, linked_notes, link_to_file, link_to_nothing]
AUXILIARY = [".old", ".partial", ".checkpoint"]


# ------------------------------------------------------------------------------ names that were once taken


@pytest.mark.parametrize("make", share(ANYTHING, 3))
def test_run__leaves_neighbours_alone(tmp_path, make):
    for suffix in AUXILIARY:
        make(tmp_path / f"week.zarr{suffix}")
    source, before = recording(tmp_path / "a.npy"), digest(tmp_path)
    for overwrite in (False, True):
        run([source], tmp_path / "week.zarr", IDENTITY, overwrite=overwrite)
        assert digest(tmp_path, without=["week.zarr"]) == before


def test_run__reads_inputs_by_such_names(tmp_path):
    sources = [zarr_recording(tmp_path / f"week.zarr{suffix}") for suffix in AUXILIARY]
    before = digest(tmp_path)
    for overwrite in (False, True):
        run(sources, tmp_path / "week.zarr", IDENTITY, overwrite=overwrite)
        assert digest(tmp_path, without=["week.zarr"]) == before
    assert np.isfinite(state(tmp_path / "week.zarr")).all()


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


# ------------------------------------------------------------------------------ what is at OUT


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


# ------------------------------------------------------------------------------ overwrite


def add_notes(out):
    (out / "notes.txt").write_text("what I saw")


def add_notes_deep(out):
    (out / "state" / "state" / "notes.txt").write_text("what I saw")


def add_folder(out):
    (out / "figures").mkdir()


def add_link(out):
    (out / "figures").symlink_to(out.parent)


def add_array(out):
    zarr.save_array(str(out / "state" / "mine"), VALUES)


def add_attribute(out):
    zarr.open_group(out, mode="r+").attrs["note"] = "what I saw"


def edit_group(out):
    zarr.open_group(out / "state", mode="r+").attrs["note"] = "what I saw"


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.parametrize(
    ("add", "name"),
    [
        (add_notes, "notes.txt"),
        (add_notes_deep, "state/state/notes.txt"),
        (add_folder, "figures"),
        (add_link, "figures"),
        (add_array, "state/mine"),
        (add_attribute, "zarr.json"),
        (edit_group, "state/zarr.json"),
    ],
)
def test_overwrite__refuses_a_result_with_anything_else_in_it(tmp_path, add, name):
    out = tmp_path / "out.zarr"
    write(out)
    add(out)
    before = digest(tmp_path)
    with pytest.raises(ValueError, match=rf"out\.zarr holds {name}, which .* and is not replaced"):
        write(out, overwrite=True)
    assert digest(tmp_path) == before


def test_overwrite__refuses_a_store_that_inherited_the_attribute(tmp_path):
    out = tmp_path / "out.zarr"
    write(tmp_path / "first.zarr")
    with pytest.warns(Warning, match="Consolidated metadata"):
        xr.open_datatree(tmp_path / "first.zarr").to_zarr(out, zarr_format=3)
    assert "manifold_observer" in zarr.open_group(out).attrs
    before = digest(tmp_path)
    with pytest.raises(ValueError, match=r"without a list of its files, and is not replaced"):
        write(out, overwrite=True)
    assert digest(tmp_path) == before


def test_overwrite__replaces_a_damaged_result_of_our_own(tmp_path):
    out = tmp_path / "out.zarr"
    write(out)
    (out / "state/state/c/0/0").unlink()
    write(out, values=2 * VALUES, overwrite=True)
    np.testing.assert_array_equal(state(out), 2 * VALUES)
    assert os.listdir(tmp_path) == ["out.zarr"]


def test_overwrite__notes_that_come_in_the_last_moment_stay(tmp_path, monkeypatch):
    out, replaceable = tmp_path / "out.zarr", store.check_replaceable
    write(out)

    def and_then(place, named):
        replaceable(place, named)
        add_notes(place)

    monkeypatch.setattr(store, "check_replaceable", and_then)
    with pytest.raises(ValueError, match=r"holds notes\.txt.* The finished result is kept at"):
        write(out, values=2 * VALUES, overwrite=True)
    assert (out / "notes.txt").read_text() == "what I saw"
    np.testing.assert_array_equal(state(out), VALUES)


KILLED_BETWEEN = """
    import os, signal, sys
    from pathlib import Path
    import numpy as np, xarray as xr
    from manifold_observer.pipeline.jobs import store
    renames = []
    def rename_new(source, target, rename=store.rename_new):
        if len(renames) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        renames.append(target)
        rename(source, target)
    def sync(path):
        if len(renames) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
    store.rename_new, store.sync = rename_new, sync
    with store.writing(Path(sys.argv[1]), overwrite=True) as folder:
        store.start(folder, {})
        store.write_group(folder, "state", xr.Dataset({"state": (("frame", "mode"), np.zeros((5, 1)))}))
"""


@pytest.mark.parametrize("renames", share([0, 1, 2], 2))
def test_overwrite__a_kill_between_the_renames_is_repaired(tmp_path, renames):
    out = tmp_path / "out.zarr"
    write(out)
    before = digest(out)
    command = [sys.executable, "-c", textwrap.dedent(KILLED_BETWEEN), out, str(renames)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert out.exists() == (renames != 1)
    with pytest.raises(ValueError, match="already exists"):
        write(out, values=3 * VALUES)
    if renames < 2:
        assert digest(out) == before
    else:
        assert state(out).shape == (5, 1)
        assert os.listdir(tmp_path) == ["out.zarr"]  # although that was refused
    write(out, values=2 * VALUES, overwrite=True)
    np.testing.assert_array_equal(state(out), 2 * VALUES)
    assert os.listdir(tmp_path) == ["out.zarr"]


def test_overwrite__what_appears_after_such_a_kill_stays_and_so_do_both_results(tmp_path):
    out = tmp_path / "out.zarr"
    write(out)
    command = [sys.executable, "-c", textwrap.dedent(KILLED_BETWEEN), out, "1"]
    subprocess.run(command, capture_output=True, timeout=120, check=False)
    a_file(out)
    before = digest(tmp_path)
    with pytest.raises(ValueError, match="is not a result of manifold-observer and is not replaced"):
        write(out, overwrite=True)
    assert digest(tmp_path) == before
    out.rename(tmp_path / "aside")
    with pytest.raises(ValueError, match="already exists"):
        write(out, values=2 * VALUES)  # the earlier one is back in its place
    np.testing.assert_array_equal(state(out), VALUES)


# ------------------------------------------------------------------------------ work folders


def killed(out):
    """The work folder of a run that was killed while it wrote, with a pass: all that is gone is the lock."""
    work = workfolder._begin(out.parent, out.name)
    (work.folder / "running").touch()
    work.result.mkdir()
    start(work.result, {})
    work.passes.mkdir()
    (work.passes / "pass-001.npz").write_bytes(b"a pass")
    os.close(work.handle)
    return work.folder


def test_work_folder__passes_go_to_the_next_run(tmp_path):
    out = tmp_path / "out.zarr"
    first = killed(out)
    assert (first / "result").exists()
    with writing(out) as folder:
        start(folder, {})
        assert (passes_beside(folder) / "pass-001.npz").read_bytes() == b"a pass"
        assert not first.exists()
    assert os.listdir(tmp_path) == ["out.zarr"]


def test_work_folder__of_several_the_newest_goes_on_and_all_are_removed(tmp_path):
    out, hidden = tmp_path / "out.zarr", {}
    for age in (30, 10, 20):
        made = killed(out)
        (made / "passes" / "pass-001.npz").write_text(str(age))
        hidden[age] = made.rename(tmp_path / f"aside-{age}"), made
    for age, (aside, made) in hidden.items():
        aside.rename(made)
        os.utime(made, (1e9 - age, 1e9 - age))
    with writing(out) as folder:
        start(folder, {})
        assert (passes_beside(folder) / "pass-001.npz").read_text() == "10"
    assert os.listdir(tmp_path) == ["out.zarr"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_work_folder__a_failed_run_keeps_passes_and_nothing_else(tmp_path, error):
    out = tmp_path / "out.zarr"
    with pytest.raises(error), writing(out) as folder:  # noqa: PT012
        start(folder, {})
        passes_beside(folder).mkdir()
        (passes_beside(folder) / "pass-001.npz").write_bytes(b"a pass")
        raise error
    (hidden,) = work_folders(tmp_path, "out.zarr")
    assert os.listdir(tmp_path) == [hidden.name]
    assert not (hidden / "result").exists()
    assert (hidden / "passes" / "pass-001.npz").exists()


def another_mark(hidden):
    (hidden / "mark.json").write_text('{"token": "0123456789abcdef", "name": "out.zarr"}')


def no_mark(hidden):
    (hidden / "mark.json").unlink()


def broken_mark(hidden):
    (hidden / "mark.json").write_text('["out.zarr"')


def another_name(hidden):
    hidden.rename(hidden.with_name(hidden.name.replace("out", "tea")))


def a_link(hidden):
    hidden.rename(hidden.with_name("elsewhere")).with_name(hidden.name).symlink_to("elsewhere")


@pytest.mark.parametrize("spoil", [another_mark, no_mark, broken_mark, another_name, a_link])
def test_work_folder__one_whose_mark_does_not_agree_is_left_alone(tmp_path, spoil):
    out = tmp_path / "out.zarr"
    spoil(killed(out))
    before = digest(tmp_path)
    write(out)
    assert digest(tmp_path, without=["out.zarr"]) == before


def test_work_folder__what_else_lies_in_one_is_left_alone(tmp_path):
    out = tmp_path / "out.zarr"
    hidden = killed(out)
    add_notes(hidden)
    shutil.rmtree(hidden / "passes")
    for name in ("earlier", "passes"):
        (hidden / name).symlink_to(tmp_path)
    write(out)
    assert sorted(path.name for path in hidden.iterdir()) == ["earlier", "mark.json", "notes.txt", "passes"]
    assert (hidden / "notes.txt").read_text() == "what I saw"


@pytest.mark.parametrize("inside", ["", "result", "passes"])
def test_run__an_input_in_a_work_folder_is_refused(tmp_path, inside):
    out = tmp_path / "out.zarr"
    hidden = killed(out)
    (tmp_path / "link").symlink_to(hidden / inside)
    before = digest(tmp_path)
    for source in (hidden / inside, tmp_path / "link"):
        with pytest.raises(ValueError, match="must not lie in the work folder"):
            run([source], out, IDENTITY)
    assert digest(tmp_path) == before


@pytest.mark.parametrize("marked", [False, True])
def test_work_folder__one_that_was_killed_before_its_mark_was_written_is_swept(tmp_path, marked):
    hidden = tmp_path / mark.folder_name("out.zarr", "01234567")
    for path, left in ((hidden, []), (hidden.with_name(hidden.name.replace("0", "1")), [hidden.name])):
        path.mkdir()
        if marked:
            (path / "mark.json").touch()
        write(tmp_path / "out.zarr", overwrite=bool(left))
        assert path.exists() == bool(left)  # a name that nobody made is somebody's


RACER = """
    import sys
    from pathlib import Path
    from manifold_observer.pipeline.jobs import workfolder
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        with workfolder.holding(Path.cwd(), "out.zarr", "busy"):
            print("won", flush=True)
            sys.stdin.readline()
    except ValueError as error:
        print(error, flush=True)
"""


def test_work_folder__of_those_that_start_at_once_exactly_one_wins(tmp_path):
    """The winner stays until all others have given up."""
    command = [sys.executable, "-c", textwrap.dedent(RACER)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with contextlib.ExitStack() as stack:
        runs = [stack.enter_context(subprocess.Popen(command, cwd=tmp_path, **pipes)) for _ in range(5)]
        for one in runs:
            stack.callback(one.kill)
        assert [one.stdout.readline() for one in runs] == ["ready\n"] * 5
        for one in runs:
            one.stdin.write("go\n")
        said = [one.stdout.readline() for one in runs]
        assert sorted(said) == ["busy\n"] * 4 + ["won\n"]
        runs[said.index("won\n")].stdin.write("end\n")
        assert [one.wait(timeout=60) for one in runs] == [0] * 5
    assert os.listdir(tmp_path) == []


def test_holding__of_two_that_wait_for_each_other_the_first_by_name_stays(tmp_path):
    """One that has not settled yet gives way, whichever came first."""
    with holding(tmp_path, "out", "busy") as other:
        (other.folder / "running").unlink()  # not settled
        with pytest.raises(ValueError, match="busy"), holding(tmp_path, "out", "busy"):
            raise AssertionError


# ------------------------------------------------------------------------------ names and permissions


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
