"""A corpus run that is under way: jobs are begun, and what becomes of them is put on record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

from ..graph.client import session_client
from ..jobs.events import Event, emit, listen
from ..jobs.reach import reaching
from ..stores.address import place
from ..stores.objects import exists
from .config import CorpusConfig
from .due import Due
from .lease import Lease
from .ledger import Record, now, root_digest, write_record
from .listing import place_of
from .process import Job, Outcome, process, process_alone
from .progress import Progress
from .room import check_room, takes_more
from .schedule import Attempt, Here, Patience, Workers, check_alive, scheduled
from .telling import hearing

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
    """Why no other recording would do better, once that is so."""
    n_full: int = 0
    """How many in turn found the disk full."""
    large: list[Job] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin to say how far it is."""
        self.progress = Progress(self.config.state, self.lease.token)


def compute_due(run: UnderWay, due: Sequence[Due], shared: str = "") -> None:
    """Compute short recordings as tasks, by a map where there is one, then those that came back for all workers."""
    client, jobs = session_client(), [_job(run.config, one)._replace(shared=shared) for one in due]
    check_room(run.config, run.records.values(), len(jobs))
    with listen(run.progress.hear):
        _compute(run, jobs, client)
    if run.full:
        left = run.total - run.done
        emit(
            Event(
                "warned",
                done=run.done,
                total=run.total,
                sentence=(
                    f"corpus: {left} recordings were not begun, since {run.config.root} is full. Free some space; the "
                    "same command continues from here."
                ),
            )
        )


def _compute(run: UnderWay, jobs: list[Job], client: Any) -> None:
    """Compute on a cluster, or without one."""
    if client is None:
        _schedule(run, jobs, Here(process), lambda: 1)
        return
    there = [one for one in (place(job.path) for job in jobs[:_SEEN]) if exists(one)]
    root = run.config.root
    topic = f"manifold-observer-corpus-{uuid4().hex}"
    jobs = [job._replace(memory=_share(client), topic=topic) for job in jobs]
    with reaching(there, root if isinstance(root, Path) else root / "any"), hearing(client, topic):
        _schedule(run, jobs, Workers(client, process_alone), lambda: run.config.at_once or _threads(client))
        _schedule(run, run.large, Here(process), lambda: 1)
    check_alive(client)


def _schedule(run: UnderWay, jobs: Sequence[Job], pool: Here | Workers, at_once: Callable[[], int]) -> None:
    """Compute jobs and keep what becomes of each."""
    patience = Patience(run.config.retries, run.config.backoff)
    for attempt in scheduled(_begun(run, jobs), pool, at_once, patience, lambda running: _tick(run, running)):
        if attempt.outcome.kind == "large":
            run.large.append(attempt.job._replace(memory=None, topic=""))
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
        _put_on_record(run.config, run.records[job.name])
        emit(Event("started", job.name, done=run.done, total=run.total))
        yield job


def _tick(run: UnderWay, running: Iterable[str]) -> None:
    """Say how far everything is, and look whether the corpus is still ours."""
    run.progress.write(running, run.done, run.total)
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
    _note_room(run, outcome)
    _put_on_record(run.config, record)
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


def _note_room(run: UnderWay, outcome: Outcome) -> None:
    """Begin no other recording on a disk that takes no more; a single large result need not mean that."""
    run.n_full = run.n_full + 1 if outcome.full else 0
    if outcome.full and (run.n_full > 1 or not takes_more(run.config.state)):
        run.full = run.full or outcome.sentence


def _put_on_record(config: CorpusConfig, record: Record) -> None:
    """Write a record, or end the run in a sentence: what is not on record is computed again."""
    try:
        write_record(config, record)
    except OSError as error:
        raise type(error)(
            f"corpus: the ledger in {config.state} must be writable; got: {error.strerror}. Free some space, or see to "
            "the disk; the same command goes on from here."
        ) from None


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
        adopted=outcome.adopted if done else before.adopted,
        n_bytes=outcome.n_bytes if done else before.n_bytes,
        finished=now(),
        seconds=outcome.seconds,
        facts=outcome.facts if done else {},
        warnings=list(outcome.warnings),
    )


def _job(config: CorpusConfig, due: Due) -> Job:
    """What is to be done with a recording. A result at its place is the corpus's own if its ledger knows it."""
    out, record = place_of(config, due.item.name), due.record
    written = record.result != "" and not record.adopted and root_digest(out) == record.result
    owned = not exists(out) or record.begun or written
    return Job(due.item.name, due.item.path, str(out), config.run, owned)


def _threads(client: Any) -> int:
    """Recordings that are computed at once: no worker has one waiting, which would count as involved in its death."""
    return max(1, sum(client.nthreads().values()))


def _share(client: Any) -> int | None:
    """Memory of a worker's thread, the least of all."""
    known = client.scheduler_info(n_workers=-1)["workers"].values()
    shares = [worker["memory_limit"] // worker["nthreads"] for worker in known if worker["memory_limit"]]
    return min(shares, default=None)
