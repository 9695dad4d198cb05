"""One sentence for each way in which a cluster fails a run: the only place that knows Dask's own exceptions."""

from __future__ import annotations

import asyncio
import concurrent.futures
from typing import Any

import dask
from dask.utils import format_time, parse_timedelta
from distributed import CancelledError, Client, KilledWorker
from distributed.comm import CommClosedError

from .place import Place

_GONE = (
    CancelledError,
    CommClosedError,
    asyncio.CancelledError,
    concurrent.futures.CancelledError,
    TimeoutError,
)


class LostClusterError(ConnectionError):
    """A cluster cannot be used, or not any more; the message is one sentence with its remedy."""

    exit_code = 4
    """What a command ends with."""


def patience() -> float:
    """Seconds without any worker after which a run gives up; ``manifold-observer.workers-timeout`` of Dask's settings.

    Examples
    --------
    >>> patience()
    60.0
    """
    return float(parse_timedelta(dask.config.get("manifold-observer.workers-timeout", "60s")))


def no_workers(place: Place) -> LostClusterError:
    """Nobody is there to compute."""
    return LostClusterError(
        f"cluster: the scheduler must have at least one worker; {place.name} had none for "
        f"{format_time(place.patience)}. {place.remedy}"
    )


def root_cause(error: BaseException) -> str:
    """What went wrong first: what Dask raises in the end says only that something did.

    Examples
    --------
    >>> root_cause(ValueError("no room."))
    'no room'
    """
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def explained(error: BaseException, client: Client, address: str, trouble: str | None) -> BaseException:
    """The error that a user should read in place of what Dask raised; others come back as they are.

    Parameters
    ----------
    error
        What the work on the cluster raised.
    client
        Its client.
    address
        Its scheduler.
    trouble
        What is known to have gone wrong with the cluster meanwhile.

    Returns
    -------
    The error to raise.
    """
    if isinstance(error, LostClusterError):
        return error
    if trouble is not None:
        return LostClusterError(trouble)
    if isinstance(error, KilledWorker):
        return _killed(error)
    if client.status != "running" or getattr(error, "reason", "") == "scheduler-connection-lost":
        return LostClusterError(f"cluster: the scheduler at {address} is gone")
    if isinstance(error, _GONE) and not isinstance(error, ConnectionRefusedError):
        text = " ".join(str(error).split()) or type(error).__name__
        return LostClusterError(f"cluster: the work on {address} was cancelled ({text})")
    return error


def _killed(error: Any) -> LostClusterError:
    """Workers died over a task, one after the other."""
    task = str(error.task).strip("()',").rsplit("-", 1)[0]
    died = error.allowed_failures + 1
    who = "1 worker died" if died == 1 else f"{died} workers died in turn"
    return LostClusterError(
        f"cluster: {who} while running the task {task}, most likely because memory ran out. "
        "'manifold-observer plan' says how much a worker needs; with fewer --workers each has more"
    )
