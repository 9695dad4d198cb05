"""Kinds of clusters beside the local one: classes, scheduler files, workers that come late, shrink and vanish."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import urllib.request

import dask
import numpy as np
import psutil
import pytest
from distributed import LocalCluster, default_client
from foreign import double, foreign, wait_until

from manifold_observer.pipeline.clusters import address, cluster, named
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.clusters.config import ClusterConfig
from manifold_observer.pipeline.clusters.sight import sighted
from manifold_observer.pipeline.engine import checkpoint
from manifold_observer.pipeline.graph.compute import compute, task
from strategies import QUICK

WAIT = 120
LOCAL = "distributed:LocalCluster"
OPTIONS = ("--features", "identity", "--n-modes", "2", "--home", "recomputed")


def listening():
    """Addresses that this process and those that it started listen at."""
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            for one in process.net_connections("inet"):
                if one.status == psutil.CONN_LISTEN:
                    yield one.laddr.ip


def contents(result):
    return {path.relative_to(result): path.read_bytes() for path in sorted(result.rglob("*")) if path.is_file()}


# -------------------------------------------------------------------------------------------------------- classes


@pytest.mark.slow
def test_class__is_made_with_its_keywords_and_listens_on_loopback_alone():
    before = set(map(id, LocalCluster._instances))
    config = ClusterConfig(LOCAL, workers=2).with_keywords({"n_workers": 1, "processes": False})
    with connect(config) as client:
        assert compute([task(double, 4)]) == [8]
        assert len(client.nthreads()) == 2
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        assert set(listening()) == {"127.0.0.1"}
    assert all(made.status.name == "closed" for made in LocalCluster._instances if id(made) not in before)


@pytest.mark.parametrize(
    ("kind", "options", "kindred", "sentence"),
    [
        ("no.such:Thing", {}, ValueError, r"must name a class that can be imported; got no\.such:Thing \(No module"),
        ("distributed:Nothing", {}, ValueError, r"got distributed:Nothing \(module 'distributed' has no attribute"),
        ("distributed:Client", {}, ValueError, r"must name a class of clusters of Dask .*; got distributed:Client"),
        ("os:getcwd", {}, ValueError, r"must name a class of clusters of Dask .*; got os:getcwd"),
        (LOCAL, {"n_wrkers": 1, "processes": False}, ValueError, r"must suit distributed:LocalCluster; got .*n_wrkers"),
        (LOCAL, {"host": "192.0.2.1", "n_workers": 0}, ConnectionError, r"distributed:LocalCluster must start; got "),
    ],
)
def test_class__what_is_none_is_said_in_one_sentence(kind, options, kindred, sentence):
    config = ClusterConfig(kind).with_keywords(options)
    with pytest.raises(kindred, match=f"^cluster: .*{sentence}"), connect(config):
        pass


def test_class__a_folder_of_the_users_own_is_searched(tmp_path, monkeypatch):
    (tmp_path / "our_cluster.py").write_text("from distributed import LocalCluster\nclass Ours(LocalCluster): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert issubclass(named._class("our_cluster:Ours"), LocalCluster)
    sys.modules.pop("our_cluster")


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A recording in the current folder."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    return tmp_path


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """A folder with a long recording, and what a run in one process makes of it, file by file."""
    folder = tmp_path_factory.mktemp("computed")
    np.save(folder / "a.npy", np.random.default_rng(0).normal(size=(2500, 4)).cumsum(axis=0))
    words = [sys.executable, "-m", "manifold_observer.pipeline.cli.entry", "run", "a.npy", "out", *OPTIONS]
    subprocess.run([*words, "--cluster", "none"], cwd=folder, check=True, capture_output=True, timeout=WAIT)
    return folder, contents(folder / "out")


def adaptive(folder, least, most):
    table = f'[cluster]\nkind = "{LOCAL}"\nmin_workers = {least}\nworkers = {most}\n'
    (folder / "adapt.toml").write_text(f"{table}[cluster.options]\nn_workers = {least}\n")
    return ("--config", "adapt.toml")


def worker_processes():
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "spawn_main" in " ".join(process.cmdline()):
                yield process


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Dask leaves the sockets of the dead
def test_run__a_cluster_that_grows_shrinks_and_loses_workers_gives_the_same_bits(computed, console, monkeypatch):
    """Real processes: one more is started, one is taken away in the middle, then one is killed."""
    folder, undisturbed = computed
    monkeypatch.chdir(folder)
    made, seen, scaled = [], [], named._scaled
    monkeypatch.setattr(named, "_scaled", lambda cluster, config: (made.append(cluster), scaled(cluster, config))[1])

    def workers():
        return len(made[0].scheduler_info["workers"])

    def disturb():
        made[0].adapt(minimum=1, maximum=1, interval="50ms")
        wait_until(lambda: workers() == 1, WAIT)
        os.kill(next(worker_processes()).pid, signal.SIGKILL)

    disturbing, save = threading.Thread(target=disturb), checkpoint.Checkpoint.save

    def saving(*arguments):
        """After the first pass there are two workers; in the second one goes, and the other is killed."""
        save(*arguments)
        seen.append(workers())
        if len(seen) == 1:
            made[0].adapt(minimum=2, maximum=2, interval="50ms")
            wait_until(lambda: workers() == 2, WAIT)
            disturbing.start()
        elif len(seen) == 2:
            disturbing.join()

    monkeypatch.setattr(checkpoint.Checkpoint, "save", saving)
    code, _, err = console("run", "a.npy", "adapted", *OPTIONS, *adaptive(folder, 1, 2))
    gc.collect()
    assert (code, err) == (0, ""), err
    assert len(seen) >= 3  # passes
    assert contents(folder / "adapted") == undisturbed


@pytest.mark.skipif(QUICK, reason="test_workers has the sentence")
def test_run__a_scheduler_that_dies_costs_no_bit(computed, console, monkeypatch):
    """The same command on another cluster resumes, and what it makes is what an undisturbed run makes."""
    folder, undisturbed = computed
    monkeypatch.chdir(folder)

    def kill_after_a_pass(process):
        wait_until(lambda: any(folder.rglob("*pass-001*")), WAIT)
        process.kill()

    with foreign(1) as dying:
        killing = threading.Thread(target=kill_after_a_pass, args=(dying,))
        killing.start()
        code, out, err = console("run", "a.npy", "resumed", *OPTIONS, "--cluster", dying.address)
        killing.join()
    assert (code, out) == (4, "")
    assert "The same command resumes after pass " in err
    with foreign(2) as other:
        assert console("run", "a.npy", "resumed", *OPTIONS, "--cluster", other.address)[::2] == (0, "")
    assert contents(folder / "resumed") == undisturbed


# ------------------------------------------------------------------------------------------------- scheduler files


def test_file__names_a_scheduler(tmp_path):
    with foreign(1) as other:
        (tmp_path / "scheduler.json").write_text(f'{{"address": "{other.address}"}}')
        for kind in (str(tmp_path / "scheduler.json"), f"file:{tmp_path / 'scheduler.json'}"):
            with connect(kind) as client:
                assert client.scheduler.address == other.address


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, r"\(there is no such file\)"),
        ("{", r"\(it cannot be read, Expecting .*\)"),
        ("[]", r"\(it cannot be read, list .*\)"),
        ('{"address": 3}', r"\(its address is no text\)"),
    ],
)
def test_file__that_is_none_is_said_in_one_sentence(tmp_path, monkeypatch, text, sentence):
    monkeypatch.setattr(address, "CONNECT_SECONDS", 0.1)
    path = tmp_path / "scheduler.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConnectionError, match=rf"must be written by 'dask scheduler .*; got {path} {sentence}\. Start"):
        connect(str(path)).__enter__()


# ------------------------------------------------------------------------------------------------ who comes late


def test_connect__tells_what_it_waits_for_and_gives_up_in_time(monkeypatch):
    monkeypatch.setattr("manifold_observer.pipeline.clusters.waiting._SILENT_SECONDS", 0.2)
    told = []
    with foreign(0) as empty:
        config = ClusterConfig(empty.address, wait="1s")
        with pytest.raises(ConnectionError, match=r"had none for 1\.00 s"), connect(config, tell=told.append):
            pass
    assert told == ["waiting for workers: 0 of 1"]


@pytest.mark.slow
def test_connect__waits_for_a_worker_that_is_late(monkeypatch):
    monkeypatch.setattr("manifold_observer.pipeline.clusters.waiting._SILENT_SECONDS", 0.2)
    told = []

    def start():
        wait_until(lambda: told, WAIT)
        late.append(stack.enter_context(foreign(empty.address)))

    late = []
    with contextlib.ExitStack() as stack:
        empty = stack.enter_context(foreign(0))
        starting = threading.Thread(target=start)
        starting.start()
        with connect(empty.address, tell=told.append):
            assert compute([task(double, 4)]) == [8]
        starting.join()
    assert told[0] == "waiting for workers: 0 of 1"


@pytest.mark.slow
def test_sighted__a_worker_that_comes_late_and_sees_other_files_gives_no_number(tmp_path):
    """Each process has a file of its own under this path."""
    (tmp_path / "day.wav").write_bytes(b"sound")
    own = "/proc/self/cmdline"

    def work(first):
        client = default_client()
        with sighted([tmp_path / "day.wav"], tmp_path), foreign(first.address):
            wait_until(lambda: len(client.nthreads()) == 2, WAIT)
            client.gather(client.map(double, range(8)))  # it sees what it should
        # As a run of which everybody who is there sees the files.
        client.log_event(f"{client.guest}-files", {"job": "1", "files": {own: (0, 0, "other")}})
        with foreign(first.address) as late:
            wait_until(lambda: late.address and len(client.nthreads()) > 1, WAIT)
            client.gather(client.map(double, range(20, 40)))

    sentence = rf"tcp:.* does not see {own} \(there is another"
    with foreign(1) as first, pytest.raises(ConnectionError, match=sentence), connect(first.address):
        work(first)


# ------------------------------------------------------------------------------------------------------ dashboards


@pytest.mark.slow
def test_local__a_dashboard_is_on_loopback_and_its_address_is_told():
    pytest.importorskip("bokeh")
    told = []
    with connect(ClusterConfig("local", workers=1, dashboard=True), tell=told.append):
        assert set(listening()) == {"127.0.0.1"}
        (line,) = told
        label, _, where = line.partition(": ")
        assert label == "dashboard"
        assert where.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(where, timeout=WAIT) as page:
            assert page.status == 200


# ------------------------------------------------------------------------------------------------------- exit codes


@pytest.mark.parametrize("through", ["manifold-observer", "dask"])
def test_exit__four_where_the_cluster_cannot_be_used(recorded, console, monkeypatch, through, capsys):
    monkeypatch.setattr(address, "CONNECT_SECONDS", 0.1)
    words = ["run", "a.npy", "out", *OPTIONS, "--cluster", "tcp://127.0.0.1:1"]
    if through == "dask":
        from manifold_observer.pipeline.cli.entry import Hearing, dask_command  # noqa: PLC0415

        monkeypatch.setattr(Hearing, "listen", lambda self: self)
        with pytest.raises(SystemExit) as left:
            dask_command.main(words, prog_name="dask manifold-observer")
        code, err = left.value.code, capsys.readouterr().err
    else:
        code, _, err = console(*words)
    assert code == 4
    assert err.startswith("Error: cluster: no scheduler answers at tcp://127.0.0.1:1 (")
    assert not (recorded / "out").exists()


def test_help__names_the_exit_codes(console):
    code, out, _ = console("--help")
    text = " ".join(out.split())
    assert code == 0
    for part in ("0 success", "1 error", "2 wrong usage", "3 partial", "4 the cluster cannot be used", "Ctrl-C 130"):
        assert part in text


def test_names__of_a_module_are_those_of_the_package():
    assert cluster.ClusterConfig is ClusterConfig
    assert dask.config.get("manifold-observer.workers-timeout", None) is None
