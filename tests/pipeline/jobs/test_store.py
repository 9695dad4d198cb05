"""A result is there whole or not at all, and nothing but an earlier result is ever replaced."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs import store, workfolder
from manifold_observer.pipeline.jobs.load import load
from manifold_observer.pipeline.jobs.store import open_group, start, write_group, writing
from manifold_observer.pipeline.jobs.workfolder import is_work_folder

pytestmark = pytest.mark.usefixtures("in_this_thread")

VALUES = np.random.default_rng(0).normal(size=(50, 3))


def group(values=VALUES):
    return xr.Dataset({"state": (("frame", "mode"), values)}, attrs={"gamma": 0.85})


def write(out, *, values=VALUES, inputs=(), overwrite=False):
    with writing(out, inputs, overwrite=overwrite) as folder:
        start(folder, {"note": "mine"})
        write_group(folder, "state", group(values))


def fail(out, error, *, overwrite=False):
    with writing(out, overwrite=overwrite) as folder:
        start(folder, {})
        write_group(folder, "state", group(3 * VALUES))
        raise error


def everything(folder):
    return sorted(path.name for path in folder.iterdir())


def test_writing__the_result_appears_at_the_end(tmp_path):
    out = tmp_path / "out.zarr"
    with writing(out) as folder:
        start(folder, {"note": "mine"})
        write_group(folder, "state", group())
        assert not out.exists()
        with pytest.raises(ValueError, match="was not finished"):
            load(folder)
    assert everything(tmp_path) == ["out.zarr"]
    tree = load(out)
    assert tree.attrs["complete"] == 1
    assert tree.attrs["note"] == "mine"
    assert "manifold_observer" in tree.attrs
    np.testing.assert_array_equal(tree["state/state"], VALUES)


def test_writing__opens_without_a_warning_in_plain_xarray(tmp_path):
    write(tmp_path / "out.zarr")
    tree = xr.open_datatree(tmp_path / "out.zarr")
    assert list(tree.children) == ["state"]
    assert tree["state"].attrs["gamma"] == 0.85


def test_write_group__gives_back_what_stands_on_disk(tmp_path):
    with writing(tmp_path / "out.zarr") as folder:
        start(folder, {})
        lazy = group(da.from_array(VALUES, chunks=((7, 20, 23), (1, 2))))
        stored = write_group(folder, "state", lazy)
        assert stored["state"].chunks == ((50,), (3,))
        np.testing.assert_array_equal(stored["state"], VALUES)
        np.testing.assert_array_equal(open_group(folder, "state")["state"], VALUES)


def test_write_group__chunks_are_uniform_and_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_CHUNK_NUMBERS", 60)
    with writing(tmp_path / "out.zarr") as folder:
        start(folder, {})
        write_group(folder, "state", group(da.from_array(VALUES, chunks=((7, 20, 23), (1, 2)))))
    assert zarr.open_array(tmp_path / "out.zarr/state/state").chunks == (20, 3)
    np.testing.assert_array_equal(load(tmp_path / "out.zarr")["state/state"], VALUES)


def test_write_group__chunks_of_nothing_but_zeros_are_stored(tmp_path):
    """A chunk that is missing on disk cannot be told from one that was never written."""
    with writing(tmp_path / "out.zarr") as folder:
        start(folder, {})
        write_group(folder, "state", group(da.zeros((50, 3))))
    assert zarr.open_array(tmp_path / "out.zarr/state/state").nchunks_initialized == 1


def test_write_group__digits_of_frames_are_copied_and_what_repeats_is_not(tmp_path):
    noise = np.random.default_rng(0).normal(size=(400, 30))
    values = {"frames": noise, "counts": np.round(noise), "lift": noise}
    dims = {"frames": ("frame", "feature"), "counts": ("frame", "feature"), "lift": ("feature_1", "mode")}
    with writing(tmp_path / "out.zarr") as folder:
        start(folder, {})
        write_group(folder, "all", xr.Dataset({name: (dims[name], own) for name, own in values.items()}))
    arrays = {name: zarr.open_array(tmp_path / f"out.zarr/all/{name}") for name in values}
    levels = {name: [codec.to_dict() for codec in array.compressors] for name, array in arrays.items()}
    assert {name: own[0]["configuration"]["level"] for name, own in levels.items()} == {
        "frames": -1, "counts": -1, "lift": 0
    }  # fmt: skip
    assert all(own[1]["name"] == "crc32c" for own in levels.values())
    assert arrays["counts"].nbytes_stored() < 0.4 * noise.nbytes
    for name, array in arrays.items():
        np.testing.assert_array_equal(array[...], values[name])


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_writing__a_block_that_fails_leaves_nothing(tmp_path, error):
    with pytest.raises(error):
        fail(tmp_path / "out.zarr", error)
    assert everything(tmp_path) == []


def test_writing__a_block_that_fails_leaves_the_earlier_result(tmp_path):
    write(tmp_path / "out.zarr")
    with pytest.raises(RuntimeError):
        fail(tmp_path / "out.zarr", RuntimeError, overwrite=True)
    assert everything(tmp_path) == ["out.zarr"]
    np.testing.assert_array_equal(load(tmp_path / "out.zarr")["state/state"], VALUES)


def test_writing__an_earlier_result_is_replaced_when_asked(tmp_path):
    write(tmp_path / "out.zarr")
    with pytest.raises(ValueError, match=r"already exists.*--overwrite"):
        write(tmp_path / "out.zarr")
    write(tmp_path / "out.zarr", values=2 * VALUES, overwrite=True)
    assert everything(tmp_path) == ["out.zarr"]
    np.testing.assert_array_equal(load(tmp_path / "out.zarr")["state/state"], 2 * VALUES)


def foreign_folder(path):
    path.mkdir()
    (path / "thesis.tex").write_text("years of work")


def foreign_file(path):
    path.write_text("years of work")


def foreign_group(path):
    xr.Dataset({"x": ("time", [1.0])}).to_zarr(path, zarr_format=3, consolidated=False)


def foreign_array(path):
    zarr.save_array(str(path), VALUES)


@pytest.mark.parametrize("make", [foreign_folder, foreign_file, foreign_group, foreign_array])
def test_writing__anything_else_is_never_replaced(tmp_path, make):
    make(tmp_path / "out.zarr")
    for overwrite, message in ((False, "already exists"), (True, "is not a result of manifold-observer")):
        with pytest.raises(ValueError, match=message):
            write(tmp_path / "out.zarr", overwrite=overwrite)
    assert everything(tmp_path) == ["out.zarr"]


@pytest.mark.parametrize(
    ("out", "recording"),
    [
        ("night.zarr", "night.zarr"),
        ("night.zarr/out.zarr", "night.zarr"),
        ("results", "results/night.wav"),
        ("link.zarr", "night.zarr"),
    ],
)
def test_writing__never_over_or_within_a_recording(tmp_path, out, recording):
    (tmp_path / "night.zarr").mkdir()
    (tmp_path / "link.zarr").symlink_to(tmp_path / "night.zarr")
    with pytest.raises(ValueError, match="the output must not be the recording or lie within it"):
        write(tmp_path / out, inputs=[tmp_path / recording], overwrite=True)
    assert everything(tmp_path / "night.zarr") == []


def test_writing__the_folder_must_exist(tmp_path):
    with pytest.raises(ValueError, match=r"the folder of .* must exist.*mkdir -p"):
        write(tmp_path / "results" / "out.zarr")


def test_writing__a_second_writer_is_refused(tmp_path):
    with writing(tmp_path / "out.zarr") as folder:
        start(folder, {})
        write_group(folder, "state", group())
        for overwrite in (False, True):
            with pytest.raises(ValueError, match="another run is writing"):
                write(tmp_path / "out.zarr", values=2 * VALUES, overwrite=overwrite)
    np.testing.assert_array_equal(load(tmp_path / "out.zarr")["state/state"], VALUES)


def test_writing__a_run_that_finished_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    holding = store.holding

    @contextlib.contextmanager
    def another_finishes_first(parent, name, busy):
        monkeypatch.setattr(store, "holding", holding)
        write(tmp_path / "out.zarr")
        with holding(parent, name, busy) as work:
            yield work

    monkeypatch.setattr(store, "holding", another_finishes_first)
    with pytest.raises(ValueError, match="already exists"):
        write(tmp_path / "out.zarr", values=2 * VALUES)
    assert everything(tmp_path) == ["out.zarr"]
    np.testing.assert_array_equal(load(tmp_path / "out.zarr")["state/state"], VALUES)


KILLED = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    import dask, dask.array as da, numpy as np, xarray as xr
    import manifold_observer.pipeline as mo
    from manifold_observer.pipeline.jobs import run as job

    def die(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    def observe(embedding, frames, **options):
        state = da.zeros((frames.sizes["frame"], 1), chunks=(10, 1)).map_blocks(die, dtype=float)
        return xr.Dataset({"state": (("frame", "mode"), state)})

    job.observe = observe
    job.write_group.__globals__["_CHUNK_NUMBERS"] = 10
    with dask.config.set(scheduler="synchronous"):
        config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=1))
        job.run([Path(sys.argv[1])], Path(sys.argv[2]), config)
    """
)


