"""Headers of EDF, EDF+, BDF and BDF+ files.

Throughout: a *record* is a stretch of time in which every signal has a fixed number of samples, one signal after the
other. In EDF+D records may have gaps between them.
"""

import contextlib
import math
import os
import re
from datetime import datetime
from typing import NamedTuple

import numpy as np

from .contract import local_file, refusal
from .sampled import told
from .sniff import BDF, EDF, describe, read_head

READER = "edf"
_COPY = "Copy or export it again"
_MANGLED = "Copy it again in binary mode, for every LF in it became CRLF in a text-mode transfer"
_FIXED = 256
_PER_SIGNAL = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)
_MOST_SIGNALS = 9999
# By chance, a LF follows a CR once in 256 times.
_FEW_LINES = 8
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


class Signal(NamedTuple):
    """One signal of a file.

    ``units`` as the file spells them; ``low``, ``high``: physical values of the digital ``bottom`` and ``top``;
    ``samples``: in a record; ``offset``: bytes of a record before them.
    """

    label: str
    units: str
    low: float
    high: float
    bottom: float
    top: float
    samples: int
    offset: int

    @property
    def scaled(self) -> bool:
        """Whether the file tells what its numbers measure."""
        return self.low != self.high and self.bottom != self.top


class Header(NamedTuple):
    """What the header of a file says, and how many whole records there are.

    ``kind``: EDF, EDF+C, EDF+D, BDF, ...; ``n_bytes`` of the header, ``record_bytes`` of a record, ``width`` of
    a sample; ``seconds`` in a record; ``start_time`` in ISO 8601.
    """

    path: str
    kind: str
    n_bytes: int
    record_bytes: int
    width: int
    n_records: int
    seconds: float
    start_time: str | None
    signals: tuple[Signal, ...]
    annotations: tuple[Signal, ...]


def read_header(source: object) -> Header:
    """Read the header of a file and check it against the file's size.

    Parameters
    ----------
    source
        Path of the file.

    Returns
    -------
    The header.

    Raises
    ------
    ValueError
        It is no such file, or its header does not add up.

    Warns
    -----
    UserWarning
        The file holds more or less than its header says.
    """
    path = local_file(READER, source)
    if (words := describe(path)) not in (EDF, BDF):
        raise refusal(READER, path, "be an EDF or BDF recording", words, "Replace it with the recording")
    width = 2 if words == EDF else 3
    with open(path, "rb") as file:
        fixed = file.read(_FIXED)
        n_signals = _whole(path, fixed[252:256], "number of signals", 1, _MOST_SIGNALS)
        told_bytes = _whole(path, fixed[184:192], "length of the header", 1, 10**8)
        n_bytes = _FIXED * (1 + n_signals)
        if told_bytes != n_bytes:
            got = f"{told_bytes} ({n_signals} signals)"
            raise refusal(READER, path, f"have a header of {n_bytes} bytes", got, _COPY)
        table = file.read(n_bytes - _FIXED)
    if len(fixed) + len(table) < n_bytes:
        raise refusal(READER, path, f"hold a header of {n_bytes} bytes", f"{os.path.getsize(path)} in all", _COPY)
    signals = _signals(path, table, n_signals, width)
    record_bytes = sum(signal.samples for signal in signals) * width
    claimed = _whole(path, fixed[236:244], "number of records", -1, 10**8)
    seconds = _number(path, fixed[244:252], "duration of a record")
    if not (math.isfinite(seconds) and seconds >= 0):
        raise refusal(READER, path, "tell the duration of a record", f"{seconds:g} s", _COPY)
    if _is_mangled(path, n_bytes, width):
        raise refusal(READER, path, "hold samples as they were recorded", "a CR before every LF", _MANGLED)
    n_records = _whole_records(path, claimed, n_bytes, record_bytes)
    notes = [_is_annotation(signal.label) for signal in signals]
    return Header(
        path,
        _kind(fixed[192:236], width),
        n_bytes,
        record_bytes,
        width,
        n_records,
        seconds,
        _start_time(fixed),
        tuple(signal for signal, note in zip(signals, notes, strict=True) if not note),
        tuple(signal for signal, note in zip(signals, notes, strict=True) if note),
    )


def _kind(reserved: bytes, width: int) -> str:
    """Which of the formats: plus files say so in a reserved field."""
    letters = "EDF" if width == 2 else "BDF"
    mark = reserved[:5].decode("latin-1")
    return mark if mark in (f"{letters}+C", f"{letters}+D") else letters


def _is_annotation(label: str) -> bool:
    """Whether a signal holds text."""
    return label in ("EDF Annotations", "BDF Annotations")


