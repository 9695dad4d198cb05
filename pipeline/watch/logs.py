"""Structured logs: every event of a job is one line, as text or as JSON, through the standard ``logging``."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ..jobs.events import Event

LOGGER = logging.getLogger("manifold_observer")
LOGGER.addHandler(logging.NullHandler())  # whoever has no handler of his own is not spoken to
_LEVELS = {"failed": logging.ERROR, "warned": logging.WARNING, "retried": logging.WARNING}
# A pass over the kernel has thousands of units, and a short recording goes through twenty stages in a second.
_EVERY_SECONDS = 10.0
_PLAIN = re.compile(r"[^\s\"=\\]+")
_LONE = re.compile("[\ud800-\udfff]")
# What a record of this package carries beside its message, in the order of a line.
FIELDS = ("event", "recording", "stage", "done", "total", "seconds", "n_frames", "sentence")


class EventLog:
    """Listener that logs events, for :func:`~manifold_observer.pipeline.jobs.events.listen`.

    Records have the fields of the event as attributes (``record.event``, ``record.stage``). Each timed stage of a
    recording is logged at its end, and the progress of others every ten seconds.

    Parameters
    ----------
    logger
        Where to; ``logging.getLogger("manifold_observer")`` by default.
    every
        Seconds without a line on a recording after which its progress is worth one.
    said
        How sentences are put for those who read the log.

    Examples
    --------
    >>> import sys
    >>> logger = logging.Logger("example")
    >>> logger.addHandler(logging.StreamHandler(sys.stdout))
    >>> EventLog(logger)(Event("finished", recording="night1", seconds=2.5, n_frames=800))
    finished recording=night1 seconds=2.5 n_frames=800
    """

    def __init__(
        self,
        logger: logging.Logger = LOGGER,
        every: float = _EVERY_SECONDS,
        said: Callable[[str], str] = str,
    ) -> None:
        self._logger = logger
        self._every = every
        self._said = said
        self._last: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        """Log one event."""
        level = _LEVELS.get(event.kind, logging.INFO)
        if not self._due(event) or self._logger.getEffectiveLevel() > level:
            return
        fields = fields_of(event._replace(sentence=self._said(event.sentence)))
        extra = dict.fromkeys(FIELDS) | fields
        record = self._logger.makeRecord(self._logger.name, level, __file__, 0, as_text(fields), (), None, extra=extra)
        # Not by Logger.log: a command that was interrupted has silenced everybody, and its last word is said here.
        self._logger.handle(record)

    def _due(self, event: Event) -> bool:
        """Whether an event is worth a line now."""
        now = time.monotonic()
        last = self._last.setdefault(event.recording, now)
        if event.kind == "stage" and not event.seconds and now - last < self._every:
            return False
        self._last[event.recording] = now
        if event.kind in ("finished", "failed", "skipped"):
            self._last.pop(event.recording)
        return True


def fields_of(event: Event) -> dict[str, Any]:
    r"""What is worth saying of an event: defaults are left out, and bytes that are no UTF-8 are spelt.

    Examples
    --------
    >>> fields_of(Event("stage", recording="caf\udce9", stage="lift", done=0, total=3))
    {'event': 'stage', 'recording': 'caf\\xe9', 'stage': 'lift', 'done': 0, 'total': 3}
    """
    found: dict[str, Any] = {"event": event.kind, "recording": event.recording, "stage": event.stage}
    if event.total:
        found |= {"done": event.done, "total": event.total}
    if event.seconds > 0:
        found |= {"seconds": round(float(event.seconds), 3)}
    found |= {"n_frames": int(event.n_frames), "sentence": event.sentence}
    numbers = {"done", "total", "seconds"}
    return {name: spelt(value) for name, value in found.items() if name in numbers or value}


def spelt(value: Any) -> Any:
    r"""Text that any reader of UTF-8 takes: bytes that names of files hold besides are spelt.

    Examples
    --------
    >>> print(spelt("caf" + chr(0xDCE9)))
    caf\xe9
    """
    return _LONE.sub(_spelt, value) if isinstance(value, str) else value


def _spelt(found: re.Match[str]) -> str:
    """One surrogate: the byte that Python keeps in it, or its own number."""
    number = ord(found[0])
    return f"\\x{number - 0xDC00:02x}" if 0xDC80 <= number <= 0xDCFF else f"\\u{number:04x}"


def as_text(fields: dict[str, Any]) -> str:
    """Fields on one line: ``finished recording=night1 seconds=2.5``.

    Examples
    --------
    >>> as_text({"event": "failed", "recording": "a b", "sentence": "no frames"})
    'failed recording="a b" sentence="no frames"'
    """
    first, *others = fields.items()
    return " ".join([str(first[1]), *(f"{name}={_quoted(value)}" for name, value in others)])


def _quoted(value: Any) -> str:
    """A value, in quotes where a reader could not tell its end."""
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.isprintable() else json.dumps(text)


class TextLines(logging.Formatter):
    """A record as a line of text: time, level, event, and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return f"{_when(record)} {record.levelname} {as_text(_told(record))}"


class JsonLines(logging.Formatter):
    """A record as one JSON object on a line of ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return json.dumps({"time": _when(record), "level": record.levelname.lower(), **_told(record)})


FORMATS: dict[str, Callable[[], logging.Formatter]] = {"text": TextLines, "json": JsonLines}


def _told(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of an event, or what another logger said."""
    if getattr(record, "event", None) is not None and record.name == LOGGER.name:
        return {name: vars(record)[name] for name in FIELDS if vars(record).get(name) is not None}
    said = record.getMessage()
    if record.exc_info and record.exc_info[1] is not None:
        said = f"{said}: {record.exc_info[1]!r}"
    return {"event": "log", "logger": record.name, "sentence": spelt(" ".join(said.split()))}


def _when(record: logging.LogRecord) -> str:
    """Time of a record, in UTC.

    Examples
    --------
    >>> _when(logging.makeLogRecord({"created": 0.5}))
    '1970-01-01T00:00:00.500Z'
    """
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
