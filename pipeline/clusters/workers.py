"""Who computes: workers are looked at before anything is sent to them, and watched for as long as a run lasts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from dask.utils import format_time
from distributed import Client, WorkerPlugin
from distributed.comm import CommClosedError

from ..graph.warn import warn
from . import census, paused
from .lost import LostClusterError, no_workers
from .place import Place
from .waiting import await_workers

# A worker answers within this while it computes; one that does not has been stopped or cut off.
_ANSWER_SECONDS = 60
_WATCH_SECONDS = 1.0
_REGISTRATIONS = 5


class GuardedClient(Client):  # type: ignore[misc]
    """A client that takes no number from a cluster in which something is wrong.

    ``trouble`` says what. A worker that joined unfit has told of it before anything that it computed gets here.
    """

    trouble: str | None = None
    guest: str | None = None
    """Name of the plugin that its workers have, and of what they tell."""

    async def _gather(self, *arguments: Any, **options: Any) -> Any:
        values = await super()._gather(*arguments, **options)
        if self.trouble is not None:
            raise LostClusterError(self.trouble)
        return values


class _Guest(WorkerPlugin):  # type: ignore[misc]
    """Travels as text: what arrives is :func:`census.guest`."""

    def __init__(self, name: str, client: str, here: Mapping[str, Any]) -> None:
        self._call = _as_text("guest", name, client, dict(here))

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (self._call,)


@contextmanager
def guarded(client: GuardedClient, place: Place) -> Iterator[None]:
    """Keep the workers fit for the length of a block, those that join meanwhile too, and leave no trace on them.

    Workers get one BLAS thread a thread. Where none is left, or one joins that runs something else, the client's
    ``trouble`` says so.
    """
    name = client.guest = f"manifold-observer-{uuid4().hex}"
    client.subscribe_topic(name, lambda event: _unfit(client, event[1]))
    watching = asyncio.run_coroutine_threadsafe(_watch(client, place), client.loop.asyncio_loop)
    try:
        _register(client, name)
        yield
    finally:
        watching.cancel()
        if client.status == "running":
            with suppress(Exception):  # the cluster may go at any moment, and takes the plugin with it
                client.sync(_in_time, client.unregister_worker_plugin, name, callback_timeout=10)


def _register(client: GuardedClient, name: str) -> None:
    """Give all workers the plugin; one that dies at that moment closes the connection, and is followed by another."""
    for attempt in range(_REGISTRATIONS):
        try:
            client.register_plugin(_Guest(name, client.id, _here()), name=name)
            return
        except CommClosedError:
            if attempt == _REGISTRATIONS - 1 or client.status != "running":
                raise
            time.sleep(_WATCH_SECONDS)


def check_workers(client: GuardedClient, place: Place, tell: Callable[[str], None]) -> None:
    """Wait for workers, and refuse a cluster that has none, or some that run something else than this process.

    Raises
    ------
    LostClusterError
        Names the worker and the difference.
    """
    await_workers(client, place, tell)
    for worker, answer in sorted(ask(client, "describe").items()):
        reason, worth = (f"no answer ({answer!r})", None) if isinstance(answer, Exception) else _compared(answer)
        if reason is not None:
            raise LostClusterError(_unfit_sentence(worker, reason))
        if worth is not None:
            warn(f"cluster: worker {worker} has {worth}. The last digits may depend on which worker computes them.")


async def _watch(client: GuardedClient, place: Place) -> None:
    """Note when no worker that works, or no scheduler, has been there for too long, and free who waits for them."""
    missing, there = 0.0, None  # type: float, Any
    while missing < place.patience and place.failing() is None:
        await asyncio.sleep(_WATCH_SECONDS)
        before = asyncio.get_running_loop().time()
        there = None
        with suppress(OSError, TimeoutError):
            there = await asyncio.wait_for(_workers_of(client), _ANSWER_SECONDS)
        taken = asyncio.get_running_loop().time() - before + _WATCH_SECONDS
        missing = 0.0 if there and not paused.all_stand_still(there) else missing + taken
    client.trouble = place.failing() or _missing(place, there)
    await client.close()


async def _workers_of(client: GuardedClient) -> dict[str, Any]:
    """What the scheduler says of its workers."""
    found: dict[str, Any] = (await client.scheduler.identity(n_workers=-1))["workers"]
    return found


def _missing(place: Place, there: dict[str, Any] | None) -> str:
    """Who has been missing for too long."""
    if there is None:
        return f"cluster: the scheduler at {place.name} is gone"
    return paused.sentence(there, format_time(place.patience)) if there else str(no_workers(place))


def _unfit(client: GuardedClient, told: Mapping[str, str]) -> None:
    """A worker says that it should not have a part in this run."""
    if "reason" in told:
        client.trouble = _unfit_sentence(told["worker"], told["reason"])
    elif "unseen" in told:
        client.trouble = unseen_sentence(told["worker"], told["unseen"])


def _unfit_sentence(worker: str, reason: str) -> str:
    """What is wrong with a worker, and what to do."""
    return (
        f"cluster: workers must have the same software as this process; {worker} has {reason}. Install the same there "
        "and restart that worker; if it runs on this machine, repeat the command"
    )


def unseen_sentence(worker: str, unseen: str) -> str:
    """What a worker does not see, and what to do."""
    return (
        f"cluster: all workers must see the same files; {worker} does not see {unseen}. Put them on a file system that "
        "all machines share under one path, or take --cluster local."
    )


@cache
def _here() -> Mapping[str, Any]:
    """What this process runs."""
    return census.describe()


def _compared(answer: dict[str, Any]) -> tuple[str | None, str | None]:
    """A worker beside this process."""
    return census.differences(dict(_here()), answer)


def ask(client: Client, function: str, *arguments: Any, workers: list[str] | None = None) -> dict[str, Any]:
    """What a function of :mod:`census` gives on every worker, or the exceptions that came instead."""
    run = {"workers": workers, "on_error": "return"}
    asked = client.sync(_in_time, client.run, eval, _as_text(function, *arguments), **run, callback_timeout=None)
    return dict(asked)


async def _in_time(function: Any, *arguments: Any, **options: Any) -> Any:
    """What a client's function gives within the client's loop."""
    return await asyncio.wait_for(function(*arguments, **options), _ANSWER_SECONDS)


@cache
def _text() -> str:
    """The file that workers are sent."""
    return Path(census.__file__).read_text(encoding="utf-8")


def _as_text(function: str, *arguments: Any) -> str:
    """An expression that calls a function of :mod:`census` wherever it is evaluated; arguments are plain values."""
    return f"(exec({_text()!r}, space := {{'__name__': 'census'}}), space[{function!r}](*{arguments!r}))[1]"
