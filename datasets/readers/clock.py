"""The clock column of a table: which column it is, and its cells as seconds.

Throughout: a *cell* is the text of one column in one row; an *instant* is a number of seconds as
float64, or a date-time as datetime64[ns] in UTC or in the table's own unnamed zone.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from .clock_names import UNITS

Instants = np.ndarray[Any, np.dtype[Any]]

# Seconds since 1970 reach this in the year 5138: such numbers are milliseconds or less.
LATEST_SECONDS = 1e11
# Whole years that nanoseconds since 1970 reach in 64 bits.
_FIRST_YEAR, _LAST_YEAR = 1678, 2261

_ISO = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d|\d{8})"
    r"(?:[T ](?P<time>\d\d(?::?\d\d(?::?\d\d(?:[.,]\d+)?)?)?) ?(?P<zone>Z|UTC|[+-]\d\d(?::?\d\d)?)?)?"
)

_TIME = re.compile(r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp](?:[Mm]|\. ?[Mm]\.)?)?")
_DATES = (
    *(f"%d{mark}%m{mark}%Y" for mark in "./-"),
    *(f"%m{mark}%d{mark}%Y" for mark in "/-"),
    *(f"%Y{mark}%m{mark}%d" for mark in "./-"),
    *(f"%d{mark}%m{mark}%y" for mark in "./-"),
    "%m/%d/%y",
    *(f"%y{mark}%m{mark}%d" for mark in "-/"),
    "%m-%d-%y",
    "%d %b %Y",
    "%d-%b-%Y",
    "",
)
_SHORT = ("%M:%S", "%M:%S.%f")
_TIMES = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M:%S %p", "%I:%M %p", "%I:%M:%S%p", "%I:%M%p", *_SHORT, "")
_FORMATS = (
    *(
        f"{date}{between}{time}"
        for date in _DATES
        for time in _TIMES
        for between in (("",) if not date or not time else (" ", ", "))
        if (date or time) and not (date and time in _SHORT)
    ),
    *("%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S", "%b %d, %Y %H:%M:%S", "%b %d, %Y %I:%M:%S %p", "%Y-%m"),
    *("%Y-%m-%d %I:%M:%S %p", "%Y%m%d_%H%M%S", "%Y-%m-%d_%H-%M-%S", "%Y-%m-%d-%H-%M-%S"),
)
# Of durations that may be longer: what their first part has to reach to be none of a clock, and seconds of each part.
_SIXTY = 60
_ELAPSED = {"%H:%M:%S": (24, 3600, 60, 1), "%H:%M": (24, 3600, 60), "%M:%S": (60, 60, 1)}


class BadCellError(ValueError):
    """A cell that is not what the first row's cell made the clock to be; ``row`` counts in its block."""

    def __init__(self, row: int, cell: str) -> None:
        super().__init__(cell)
        self.row = row
        self.cell = cell


@dataclass(frozen=True)
class Clock:
    """How the cells of a clock column are written."""

    kind: str
    """'seconds' (numbers), 'iso' or 'format' (date-times)."""
    per_second: float = 1.0
    """Clock units in a second, for numbers."""
    format: str | None = None
    """How date-times are written, as for ``datetime.strptime``."""
    has_zone: bool = False
    """Whether date-times carry an offset from UTC."""

    def read(self, cells: Sequence[str], number: Callable[[str], float]) -> Instants:
        """Read a block of cells as instants; the first that does not fit raises :class:`BadCellError`."""
        if self.kind == "seconds":
            return self.in_seconds(np.array([_seconds(row, cell, number) for row, cell in enumerate(cells)]))
        return np.array([self._instant(row, cell) for row, cell in enumerate(cells)], "datetime64[ns]")

    @property
    def is_time_of_day(self) -> bool:
        """Whether date-times are written without their date."""
        return self.format is not None and not re.search(r"%[YymdjbBcxDFGuV]", self.format)

    def in_seconds(self, values: Instants) -> Instants:
        """Numbers of the clock as seconds; a minute is multiplied by 60, for a sixtieth is not exact."""
        return values / self.per_second if self.per_second >= 1 else values * round(1 / self.per_second)

    def _instant(self, row: int, cell: str) -> np.datetime64:
        """Read one date-time."""
        try:
            zone, instant = self._parse(cell.strip())
        except ValueError as error:
            raise BadCellError(row, cell) from error
        if zone != self.has_zone:
            raise BadCellError(row, cell)
        return instant

    def _parse(self, cell: str) -> tuple[bool, np.datetime64]:
        """Tell whether a date-time has an offset, and which instant it is."""
        if self.format is None:
            return _iso_instant(cell)
        moment = _elapsed(cell, self.format) if self.is_time_of_day else None
        moment = moment or datetime.strptime(_meridiem(cell), self.format)
        zoned = moment.tzinfo is not None
        plain = moment.astimezone(UTC).replace(tzinfo=None) if zoned else moment
        return zoned, _nanoseconds(plain)


