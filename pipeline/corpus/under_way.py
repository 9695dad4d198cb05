"""A corpus run that is under way: jobs are begun, and what becomes of them is put on record."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from ..clusters.sight import check_files
from ..graph.compute import session_client
from ..jobs.events import Event, emit
from .config import CorpusConfig
from .due import Due
from .lease import Lease
from .ledger import Record, now, root_digest, write_record
from .listing import place_of
from .process import Job, process, process_alone
from .schedule import Attempt, Here, Patience, Workers, check_alive, scheduled

# Whether all workers see the files is asked for so many of the recordings.
_SEEN = 3


@dataclass
class UnderWay:
    """A run that is under way."""

    config: CorpusConfig
    lease: Lease
    records: dict[str, Record]
    total: int
    done: int = 0
    full: str = ""
    """Why no other recording would do better."""
    large: list[Job] = field(default_factory=list)


def compute_due(run: UnderWay, due: Sequence[Due]) -> None:
    """Compute short recordings as tasks, then those that came back for all workers."""
    client, jobs = session_client(), [_job(run.config, one) for one in due]
    if client is None:
        _schedule(run, jobs, Here(process), 1)
        return
    check_files([job.path for job in jobs[:_SEEN]], run.config.root)
    threads = client.nthreads()
    memory = _share(client)
    jobs = [job._replace(memory=memory) for job in jobs]
    _schedule(run, jobs, Workers(client, process_alone), run.config.at_once or max(1, sum(threads.values())))
    _schedule(run, run.large, Here(process), 1)
    check_alive(client)


def _schedule(run: UnderWay, jobs: Sequence[Job], pool: Here | Workers, at_once: int) -> None:
    """Compute jobs and keep what becomes of each."""
    patience = Patience(run.config.retries, run.config.backoff)
    for attempt in scheduled(_begun(run, jobs), pool, at_once, patience, lambda running: _tick(run, running)):
        if attempt.outcome.kind == "large":
            run.large.append(attempt.job._replace(memory=None))
        elif attempt.wait is not None:
            emit(Event("retried", attempt.job.name, seconds=attempt.wait, sentence=attempt.outcome.sentence))
        else:
            _keep(run, attempt)


def _begun(run: UnderWay, jobs: Sequence[Job]) -> Iterator[Job]:
    """Jobs as they are taken, each put on record first: a result that a kill leaves is known to be ours."""
    for job in jobs:
        if run.full:
            return
        record = run.records.get(job.name) or Record(job.name, job.path)
        run.records[job.name] = replace(record, input=job.path, begun=record.begun or job.owned, started=now())
        write_record(run.config, run.records[job.name])
        emit(Event("started", job.name, done=run.done, total=run.total))
        yield job


def _tick(run: UnderWay, running: Any) -> None:
    """Look whether the corpus is still ours."""
    if run.lease.lost:
        raise LostLeaseError(
            f"corpus: this run must hold {run.config.root}; another has taken it over, since this one gave no sign of "
            "life for too long. What was finished is kept."
        )


class LostLeaseError(RuntimeError):
    """Another run has taken the corpus over."""


def _keep(run: UnderWay, attempt: Attempt) -> None:
    """Put on record what became of a recording."""
    outcome, run.done = attempt.outcome, run.done + 1
    before = run.records[attempt.job.name]
    record = _record(run.config, before, attempt)
    run.records[record.name] = record
    if outcome.full:
        run.full = outcome.sentence
    write_record(run.config, record)
    emit(
        Event(
            "finished" if outcome.kind == "done" else "failed",
            record.name,
            done=run.done,
            total=run.total,
            seconds=outcome.seconds,
            n_frames=int(outcome.facts.get("n_frames", 0)),
            sentence=outcome.sentence,
        )
    )


def _record(config: CorpusConfig, before: Record, attempt: Attempt) -> Record:
    """A record after an attempt; the result that there was before is still known after one that failed."""
    outcome = attempt.outcome
    done = outcome.kind == "done"
    return replace(
        before,
        outcome=outcome.kind,
        sentence=outcome.sentence,
        passing=outcome.passing,
        attempts=attempt.number,
        begun=False,
        stamp=[list(one) for one in outcome.stamp],
        content=outcome.content,
        settings=config.run.to_json(),
        version=version("manifold-observer"),
        result=outcome.result if done else before.result,
        n_bytes=outcome.n_bytes if done else before.n_bytes,
        finished=now(),
        seconds=outcome.seconds,
        facts=outcome.facts if done else {},
        warnings=list(outcome.warnings),
    )


def _job(config: CorpusConfig, due: Due) -> Job:
    """What is to be done with a recording. A result at its place is the corpus's own if its ledger knows it."""
    place, record = place_of(config, due.item.name), due.record
    owned = not os.path.lexists(place) or record.begun or (record.result != "" and root_digest(place) == record.result)
    return Job(due.item.name, due.item.path, str(place), config.run, owned)


def _share(client: Any) -> int | None:
    """Memory of a worker's thread, the least of all."""
    known = client.scheduler_info(n_workers=-1)["workers"].values()
    shares = [worker["memory_limit"] // worker["nthreads"] for worker in known if worker["memory_limit"]]
    return min(shares, default=None)
