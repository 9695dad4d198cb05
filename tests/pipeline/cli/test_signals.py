"""Signals end a command with one line and its clean-up, whatever it is doing; ignored ones stay ignored."""

import contextlib
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from strategies import share

SCRIPT = Path(sysconfig.get_path("scripts")) / "manifold-observer"
WAIT = 120
OPTIONS = ("--features", "identity", "--home", "recomputed", "--n-modes", "2", "--alpha", "1", "--workers", "1")


@pytest.fixture
def folder(tmp_path):
    """A folder with a recording whose passes take a moment."""
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(4000, 6)).cumsum(axis=0))
    return tmp_path


@contextlib.contextmanager
def running(folder, *words, **options):
    """A command in a process group of its own, as a terminal has it."""
    command = [SCRIPT, *(words or ("run", "a.npy", "out.zarr", *OPTIONS))]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, start_new_session=True, **streams, **options) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_until(condition, process):
    until = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < until
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


def listens(process):
    """Whether the command has taken SIGTERM over, the first thing that it does."""
    (caught,) = (
        line.split()[1]
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
        if line.startswith("SigCgt")
    )
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def children(process):
    return psutil.Process(process.pid).children(recursive=True)


def ended(process):
    """Exit code, standard error, and the processes that are still there a little later."""
    started = children(process) if process.poll() is None else []
    out, err = process.communicate(timeout=WAIT)
    assert out == ""
    psutil.wait_procs(started, timeout=10)
    left = [p for p in started if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    return process.returncode, err, left


@pytest.mark.parametrize("number", share([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], 3))
def test_signals__end_a_command_that_is_still_being_imported(folder, number):
    with running(folder) as process:
        wait_until(lambda: listens(process), process)
        os.killpg(process.pid, number)
        assert ended(process) == (128 + number, "Error: interrupted\n", [])
    assert [path.name for path in folder.iterdir()] == ["a.npy"]


@pytest.mark.slow
@pytest.mark.parametrize("number", share([signal.SIGINT, signal.SIGHUP], 2))
def test_signals__end_a_command_whose_workers_are_starting(folder, number):
    with running(folder) as process:
        wait_until(lambda: len(children(process)) >= 2, process)  # a worker, and Python's own resource tracker
        os.killpg(process.pid, number)
        assert ended(process) == (128 + number, "Error: interrupted\n", [])


@pytest.mark.slow
@pytest.mark.parametrize("number", share([signal.SIGINT, signal.SIGTERM], 2))
def test_signals__say_after_which_pass_the_same_command_resumes(folder, number, console, in_this_process, monkeypatch):
    with running(folder) as process:
        wait_until(lambda: any(folder.rglob("*pass-002*.npz")), process)
        os.killpg(process.pid, number)
        code, err, left = ended(process)
    assert (code, left) == (128 + number, [])
    assert err.startswith("Error: interrupted. The same command resumes after pass ")
    assert err.count("\n") == 1
    assert not (folder / "out.zarr").exists()
    monkeypatch.chdir(folder)
    code, _, _ = console("run", "a.npy", "out.zarr", *OPTIONS)
    assert code == 0


@pytest.mark.slow
def test_signals__two_in_a_row_end_at_once_with_one_line(folder):
    with running(folder) as process:
        wait_until(lambda: len(children(process)) >= 2, process)
        os.killpg(process.pid, signal.SIGINT)
        os.killpg(process.pid, signal.SIGINT)
        assert ended(process) == (130, "Error: interrupted\n", [])


@pytest.mark.slow
def test_signals__one_while_the_cluster_closes_leaves_one_line_at_most(folder):
    with running(folder, "run", "a.npy", "out.zarr", "--features", "identity", "--landmarks", "50", "--workers", "1",
                 "--method", "landmarks") as process:  # fmt: skip
        wait_until((folder / "out.zarr").exists, process)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=WAIT)
    assert process.returncode in (0, 130)
    assert err in ("", "Error: interrupted\n")


@pytest.mark.slow
def test_signals__one_that_was_ignored_from_the_start_stays_ignored(folder):
    np.save(folder / "a.npy", np.load(folder / "a.npy")[:80])
    words = ("run", "a.npy", "out.zarr", *OPTIONS[:2], "--workers", "1")
    hup = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    with running(folder, *words, **hup) as process:  # as nohup does
        wait_until(lambda: listens(process), process)
        os.killpg(process.pid, signal.SIGHUP)
        wait_until(lambda: len(children(process)) >= 2, process)
        os.killpg(process.pid, signal.SIGHUP)
        process.communicate(timeout=WAIT)
    assert process.returncode == 0
    assert (folder / "out.zarr").exists()


SWALLOWING = """
import signal, time
from manifold_observer.pipeline.graph.ending import Hearing, Interrupted

class Fragile:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)  # Python lets nothing out of a finalizer

hearing = Hearing().listen()
hearing.begin()
try:
    Fragile()
    time.sleep(60)
except Interrupted as asked:
    print("raised", asked.code)
"""


def test_signals__one_that_falls_into_a_finalizer_is_raised_again():
    done = subprocess.run([sys.executable, "-c", SWALLOWING], capture_output=True, text=True, timeout=WAIT, check=False)
    assert (done.stdout, done.stderr) == ("raised 143\n", "")


def test_main__a_file_that_was_cut_is_no_interrupt(console, monkeypatch, in_this_process, tmp_path):
    def cut(*_arguments, **_options):
        raise EOFError("read past the end of a.npy")

    np.save(tmp_path / "a.npy", np.zeros((80, 3)))
    monkeypatch.setattr("manifold_observer.pipeline.jobs.run.run", cut)
    code, out, err = console("run", tmp_path / "a.npy", tmp_path / "out.zarr", "--features", "identity")
    assert (code, out, err) == (1, "", "Error: read past the end of a.npy\n")


def test_help__says_how_signals_end_a_command(console):
    code, out, err = console("--help")
    assert (code, err) == (0, "")
    assert "Ctrl-C 130, SIGTERM 143" in " ".join(out.split())
