"""Threads of a session that computes in its own process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from threading import current_thread
from typing import Any

import dask
import dask.threaded
from dask.system import CPU_COUNT

from .client import on_cluster

_THREADED = (None, "threads", "threading", dask.threaded.get)


@contextmanager
def threads_here() -> Iterator[Callable[..., Any]]:
    """A ``map`` over as many threads as Dask would take in this process; the plain one where it computes elsewhere.

    For work that is too short for a graph.

    Examples
    --------
    >>> with threads_here() as over:
    ...     list(over(abs, [-1, 2]))
    [1, 2]
    """
    number = n_threads_here()
    if number == 1:
        yield map
        return
    with ThreadPoolExecutor(number, thread_name_prefix="product") as pool:
        yield pool.map


def n_threads_here() -> int:
    """How many threads Dask would compute in: those of a pool that was chosen, one where its scheduler has none.

    Outside the thread that imported Dask it takes as many as Python gives a pool by default: more than there are cores.
    """
    chosen = dask.config.get("scheduler", None)
    if on_cluster():
        return 1
    if isinstance(chosen, Executor):
        return _threads_of(chosen)
    if (chosen.lower() if isinstance(chosen, str) else chosen) not in _THREADED:
        return 1
    pool, number = dask.config.get("pool", None), dask.config.get("num_workers", None)
    if pool is not None:
        return _threads_of(pool)
    if number is None and current_thread() is dask.threaded.main_thread:
        return int(CPU_COUNT)
    return _threads_of(ThreadPoolExecutor(number))


def _threads_of(pool: Any) -> int:
    """Threads of a pool of Python's, of either kind: neither tells them in public."""
    return int(getattr(pool, "_max_workers", None) or getattr(pool, "_processes", None) or CPU_COUNT)
