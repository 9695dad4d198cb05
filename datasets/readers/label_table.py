"""Labels in text: tables with columns of times and labels, and Audacity's label tracks.

Throughout: a label has a *start* and a *stop*, in s; an instant has the same for both.
"""

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .contract import refusal
from .label_windows import read_windows
from .libraries import library

READER = "labels"
_STARTS = ("onset", "start", "begin", "beginning", "start_time", "begin_time", "onset_time", "t_start", "tmin", "from")
_STOPS = ("offset", "stop", "end", "finish", "end_time", "stop_time", "offset_time", "t_stop", "t_end", "tmax", "to")
_DURATIONS = ("duration", "dur", "length", "lasting")
_INSTANTS = ("time", "times", "timestamp", "t", "instant", "date_time", "datetime")
_LABELS = ("label", "labels", "trial_type", "annotation", "class", "text", "description")
_FILES = (
    "file", "files", "filename", "file_name", "recording", "audio_file", "audio_path", "notated_path", "begin_file",
    "source", "path", "wav",
)  # fmt: skip
_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
_UNIT = "s|secs?|seconds|ms|us|min|h|samples?"
_COLUMN = re.compile(rf"(.*?)(?:[ _]*[\[(]({_UNIT})[\])]|[ _]({_UNIT}))?")
_NOTHING = ("", "n/a", "nan", "na", "none", "null")
_HEADER = "Name its columns in a header: start and stop (or onset and duration, or time), and label"


@dataclass(frozen=True)
class Labels:
    """Labels of a file: ``start`` and ``stop`` in s, ``text``, and the instant from which the seconds count.

    ``start_time`` in ISO 8601; ``dated``: the file gives dates, so that it means nothing beside a recording without.
    """

    start: NDArray[np.float64]
    stop: NDArray[np.float64]
    text: Sequence[str]
    start_time: str | None = None
    dated: bool = False


def read_label_table(path: str, column: str | None, recording: str | None) -> Labels:
    """Read a table of labels, or a label track of Audacity.

    Parameters
    ----------
    path
        A text file.
    column
        Name of the column of labels; None to find it.
    recording
        Name of the recording, for tables of several.

    Returns
    -------
    The labels, in the order of time.
    """
    lines = _lines(path)
    if track := _audacity(lines):
        return _labels(path, *track)
    if lines[0].lstrip().startswith("{"):
        return _from_table(path, read_windows(path, recording), column)
    return _from_table(path, _of_recording(path, _table(path, lines), recording), column)


def read_arrow_labels(path: str, column: str | None, recording: str | None, *, parquet: bool) -> Labels:
    """Read a Parquet or Feather table of labels.

    Parameters
    ----------
    path
        The file.
    column, recording
        As for :func:`read_label_table`.
    parquet
        Whether it is Parquet.
    """
    module = library(READER, path, "pyarrow.parquet" if parquet else "pyarrow.feather", "pyarrow")
    try:
        with open(path, "rb") as file:
            found = module.read_table(file).to_pandas()
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise refusal(READER, path, "be a table that pyarrow can read", f"{said!r}", "Copy it again") from None
    if not isinstance(found.index, pd.RangeIndex):
        found = found.reset_index()
    table = found.astype(object).map(_as_text)
    table.columns = [str(name).strip() for name in table.columns]
    return _from_table(path, _of_recording(path, table, recording), column)


def _as_text(cell: Any) -> str:
    """A cell as a table of text has it."""
    if isinstance(cell, pd.Timedelta):
        return repr(cell.total_seconds())
    if isinstance(cell, str):
        return cell.strip()
    return "" if pd.isna(cell) else cell.isoformat() if isinstance(cell, pd.Timestamp) else str(cell)


def _from_table(path: str, table: pd.DataFrame, column: str | None) -> Labels:
    """Labels of a table of text."""
    start, stop, start_time, used = _times(path, table)
    texts = table[_label_column(path, table, used, column)]
    empty = texts.str.lower().isin(_NOTHING).to_numpy()
    kept = [text for text, gone in zip(texts, empty, strict=True) if not gone]
    return _labels(path, start[~empty], stop[~empty], kept, start_time)