def looks_like_date(cell: str) -> bool:
    """Tell whether a cell is written as an ISO 8601 date or date-time.

    Parameters
    ----------
    cell
        The text.

    Returns
    -------
    True for year, month and day, with or without a time and its offset from UTC.

    Examples
    --------
    >>> looks_like_date("2020-03-09 10:14:33"), looks_like_date("09.03.2020")
    (True, False)
    """
    return _ISO.fullmatch(cell.strip()) is not None


def looks_like_time(cell: str) -> bool:
    """Tell whether a cell is written as a time of the day.

    Examples
    --------
    >>> looks_like_time("12:30:34.328"), looks_like_time("2:05 PM"), looks_like_time("2020-03-09")
    (True, True, False)
    """
    return _TIME.fullmatch(cell.strip()) is not None


def clock_of(
    first_cell: str,
    number: Callable[[str], float],
    *,
    label: str = "time",
    unit: str = "s",
    time_format: str | None = None,
) -> Clock:
    """Tell from its first cell how a clock column is written.

    Parameters
    ----------
    first_cell
        The column's cell in the first row.
    number
        Reads a cell as a number, or raises ``ValueError``.
    label
        The column's label; digits such as 20200309 are a date only below one with "date" in it.
    unit
        Unit of numbers, a key of ``UNITS``.
    time_format
        How date-times are written, as for ``datetime.strptime``; None for ISO 8601.

    Returns
    -------
    How to read the column.

    Examples
    --------
    >>> clock_of("1250", float, unit="ms")
    Clock(kind='seconds', per_second=1000.0, format=None, has_zone=False)
    >>> clock_of("2020-03-09 10:14:33+01:00", float).has_zone
    True
    """
    cell = first_cell.strip()
    if time_format is not None:
        return Clock("format", format=time_format, has_zone="%z" in time_format)
    iso = _ISO.fullmatch(cell)
    if iso and ("date" in label.lower() or not is_a_number(cell, number)):
        return Clock("iso", has_zone=iso["zone"] is not None)
    return Clock("seconds", per_second=UNITS[unit])


def _elapsed(cell: str, written: str) -> datetime | None:
    """A duration of more hours than a day has, or more minutes than an hour; None for a time of the day."""
    most, *units = _ELAPSED.get(written.removesuffix(".%f"), (0,))
    parts = cell.split(":")
    if len(parts) != len(units) or not parts[0].isdigit() or int(parts[0]) < most:
        return None
    numbers = [float(part) for part in parts]
    within = all(number < _SIXTY for number in numbers[1:])
    seconds = sum(number * unit for number, unit in zip(numbers, units, strict=True))
    return datetime(1900, 1, 1) + timedelta(seconds=seconds) if within else None


def written_as(cell: str, others: Sequence[str] = ()) -> list[str]:
    """Formats, as for ``datetime.strptime``, in which date-times may be written: several where it may be more.

    Parameters
    ----------
    cell
        One of them.
    others
        More of the same column, of which each has to fit.

    Returns
    -------
    The formats.

    Examples
    --------
    >>> written_as("25.10.2020 02:00"), written_as("1/2/2020")
    (['%d.%m.%Y %H:%M'], ['%d/%m/%Y', '%m/%d/%Y'])
    """
    fits = [written for written in _FORMATS if _parses(cell, written)]
    return [written for written in fits if all(_parses(other, written) for other in others)] or fits


def _parses(cell: str, written: str) -> bool:
    """Whether a cell is written so."""
    try:
        datetime.strptime(_meridiem(cell.strip()), written)
    except ValueError:
        return False
    return True


def _meridiem(cell: str) -> str:
    """A time before or after noon as ``strptime`` reads it: weather stations write 2:30p, Spanish ones 2:30 p. m."""
    return re.sub(r"(?<=\d)( ?)([aApP])(?:\. ?[mM]\.)?$", r"\1\2m", cell)


