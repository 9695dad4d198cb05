"""Threads of a session that computes in its own process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
    """How many threads Dask's scheduler of threads would take; one where another scheduler was chosen."""
    if on_cluster() or dask.config.get("scheduler", None) not in _THREADED:
        return 1
    return int(dask.config.get("num_workers", None) or CPU_COUNT)