def _labels(
    path: str,
    start: NDArray[np.float64],
    stop: NDArray[np.float64],
    text: Sequence[str],
    start_time: str | None = None,
) -> Labels:
    """Labels in order; one that ends before it starts is refused."""
    bad = np.flatnonzero(~(stop >= start) | ~np.isfinite(start))
    if len(bad):
        at = int(bad[0])
        got = f"{start[at]:g} to {stop[at]:g} s for {text[at]!r}"
        raise refusal(READER, path, "have labels that stop after they start", got, "Correct it")
    order = np.argsort(start, kind="stable")
    texts = [text[k] for k in order]
    return Labels(start[order], stop[order], texts, start_time, start_time is not None)


def _lines(path: str) -> list[str]:
    """Lines that are not empty."""
    with open(path, "rb") as file:
        raw = file.read()
    try:
        text = raw.decode("utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise refusal(READER, path, "hold labels", "no lines", _HEADER)
    return lines


def _audacity(lines: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]] | None:
    r"""Rows of start, stop and label, with tabs between and no header; a line that begins with \ tells frequencies."""
    rows = [line.split("\t", 2) for line in lines if not line.startswith("\\")]
    if any(len(row) < 2 for row in rows):
        return None
    try:
        times = np.array([[float(cell.replace(",", ".")) for cell in row[:2]] for row in rows])
    except ValueError:
        return None
    return times[:, 0], times[:, 1], [row[2].strip() if len(row) > 2 else "" for row in rows]


def _table(path: str, lines: Sequence[str]) -> pd.DataFrame:
    """Cells as text, under a header."""
    found = [line for line in lines if not line.startswith("#")]
    header = found[0] if found else ""
    delimiter = max(("\t", ";", ","), key=header.count)
    if not header.count(delimiter):
        raise refusal(READER, path, "be a table of labels", f"{header[:80]!r} as its first line", _HEADER)
    try:
        table = pd.read_csv(
            io.StringIO("\n".join(found)), sep=delimiter, dtype=str, keep_default_na=False, skipinitialspace=True
        )
    except (ValueError, pd.errors.ParserError) as error:
        said = " ".join(str(error).split())[:200]
        raise refusal(READER, path, "be a table of labels", f"{said!r} from pandas", "Correct it") from None
    table.columns = [str(name).strip() for name in table.columns]
    if isinstance(table.index, pd.RangeIndex) or not len(table):
        return table.fillna("").map(str.strip)
    raise refusal(READER, path, "have as many cells in its rows as in its header", "more", "Correct it")


def _of_recording(path: str, table: pd.DataFrame, recording: str | None) -> pd.DataFrame:
    """Rows of one recording, where a column names recordings."""
    column = next((name for name in table.columns if name.lower().replace(" ", "_") in _FILES), None)
    if column is None:
        return table
    names = table[column].map(lambda cell: re.split(r"[\\/]", cell)[-1])
    known = sorted(set(names))
    if recording is None and len(known) > 1:
        got = f"labels of {len(known)} recordings, {', '.join(known[:5])}"
        raise refusal(READER, path, "be labels of one recording", got, "Give its name with recording=")
    if recording is None:
        return table
    wanted = re.split(r"[\\/]", recording)[-1]
    stem = wanted.rpartition(".")[0] or wanted
    chosen = names.isin([wanted, stem])
    if not chosen.any():
        got = f"{', '.join(known[:5])} in column {column!r}"
        raise refusal(READER, path, f"have labels of {wanted}", got, "Give the name that it has there")
    return table[chosen].reset_index(drop=True)


