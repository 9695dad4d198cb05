"""Only a result of our own is replaced, and a kill in the middle costs neither of both."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import xarray as xr
import zarr
from places import VALUES, a_file, add_notes, digest, state, write

from manifold_observer.pipeline.jobs import store
from strategies import share

pytestmark = pytest.mark.usefixtures("in_this_thread")


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


@pytest.mark.slow
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
