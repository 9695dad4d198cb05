"""A cluster of processes on this machine that nobody else can use."""

from __future__ import annotations

import logging
import multiprocessing.resource_tracker
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import dask
import psutil
from distributed import LocalCluster, Nanny, Security
from distributed.core import Status
from distributed.utils import LoopRunner

from ..graph.ending import unheard
from .lost import LostClusterError, root_cause
from .scratch import explained_start, scratch

# Dask's profiler doubles the cost of small tasks, its malloc settings give every tile fresh pages from the system,
# which costs a sixth of a pass, and five processes that look at their clocks every 20 ms take a tenth of a core
# (QUIET is for every scheduler that is started here: an idle one takes a sixtieth).
# Tasks are stolen once a second, most of a pass. A worker that is away when 15 s have passed since it was lost an
# earlier time would never be started again. The web servers of scheduler and workers know no passwords.
QUIET = {"distributed.admin.tick.interval": "500ms"}
_SETTINGS = QUIET | {
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.work-stealing-interval": "50ms",
    "distributed.deploy.lost-worker-timeout": "10 minutes",
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**26,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}
_NO_PAGES: dict[str, Any] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
_READY = "manifold_observer.pipeline.clusters.ready"
_LOOPBACK = "127.0.0.1"
_STARTS = 5
_KILL_SECONDS = 5


class _Nanny(Nanny):  # type: ignore[misc]
    """A nanny whose worker may die while it starts."""

    over = False
    """Whether no worker is wanted any more."""

    async def instantiate(self) -> Status:
        """Start the worker, again if it was killed meanwhile; later deaths are Dask's own affair."""
        status = Status.failed
        for _ in range(_STARTS):
            if self.over:
                break
            status = await super().instantiate()
            if status == Status.running or self.status not in (Status.init, Status.starting):
                break
        return status


@contextmanager
def local_cluster(n_workers: int, memory_limit: int, *, dashboard: bool = False) -> Iterator[LocalCluster]:
    """Start workers, one thread each, for the length of a block.

    Everything listens on the loopback device only, and to nobody without a certificate that is made for this cluster
    and kept in memory: whoever can talk to a scheduler can run code as its owner. When the block fails or is
    interrupted, workers are killed instead of waited for.

    Parameters
    ----------
    n_workers
        Processes.
    memory_limit
        Bytes that each of them may take.
    dashboard
        Serve Dask's dashboard, on the loopback device as well; everybody on this machine can read it.

    Yields
    ------
    The cluster.
    """
    folder = scratch()
    with dask.config.set(_SETTINGS | ({} if dashboard else _NO_PAGES)), unheard_loop() as loop:
        with _room_in(folder):
            cluster = _scheduler(memory_limit, loop, dashboard, folder)
        try:
            with _room_in(folder):
                _start(cluster, n_workers)
            yield cluster
        except BaseException:
            _kill(cluster)
            raise
        finally:
            cluster.close()


@contextmanager
def _room_in(folder: str) -> Iterator[None]:
    """Say in words that a folder could not take the files of what starts within the block."""
    try:
        yield
    except Exception as error:
        better = explained_start(error, folder)
        if better is error:
            raise
        raise better from error


def _scheduler(memory_limit: int, loop: Any, dashboard: bool, folder: str) -> LocalCluster:
    """A cluster that has no workers yet."""
    return LocalCluster(
        n_workers=0,
        threads_per_worker=1,
        processes=True,
        worker_class=_Nanny,
        **_preloads(),
        host=_LOOPBACK,
        security=Security.temporary(),
        dashboard_address=f"{_LOOPBACK}:0",
        scheduler_kwargs={"dashboard": dashboard, "local_directory": folder},
        local_directory=folder,
        memory_limit=memory_limit,
        silence_logs=logging.CRITICAL,  # the command reports a failed task once
        loop=loop,
    )


def _preloads() -> dict[str, Any]:
    """What workers load as they start: what the user's settings of Dask say, and what tasks need."""
    theirs = dask.config.get("distributed.worker.preload") or []
    words = dask.config.get("distributed.worker.preload-argv") or []
    apart = bool(words) and not isinstance(words[0], str)  # words for each, of which there must be as many
    return {
        "preload": [*([theirs] if isinstance(theirs, str) else theirs), _READY],
        "preload_argv": [*words, []] if apart else words,
    }


@contextmanager
def unheard_loop() -> Iterator[Any]:
    """A thread for Dask from which neither Ctrl-C nor SIGHUP reaches the processes that are started there."""
    with unheard():
        _start_tracker()  # which makes this thread hear again
    with unheard():
        runner = LoopRunner()
        runner.start()
    try:
        yield runner.loop
    finally:
        runner.stop()


def _start_tracker() -> None:
    """Start the process that clears away semaphores; it complains of them wherever a run ends in a hurry."""
    if os.name != "posix":  # there is none
        return
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        multiprocessing.resource_tracker.ensure_running()
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _start(cluster: LocalCluster, n_workers: int) -> None:
    """Start the workers; those that fail are started again, a few times."""
    for _ in range(n_workers):
        cluster.worker_spec.update(cluster.new_worker_spec())
    for attempt in range(_STARTS):
        try:
            cluster.sync(cluster._correct_state)
            return
        except Exception as error:
            if attempt == _STARTS - 1:
                raise LostClusterError(
                    f"cluster: workers must start on this machine; got {root_cause(error)}. Give fewer --workers, or "
                    "take --cluster none."
                ) from error
        for name, nanny in list(cluster.workers.items()):
            if nanny.status != Status.running:
                del cluster.workers[name]


def _kill(cluster: LocalCluster) -> None:
    """Kill all workers, also those that are being started, and let no nanny start them again."""
    nannies = list(cluster._created)
    for nanny in nannies:
        nanny.over = True
    until = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < until:
        for pid in filter(None, (nanny.pid for nanny in nannies)):
            with suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()
        if not any(nanny.status in (Status.init, Status.starting) for nanny in nannies):
            break
        time.sleep(0.02)
