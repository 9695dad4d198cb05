"""What memory there is, and the refusal of what does not fit."""

from __future__ import annotations

from typing import NamedTuple

import dask

from .client import on_cluster, session_client
from .machine import free_memory, own_memory
from .shared import memory_of_this_thread
from .threads import n_threads_here

# A process with Dask, NumPy, SciPy and xarray loaded, measured 0.2 GiB, and its slack; a caller has more loaded.
BASE_BYTES = 320 * 2**20

CALLER_BYTES = 448 * 2**20
LAZY_FRAMES = 2**19
"""Frames above which nothing as long as a recording is held here: below, a number of every frame is 4 MB."""


class Workers(NamedTuple):
    """Number of workers, the memory limit of the smallest in bytes, and the most threads that one of them has."""

    number: int
    limit: int
    threads: int = 1

    @property
    def total(self) -> int:
        """Memory of all, bytes."""
        return self.number * self.limit


class Memory(NamedTuple):
    """Upper bounds in bytes: one task beside its inputs, the peak of a worker, the peak of the caller."""

    task: int
    worker: int
    caller: int

    def at_once(self, n_tasks: int) -> Memory:
        """The same where a worker runs so many tasks at once.

        Examples
        --------
        >>> Memory(task=10, worker=100, caller=50).at_once(3)
        Memory(task=10, worker=120, caller=50)
        """
        return self._replace(worker=self.worker + (n_tasks - 1) * self.task)


def require(memory: Memory, limit: int, fits: str, who: str = "embed") -> None:
    """Refuse before anything is computed what would not fit into a worker.

    Parameters
    ----------
    memory
        Bounds.
    limit
        Memory limit of a worker, bytes.
    fits
        What would fit, in words.
    who
        Begins the sentence.

    Raises
    ------
    ValueError
        With the bytes on both sides.
    """
    if memory.worker > limit:
        raise ValueError(f"{who}: needs {gib(memory.worker)} per worker, but the limit is {gib(limit)}. {fits}")


def fewer_threads(there: Workers) -> str:
    """The end of an advice, where tasks run at once that could run one after the other.

    Examples
    --------
    >>> fewer_threads(Workers(1, 2**30, threads=8))
    ', or fewer threads (DASK_NUM_WORKERS=1 for a command, dask.config.set(num_workers=1) in Python)'
    >>> fewer_threads(Workers(2, 2**30))
    ''
    """
    if there.threads == 1:
        return ""
    if on_cluster():
        return ", or workers with fewer threads"
    return ", or fewer threads (DASK_NUM_WORKERS=1 for a command, dask.config.set(num_workers=1) in Python)"


def gib(n_bytes: float) -> str:
    """Bytes for people."""
    return f"{n_bytes / 2**30:.2f} GiB"


def worker_limits(n_workers: int, given: int | None = None) -> Workers:
    """What each of some workers on this machine may take: its share of what is free, or of less where that is given.

    Parameters
    ----------
    n_workers
        Processes.
    given
        Bytes for all of them together, or None.

    Returns
    -------
    The workers.

    Raises
    ------
    ValueError
        A worker's share is less than it takes to start.

    Examples
    --------
    >>> worker_limits(2, 2**30)
    Workers(number=2, limit=536870912, threads=1)
    """
    free = free_memory()
    share = min(free, given or free) // n_workers
    if share < BASE_BYTES:
        raise ValueError(
            f"cluster: a worker must have at least {gib(BASE_BYTES)}; got {gib(share)} for each of {n_workers} "
            f"({gib(free)} are free here). Give fewer --workers, or a larger --memory."
        )
    return Workers(n_workers, share)


def workers() -> Workers:
    """The workers of the session's cluster, or this process as one worker."""
    client = session_client()
    if client is not None:
        known = client.scheduler_info(n_workers=-1)["workers"].values()
        limited = [worker for worker in known if worker["memory_limit"]]
        if limited:
            smallest = min(int(worker["memory_limit"]) for worker in limited)
            return Workers(len(limited), smallest, max(int(worker["nthreads"]) for worker in limited))
    here = free_memory() + own_memory()
    given = memory_of_this_thread() or dask.config.get("manifold-observer.memory", None)
    return Workers(1, min(here, int(given or here)), n_threads_here())
