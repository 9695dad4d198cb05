"""What a corpus need not keep: work folders of dead runs, results of recordings that are gone or out of retention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from ..stores.address import Place
from ..stores.objects import bytes_of, exists
from .config import CorpusConfig
from .lease import holding_corpus
from .ledger import Record, forget, read_ledger, root_digest, write_record
from .listing import gone, items_of, place_of
from .table import write_table


class Leftover(NamedTuple):
    """Something that may go: its path, why, its size, and after an attempt why it stays."""

    path: Place
    why: str
    n_bytes: int
    stays: str = ""


def clean_corpus(config: CorpusConfig, *, dry_run: bool = False) -> list[Leftover]:
    """Remove what dead runs left, results whose recordings are gone, and results out of retention.

    Only what is the corpus's own is removed: results that its ledger knows and that are as they were written.

    Parameters
    ----------
    config
        The corpus, with its retention.
    dry_run
        Only say what would go.

    Returns
    -------
    All that went, or would.

    Raises
    ------
    ValueError, OSError
        A run works on the corpus, or no recording at all is there: a disk may be missing.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> Path(folder, "night1.npy").touch()
    >>> clean_corpus(CorpusConfig(["*.npy"], folder=folder))
    []
    """
    if dry_run:
        return list(_leftovers(config, read_ledger(config), dry_run=True))
    with holding_corpus(config.state, config.takeover):
        records = read_ledger(config)
        found = [_removed(config, records, one) for one in _leftovers(config, records, dry_run=False)]
        for name in gone(items_of(config), records):
            if not exists(place_of(config, name)):
                forget(config, name)
        write_table(config, read_ledger(config))
    return found


def _leftovers(config: CorpusConfig, records: Mapping[str, Record], *, dry_run: bool) -> Iterator[Leftover]:
    """All that may go. Work folders of dead runs go as they are found, unless this is only a look."""
    from ..jobs.workfolder import remove_dead, work_folders  # noqa: PLC0415 - dataclasses and more

    # Beside a result in a bucket the next run to its place clears them: nothing else tells that a run is dead.
    for path in work_folders(config.root) if isinstance(config.root, Path) else ():
        size = sum(bytes_of(path))
        if remove_dead(path, dry_run=dry_run):
            yield Leftover(path, "left by a run that was killed", size)
    for name, why in _results(config, records).items():
        if exists(place := place_of(config, name)):
            yield Leftover(place, why, sum(bytes_of(place)))


def _results(config: CorpusConfig, records: Mapping[str, Record]) -> dict[str, str]:
    """Names of results that may go, and why."""
    items = items_of(config)
    lost = gone(items, records)
    if lost and not items:
        raise ValueError(
            f"corpus clean: inputs must match at least one file; got none for {', '.join(config.inputs)}. "
            "Results are only removed while some recordings are there: a disk may be missing."
        )
    done = sorted((record for record in records.values() if record.outcome == "done"), key=lambda one: one.finished)
    begun = {record.name: "out of retention" for record in records.values() if record.outcome == "expired"}
    old = {record.name: f"older than {config.keep_days:g} days" for record in done if _is_old(config, record)}
    many = (
        {record.name: f"not among the newest {config.keep}" for record in done[: -config.keep]} if config.keep else {}
    )
    return begun | many | old | dict.fromkeys(lost, "its recording is gone")


def _is_old(config: CorpusConfig, record: Record) -> bool:
    """Whether a result is out of retention. A clock that was set back makes results younger, never older."""
    if config.keep_days is None:
        return False
    return datetime.now(UTC) - datetime.fromisoformat(record.finished) > timedelta(days=config.keep_days)


def _removed(config: CorpusConfig, records: Mapping[str, Record], one: Leftover) -> Leftover:
    """Remove a result, and say so in the ledger: it is not computed again for its own sake."""
    record = records.get(one.path.name.removesuffix(".zarr"))
    if not exists(one.path) or record is None:  # a work folder, which is gone already
        return one
    if record.adopted or root_digest(one.path) != record.result:
        return one._replace(stays="it is not the result that this corpus wrote")
    from ..jobs.store import remove_result  # noqa: PLC0415 - slow, and often nothing goes

    expired = replace(record, outcome="expired")
    write_record(config, expired)  # a result that is missing after a kill is not computed again
    try:
        remove_result(one.path)
    except (OSError, ValueError) as error:
        write_record(config, record)
        return one._replace(stays=str(error))
    write_record(config, replace(expired, result="", n_bytes=0))
    return one
