"""Where a run computes: one factory from a name, or from settings, to a client of workers that are fit for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dask.system import cpu_count
from distributed import Client

from ..graph.limits import worker_limits
from ..graph.machine import free_memory
from .address import guarded_client, running
from .config import ClusterConfig, as_config, seconds
from .local import local_cluster
from .lost import explained, patience
from .place import Place
from .workers import GuardedClient, check_workers, guarded

# Memory that is worth a worker of its own.
_WORKER_BYTES = 2**29
Tell = Callable[[str], None]


def silent(_: str) -> None:
    """Tell nobody."""


@contextmanager
def connect(
    cluster: str | ClusterConfig = "local",
    *,
    n_workers: int | None = None,
    memory: int | None = None,
    tell: Tell = silent,
) -> Iterator[Client]:
    """Connect to a cluster for the length of a block, with one BLAS thread a worker thread.

    Parameters
    ----------
    cluster
        ``"local"`` starts one process a core here, which nobody else can use; otherwise the address of a
        scheduler, such as ``"tcp://10.0.0.1:8786"``, another kind of cluster, or all its settings. Workers must run
        the same versions and see the same files.
    n_workers
        Worker processes to start; where they are on this machine, one a core by default, fewer where memory is short.
    memory
        Bytes that the workers of a local cluster may take together; what is free here by default, and at most.
    tell
        Called with lines on what is waited for, and with the dashboard's address.

    Yields
    ------
    The client. What was started is closed at the end; on clusters of others nothing is left behind.

    Raises
    ------
    LostClusterError
        Nothing answers at the address, or its workers cannot be used, or are lost during the block.
    ValueError
        The settings do not suit this kind of cluster, or a worker's share of the memory is less than it takes to start.
    """
    config = as_config(cluster, n_workers, memory)
    config.check_applies()
    with _opened(config, tell) as (client, place), _explained(client, place.name):
        if config.family != "local":  # whose workers run what this process runs
            check_workers(client, place, tell)
        with guarded(client, place):
            yield client


def _opened(config: ClusterConfig, tell: Tell) -> AbstractContextManager[tuple[GuardedClient, Place]]:
    """The cluster of some settings, by its family; what it takes to start one is imported for those who do."""
    if config.family in ("address", "file"):
        return _running(config)
    if config.family in ("queue", "kubernetes", "class"):
        return _started(config, tell)
    if config.family == "none":
        raise ValueError("cluster: cluster must be one to connect to; got 'none'. Leave connect out.")
    return _local(config, tell)


@contextmanager
def _local(config: ClusterConfig, tell: Tell) -> Iterator[tuple[GuardedClient, Place]]:
    """Processes of this machine."""
    workers = config.workers or max(1, min(cpu_count(), free_memory() // _WORKER_BYTES))
    limit = worker_limits(workers, config.memory).limit
    with (
        local_cluster(workers, limit, dashboard=config.dashboard) as local,
        guarded_client(local, direct_to_workers=True) as client,  # results need no detour by the scheduler
    ):
        if config.dashboard:
            tell(f"dashboard: {local.dashboard_link}")
        yield client, Place("this machine", "Repeat the command.", workers, patience())


@contextmanager
def _started(config: ClusterConfig, tell: Tell) -> Iterator[tuple[GuardedClient, Place]]:
    """A cluster that is started elsewhere, and ends with the block."""
    with _starting(config) as (cluster, place):
        if config.dashboard:
            tell(f"dashboard: {cluster.dashboard_link}")
        with guarded_client(cluster) as client:
            yield client, place


def _starting(config: ClusterConfig) -> AbstractContextManager[tuple[Any, Place]]:
    """What starts it."""
    if config.family == "queue":
        from .queues import queued  # noqa: PLC0415 - of an extra

        return queued(config)
    if config.family == "kubernetes":
        from .kubernetes import pods  # noqa: PLC0415 - of an extra

        return pods(config)
    from .named import instance  # noqa: PLC0415

    return instance(config)


@contextmanager
def _running(config: ClusterConfig) -> Iterator[tuple[GuardedClient, Place]]:
    """A cluster that is there already."""
    with running(config) as (client, address):
        wait = seconds(config.wait) if config.wait else patience()
        remedy = f"Start some with 'dask worker {address}', or take --cluster local."
        yield client, Place(address, remedy, patience=wait)


@contextmanager
def _explained(client: GuardedClient, name: str) -> Iterator[None]:
    """Whatever Dask raises within the block ends in one sentence."""
    try:
        yield
    except (Exception, asyncio.CancelledError) as error:
        better = explained(error, client, name, client.trouble)
        if better is error:
            raise
        for note in getattr(error, "__notes__", []):  # from where the same command resumes
            better.add_note(note)
        raise better from error
