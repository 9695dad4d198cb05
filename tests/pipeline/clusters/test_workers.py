"""Clusters of others: who is there is looked at, what happens to them is told, and nothing is left on them."""

import contextlib
import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer

import dask
import numpy as np
import pytest
from distributed import KilledWorker
from foreign import altered_package, blas_threads, double, foreign, other_version, say, sleepy, wait_until

from manifold_observer.pipeline.clusters import address, census, cluster, lost, sight, workers
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.graph import compute as graph
from strategies import share

WAIT = 60


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A scheduler and one good worker in another process, which stands in another folder."""
    with foreign(1, cwd=tmp_path_factory.mktemp("elsewhere")) as running:
        yield running


@pytest.fixture(scope="module")
def strangers(elsewhere, tmp_path_factory):
    """Three workers that are not like this process, started at the same time."""
    folder = tmp_path_factory.mktemp
    with (
        foreign(0) as other,
        foreign("--without", other.address) as without,
        foreign(other.address, path=altered_package(folder("altered"))) as altered,
        foreign(other.address, path=other_version(folder("older"), "numpy", "2.0.9")) as older,
    ):
        yield other, {"without": without.pid, "altered": altered.pid, "older": older.pid}


@pytest.fixture
def soon():
    """Patience of a second."""
    with dask.config.set({"manifold-observer.workers-timeout": "1s"}):
        yield


def plugins(client):
    return set(*client.run(lambda dask_worker: sorted(dask_worker.plugins)).values())


def of_blas(client):
    return max(client.run(blas_threads).values())


def connected(address, work):
    with connect(address) as client:
        work(client)


# ------------------------------------------------------------------------------------------ nothing is left behind


@pytest.mark.parametrize("error", [None, ZeroDivisionError, KeyboardInterrupt])
def test_connect__leaves_nothing_on_a_cluster_of_others(elsewhere, error):
    with cluster.GuardedClient(elsewhere.address) as client:
        before, threads = plugins(client), of_blas(client)
    try:
        with connect(elsewhere.address) as client:
            assert of_blas(client) == 1
            assert len(plugins(client) - before) == 1
            if error is not None:
                raise error
    except BaseException as raised:
        assert type(raised) is error  # noqa: PT017 - of three kinds
    with cluster.GuardedClient(elsewhere.address) as client:
        assert plugins(client) == before
        assert of_blas(client) == threads


def test_connect__the_limit_stays_until_the_last_run_has_gone(elsewhere):
    with cluster.GuardedClient(elsewhere.address) as client:
        threads = of_blas(client)
        with connect(elsewhere.address) as one:
            with connect(elsewhere.address):
                pass
            assert of_blas(one) == 1
        assert of_blas(client) == threads


def test_guest__takes_itself_away_when_its_client_was_killed(elsewhere, monkeypatch):
    text = workers._text().replace("20_000", "100")
    assert text != workers._text()
    monkeypatch.setattr(workers, "_text", lambda: text)
    with cluster.GuardedClient(elsewhere.address) as client:
        before = plugins(client)
        killed = cluster.GuardedClient(elsewhere.address)
        killed.register_plugin(workers._Guest("left", killed.id, workers._here()), name="left")
        assert plugins(client) - before == {"left"}
        killed.close()
        wait_until(lambda: plugins(client) == before)


# ---------------------------------------------------------------------------------------------- who may have a part


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Mismatched versions found")  # of this test's own client
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("without", "no manifold-observer (here: "),
        ("altered", "other code under the same version, digest "),
        ("older", "numpy 2.0.9 (here: "),
    ],
)
def test_check_workers__says_what_is_other_about_a_worker(strangers, kind, reason):
    other, pids = strangers
    with cluster.GuardedClient(other.address) as client:
        processes = client.run(eval, "__import__('os').getpid()")
        (address,) = (worker for worker, pid in processes.items() if pid == pids[kind])
        found = workers._compared(workers.ask(client, "describe", workers=[address])[address])
        assert found[0].startswith(reason)
        assert found[1] is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Mismatched versions found")
def test_connect__refuses_other_workers_by_name_and_leaves_them_running(strangers, console, tmp_path):
    other, pids = strangers
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    code, out, err = console("run", tmp_path / "a.npy", tmp_path / "out", "--cluster", other.address)
    assert (code, out, err.count("\n")) == (4, "", 1)
    assert err.startswith("Error: cluster: workers must have the same software as this process; tcp://127.0.0.1:")
    with cluster.GuardedClient(other.address) as client:
        assert set(client.run(eval, "__import__('os').getpid()").values()) == set(pids.values())


@pytest.mark.slow
def test_connect__no_number_comes_from_a_worker_that_joins_with_other_code(elsewhere, tmp_path):
    altered, came = altered_package(tmp_path), []

    def work(client):
        came.append(client.submit(double, 4).result())
        with foreign(elsewhere.address, path=altered) as late:
            wait_until(lambda: len(client.nthreads()) == 2)
            (there,) = (worker for worker, pid in client.run(os.getpid).items() if pid == late.pid)
            came.append(client.submit(double, 5, workers=[there]).result(timeout=WAIT))

    with pytest.raises(ConnectionError, match="has other code under the same version"):
        connected(elsewhere.address, work)
    assert came == [8]


@pytest.mark.slow
def test_connect__a_good_worker_that_joins_computes_with_one_blas_thread(elsewhere):
    with connect(elsewhere.address) as client, foreign(elsewhere.address):
        wait_until(lambda: len(client.nthreads()) == 2)
        assert set(client.run(blas_threads).values()) == {1}
        assert client.gather(client.map(double, range(8))) == list(range(0, 16, 2))


@pytest.mark.parametrize(
    ("name", "value"), [("Python", "3.10"), ("byte order", "big"), ("dask", "2020.1"), ("scipy", None)]
)
def test_differences__refuse_what_computes_and_what_carries(name, value):
    here = census.describe()
    reason, worth = census.differences(here, {**here, name: value})
    assert reason.startswith(f"{name} {value or 'missing'} (here: ")
    assert worth is None


@pytest.mark.parametrize("name", ["xarray", "zarr", "arithmetic"])
def test_differences__warn_of_what_reads_and_of_other_machines(name):
    here = census.describe()
    reason, worth = census.differences(here, {**here, name: "another"})
    assert reason is None
    assert worth.startswith(f"{name} another (here: ")


def test_differences__refuse_code_that_changed_since_it_was_loaded():
    here = census.describe()
    assert census.differences(here, {**here, "stale": True})[0].startswith("manifold-observer as it was before")


def test_stale__only_what_was_changed_after_the_process_began(monkeypatch):
    assert not census.stale()
    monkeypatch.setattr("psutil.Process.create_time", lambda _: 0.0)
    assert census.stale()


# -------------------------------------------------------------------------------------------------- what they see


def test_check_files__workers_must_see_the_same_file_and_share_the_folder(elsewhere, tmp_path):
    (tmp_path / "day.wav").write_bytes(b"sound")
    with connect(elsewhere.address):
        sight.check_files([tmp_path / "day.wav"], tmp_path)
        with pytest.raises(ConnectionError, match=r"tcp://127.0.0.1:\d+ does not see /proc/self/cmdline \(there is"):
            sight.check_files(["/proc/self/cmdline"])  # each process sees another one
        with pytest.raises(ConnectionError, match=r"does not see /proc/self/cwd\. Put them on"):
            sight.check_files([], "/proc/self/cwd")
    assert [path.name for path in tmp_path.iterdir()] == ["day.wav"]


def test_run__names_the_worker_that_does_not_see_the_recording(elsewhere, console, tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    monkeypatch.chdir(tmp_path)
    options = ("--features", "identity", "--cluster", elsewhere.address)
    code, out, err = console("run", "/proc/self/cwd/a.npy", tmp_path / "out", *options)
    assert (code, out, err.count("\n")) == (4, "", 1)
    assert "does not see /proc/self/cwd/a.npy" in err
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_looks__a_recording_that_grows_is_the_same(tmp_path):
    recording = tmp_path / "live.wav"
    recording.write_bytes(b"1 second")
    files = {str(recording): census.looks(str(recording))}
    recording.write_bytes(b"2 seconds!")
    assert census.seen(files, None, "0") is None
    recording.unlink()
    assert census.seen(files, None, "0") == str(recording)


# --------------------------------------------------------------------------------------------- who is not there


@pytest.mark.slow
@pytest.mark.usefixtures("soon")
def test_connect__without_workers_says_how_to_start_some():
    with foreign(0) as empty, pytest.raises(ConnectionError, match=r"none for .* Start some with 'dask worker tcp:"):
        connected(empty.address, print)


@pytest.mark.slow
@pytest.mark.usefixtures("soon")
def test_connect__says_when_all_workers_have_gone():
    def work(client):
        assert client.submit(double, 4).result() == 8
        say(leaving, "stop")
        graph.compute([graph.task(double, 5)])

    with foreign(1) as leaving, pytest.raises(ConnectionError, match=r"at least one worker; tcp:.* had none for"):
        connected(leaving.address, work)


@pytest.mark.slow
@pytest.mark.parametrize("progress", share([graph.silent, lambda *_: None], 2))
def test_connect__says_when_the_scheduler_has_gone(progress):
    def work(client):
        threading.Timer(0.5, dying.kill).start()
        graph.compute([graph.task(sleepy, 30)], "long", progress)

    with foreign(1) as dying, pytest.raises(ConnectionError, match=f"the scheduler at {dying.address} is gone"):
        connected(dying.address, work)


@pytest.mark.slow
def test_run__says_that_the_same_command_resumes_when_the_scheduler_has_gone(console, tmp_path):
    frames = np.random.default_rng(0).normal(size=(5000, 4)).cumsum(axis=0)
    np.save(tmp_path / "a.npy", frames)
    options = ("--features", "identity", "--home", "recomputed", "--n-modes", 2)

    def kill_after_a_pass(process):
        wait_until(lambda: any(tmp_path.rglob("*pass-001*")))
        process.kill()

    with foreign(1) as dying:
        killing = threading.Thread(target=kill_after_a_pass, args=(dying,))
        killing.start()
        code, out, err = console("run", tmp_path / "a.npy", tmp_path / "out", *options, "--cluster", dying.address)
        killing.join()
    assert (code, out) == (4, "")
    assert err.splitlines()[-1].startswith(
        f"Error: cluster: the scheduler at {dying.address} is gone. The same command"
    )
    assert "resumes after pass " in err
    assert "Traceback" not in err


def test_explained__a_task_that_kills_its_workers_is_named():
    class Running:
        status = "running"

    error = lost.explained(KilledWorker("fused_product-0123abc", None, 3), Running(), "here", None)
    assert str(error).startswith("cluster: 4 workers died in turn while running the task fused_product, most likely")


# ---------------------------------------------------------------------------------------------------- strangers


class _Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


class _Huge(BaseRequestHandler):
    """Says that 2^60 bytes are to come, and waits until the other end has had enough."""

    def handle(self):
        with contextlib.suppress(OSError):
            self.request.sendall((2**60).to_bytes(8, "little") * 4)
            while self.request.recv(2**12):
                pass


@contextlib.contextmanager
def _serving(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"tcp://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(params=["tcp://no-such-host.invalid:1", "tcp://127.0.0.1:1", "silent", "http", "huge"])
def nobody(request):
    """Addresses at which there is no scheduler."""
    if request.param == "silent":
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
    elif request.param in ("http", "huge"):
        kind = HTTPServer if request.param == "http" else ThreadingTCPServer
        with _serving(kind(("127.0.0.1", 0), _Page if request.param == "http" else _Huge)) as where:
            yield where
    else:
        yield request.param


def test_connect__where_no_scheduler_is_says_so(nobody, monkeypatch, capfd):
    monkeypatch.setattr(address, "CONNECT_SECONDS", 2)
    before = time.monotonic()
    with pytest.raises(ConnectionError, match=f"^cluster: no scheduler answers at {nobody} "), connect(nobody):
        pytest.fail("nobody is there")
    assert time.monotonic() - before < WAIT
    assert capfd.readouterr().err == ""


def test_patience__is_a_setting():
    with dask.config.set({"manifold-observer.workers-timeout": "2 minutes"}):
        assert lost.patience() == 120
