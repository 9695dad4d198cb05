"""Several recordings at once on one cluster; what fails for a passing reason is tried again after a wait.

A recording that one worker can hold is one task, so that short ones cost neither a cluster nor an interpreter each.
Large ones come back, and have all workers, one after the other.
"""

from __future__ import annotations

import heapq
import itertools
import queue
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from ..clusters.lost import LostClusterError, explained
from .ledger import shown
from .process import Job, Outcome, failure

Process = Callable[[Job], Outcome]
# How long nothing is looked at while recordings are computed.
_TICK_SECONDS = 0.5


class Attempt(NamedTuple):
    """A job, how often it has been tried, and what came of it; ``wait``: seconds until it is tried again."""

    job: Job
    number: int
    outcome: Outcome
    wait: float | None = None


class Patience(NamedTuple):
    """How often to try again, and seconds before the first time."""

    retries: int
    backoff: float

    def wait(self, attempt: Attempt) -> float | None:
        """Seconds until an attempt is repeated; None where it is not."""
        outcome = attempt.outcome
        if outcome.kind != "failed" or not outcome.passing or outcome.full or attempt.number > self.retries:
            return None
        return float(self.backoff * 2 ** (attempt.number - 1))


class Pool(Protocol):
    """Where jobs are computed."""

    def submit(self, job: Job) -> None:
        """Begin a job."""

    def take(self, seconds: float) -> tuple[Job, Outcome] | None:
        """A job that has ended; None where none does within so many seconds."""


class Here:
    """Jobs one after the other, in the thread that takes them; their tasks go to the session's cluster."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._jobs: list[Job] = []

    def submit(self, job: Job) -> None:
        """Keep it until it is taken."""
        self._jobs.append(job)

    def take(self, seconds: float) -> tuple[Job, Outcome] | None:
        """Compute the next one."""
        job = self._jobs.pop(0)
        return job, self._process(job)


class Workers:
    """Jobs as tasks of a cluster."""

    def __init__(self, client: Any, process: Process) -> None:
        self._client, self._process = client, process
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._jobs: dict[str, tuple[Job, Any]] = {}

    def submit(self, job: Job) -> None:
        """Begin a task."""
        future = self._client.submit(self._process, job, key=f"{shown(job.name)}-{uuid4().hex}", pure=False)
        self._jobs[future.key] = job, future
        future.add_done_callback(self._ended.put)

    def take(self, seconds: float) -> tuple[Job, Outcome] | None:
        """The outcome of a task that has ended."""
        try:
            future = self._ended.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            check_alive(self._client)
            return None
        job, _ = self._jobs.pop(future.key)
        return job, self._outcome(future)

    def _outcome(self, future: Any) -> Outcome:
        """What a task gave; a worker that was lost with it is a failure that may pass, a lost cluster is the end."""
        try:
            outcome: Outcome = future.result()
        except Exception as error:
            check_alive(self._client)
            return failure(explained(error, self._client, "the cluster", getattr(self._client, "trouble", None)))
        return outcome


def check_alive(client: Any) -> None:
    """Refuse to go on with a cluster that is lost.

    Raises
    ------
    LostClusterError
        The scheduler is gone, or no worker is left, or one is unfit.
    """
    trouble = getattr(client, "trouble", None)
    if trouble is not None or client.status not in ("running", "connecting"):
        raise LostClusterError(trouble or "cluster: the scheduler is gone")


def scheduled(
    jobs: Iterable[Job],
    pool: Pool,
    at_once: Callable[[], int],
    patience: Patience,
    tick: Callable[[Iterable[str]], None],
) -> Iterator[Attempt]:
    """Compute jobs, several at once, and give every attempt as it ends.

    Parameters
    ----------
    jobs
        In their order; each is taken when there is room for it.
    pool
        Where they are computed.
    at_once
        Gives how many now: workers come and go.
    patience
        What is tried again, and when.
    tick
        Called now and then with the names of what is being computed.
    """
    coming, order = iter(jobs), itertools.count()
    later: list[tuple[float, int, Job, int]] = []
    running: dict[str, int] = {}
    while True:
        while len(running) < at_once() and (due := _next(coming, later)) is not None:
            running[due[0].name] = due[1]
            tick(running)
            pool.submit(due[0])
        if not running and not later:
            return
        until = later[0][0] - time.monotonic() if later else _TICK_SECONDS
        if not running:
            time.sleep(min(max(until, 0.0), _TICK_SECONDS))
        elif (ended := pool.take(min(until, _TICK_SECONDS))) is not None:
            attempt = Attempt(ended[0], running.pop(ended[0].name), ended[1])
            wait = patience.wait(attempt)
            if wait is not None:
                heapq.heappush(later, (time.monotonic() + wait, next(order), attempt.job, attempt.number + 1))
            yield attempt._replace(wait=wait)
        tick(running)


def _next(coming: Iterator[Job], later: list[tuple[float, int, Job, int]]) -> tuple[Job, int] | None:
    """What to begin now, and the number of the attempt."""
    if later and later[0][0] <= time.monotonic():
        _, _, job, number = heapq.heappop(later)
        return job, number
    job_or_none = next(coming, None)
    return None if job_or_none is None else (job_or_none, 1)
