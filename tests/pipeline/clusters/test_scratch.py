"""Workers that cannot spill: refused before anything runs, or ended in a sentence; nothing is lost, nothing hangs."""

import os
import shutil
import subprocess
import sys

import dask
import numpy as np
import pytest
from distributed.core import Status

from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.clusters.paused import all_stand_still
from manifold_observer.pipeline.clusters.scratch import explained_start, scratch
from manifold_observer.pipeline.graph.compute import compute, task
from strategies import share

WORDS = ("run", "a.npy", "out.zarr", "--features", "identity", "--n-modes", "2", "--workers", "1")
REFUSED = "Error: cluster: the folder for what workers spill must take files; "


@pytest.fixture
def recording(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0))
    return tmp_path


@pytest.mark.parametrize("place", ["missing", "file"])
def test_scratch__a_folder_that_takes_nothing_is_refused_at_once(recording, console, monkeypatch, place):
    (recording / "file").touch()
    monkeypatch.chdir(recording)
    with dask.config.set({"temporary-directory": str(recording / place)}):
        code, out, err = console(*WORDS, "--cluster", "local")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"{REFUSED}{recording / place} does not (")
    assert "DASK_TEMPORARY_DIRECTORY" in err
    assert sorted(path.name for path in recording.iterdir()) == ["a.npy", "file"]


def test_scratch__leaves_no_file_of_its_own(tmp_path):
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        assert os.listdir(scratch()) == []


def test_start__errors_of_other_kinds_stay_as_they_are():
    error = RuntimeError("Cluster failed to start: the port is taken")
    assert explained_start(error, "/tmp") is error
    failed = RuntimeError("_Nanny failed to start.")
    failed.__cause__ = OSError(28, "No space left on device")
    assert "must take files; /tmp does not (No space left on device)" in str(explained_start(failed, "/tmp"))


def may_mount():
    """Whether this process can mount a small disk for its children alone."""
    if not hasattr(os, "getuid") or os.getuid() != 0 or shutil.which("unshare") is None:
        return False
    done = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/run"], capture_output=True, check=False)
    return done.returncode == 0


def on_small_disk(folder, how, **settings):
    """The command with what workers spill on a small disk of its own: exit code and standard error."""
    (folder / "small").mkdir()
    script = f'mount -t tmpfs -o {how} none small && exec "$@"'
    words = ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-m", "manifold_observer.pipeline.cli.entry"]
    environment = os.environ | {"DASK_TEMPORARY_DIRECTORY": str(folder / "small")} | settings
    done = subprocess.run(
        [*words, *WORDS], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=200
    )
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not may_mount(), reason="disks are mounted by root")
@pytest.mark.parametrize("how", share(["size=1m,nr_inodes=8", "ro,size=1m", "size=64k"], 3))
def test_start__on_a_disk_that_takes_nothing_ends_in_one_sentence(recording, how):
    code, err = on_small_disk(recording, how)
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith(f"{REFUSED}{recording}/small")
    assert sorted(path.name for path in recording.iterdir()) == ["a.npy", "small"]


@pytest.mark.slow
@pytest.mark.skipif(not may_mount(), reason="disks are mounted by root")
def test_spilling__to_a_full_disk_costs_no_result(recording):
    """Each worker would spill all that it holds, and the disk takes none of it."""
    low = {f"DASK_DISTRIBUTED__WORKER__MEMORY__{name}": "0.001" for name in ("TARGET", "SPILL")}
    code, err = on_small_disk(recording, "size=512k", **low)
    assert (code, err) == (0, "")
    assert (recording / "out.zarr").is_dir()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Mismatched versions found")
def test_watch__workers_that_all_stand_still_end_the_work(workers_here):
    def work(client):
        client.run(_fill)
        compute([task(int)])

    with dask.config.set({"manifold-observer.workers-timeout": "2s"}), workers_here(2) as (cluster, _):
        with pytest.raises(ConnectionError, match=r"all 2 have stood still for 2.00 s, with .* could not spill to"):
            connected(cluster.scheduler_address, work)
        # Those that stand still from the start are not waited for either.
        with pytest.raises(ConnectionError, match=r"all 2 have stood still for 2.00 s"):
            connected(cluster.scheduler_address, work)


def connected(address, work):
    with connect(address) as client:
        work(client)


def _fill(dask_worker):
    """What the worker takes is too much from now on."""
    dask_worker.memory_manager.memory_pause_fraction = 1e-6
    dask_worker.status = Status.paused


def test_stand_still__only_where_nobody_works():
    stopped, working = {"status": "paused"}, {"status": "running"}
    busy = {"status": "paused", "metrics": {"task_counts": {"executing": 1}}}
    assert all_stand_still({"a": stopped, "b": stopped})
    assert not any(map(all_stand_still, [{}, {"a": stopped, "b": working}, {"a": stopped, "b": busy}]))
