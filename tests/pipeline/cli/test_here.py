"""Small jobs start nothing: the same numbers as with workers, and signals, crashes and memory as users expect them."""

import os
import signal
import subprocess
import sys
import time

import dask
import numpy as np
import pytest
import soundfile
import xarray as xr

from manifold_observer.pipeline.jobs.load import load
from strategies import share

OPTIONS = ("--features", "identity", "--n-modes", 3, "--window", 9, "--tile", 128, "--smooth")
WAIT = 120


@pytest.fixture
def motion():
    """Samples of a hidden motion."""
    return np.random.default_rng(5).normal(size=(600, 4)).cumsum(axis=0)


def stored(path, motion, chunk):
    """A Zarr recording in chunks of so many samples."""
    recording = xr.DataArray(motion, dims=("time", "channel"), name="recording", attrs={"sampling_rate": 10.0})
    recording.to_dataset().to_zarr(path, consolidated=False, encoding={"recording": {"chunks": (chunk, 2)}})
    return path


def numbers(out):
    """Every array of a result, by its name."""
    tree = load(out)
    return {f"{group.path}/{name}": values.values for group in tree.subtree for name, values in group.data_vars.items()}


@pytest.mark.slow
def test_run__gives_the_same_bits_here_on_workers_and_by_choice_whatever_the_chunks(console, tmp_path, motion):
    def run(number, chunk, *words, threads=None):
        recording = stored(tmp_path / f"{number}.zarr", motion, chunk)
        with dask.config.set(num_workers=threads or os.cpu_count()):
            code, _, err = console("run", recording, tmp_path / f"out-{number}.zarr", *OPTIONS, *words)
        assert (code, err) == (0, "")
        return numbers(tmp_path / f"out-{number}.zarr")

    found = [
        run(0, 600, "--cluster", "local", "--workers", 2),
        run(1, 600),
        run(2, 77, "--cluster", "auto", threads=1),
        run(3, 200, "--cluster", "none", threads=4),
    ]
    assert {"/frames/frames", "/embedding/eigenvalue", "/state/state", "/smoothed/state"} <= found[0].keys()
    for other in found[1:]:
        assert other.keys() == found[0].keys()
        for name, values in other.items():
            np.testing.assert_array_equal(values, found[0][name], strict=True, err_msg=name)


# ------------------------------------------------------------------------------------------------------- how it ends

# A command that does something in one of its tasks, which run in threads.
DURING = """
import os, signal, sys, threading, time
from manifold_observer.pipeline.cli import entry
from manifold_observer.pipeline.graph import packing
task, begun = packing.Call.__call__, []
def instead(self, *inputs):
    begun.append(self)
    if len(begun) == {task}:
        assert threading.current_thread() is not threading.main_thread()
        {what}
    return task(self, *inputs)
packing.Call.__call__ = instead
sys.argv[0] = "manifold-observer"
entry.main()
"""


def during(folder, what, *words, task=5):
    """A run in one of whose tasks something happens; its exit code, standard output and standard error."""
    script = DURING.format(what=what, task=task)
    words = map(str, (*OPTIONS, *words))
    command = [sys.executable, "-c", script, "run", "a.npy", "out.zarr", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WAIT, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path, motion, monkeypatch):
    """The current folder, with a recording."""
    np.save(tmp_path / "a.npy", motion)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("number", share([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], 3))
def test_signals__a_thread_that_works_on_holds_nothing_up(folder, console, number):
    before = time.monotonic()
    code, out, err = during(folder, f"os.kill(os.getpid(), {int(number)}); time.sleep({2 * WAIT})")
    assert time.monotonic() - before < WAIT
    assert (code, out, err) == (128 + number, "", "Error: interrupted\n")
    assert not (folder / "out.zarr").exists()
    assert console("run", "a.npy", "out.zarr", *OPTIONS)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "out.zarr"]


@pytest.mark.slow
def test_crash__of_a_library_leaves_nothing_in_the_way(folder, console):
    code, out, _ = during(folder, "os.kill(os.getpid(), signal.SIGSEGV)", task=9)
    assert (code, out) == (-signal.SIGSEGV, "")
    assert not (folder / "out.zarr").exists()
    assert console("run", "a.npy", "out.zarr", *OPTIONS)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "out.zarr"]


@pytest.mark.slow
def test_run__starts_no_process(folder):
    what = "import psutil; print(len(psutil.Process().children()), file=sys.stderr)"
    code, _, err = during(folder, what)
    assert (code, err) == (0, "0\n")


def test_memory__limits_this_process(folder, console):
    np.save("a.npy", np.random.default_rng(0).normal(size=(3000, 60)).cumsum(axis=0))
    code, _, err = console("run", "a.npy", "out.zarr", *OPTIONS[:4], "--memory", "330MiB")
    assert code == 1
    assert "per worker, but the limit is 0.32 GiB" in err


# ------------------------------------------------------------------------------------------------- what it costs

# Each takes between a fifth of a second and a second of every process that imports it.
HEAVY = {"distributed", "scipy.signal", "scipy.stats", "scipy.interpolate", "matplotlib", "sklearn", "h5py", "tornado"}
IMPORTED = """
import sys
from manifold_observer.pipeline.cli import entry
sys.argv[0] = "manifold-observer"
try:
    entry.main()
finally:
    print(*sorted({heavy} & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["look", "a.wav"], HEAVY | {"zarr", "scipy.optimize", "scipy.spatial", "scipy.linalg"}),
        (["look", "a.csv"], HEAVY | {"zarr", "scipy.optimize", "scipy.spatial", "scipy.linalg"}),
        (["run", "a.wav", "b.zarr", "--frame", "23ms"], HEAVY),
        (["info", "out.zarr"], HEAVY | {"scipy.optimize"}),
        # Where there is one processor, it draws its picture itself.
        (["demo", "sphere", "--samples", "18000"], HEAVY - {"matplotlib"} | {"scipy.optimize"}),
    ],
    ids=["look-wav", "look-csv", "run", "info", "demo"],
)
def test_commands__do_not_import_what_they_do_not_need(folder, console, words, heavy):
    samples = np.random.default_rng(0).normal(size=(8000, 1)).cumsum(axis=0)
    soundfile.write("a.wav", samples / np.abs(samples).max(), 8000)
    np.savetxt(
        "a.csv", np.column_stack([np.arange(300) / 10, samples[:300]]), "%.6g", ",", header="time,x", comments=""
    )
    if "out.zarr" in words:
        assert console("run", "a.npy", "out.zarr", *OPTIONS[:6])[0] == 0
    command = [sys.executable, "-c", IMPORTED.format(heavy=heavy), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, ""), done.stderr
