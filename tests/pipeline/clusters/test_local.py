"""The local cluster: nobody else gets in, workers that die while they start are started again, none is left behind."""

import contextlib
import gc
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import dask
import psutil
import pytest
from distributed import LocalCluster

from manifold_observer.pipeline.clusters import local
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.clusters.scratch import scratch
from manifold_observer.pipeline.graph.compute import compute, task
from manifold_observer.tasks.arrays import aligned
from strategies import share

WAIT = 60
NOBODY = 65534
AS_ROOT = os.getuid() == 0  # who alone can become another user

# What another user of the machine tries: to run a function, and to read what workers leave on disk. Everything is
# imported while that is allowed, since nobody may read this interpreter's files.
ATTACK = """
import asyncio, logging, os, sys
import distributed, distributed.comm.tcp, distributed.protocol.pickle
from distributed import Client, Security
from distributed.core import rpc
logging.disable(logging.CRITICAL)
security = Security(require_encryption=False)
async def attack(address):
    for scheme in ("tcp", "tls"):
        try:
            comm = await asyncio.wait_for(distributed.comm.connect(
                address.replace("tls://", scheme + "://").replace("tcp://", scheme + "://"), timeout=3,
                **(security.get_connection_args("client") | INSECURE.get(scheme, {}))), 5)
            await comm.write({"op": sys.argv[2], "function": distributed.protocol.pickle.dumps(os.getuid),
                "args": distributed.protocol.pickle.dumps(()), "kwargs": distributed.protocol.pickle.dumps({}),
                "wait": True, "reply": True})
            answer = await asyncio.wait_for(comm.read(), 5)
            print("ran as", answer["result"])
        except Exception as error:
            print(scheme, type(error).__name__)
import ssl
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
INSECURE = {"tls": {"ssl_context": context}}
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
asyncio.run(attack(sys.argv[1]))
for place in sys.argv[3:]:
    try:
        print("read", os.listdir(place))
    except OSError as error:
        print("list", type(error).__name__)
"""


