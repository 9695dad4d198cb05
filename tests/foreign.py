"""Somebody else's cluster, in a process of its own: a scheduler with workers, or a worker for a scheduler elsewhere.

As a script it prints its address, and then does what it reads: ``start`` and ``stop`` a worker. It ends with its input.
"""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import dask
import numpy as np  # noqa: F401 - loads its BLAS
from distributed import Scheduler, Worker
from threadpoolctl import threadpool_info

ROOT = Path(__file__).parents[1]


def blas_threads():
    """BLAS threads of this process."""
    return max(info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas")


def wait_until(condition, within=60):
    """What a condition gives once it holds; an error where it does not in so many seconds."""
    until = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def double(x):
    """A task that workers find here."""
    return 2 * x


def sleepy(seconds):
    """A task that takes a while."""
    time.sleep(seconds)
    return seconds


class Hidden:
    """A finder for an environment in which some package is not installed."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


async def serve(address, n_workers):
    """A scheduler with workers, or a worker for the scheduler at an address."""
    reading = asyncio.get_running_loop().run_in_executor
    async with contextlib.AsyncExitStack() as stack:
        if address is None:
            scheduler = await stack.enter_async_context(
                Scheduler(host="127.0.0.1", port=0, dashboard=False, dashboard_address="127.0.0.1:0")
            )
            address = scheduler.address
        workers = [await _worker(address) for _ in range(n_workers)]
        print(address, flush=True)
        while line := (await reading(None, sys.stdin.readline)).strip():
            if line == "start":
                workers.append(await _worker(address))
            else:
                await workers.pop().close()
            print(line, flush=True)
        for worker in workers:
            await worker.close()


async def _worker(address):
    return await Worker(address, nthreads=1, name=f"{os.getpid()}-{os.urandom(4).hex()}", dashboard=False)


@contextlib.contextmanager
def foreign(*words, path=None, cwd=None):
    """Run this file as a script; its process, with its address as ``address``."""
    environment = {**os.environ, **({"PYTHONPATH": str(path)} if path else {})}
    command = [sys.executable, __file__, *map(str, words)]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, env=environment, cwd=cwd, **streams) as process:
        try:
            process.address = process.stdout.readline().strip()
            yield process
        finally:
            process.kill()


def say(process, word):
    """Have a foreign cluster start or stop a worker."""
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    assert process.stdout.readline().strip() == word


def altered_package(folder):
    """A copy of the package with one line more, to be put on the path of a worker."""
    for name in ("tasks", "pipeline", "datasets"):
        shutil.copytree(ROOT / name, folder / "manifold_observer" / name, ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "manifold_observer" / "tasks" / "kernel.py").open("a") as file:
        file.write("\n# One line more.\n")
    return folder


def other_version(folder, package, version):
    """Metadata of another version of a package, to be put on the path of a worker."""
    found = folder / f"{package}-{version}.dist-info"
    found.mkdir(parents=True)
    (found / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    return folder


if __name__ == "__main__":
    words = sys.argv[1:]
    if "--without" in words:
        sys.meta_path.insert(0, Hidden("manifold_observer"))
    where = next((word for word in words if "://" in word), None)
    count = next((int(word) for word in words if word.isdigit()), 1)
    with dask.config.set({"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}):
        asyncio.run(serve(where, count))
