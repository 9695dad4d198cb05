"""Headers of WFDB records (PhysioNet): which samples lie in which files beside them, in which segments.

Throughout: a *record* is a .hea file and what it names; a *frame* is a period in which every signal has one sample, or
a fixed number of them; a *piece* is a segment that holds samples, for a pause holds none.
"""

import math
import os
import re
from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from .contract import local_file, refusal
from .libraries import library
from .sampled import told
from .sniff import TEXT, describe

READER = "wfdb"
_COPY = "Copy the whole record again"
_MOST_BYTES = 2**24
_NAME = re.compile(r"[\w.+\-]+")
_NO_FILE = "~"
# Bytes of a sample of the formats that have a fixed width; the others are compressed.
_WIDTHS = {
    "8": Fraction(1), "16": Fraction(2), "24": Fraction(3), "32": Fraction(4), "61": Fraction(2), "80": Fraction(1),
    "160": Fraction(2), "212": Fraction(3, 2), "310": Fraction(4, 3), "311": Fraction(4, 3),
}  # fmt: skip


class Signal(NamedTuple):
    """One signal: its label and unit, and its samples in a frame."""

    label: str
    units: str
    samples: int


class Piece(NamedTuple):
    """Samples of one segment: its ``record`` (a path without .hea), and what wfdb can read of it alone.

    ``frame``: of the whole recording, with its pauses, that it starts at; ``n_frames``; ``labels`` of its signals;
    ``reads``: "slices", or "from the start" where differences add up, or "whole" where its header tells no length.
    """

    record: str
    frame: int
    n_frames: int
    labels: tuple[str, ...]
    reads: str


class Header(NamedTuple):
    """What a record says: ``rate`` is in frames a second, ``start_time`` in ISO 8601."""

    path: str
    rate: float
    start_time: str | None
    signals: tuple[Signal, ...]
    pieces: tuple[Piece, ...]


def read_header(source: object) -> Header:
    """Read the header of a record and of its segments, and look at the files that they name.

    Parameters
    ----------
    source
        Path of the .hea file, or of the .dat file beside it.

    Returns
    -------
    The header.

    Raises
    ------
    ValueError
        It is no record, or names files that are not beside it.
    ImportError
        wfdb is not installed.

    Warns
    -----
    UserWarning
        A file holds fewer samples than the header says.
    """
    path = local_file(READER, source)
    if path.lower().endswith(".dat"):
        path = local_file(READER, path[:-4] + ".hea")
    if (words := describe(path)) != TEXT:
        raise refusal(READER, path, "be the header of a WFDB record", words, _COPY)
    top = parsed(path)
    names = getattr(top, "seg_name", None)
    segments = [(path, top, 0)] if names is None else _segments(path, top, names)
    signals = _signals(path, segments[0][1])
    # A first segment of no samples lists the signals that the others have in part.
    with_samples = segments if names is None or top.seg_len[0] else segments[1:]
    pieces = [_piece(path, file, header, frame, signals) for file, header, frame in with_samples]
    rate = float(top.fs or 0)
    if not (math.isfinite(rate) and rate > 0):
        raise refusal(READER, path, "tell its sampling rate", str(top.fs), "Correct its first line")
    kept = tuple(piece for piece in pieces if piece.n_frames)
    if not kept or not signals:
        raise refusal(READER, path, "hold samples", f"{len(signals)} signals in {len(kept)} files", _COPY)
    return Header(path, rate, _start_time(top), signals, kept)


def parsed(path: str) -> Any:
    """The fields of one header, by wfdb.

    Parameters
    ----------
    path
        The .hea file.
    """
    wfdb = library(READER, path, "wfdb")
    if os.path.getsize(path) > _MOST_BYTES:
        raise refusal(READER, path, f"be at most {_MOST_BYTES} bytes", str(os.path.getsize(path)), "Is it a header?")
    try:
        return wfdb.rdheader(os.path.splitext(path)[0])
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise refusal(READER, path, "be the header of a WFDB record", f"{said[:200]!r} from wfdb", _COPY) from None


