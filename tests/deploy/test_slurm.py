"""A real Slurm, started here: runs by its jobs have the bits of local ones, and outlive jobs that are cancelled."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
from slurm_here import missing, slurm

from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.clusters.config import ClusterConfig
from strategies import seldom, share

WAIT = 120
REASON = missing()
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")
OPTIONS = ("--features", "identity", "--n-modes", "2", "--home", "recomputed")
JOBS = ("--cluster", "slurm", "--workers", "1", "--memory", "1GiB", "--interface", "lo", "--walltime", "0:30:00")


@pytest.fixture(scope="module")
def queue(tmp_path_factory):
    """Environment of commands that use a Slurm of their own."""
    with slurm(tmp_path_factory.mktemp("slurm")) as environment:
        yield {**os.environ, **environment, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a recording, and what a local run makes of it."""
    folder = tmp_path_factory.mktemp("runs")
    np.save(folder / "a.npy", np.random.default_rng(0).normal(size=(3000, 4)).cumsum(axis=0))
    with run(folder, dict(os.environ), "local.zarr", "--cluster", "local", "--workers", "1") as local:
        assert local.wait(timeout=WAIT) == 0, local.stderr.read()
    return folder


@contextlib.contextmanager
def run(folder, environment, out, *cluster):
    """The command, running; killed at the end of the block if it still does."""
    words = [sys.executable, "-m", "manifold_observer.pipeline.cli.entry", "run", "a.npy", out, *OPTIONS, *cluster]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=folder, env=environment, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def listed(environment, form="%i"):
    asked = ["squeue", "-h", "-o", form]
    return subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stdout.split()


def until(condition, what):
    end = time.monotonic() + WAIT
    while not (found := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.1)
    return found


def contents(result):
    return {path.relative_to(result): path.read_bytes() for path in sorted(result.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_slurm__a_cancelled_job_is_replaced_and_the_bits_are_those_of_a_local_run(queue, folder):
    with run(folder, queue, "slurm.zarr", *JOBS) as job:
        until(lambda: any(folder.rglob("*pass-001*")), "no pass was kept")
        (first,) = listed(queue)
        (at,) = folder.glob(".manifold-observer-cluster-*")
        assert at.stat().st_mode & 0o777 == 0o700
        listening = {
            one.laddr.ip
            for process in [psutil.Process(job.pid), *workers_of(folder)]
            for one in process.net_connections("inet")
            if one.status == psutil.CONN_LISTEN
        }
        assert listening == {"127.0.0.1"}  # of the interface, and of pages that nobody is shown
        subprocess.run(["scancel", first], env=queue, check=True)
        (second,) = until(lambda: [job for job in listed(queue) if job != first], "no job was submitted again")
        assert job.wait(timeout=WAIT) == 0, job.stderr.read()
    assert int(second) > int(first)
    assert contents(folder / "slurm.zarr") == contents(folder / "local.zarr")
    until(lambda: not listed(queue), "jobs were left behind")
    assert not list(folder.glob(".manifold-observer-cluster-*"))


def workers_of(folder):
    """Processes of workers, by the certificates that they were given."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(word.startswith(str(folder)) and word.endswith("ca_file.pem") for word in words):
            yield process
            yield from process.children(recursive=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "sentence"),
    share(
        [
            (
                {"queue": "nowhere"},
                r"Slurm must take the jobs; got sbatch: error: invalid partition specified: nowhere",
            ),
            (
                {"job_extra": ["--begin=now+1hour"], "wait": "5s"},
                r"had none for 5\.00 s\. Give a longer --wait, another",
            ),
            (
                {"python": "/no/python"},
                r"3 jobs of Slurm ended before one came \(the last one said: .*/no/python: No such",
            ),
        ],
        2,
    ),
)
def test_slurm__what_keeps_workers_away_is_said_in_one_sentence(queue, tmp_path, monkeypatch, more, sentence):
    monkeypatch.setenv("SLURM_CONF", queue["SLURM_CONF"])
    own = {"kind": "slurm", "memory": "1GiB", "interface": "lo", "shared": str(tmp_path)}
    told = []
    with (
        pytest.raises(ConnectionError, match=f"^cluster: .*{sentence}"),
        connect(ClusterConfig.of_table(own | more), tell=told.append),
    ):
        pass
    assert told in ([], ["waiting for workers: 0 of 1"])
    assert not list(tmp_path.iterdir())
    until(lambda: not listed(queue), "jobs were left behind")


CORPUS = """
[corpus]
inputs = ["in/*.npy"]
output = "{kind}"
[run]
features = "identity"
n-modes = 2
[cluster]
kind = "{kind}"
workers = 2
memory = "2GiB"
"""


@seldom
def test_slurm__a_corpus_has_the_bits_of_one_on_this_machine(queue, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(3):
        frames = np.random.default_rng(number).normal(size=(300, 3)).cumsum(axis=0)
        np.save(tmp_path / "in" / f"night{number}.npy", frames)
    for kind in ("slurm", "local"):
        (tmp_path / kind).mkdir()
        file = tmp_path / f"{kind}.toml"
        file.write_text(CORPUS.format(kind=kind) + ('interface = "lo"\n' if kind == "slurm" else ""))
        words = [sys.executable, "-m", "manifold_observer.pipeline.cli.entry", "corpus", "run", file]
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        done = subprocess.run(words, cwd=tmp_path, env=queue, timeout=WAIT, check=False, **streams)
        assert done.returncode == 0, done.stderr
    for number in range(3):
        name = f"night{number}.zarr"
        assert contents(tmp_path / "slurm" / name) == contents(tmp_path / "local" / name)
    until(lambda: not listed(queue), "jobs were left behind")


@seldom
def test_slurm__jobs_end_with_a_driver_that_was_killed_and_the_next_run_clears_up(queue, folder):
    with run(folder, queue, "killed.zarr", *JOBS) as job:
        until(lambda: any(folder.rglob("*pass-001*")), "no pass was kept")
        job.send_signal(signal.SIGKILL)
        job.wait()
    assert list(folder.glob(".manifold-observer-cluster-*"))
    until(lambda: not listed(queue), "jobs outlive their driver")
    with run(folder, queue, "killed.zarr", *JOBS) as job:
        assert job.wait(timeout=WAIT) == 0, job.stderr.read()
    assert contents(folder / "killed.zarr") == contents(folder / "local.zarr")
    assert not list(folder.glob(".manifold-observer-cluster-*"))
