"""Annotations of EDF+ and BDF+ files, and the times of their records.

Throughout: a *note* (TAL in the standard) is an onset, perhaps a duration, and texts. The first of every record has no
text, and tells when the record begins.
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .contract import refusal
from .edf_header import READER, Header, Signal
from .sampled import Stretch, stretches_of

_NOTE = re.compile(rb"([+-]\d+(?:\.\d*)?)(?:\x15(\d+(?:\.\d*)?))?\x14([^\0]*)")
_COPY = "Copy or export it again"


class Note(NamedTuple):
    """What was noted: ``onset`` and ``duration`` in s (0 for an instant), and ``text``."""

    onset: float
    duration: float
    text: str


def record_stretches(header: Header, samples: int) -> tuple[Stretch, ...]:
    """Stretches of a recording without gaps, by the times of its records.

    Parameters
    ----------
    header
        Of the file.
    samples
        Of a channel in a record.

    Raises
    ------
    ValueError
        Records of a file with gaps have no times, or go backwards.
    """
    if not header.annotations:
        if header.kind.endswith("D"):
            got = "no signal of annotations, which would tell"
            raise refusal(READER, header.path, "tell when each of its records begins", got, _COPY)
        return (Stretch(0, 0.0),)
    if not header.kind.endswith("D"):
        onset = _onset(header, next(_parts(header, header.annotations[0], 1)), 0)
        return (Stretch(0, 0.0 if onset is None else onset),)
    onsets = _onsets(header)
    late = np.flatnonzero(np.diff(onsets) <= 0)
    if len(late):
        at = int(late[0])
        got = f"{onsets[at + 1]:g} s for record {at + 2} after {onsets[at]:g} s"
        raise refusal(READER, header.path, "have records in the order of time", got, "Sort them with its own software")
    return stretches_of(np.arange(header.n_records) * samples, onsets, samples / header.seconds)


def _onsets(header: Header) -> NDArray[np.float64]:
    """When each record begins, in s."""
    onsets = np.empty(header.n_records)
    for number, part in enumerate(_parts(header, header.annotations[0], header.n_records)):
        onset = _onset(header, part, number)
        if onset is None:
            got = f"none for record {number + 1}"
            raise refusal(READER, header.path, "tell when each of its records begins", got, _COPY)
        onsets[number] = onset
    return onsets


def _onset(header: Header, part: bytes, number: int) -> float | None:
    """When a record begins, by its first note; None where it does not say."""
    found = _NOTE.match(part)
    onset = float(found[1]) if found else None
    if onset is not None and not math.isfinite(onset):
        raise refusal(READER, header.path, "tell when its records begin", f"{onset} for record {number + 1}", _COPY)
    return onset


def notes_of(header: Header) -> list[Note]:
    """All annotations of a file, in the order of time.

    Parameters
    ----------
    header
        Of the file.
    """
    notes = []
    for signal in header.annotations:
        for part in _parts(header, signal, header.n_records):
            for onset, duration, texts in _NOTE.findall(part):
                notes += [
                    Note(float(onset), float(duration or 0), _decoded(text)) for text in texts.split(b"\x14") if text
                ]
    return sorted(notes, key=lambda note: note.onset)


def _parts(header: Header, signal: Signal, n_records: int) -> Iterator[bytes]:
    """What a signal holds in each record, which is read by itself."""
    with open(header.path, "rb", buffering=0) as file:
        for number in range(n_records):
            file.seek(header.n_bytes + number * header.record_bytes + signal.offset)
            yield file.read(signal.samples * header.width)


def _decoded(text: bytes) -> str:
    """UTF-8 by the standard, Latin-1 in practice."""
    try:
        return text.decode().strip()
    except UnicodeDecodeError:
        return text.decode("latin-1").strip()