@pytest.fixture(scope="module")
def client():
    """One worker on this machine, whose first death over a task is the last."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), connect("local", n_workers=1) as client:
        yield client


def attacked(address, operation, *places):
    done = subprocess.run(
        [sys.executable, "-c", ATTACK, address, operation, *places],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def scratch_of(client):
    return Path(*client.run(lambda dask_worker: dask_worker.local_directory).values())


def die():
    os.kill(os.getpid(), signal.SIGKILL)


# --------------------------------------------------------------------------------------------------- how they start


def test_local__workers_have_loaded_what_tasks_need_before_the_first_and_keep_it_apart(client):
    loaded = client.run(lambda: [name in sys.modules for name in ("dask.array", "scipy.linalg", "xarray", "zarr")])
    assert list(loaded.values()) == [[True] * 4]
    assert min(client.run(gc.get_freeze_count).values()) > 50_000
    assert all(client.run(gc.isenabled).values())


@pytest.mark.parametrize(
    ("theirs", "words", "told"),
    [
        (["theirs"], [], []),
        ("theirs", ["--level", "2"], ["--level", "2"]),  # as an environment variable gives it
        (["theirs"], [["--level", "2"]], [["--level", "2"], []]),
    ],
)
def test_local__preloads_of_the_users_settings_stay(tmp_path, monkeypatch, theirs, words, told):
    seen = {}
    monkeypatch.setattr(local, "LocalCluster", lambda **settings: seen.update(settings))
    with dask.config.set({"distributed.worker.preload": theirs, "distributed.worker.preload-argv": words}):
        local._scheduler(2**30, None, False, str(tmp_path))
    assert seen["preload"] == ["theirs", "manifold_observer.pipeline.clusters.ready"]
    assert seen["preload_argv"] == told


# --------------------------------------------------------------------------------------------------- who gets in


@pytest.mark.slow
def test_local__another_user_gets_nothing(client):
    address, place = client.scheduler.address, scratch_of(client)
    heard = attacked(address, "run_function", str(place), str(place.parent))
    assert not any(line.startswith("ran") for line in heard), heard
    assert heard[-2:] == ["list PermissionError"] * 2 or not AS_ROOT
    (worker,) = client.nthreads()
    assert not any(line.startswith("ran") for line in attacked(worker, "run"))


def test_local__the_same_attempt_on_a_cluster_without_certificates_succeeds():
    with LocalCluster(
        n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1", scheduler_kwargs={"http_prefix": "x"}
    ) as c:
        assert f"ran as {os.getuid()}" in attacked(c.scheduler_address, "run_function")


def test_local__listens_on_loopback_alone(client):
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    listening = [
        connection.laddr.ip
        for process in processes
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 4
    assert set(listening) == {"127.0.0.1"}
    assert client.scheduler.address.startswith("tls://127.0.0.1:")


@pytest.mark.parametrize("page", ["/status", "/info/main/workers.html", "/json/identity.json", "/metrics"])
def test_local__no_page_tells_of_it(client, page):
    port = client.scheduler_info()["services"]["dashboard"]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=WAIT)


def test_local__what_workers_spill_is_private(client):
    for folder in (scratch_of(client), scratch_of(client).parents[1]):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.stat().st_uid == os.getuid()


@pytest.mark.parametrize("trap", ["open", "link", "file"])
def test_local__a_place_that_somebody_prepared_is_not_taken(tmp_path, trap):
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        own = Path(scratch())
        assert own == Path(scratch())
        own.rmdir()
        if trap == "open":
            own.mkdir(mode=0o777)
            own.chmod(0o777)
        elif trap == "link":
            (tmp_path / "other").mkdir(mode=0o700)
            own.symlink_to(tmp_path / "other")
        else:
            own.touch()
        found = Path(scratch())
    assert found.parent == tmp_path
    assert found not in (own, tmp_path / "other")
    assert stat.S_IMODE(found.stat().st_mode) == 0o700


# ---------------------------------------------------------------------------------------------------- who dies


@pytest.mark.slow
def test_local__a_task_that_kills_its_worker_is_named_in_one_sentence():
    with (
        pytest.raises(ConnectionError, match="1 worker died while running the task die, most likely"),
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        connect("local", n_workers=1),
    ):
        compute([task(die)])


def test_local__workers_that_cannot_start_are_one_sentence(monkeypatch):
    async def refused(_):
        raise RuntimeError("Nanny failed to start.") from OSError("no more processes")

    monkeypatch.setattr(local._Nanny, "instantiate", refused)
    sentence = r"^cluster: workers must start on this machine; got no more processes\. Give fewer --workers"
    with pytest.raises(ConnectionError, match=sentence), connect("local", n_workers=1):
        pass


def worker_processes():
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "spawn_main" in " ".join(process.cmdline()):
                yield process


@pytest.mark.slow
@pytest.mark.parametrize("delay", share([0.0, 0.5], 2))
def test_local__workers_that_are_killed_while_they_start_are_started_again(delay):
    killed, over = set(), threading.Event()

    def kill():
        while len(killed) < 3 and not over.is_set():
            for process in worker_processes():
                if process.pid not in killed and len(killed) < 3:
                    time.sleep(delay)
                    process.kill()
                    killed.add(process.pid)
            time.sleep(0.01)

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        with connect("local", n_workers=2) as client:
            client.wait_for_workers(2, timeout=WAIT)
            assert compute([task(aligned, 4)]) == [4]
    finally:
        over.set()
        killing.join()
    assert len(killed) == 3


DRIVER = """
import os, time
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.clusters.scratch import scratch
if __name__ == "__main__":
    with connect("local", n_workers=1) as client:
        print(*client.run(os.getpid).values(), flush=True)
        time.sleep(600)
"""


@pytest.mark.slow
def test_local__workers_go_with_a_driver_that_is_killed(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    with subprocess.Popen([sys.executable, tmp_path / "driver.py"], stdout=subprocess.PIPE, text=True) as driver:
        worker = psutil.Process(int(driver.stdout.readline()))
        driver.kill()
    psutil.wait_procs([worker], timeout=WAIT)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