def _signals(path: str, table: bytes, n_signals: int, width: int) -> list[Signal]:
    """The signals, each field of all of them side by side."""
    fields, start = [], 0
    for size in _PER_SIGNAL:
        stop = start + size * n_signals
        fields.append([table[at : at + size] for at in range(start, stop, size)])
        start = stop
    signals, offset = [], 0
    for number in range(n_signals):
        label, units = (_text(fields[column][number]) for column in (0, 2))
        what = f"of signal {label!r}"
        samples = _whole(path, fields[8][number], f"samples in a record {what}", 0, 10**8)
        names = ("physical minimum", "physical maximum", "digital minimum", "digital maximum")
        limits = [0.0, 0.0, 0.0, 0.0]
        if not _is_annotation(label):
            limits = [_limit(path, fields[3 + k][number], f"{names[k]} {what}") for k in range(4)]
        low, high, bottom, top = limits
        signals.append(Signal(label, units, low, high, bottom, top, samples, offset))
        offset += samples * width
    return signals


def _whole_records(path: str, claimed: int, n_bytes: int, record_bytes: int) -> int:
    """Records that are there whole; what else is there, or is not, is told."""
    held, rest = divmod(os.path.getsize(path) - n_bytes, record_bytes) if record_bytes else (0, 0)
    if not held:
        got = f"{held} whole records of {record_bytes} bytes, where its header claims {claimed}"
        raise refusal(READER, path, "hold records", got, _COPY)
    if claimed < 1:
        left = f"; {rest} bytes of a cut one are left out" if rest else ""
        told(READER, path, f"the recorder did not write how many records there are; found {held} whole ones{left}.")
    elif held < claimed:
        what = f"its header claims {claimed} records, and {held} whole ones are there; the others are missing."
        told(READER, path, what + " Copy it again if that is not what was recorded.")
    elif held > claimed or rest:
        more = (held - claimed) * record_bytes + rest
        told(READER, path, f"{more} bytes follow the {claimed} records that its header claims; they are left out.")
    return held if claimed < 1 else min(held, claimed)


def _is_mangled(path: str, n_bytes: int, width: int) -> bool:
    """Whether every LF became CRLF: at any byte of a sample, where one value that is frequent has them at the same."""
    body = read_head(path, n_bytes + 2**20)[n_bytes:]
    if not body.count(b"\n") == body.count(b"\r\n") >= _FEW_LINES:
        return False
    samples = np.frombuffer(body, np.uint8)
    return len(np.unique(np.flatnonzero(samples == ord("\n")) % width)) > 1


def _start_time(fixed: bytes) -> str | None:
    """When the recording began, where the header has a date: EDF+ writes the century elsewhere."""
    day = re.fullmatch(r"(\d\d)[.:/-](\d\d)[.:/-](\d\d)", _text(fixed[168:176]))
    time = re.fullmatch(r"(\d\d)[.:](\d\d)[.:](\d\d)", _text(fixed[176:184]))
    if day is None or time is None:
        return None
    year = int(day[3]) + (1900 if int(day[3]) >= 85 else 2000)
    month, number = int(day[2]), int(day[1])
    written = re.match(r"Startdate (\d\d)-([A-Z]{3})-(\d{4})\b", _text(fixed[88:168]).replace("startdate", "Startdate"))
    if written and written[2] in _MONTHS:
        number, month, year = int(written[1]), _MONTHS.index(written[2]) + 1, int(written[3])
    with contextlib.suppress(ValueError):
        return datetime(year, month, number, int(time[1]), int(time[2]), int(time[3])).isoformat()
    return None


def _text(field: bytes) -> str:
    """A field without padding: ASCII by the standard, UTF-8 or Latin-1 in practice."""
    plain = field.split(b"\0")[0].strip()
    try:
        return plain.decode()
    except UnicodeDecodeError:
        return plain.decode("latin-1")


def _number(path: str, field: bytes, what: str) -> float:
    """A number of the header."""
    try:
        return float(_text(field))
    except ValueError:
        raise refusal(READER, path, f"tell the {what} as a number", repr(_text(field)), _COPY) from None


def _limit(path: str, field: bytes, what: str) -> float:
    """A finite number; nothing stands for 0, as for signals that nobody calibrated."""
    if not _text(field):
        return 0.0
    value = _number(path, field, what)
    if not math.isfinite(value):
        raise refusal(READER, path, f"tell the {what} as a number", repr(_text(field)), _COPY)
    return value


def _whole(path: str, field: bytes, what: str, least: int, most: int) -> int:
    """A whole number of the header."""
    text = _text(field)
    if not re.fullmatch(r"[+-]?\d{1,8}", text) or not least <= int(text) <= most:
        must = f"tell the {what} as a whole number from {least} to {most}"
        raise refusal(READER, path, must, repr(text), _COPY)
    return int(text)
