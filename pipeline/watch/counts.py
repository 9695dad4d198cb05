"""What a job has done so far, in numbers, under the names that Prometheus reads."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import NamedTuple

from ..jobs.events import Event

PREFIX = "manifold_observer"
# Begins a file of ours: a comment to Prometheus.
HEAD = f"# Written by {PREFIX.replace('_', '-')}; replaced by its next run."
_OUTCOMES = {"finished": "done", "failed": "failed", "skipped": "skipped"}


class Family(NamedTuple):
    """Metrics of one name."""

    name: str
    """Without the prefix; counters end in ``_total``."""
    kind: str
    """``counter`` or ``gauge``."""
    text: str
    """What is counted."""
    label: str = ""
    """What tells its metrics apart, besides the corpus."""


FAMILIES = (
    Family("recordings_total", "counter", "Recordings that were dealt with, by outcome.", "outcome"),
    Family("retries_total", "counter", "Attempts on a recording that were repeated later."),
    Family("frames_total", "counter", "Frames of the recordings that were done."),
    Family("stage_seconds_total", "counter", "Seconds that stages took, added over recordings.", "stage"),
    Family("warnings_total", "counter", "Warnings."),
    Family("runs_total", "counter", "Commands that ended, by exit code.", "code"),
    Family("running", "gauge", "1 while a command runs; it stays 1 where that was killed."),
    Family("last_run_recordings", "gauge", "Recordings of the latest command, by outcome.", "outcome"),
    Family("corpus_recordings", "gauge", "Recordings of the corpus as they stand after the latest command.", "stands"),
    Family("last_run_timestamp_seconds", "gauge", "When the latest command ended, in seconds since 1970."),
    Family("last_success_timestamp_seconds", "gauge", "When a command ended with exit code 0 the last time."),
    Family("last_recording_timestamp_seconds", "gauge", "When a recording was done the last time."),
    Family("updated_timestamp_seconds", "gauge", "When these metrics were written; every 15 s while a command runs."),
    Family("build_info", "gauge", "Always 1; says which version counts.", "version"),
)
_BY_NAME = {family.name: family for family in FAMILIES}
Sample = tuple[str, str]
"""Name of a family, and the value of its own label."""


class Counts:
    """Listener that counts, for :func:`~manifold_observer.pipeline.jobs.events.listen`.

    Parameters
    ----------
    before
        What earlier commands counted: counters go on from there, and a success that was stays known.

    Examples
    --------
    >>> counts = Counts()
    >>> counts(Event("finished", recording="night1", seconds=2.5, n_frames=800))
    >>> counts.values()["frames_total", ""], counts.values()["recordings_total", "done"]
    (800.0, 1.0)
    """

    def __init__(self, before: dict[Sample, float] | None = None) -> None:
        self._lock = threading.Lock()
        self._values = dict.fromkeys(_zeros(), 0.0) | (before or {})
        self._values |= {sample: 0.0 for sample in self._values if sample[0] == "last_run_recordings"}
        self._values = {sample: value for sample, value in self._values.items() if sample[0] != "build_info"}
        self._values["build_info", version("manifold-observer")] = 1.0
        self._values["running", ""] = 1.0

    def __call__(self, event: Event) -> None:
        """Count one event."""
        for sample, amount in _added(event):
            self._add(sample, amount)
        if event.kind == "finished":
            self._set("last_recording_timestamp_seconds", time.time())

    def ended(self, code: int) -> None:
        """Note that the command ends with this exit code."""
        self._add(("runs_total", str(code)), 1)
        self._set("running", 0)
        self._set("last_run_timestamp_seconds", time.time())
        if code == 0:
            self._set("last_success_timestamp_seconds", time.time())

    def stand(self, recordings: dict[str, int]) -> None:
        """Note how the recordings of a corpus stand."""
        with self._lock:
            known = [sample for sample in self._values if sample[0] == "corpus_recordings"]
            self._values |= dict.fromkeys([*known, ("corpus_recordings", "failed")], 0.0)
            self._values |= {("corpus_recordings", stands): float(number) for stands, number in recordings.items()}

    @property
    def failed(self) -> bool:
        """Whether a recording of this command has failed."""
        return self._values["last_run_recordings", "failed"] > 0

    def values(self) -> dict[Sample, float]:
        """All numbers as they are now."""
        with self._lock:
            return self._values | {("updated_timestamp_seconds", ""): time.time()}

    def _add(self, sample: Sample, amount: float) -> None:
        with self._lock:
            self._values[sample] = self._values.get(sample, 0.0) + amount

    def _set(self, name: str, value: float) -> None:
        with self._lock:
            self._values[name, ""] = value


def _zeros() -> Iterator[Sample]:
    """What is told from the start: an alert on a rise needs the value before it."""
    for name in ("recordings_total", "last_run_recordings"):
        yield from ((name, outcome) for outcome in _OUTCOMES.values())
    yield from ((name, "") for name in ("retries_total", "frames_total", "warnings_total"))
    yield from (("runs_total", str(code)) for code in (0, 1, 3, 4))


def _added(event: Event) -> Iterator[tuple[Sample, float]]:
    """What an event adds to which counters."""
    if event.kind in _OUTCOMES and event.recording:
        yield ("recordings_total", _OUTCOMES[event.kind]), 1
        yield ("last_run_recordings", _OUTCOMES[event.kind]), 1
    if event.kind == "finished":
        yield ("frames_total", ""), event.n_frames
    if event.kind == "retried":
        yield ("retries_total", ""), 1
    if event.kind == "warned":
        yield ("warnings_total", ""), 1
    if event.kind == "stage" and event.seconds > 0:
        yield ("stage_seconds_total", event.stage), event.seconds


def as_text(values: dict[Sample, float], corpus: str) -> str:
    r"""Numbers in the text format of Prometheus.

    Parameters
    ----------
    values
        As :meth:`Counts.values` gives them.
    corpus
        The value of the label ``corpus`` of every metric.

    Examples
    --------
    >>> print(as_text({("frames_total", ""): 800.0}, "nights"), end="")
    # Written by manifold-observer; replaced by its next run.
    # HELP manifold_observer_frames_total Frames of the recordings that were done.
    # TYPE manifold_observer_frames_total counter
    manifold_observer_frames_total{corpus="nights"} 800
    """
    lines = [HEAD]
    for family in FAMILIES:
        own = sorted((label, value) for (name, label), value in values.items() if name == family.name)
        if own:
            name = f"{PREFIX}_{family.name}"
            lines += [f"# HELP {name} {family.text}", f"# TYPE {name} {family.kind}"]
            lines += [f"{name}{{{_labels(family, corpus, label)}}} {_number(value)}" for label, value in own]
    return "\n".join(lines) + "\n"


_LINE = re.compile(rf'{PREFIX}_(\w+)\{{corpus="(?:[^"\\]|\\.)*"(?:,\w+="((?:[^"\\]|\\.)*)")?\}} (\S+)')


def from_text(lines: Iterable[str]) -> dict[Sample, float]:
    r"""Numbers that :func:`as_text` wrote; what is no such line is passed over.

    Examples
    --------
    >>> from_text(['manifold_observer_frames_total{corpus="nights"} 800', "# a comment"])
    {('frames_total', ''): 800.0}
    """
    found = {}
    for line in lines:
        read = _LINE.fullmatch(line.strip())
        if read and read[1] in _BY_NAME and bool(_BY_NAME[read[1]].label) == (read[2] is not None):
            found[read[1], re.sub(r"\\(.)", _unescaped, read[2] or "")] = _as_float(read[3])
    return {sample: value for sample, value in found.items() if 0 <= value < math.inf}


def _as_float(text: str) -> float:
    """A number; NaN for anything else."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _unescaped(found: re.Match[str]) -> str:
    """One escaped letter of a label."""
    return "\n" if found[1] == "n" else found[1]


def _labels(family: Family, corpus: str, label: str) -> str:
    """The labels of one metric."""
    named = [("corpus", corpus), *([(family.label, label)] if family.label else [])]
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in named)


def _escaped(text: str) -> str:
    """A label's value, as the format has it."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    """A number without digits that say nothing."""
    return str(int(value)) if value == int(value) else repr(round(value, 3))
