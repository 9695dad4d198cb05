"""What has become of every recording: one small file each, replaced in one step, so that a kill loses none.

Throughout: a *record* is what is known of one recording, the *ledger* all of them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from manifold_observer.tasks import atomic

from ..stores.address import Place
from ..stores.objects import read
from ..stores.refusals import StoreError
from .config import CorpusConfig

_FOLDER = "recordings"


@dataclass(frozen=True)
class Record:
    """What is known of one recording.

    Examples
    --------
    >>> Record("night1", "/data/night1.npy").outcome
    ''
    """

    name: str
    """Name of its result, without .zarr."""
    input: str
    """Path of the recording."""
    outcome: str = ""
    """"done", "failed", "expired" (its result was removed for its age); empty before the first."""
    sentence: str = ""
    """Why it failed."""
    passing: bool = False
    """Whether the same may succeed another time: the next run tries it again."""
    attempts: int = 0
    """How often it was tried for this outcome."""
    begun: bool = False
    """Whether it was being computed when this was written: a result at its place is ours, whatever it holds."""
    stamp: list[list[Any]] = field(default_factory=list)
    """Names, sizes and times of its files."""
    content: str = ""
    """Digest of their content."""
    settings: str = ""
    """Settings of the run, as JSON."""
    version: str = ""
    """Of manifold-observer."""
    result: str = ""
    """Digest of the root of the result that was written last."""
    adopted: bool = False
    """Whether that result was there before: it counts, and is never replaced or removed."""
    n_bytes: int = 0
    """Size of that result."""
    started: str = ""
    """When the last attempt began, UTC."""
    finished: str = ""
    """When it ended."""
    seconds: float = 0.0
    """How long it took."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Frames, modes, eigenvalues, residual, foretold and what drift is measured by."""
    warnings: list[str] = field(default_factory=list)
    """What the run warned of."""


def now() -> str:
    """The time, for those who read it; nothing is decided by it but the age of results."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def read_ledger(config: CorpusConfig) -> dict[str, Record]:
    """All records by name; a file that cannot be read counts as none, and its recording as new."""
    folder = config.state / _FOLDER
    found: dict[str, Record] = {}
    with suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            if entry.name.endswith(".json") and (record := _read(Path(entry.path))) is not None:
                found[record.name] = record
    return found


def write_record(config: CorpusConfig, record: Record) -> None:
    """Put one record on disk, in place of the earlier one.

    Raises
    ------
    OSError
        The folder of the corpus cannot be written to; the earlier record is still there.
    """
    place = _place(config, record.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(place, json.dumps(asdict(record)).encode())


def forget(config: CorpusConfig, name: str) -> None:
    """Remove a record."""
    _place(config, name).unlink(missing_ok=True)


def shown(name: str) -> str:
    r"""A name as every store, message and terminal takes it: names of files may be no text at all.

    Examples
    --------
    >>> shown("night\udcff")
    'night\\xff'
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def root_digest(place: Place) -> str:
    """Digest of the root of a result, which lists all its files; empty where there is none.

    Raises
    ------
    StoreError
        A store does not say whether there is one.
    """
    root = place / "zarr.json"
    try:
        content = root.read_bytes() if isinstance(root, Path) else read(root)
    except StoreError:
        raise
    except OSError:
        return ""
    return hashlib.sha256(content).hexdigest()


def _place(config: CorpusConfig, name: str) -> Path:
    """File of a record: a digest, for names may be as long as a file system allows."""
    return config.state / _FOLDER / f"{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}.json"


def _read(path: Path) -> Record | None:
    """One record; None where the file is no record, such as one that a disk has damaged."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return _record(values)
    except (OSError, ValueError, TypeError):
        return None


def _record(values: Mapping[str, Any]) -> Record:
    """A record from what JSON holds; what a later version has added is left out."""
    known = {member.name for member in fields(Record)}
    return Record(**{name: value for name, value in values.items() if name in known})