def seconds_since_first(instants: Instants, *, has_zone: bool) -> tuple[Instants, str]:
    """Turn date-times into seconds since the first one.

    Parameters
    ----------
    instants
        Date-times, shape (rows,).
    has_zone
        Whether they are UTC; else they are of the table's own unnamed zone.

    Returns
    -------
    Seconds, float64, and the first date-time in ISO 8601.

    Examples
    --------
    >>> dates = np.array(["2020-03-09T10:14:33", "2020-03-09T10:14:34.5"], "datetime64[ns]")
    >>> seconds_since_first(dates, has_zone=True)
    (array([0. , 1.5]), '2020-03-09T10:14:33Z')
    """
    start = instant_text(instants[0]) + ("Z" if has_zone else "")
    return (instants - instants[0]) / np.timedelta64(1, "s"), start


def past_midnight(instants: Instants) -> Instants:
    """Times of the day on the days that follow each other: one that is twelve hours and more earlier is of the next.

    Examples
    --------
    >>> times = np.array(["1900-01-01T23:59", "1900-01-01T00:01"], "datetime64[ns]")
    >>> past_midnight(times)[1].astype("datetime64[m]")
    np.datetime64('1900-01-02T00:01')
    """
    days = np.cumsum(np.diff(instants, prepend=instants[:1]) <= -np.timedelta64(12, "h"))
    return instants + days * np.timedelta64(1, "D")


def instant_text(instant: Any) -> str:
    """Write an instant without needless zeros.

    Parameters
    ----------
    instant
        Seconds or a date-time.

    Returns
    -------
    The number, or the date-time in ISO 8601.

    Examples
    --------
    >>> instant_text(np.float64(1.5)), instant_text(np.datetime64("2020-03-09", "ns"))
    ('1.5', '2020-03-09T00:00:00')
    """
    if isinstance(instant, np.datetime64):
        return str(np.datetime_as_string(instant, unit="ns")).rstrip("0").rstrip(".").ljust(19, "0")
    return str(float(instant))


def first_fault(instants: Instants) -> int | None:
    """Find the first row whose time is not later than the row's before it.

    Parameters
    ----------
    instants
        Seconds or date-times, shape (rows,).

    Returns
    -------
    The row, from 0; None for a clock that only goes forward.

    Examples
    --------
    >>> first_fault(np.array([0.0, 1.0, 1.0])), first_fault(np.array([0.0, 1.0]))
    (2, None)
    """
    stalls = np.flatnonzero(~(instants[1:] > instants[:-1]))
    return int(stalls[0]) + 1 if stalls.size else None


def _seconds(row: int, cell: str, number: Callable[[str], float]) -> float:
    """Read one number of a clock, which can be neither missing nor infinite."""
    try:
        value = number(cell)
    except ValueError as error:
        raise BadCellError(row, cell) from error
    if not np.isfinite(value):
        raise BadCellError(row, cell)
    return value


def is_a_number(cell: str, number: Callable[[str], float]) -> bool:
    """Tell whether a cell is a number.

    Examples
    --------
    >>> is_a_number("1.5", float), is_a_number("1.5.2020", float)
    (True, False)
    """
    try:
        number(cell)
    except ValueError:
        return False
    return True


def _iso_instant(cell: str) -> tuple[bool, np.datetime64]:
    """Read an ISO 8601 date-time to the nanosecond, which ``datetime`` does not hold."""
    found = _ISO.fullmatch(cell)
    if found is None:
        raise ValueError(cell)
    date, time, zone = found["date"], found["time"] or "00", found["zone"]
    second, _, fraction = time.replace(",", ".").partition(".")
    moment = datetime.strptime(date.replace("-", "") + second.replace(":", "").ljust(6, "0"), "%Y%m%d%H%M%S")
    instant = _nanoseconds(moment) + np.timedelta64(int(fraction[:9].ljust(9, "0")), "ns")
    return zone is not None, instant - np.timedelta64(_offset_minutes(zone), "m")


def _nanoseconds(moment: datetime) -> np.datetime64:
    """A date-time to the nanosecond; raises ``ValueError`` in years that int64 does not reach, where NumPy may wrap."""
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise ValueError(moment)
    return np.datetime64(moment, "ns")


def _offset_minutes(zone: str | None) -> int:
    """Count the minutes by which a zone is ahead of UTC."""
    if zone is None or zone in ("Z", "UTC"):
        return 0
    digits = zone.replace(":", "").ljust(5, "0")
    return int(digits[0] + "1") * (60 * int(digits[1:3]) + int(digits[3:5]))