def _times(path: str, table: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64], str | None, list[str]]:
    """Starts and stops in s, the instant from which they count, and the columns that they were in."""
    first = _column(table, _STARTS) or _column(table, _INSTANTS)
    if first is None:
        got = f"{', '.join(table.columns[:9])}"
        counted = any(name_and_units(name)[1].startswith("sample") for name in table.columns)
        remedy = f"Divide sample numbers by the sampling rate. {_HEADER}" if counted else _HEADER
        raise refusal(READER, path, "have a column of starts", got, remedy)
    start, start_time = _seconds(path, table, first)
    used = [first]
    if last := _column(table, _STOPS):
        stop, end_time = _seconds(path, table, last, start_time)
        if (start_time is None) != (end_time is None):
            got = f"{first!r} and {last!r}"
            raise refusal(READER, path, "have starts and stops of one kind", got, "Write both as seconds, or as dates")
        return start, np.where(np.isnan(stop), start, stop), start_time, [*used, last]
    if lasting := _column(table, _DURATIONS):
        length, dated = _seconds(path, table, lasting)
        if dated is not None:
            raise refusal(READER, path, "have durations in seconds", f"dates in {lasting!r}", "Correct it")
        return start, start + np.where(np.isnan(length), 0.0, length), start_time, [*used, lasting]
    return start, start, start_time, used


def _column(table: pd.DataFrame, names: Iterable[str]) -> str | None:
    """A column of one of some names, with a unit of time or without; one of sample numbers is none."""
    for name in table.columns:
        plain, units = name_and_units(name)
        if plain in names and units in _UNITS:
            return str(name)
    return None


def name_and_units(column: str) -> tuple[str, str]:
    """The name of a column without its unit of time, and that unit.

    Examples
    --------
    >>> name_and_units("Begin Time (s)"), name_and_units("onset_ms"), name_and_units("start")
    (('begin_time', 's'), ('onset', 'ms'), ('start', ''))
    """
    found = _COLUMN.fullmatch(column.strip().lower())
    return (found[1].strip().replace(" ", "_"), found[2] or found[3] or "") if found else (column, "")


def _seconds(
    path: str, table: pd.DataFrame, name: str, since: str | None = None
) -> tuple[NDArray[np.float64], str | None]:
    """A column in s; of date-times, since the first, or since another's first."""
    cells = table[name].where(~table[name].str.lower().isin(_NOTHING))
    numbers = pd.to_numeric(cells.str.replace(",", ".", regex=False), errors="coerce")
    if numbers.notna().equals(cells.notna()):
        return numbers.to_numpy(np.float64) * _UNITS[name_and_units(name)[1]], None
    try:
        instants = pd.to_datetime(cells, format="ISO8601")
    except (ValueError, TypeError):
        bad = cells[numbers.isna() & cells.notna()].iloc[0]
        raise refusal(
            READER, path, f"have numbers or dates as in 2020-03-09T10:15:00 in {name!r}", repr(bad), "Correct it"
        ) from None
    zoned = getattr(instants.dtype, "tz", None) is not None
    plain = (instants.dt.tz_convert("UTC").dt.tz_localize(None) if zoned else instants).to_numpy("datetime64[us]")
    first = np.datetime64(since.removesuffix("Z")) if since else plain[~np.isnat(plain)].min()
    seconds = np.where(np.isnat(plain), np.nan, (plain - first) / np.timedelta64(1, "s"))
    return seconds, since or f"{first}{'Z' if zoned else ''}"


def _label_column(path: str, table: pd.DataFrame, used: Sequence[str], column: str | None) -> str:
    """The column of labels: the one that is named, or the only one, or one that is called so."""
    others = [name for name in table.columns if name not in used]
    if column is not None:
        if column not in table.columns:
            raise refusal(READER, path, f"have the column {column!r}", ", ".join(table.columns), "Name one of them")
        return column
    called = [name for wanted in _LABELS for name in others if name.lower() == wanted]
    if called or len(others) == 1:
        return (called or others)[0]
    example = others[0] if others else "label"
    got = f"{', '.join(others) or 'none'}"
    raise refusal(READER, path, "have one column of labels", got, f"Choose it with label_column={example!r}")
