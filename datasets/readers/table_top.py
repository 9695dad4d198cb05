"""What stands above the rows of a table: preambles, comments, units, and what well-known loggers write there.

Throughout: a *top* is all lines above the first row of values, but for the plain header.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from .clock_names import unit_of

COMMENTS = ("#", "%", "//")
"""Marks of lines above a table that are no rows."""

_TEXT_UNIT = re.compile(
    r"[munkhcd]?(?:v|volts?|a|amps?|w|j|n|pa|hz|g|m|l|t|ohm|bar|rad|b)(?:/(?:s|s2|s\^2|s²|min|h|m2|m\^2|cm))?"
    r"|psi|atm|mmhg|[ckf]|deg[cf]?|deg_c|celsius|kelvin|degrees?|°[cf]?|deg/s|rpm|bpm|%|percent|pp[mb]|lux|lx|dba"
    r"|gauss|counts?|adc|a\.?u\.?|m3/h|ph|-|1|none|n/a|ts|rn|id"
)
_LONGEST_UNIT = 24
_NEEDLESS = str.maketrans("", "", " ()")
_EPOCH = (1e9, 4e9)
_MOST_RATE = 1e5


@dataclass(frozen=True)
class Top:
    """What a table tells before its rows."""

    skip: int = 0
    """Lines before the header, or before the first row where there is no header."""
    names: tuple[str, ...] | None = None
    """Labels of the columns, where they stand in what is skipped."""
    below: int = 0
    """Rows between the header and the first row of values."""
    units: tuple[str, ...] = ()
    """Unit of each column."""
    sampling_rate: float | None = None
    """Rows per second, in Hz."""
    start_time: str | None = None
    """Date-time of the first row, in ISO 8601."""
    time_format: str | None = None
    """How date-times are written."""
    aside: tuple[str, ...] = ()
    """Labels of columns that number the rows, or tell their time again."""
    logger: str = ""
    """Which logger wrote it."""
    clockless: bool = field(default=False)
    """Whether columns that look like a clock only tell when rows arrived."""


def known_top(lines: Sequence[str]) -> Top | None:
    r"""What a well-known logger wrote above its rows; None where none did.

    Examples
    --------
    >>> known_top(["1599065118.0\n", "4.0\n", "0.25\n", "0.26\n"]).sampling_rate
    4.0
    """
    loggers: tuple[Callable[[Sequence[str]], Top | None], ...] = (_toa5, _actigraph, _openbci, _empatica)
    return next((top for logger in loggers if (top := logger(lines)) is not None), None)


def leading_comments(lines: Sequence[str], comment: str | None) -> int:
    r"""Lines at the beginning that are comments, blank, or tell Excel its separator.

    Examples
    --------
    >>> leading_comments(["# made by hand\n", "\n", "x,y\n"], None)
    2
    """
    marks = (comment,) if comment else COMMENTS
    count = 0
    for line in lines:
        if line.strip() and not line.startswith(marks) and not re.match(r'"?sep=(?:.|\\t)"?\s*$', line):
            break
        count += 1
    return 0 if count == len(lines) else count


def is_units_row(cells: Sequence[str]) -> bool:
    """Whether a row of words is one of units.

    Examples
    --------
    >>> is_units_row(["s", "mV", "(deg C)"]), is_units_row(["good", "bad", "s"])
    (True, False)
    """
    plain = [_plain_unit(cell) for cell in cells]
    told = [unit for unit in plain if unit]
    known = [unit for unit in told if _TEXT_UNIT.fullmatch(unit) or unit_of(unit) is not None]
    return bool(told) and len(known) * 2 >= len(told) and all(len(cell) <= _LONGEST_UNIT for cell in cells)


def plain_units(cells: Sequence[str]) -> tuple[str, ...]:
    """Units without their brackets.

    Examples
    --------
    >>> plain_units(["[ms]", "(mV)", ""])
    ('ms', 'mV', '')
    """
    return tuple(re.sub(r"^[\[({](.*)[\])}]$", r"\1", cell.strip()).strip() for cell in cells)


def _plain_unit(cell: str) -> str:
    """A unit as it is looked up."""
    (plain,) = plain_units([cell])
    return plain.replace("µ", "u").replace("μ", "u").translate(_NEEDLESS).lower()


def _cells(line: str) -> list[str]:
    """Cells of a line with commas."""
    return [cell.strip().strip('"') for cell in line.split(",")]


def _toa5(lines: Sequence[str]) -> Top | None:
    """Campbell Scientific: environment, labels, units and processing stand in four lines."""
    if len(lines) < 4 or _cells(lines[0])[0] != "TOA5":
        return None
    names = _cells(lines[1])
    aside = tuple(name for name in names if name.upper() == "RECORD")
    return Top(skip=1, below=2, units=tuple(_cells(lines[2])), aside=aside, logger="TOA5 (Campbell Scientific)")


def _actigraph(lines: Sequence[str]) -> Top | None:
    """ActiGraph: ten lines, of which the last is of dashes."""
    if not re.match(r"-+.*Created By ActiGraph", lines[0] if lines else ""):
        return None
    ends = [n for n, line in enumerate(lines[1:30], 1) if re.match(r"-{5,}", line)]
    text = "".join(lines[: ends[0] + 1]) if ends else ""
    if not ends:
        return None
    hertz, every = re.search(r"at (\d+) ?Hz", text), re.search(r"Epoch Period \(hh:mm:ss\) (\d+):(\d+):(\d+)", text)
    seconds = sum(int(part) * unit for part, unit in zip(every.groups(), (3600, 60, 1), strict=True)) if every else 0
    rate = 1 / seconds if seconds else float(hertz[1]) if hertz else None
    date = _actigraph_date(text)
    start = _parsed(re.search(r"Start Date (\S+)", text), re.search(r"Start Time (\S+)", text), date)
    return Top(
        skip=ends[0] + 1, sampling_rate=rate, start_time=start, time_format=f"{date} %H:%M:%S.%f", logger="ActiGraph"
    )


def _actigraph_date(text: str) -> str:
    """Format of its dates, as its first line has it."""
    found = re.search(r"date format (\S+)", text)
    written = found[1] if found else "M/d/yyyy"
    for words, directive in (("yyyy", "%Y"), ("MM", "%m"), ("dd", "%d")):
        written = written.replace(words, directive)
    return re.sub(r"(?<!%)M", "%m", re.sub(r"(?<!%)d", "%d", written))


def _parsed(date: re.Match[str] | None, time: re.Match[str] | None, written: str) -> str | None:
    """A date and a time as ISO 8601; None where they cannot be read."""
    if date is None or time is None:
        return None
    try:
        return datetime.strptime(f"{date[1]} {time[1]}", f"{written} %H:%M:%S").isoformat()
    except ValueError:
        return None


def _openbci(lines: Sequence[str]) -> Top | None:
    """OpenBCI: lines that begin with a percent sign; times are those of arrival, in bursts."""
    top = [line for line in lines[:40] if line.startswith("%")]
    if not top or not re.match(r"%\s*OpenBCI", top[0]):
        return None
    hertz = re.search(r"%\s*Sample Rate\s*=\s*([\d.]+)", "".join(top))
    rest = lines[len(top) :]
    if not hertz or len(rest) < 2:
        return None
    cells = [cell.strip() for cell in rest[0].split(",")]
    if re.match(r"[\d.+-]", cells[0]):  # older versions have no header
        names = ("Sample Index", *(f"ch{n}" for n in range(1, len(cells) - 1)), "Timestamp")
        return Top(
            len(top),
            names,
            sampling_rate=float(hertz[1]),
            aside=(names[0], names[-1]),
            logger="OpenBCI",
            clockless=True,
        )
    aside = tuple(name for name in cells if name == "Sample Index" or name.startswith("Timestamp"))
    at = cells.index("Timestamp") if "Timestamp" in cells else None
    start = _since_1970(rest[1].split(",")[at]) if at is not None and len(rest[1].split(",")) > at else None
    return Top(len(top), sampling_rate=float(hertz[1]), start_time=start, aside=aside, logger="OpenBCI", clockless=True)


def _empatica(lines: Sequence[str]) -> Top | None:
    """Empatica E4: seconds since 1970 in the first line, the rate in the second, for every column."""
    if len(lines) < 3:
        return None
    try:
        start, rate, first = ({float(cell) for cell in line.split(",")} for line in lines[:3])
    except ValueError:
        return None
    widths = {line.count(",") for line in lines[:3]}
    told = len(start) == len(rate) == len(widths) == 1
    if not told or not (_EPOCH[0] < min(start) < _EPOCH[1] and 0 < min(rate) < _MOST_RATE) or max(first) >= _EPOCH[0]:
        return None
    since = _since_1970(lines[0].split(",")[0])
    return Top(2, sampling_rate=min(rate), start_time=since, logger="Empatica E4")


def _since_1970(cell: str) -> str | None:
    """Seconds since 1970 as a date-time in UTC; None for what is no such number."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=float(cell))
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=None).isoformat() + "Z"