def beside(path: str, name: str) -> str:
    """The path of a file that a header names, which must lie in its folder.

    Parameters
    ----------
    path
        The header.
    name
        As it stands there.
    """
    folder = os.path.dirname(path)
    place = os.path.join(folder, name)
    if not _NAME.fullmatch(name) or os.path.dirname(os.path.realpath(place)) != os.path.realpath(folder):
        must = "name files in its own folder, of letters, digits, '.', '_', '+' and '-'"
        raise refusal(READER, path, must, repr(name), "Put them beside it, and correct their names in it")
    if not os.path.isfile(place):
        raise refusal(READER, path, "have the files beside it that it names", f"no {name}", _COPY)
    return place


def _segments(path: str, top: Any, names: Sequence[str]) -> list[tuple[str, Any, int]]:
    """Headers of the segments that are no pauses, and the frames at which they start."""
    answer, frame, known = [], 0, dict[str, Any]()
    for name, length in zip(names, top.seg_len, strict=True):
        if name != _NO_FILE:
            file = beside(path, f"{name}.hea")
            header = known.setdefault(name, parsed(file))
            if getattr(header, "seg_name", None) is not None:
                raise refusal(READER, path, "have segments without segments of their own", name, "Name one of them")
            if length and header.sig_len and header.sig_len != length:
                must = f"have {length} samples in segment {name}"
                raise refusal(READER, path, must, f"{header.sig_len} in its header", _COPY)
            answer.append((file, header, frame))
        frame += length
    if not answer:
        raise refusal(READER, path, "have a segment with samples", "pauses only", _COPY)
    return answer


def _signals(path: str, header: Any) -> tuple[Signal, ...]:
    """The signals of a header."""
    labels, units = header.sig_name or [], header.units or []
    samples = [int(number or 1) for number in header.samps_per_frame or [1] * len(labels)]
    if len(labels) != (header.n_sig or 0):
        raise refusal(READER, path, f"describe its {header.n_sig} signals", f"{len(labels)} lines", _COPY)
    return tuple(
        Signal(*fields)
        for fields in zip([str(x or "") for x in labels], [x or "mV" for x in units], samples, strict=True)
    )


def _piece(path: str, file: str, header: Any, frame: int, signals: Sequence[Signal]) -> Piece:
    """The samples of one segment, as far as they are there."""
    own = _signals(file, header)
    of = {signal.label: signal for signal in signals}
    for signal in own:
        if signal != of.get(signal.label):
            must = f"have signal {signal.label!r} alike in all segments"
            got = f"{signal.units}, {signal.samples} samples a frame in {os.path.basename(file)}"
            raise refusal(READER, path, must, got, "Name one segment")
    claimed, held = header.sig_len, _held(file, header, [signal.samples for signal in own])
    if held is None and not claimed:
        raise refusal(READER, file, "tell how many samples there are", "none", "Correct its first line")
    if held is not None and claimed and held < claimed:
        what = f"it claims {claimed} samples, and its files hold {held}; the others are missing. Copy them again."
        told(READER, file, what)
    n_frames = min(x for x in (held, claimed or None) if x is not None)
    reads = "whole" if not claimed else "from the start" if "8" in (header.fmt or []) else "slices"
    return Piece(os.path.splitext(file)[0], frame, n_frames, tuple(signal.label for signal in own), reads)


def _held(file: str, header: Any, samples: Sequence[int]) -> int | None:
    """Frames that the files of a segment hold; None where they are compressed."""
    held = []
    for name in dict.fromkeys(header.file_name or []):
        place = beside(file, name)
        mine = [number for number, other in enumerate(header.file_name) if other == name]
        formats = {header.fmt[number] for number in mine}
        if len(formats) > 1:
            raise refusal(READER, file, f"give one format for {name}", f"{sorted(formats)}", _COPY)
        width = _WIDTHS.get(formats.pop())
        if width is not None:
            n_bytes = os.path.getsize(place) - (header.byte_offset[mine[0]] or 0)
            held.append(int(n_bytes / width) // sum(samples[number] for number in mine))
    return max(0, min(held)) if held else None


def _start_time(header: Any) -> str | None:
    """When the record began, where it has a date."""
    if header.base_date is None or header.base_time is None:
        return None
    return datetime.combine(header.base_date, header.base_time).isoformat()
