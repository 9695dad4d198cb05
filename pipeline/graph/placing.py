"""Which worker a task is for, where that is known better here than by the scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import dask

from .client import session_client

_ADDRESSES: ContextVar[tuple[str, ...]] = ContextVar("addresses", default=())


def placed(number: int, of: int) -> AbstractContextManager[Any]:
    """Tasks that are made within are for one worker: that of a share of all, as far as ``number`` is along ``of``.

    It is advice: an idle worker may take them over. Where there is no cluster of many workers it says nothing. A
    scheduler that has to look for the best of a thousand workers for each of thousands of tasks does nothing else.
    """
    addresses = _ADDRESSES.get()
    if not addresses:
        return nullcontext()
    worker = addresses[min(number * len(addresses) // max(of, 1), len(addresses) - 1)]
    return dask.annotate(workers=[worker], allow_other_workers=True)


@contextmanager
def places() -> Iterator[None]:
    """Ask once for the workers that :func:`placed` chooses from within the block."""
    client = session_client()
    token = _ADDRESSES.set(tuple(sorted(client.nthreads())) if client is not None else ())
    try:
        yield
    finally:
        _ADDRESSES.reset(token)
