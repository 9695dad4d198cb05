"""Where a run computes: a local cluster of processes, or one that is already there."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
from distributed import Client, LocalCluster, WorkerPlugin
from threadpoolctl import threadpool_limits

from .machine import free_memory
from .memory import worker_limits

_CONNECT_SECONDS = 20
# Memory that is worth a worker of its own.
_WORKER_BYTES = 2**29
# Settings of the cluster that this module starts. Dask's profiler doubles the cost of small tasks, its malloc
# settings give every tile fresh pages from the system, which costs a sixth of a pass, and five processes that look
# at their clocks every 20 ms take a tenth of a core. Tasks are stolen once a second, most of a pass. A worker
# that is away when 15 s have passed since it was lost an earlier time would never be started again.
_SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.scheduler.work-stealing-interval": "50ms",
    "distributed.deploy.lost-worker-timeout": "10 minutes",
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**26,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}


class BlasThreads(WorkerPlugin):  # type: ignore[misc]
    """Give BLAS as many threads as the cores that each worker thread has for itself: one, as a rule."""

    name = "manifold-observer-blas-threads"

    def setup(self, worker: Any) -> None:
        """Set the limit when a worker starts."""
        threadpool_limits(limits=1)
        logging.getLogger(__name__).info("one BLAS thread for each of %d threads", worker.state.nthreads)


@contextmanager
def connect(cluster: str = "local", *, n_workers: int | None = None, memory: int | None = None) -> Iterator[Client]:
    """Connect to a cluster for the length of a block, with one BLAS thread a worker thread.

    Parameters
    ----------
    cluster
        ``"local"`` starts one process a core here; otherwise the address of a scheduler, such as
        ``"tcp://10.0.0.1:8786"``. Its workers must see the same files.
    n_workers
        Processes of a local cluster; one a core by default, fewer where memory is short.
    memory
        Bytes that the workers of a local cluster may take together; what is free here by default, and at most.

    Yields
    ------
    The client. A local cluster is closed at the end.

    Raises
    ------
    ConnectionError
        Nothing answers at the address.
    ValueError
        A worker's share of the memory is less than it takes to start.
    """
    if cluster != "local" and memory is not None:
        raise ValueError(
            f"cluster: --memory must be left out with --cluster {cluster}; got {memory} bytes. The workers of a "
            "cluster that runs already have their own limits."
        )
    if cluster != "local":
        with _client(cluster) as client:
            client.register_plugin(BlasThreads())
            yield client
        return
    workers = n_workers or max(1, min(len(os.sched_getaffinity(0)), free_memory() // _WORKER_BYTES))
    with (
        dask.config.set(_SETTINGS),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=worker_limits(workers, memory).limit,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,  # a failed task is told once, by the command
        ) as local,
        Client(local, direct_to_workers=True) as client,  # results need no detour by the scheduler
    ):
        client.register_plugin(BlasThreads())
        yield client


@contextmanager
def _client(address: str) -> Iterator[Client]:
    """Client of a cluster that is already there."""
    try:
        client = Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"cluster: no scheduler answers at {address} ({error or type(error).__name__}). Start one with "
            "'dask scheduler', or take --cluster local."
        ) from None
    with client:
        yield client
