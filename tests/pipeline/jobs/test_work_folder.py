"""What a run that was killed left behind: its passes go on, the rest is swept, and nothing of others is touched."""

import contextlib
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from places import IDENTITY, add_notes, digest, killed, write

from manifold_observer.pipeline.jobs import mark
from manifold_observer.pipeline.jobs.run import run
from manifold_observer.pipeline.jobs.store import passes_beside, start, writing
from manifold_observer.pipeline.jobs.workfolder import holding, work_folders

pytestmark = pytest.mark.usefixtures("in_this_thread")


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