@pytest.mark.slow
def test_writing__a_run_killed_in_mid_write_leaves_nothing_that_reads_as_finished(tmp_path):
    from manifold_observer.pipeline.jobs.run import run  # noqa: PLC0415

    recording, out = tmp_path / "walk.npy", tmp_path / "out.zarr"
    np.save(recording, VALUES.cumsum(axis=0))
    command = [sys.executable, "-c", KILLED, recording, out]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    hidden, _ = everything(tmp_path)
    unfinished = tmp_path / hidden / "result"
    assert is_work_folder(unfinished.parent, "out.zarr")
    left = open_group(unfinished, "state")["state"].values
    assert np.isnan(left).any()  # the kill was in mid-write
    assert not np.isnan(left).all()
    with pytest.raises(ValueError, match="was not finished"):
        load(unfinished)

    run([recording], out, mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=1)))
    assert everything(tmp_path) == ["out.zarr", "walk.npy"]
    assert np.isfinite(load(out)["state/state"]).all()


def test_writing__the_lock_of_a_killed_process_is_gone(tmp_path):
    ready, done = os.pipe()
    child = os.fork()
    if child == 0:
        with writing(tmp_path / "out.zarr"):
            os.write(done, b".")
            signal.pause()
    os.read(ready, 1)
    with pytest.raises(ValueError, match="another run is writing"):
        write(tmp_path / "out.zarr")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    write(tmp_path / "out.zarr")
    assert everything(tmp_path) == ["out.zarr"]


def test_sweep__does_not_wait_for_what_this_process_holds_itself(tmp_path, monkeypatch):
    """Each part of a stream is written beside the folder that holds the stream."""
    monkeypatch.setattr(workfolder.time, "sleep", lambda seconds: pytest.fail("waits for itself"))
    with workfolder.holding(tmp_path, "out.zarr", "busy") as work:
        workfolder.sweep(tmp_path)
        assert work.folder.exists()
    assert list(tmp_path.iterdir()) == []
