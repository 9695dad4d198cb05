"""Which distributed Client this session has, if any."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import dask
import dask.threaded

from .shared import is_in_this_thread

_DISTRIBUTED = ("dask.distributed", "distributed")


def on_cluster() -> bool:
    """Whether a distributed Client is this session's default (without importing distributed)."""
    return session_client() is not None


def session_client() -> Any:
    """The distributed Client that is this session's default, None without one; distributed is not imported for it."""
    if "distributed" not in sys.modules or is_in_this_thread():
        return None
    from distributed import Client, default_client  # noqa: PLC0415

    # Dask computes by the scheduler of its settings, Client or not: its own, or one that somebody chose for a block.
    chosen = dask.config.get("scheduler", None)
    if chosen not in (None, *_DISTRIBUTED) and not isinstance(getattr(chosen, "__self__", chosen), Client):
        return None
    try:
        return default_client()
    except ValueError:
        return None


def in_threads() -> AbstractContextManager[Any]:
    """Compute in threads of this process for the length of a ``with`` block, unless the session computes elsewhere.

    By the scheduler's function: without one, or by its name, Dask imports distributed at the first computation,
    which takes longer than a small job.
    """
    chosen = on_cluster() or dask.config.get("scheduler", None) is not None
    return nullcontext() if chosen else dask.config.set(scheduler=dask.threaded.get)
