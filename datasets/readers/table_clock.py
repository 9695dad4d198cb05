"""The clock of a table: in which columns it stands, how its cells are written, and its times and rate."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from .clock import (
    LATEST_SECONDS,
    Clock,
    clock_of,
    first_fault,
    instant_text,
    is_a_number,
    looks_like_date,
    looks_like_time,
    past_midnight,
    seconds_since_first,
    written_as,
)
from .clock_names import UNITS, clock_unit, ending_unit, told_unit, unit_of
from .contract import refusal
from .table_cells import SET_CLOCK_ASIDE, Rows, TableOptions, reads
from .table_layout import READER, Layout, first_row

# Steps of so many periods are holes, however a clock is rounded.
_HOLE_STEPS = 5
# Relative difference of steps that are the same but for rounding.
_SAME_STEP = 1e-6
# Days that spreadsheets and MATLAB count, of the years from 1982 to 2064.
_SERIAL_DAYS = ((30_000, 60_000), (724_000, 754_000))
_PART_OF_A_DAY = 0.5
_SINCE_1970 = 1e8
_COUNTER, _FEW = 2**32, 3
# Of times that begin anew, all but a few of the rows go forward.
_MOST_ANEW = 0.02
# Seconds since 1970 of the years from 1980 to 2100.
_RECENT = (3.2e8, 4.1e9)
# Days of three minutes, which would be seconds at 500 Hz; numbers that are whole but for rounding.
_TINY_STEP, _NEARLY = 2e-3, 1e-4
_DATED = re.compile(r"date|datum|fecha|дата", re.IGNORECASE)
_YEARS = re.compile(r"(?:^|[\W_])(?:years?|jahre?|années?|años?)(?:[\W_]|$)", re.IGNORECASE)
_STAMPED = re.compile(r"stamp", re.IGNORECASE)


def clock_column(path: str, layout: Layout, options: TableOptions) -> tuple[int | None, int | None]:
    """Find the clock column by the user's word, else by its label, and that of the time of day beside a date."""
    if options.time_column is not None:
        return position(path, layout, options.time_column, "time_column"), None
    spoken_for = (*(options.channels or ()), *options.drop_channels, *options.labels, *layout.top.aside)
    found = [label for label in layout.labels if clock_unit(label) and label not in spoken_for]
    if layout.top.clockless:
        return None, None
    found = found or _dated_columns(path, layout, spoken_for)
    if not found:
        return None, None
    places = [layout.labels.index(label) for label in found]
    if len(found) == 2 and (split := _split_clock(path, layout, places)) is not None:
        return split
    if len(found) > 1 and options.sampling_rate is None:
        raise refusal(
            READER,
            path,
            "have one clock column",
            f"several that look like one, {found}",
            f"Choose with time_column={found[0]!r}, drop_channels={found[1:]!r}",
        )
    return places[0], None


def _dated_columns(path: str, layout: Layout, spoken_for: Sequence[str]) -> list[str]:
    """Labels of the columns that hold date-times, whatever they are called; dates alone where there are some."""
    cells = dict(zip(layout.labels, first_row(path, layout), strict=False))
    read = reads(layout)
    dated = {
        label: cell
        for label, cell in cells.items()
        if label not in spoken_for and not is_a_number(cell, read) and (looks_like_date(cell) or written_as(cell))
    }
    times = [label for label, cell in dated.items() if looks_like_time(cell)]
    dates = [label for label in dated if label not in times]
    return [*dated] if len(dates) == len(times) == 1 else dates or times


def _split_clock(path: str, layout: Layout, places: Sequence[int]) -> tuple[int, int] | None:
    """Columns of a date and of the time of day, where a table has both."""
    cells = first_row(path, layout)
    for date, time in (places, places[::-1]):
        if looks_like_time(cells[time]) and ":" not in cells[date] and not looks_like_time(cells[date]):
            return date, time
    return None


def position(path: str, layout: Layout, label: str, option: str) -> int:
    """Find a column by its label."""
    if label not in layout.labels:
        raise refusal(
            READER,
            path,
            f"have the column that {option} names",
            f"{label!r} where there are {list(layout.labels)}",
            f"Name one of them in {option}=",
        )
    return layout.labels.index(label)


def table_clock(path: str, layout: Layout, options: TableOptions, column: int) -> Clock:
    """Tell from the first row how the clock is written."""
    cells, label = first_row(path, layout), layout.labels[column]
    cell = cells[column]
    if options.split_clock is not None:
        cell = f"{cell.strip()} {cells[options.split_clock].strip()}"
    unit = _told_unit(layout, options, column) or "s"
    if options.time_unit is not None and looks_like_date(cell):
        must = f"hold numbers in its clock column {label!r} to have a unit"
        raise refusal(READER, path, must, f"the date-time {cell!r}", "Leave time_unit= out")
    written = options.time_format
    if written is None and layout.top.time_format and not looks_like_date(cell):
        written = layout.top.time_format if "." in cell else layout.top.time_format.removesuffix(".%f")
    return clock_of(cell, reads(layout), label=label, unit=unit, time_format=written)


def _told_unit(layout: Layout, options: TableOptions, column: int) -> str | None:
    """Unit of the clock, as the user, its label or the row of units states it."""
    below = layout.top.units[column] if column < len(layout.top.units) else ""
    label = layout.labels[column]
    ending = ending_unit(label) if options.time_column == label else None
    return options.time_unit or told_unit(label) or unit_of(below) or ending


def clock_time(
    path: str, layout: Layout, options: TableOptions, column: int, clock: Clock, rows: Rows
) -> tuple[xr.Coordinates, float | None]:
    """Make the time coordinate; the sampling rate is told where all steps are the same."""
    instants, label = np.concatenate(rows.instants), layout.labels[column]
    if clock.is_time_of_day:
        instants = past_midnight(instants)
    instants, wraps = unwrapped(instants, clock)
    fault = None if options.any_order else first_fault(instants)
    if fault is not None:
        raise _not_forward(path, label, rows.lines, instants, fault)
    attrs: dict[str, Any] = {"units": "s", "long_name": "time", **({"wraps": wraps} if wraps else {})}
    if clock.kind == "seconds":
        seconds = instants
        if _told_unit(layout, options, column) is None:
            attrs["unit_assumed"] = label
            _check_year(path, label, rows, seconds)
            _check_unit(path, label, seconds)
    else:
        seconds, start = seconds_since_first(instants, has_zone=clock.has_zone)
        attrs |= {} if clock.is_time_of_day else {"start_time": start}
    return xr.Coordinates({"time": ("time", seconds, attrs)}), _one_rate(seconds)


def unwrapped(instants: np.ndarray[Any, np.dtype[Any]], clock: Clock) -> tuple[np.ndarray[Any, np.dtype[Any]], int]:
    """Times of a counter of 32 bits without its jumps back to 0, as micros() has after 71 minutes, and their number."""
    whole = _COUNTER / clock.per_second
    if clock.kind != "seconds" or clock.per_second < UNITS["ms"] or len(instants) < _FEW or instants.max() >= whole:
        return instants, 0
    steps = np.diff(instants)
    usual, falls = float(np.median(steps)), steps < 0
    near = np.abs(steps[falls] + whole - usual) < _HOLE_STEPS * usual
    if not falls.any() or not near.all():
        return instants, 0
    return instants + whole * np.cumsum(np.r_[0, falls]), int(falls.sum())


def _check_year(path: str, label: str, rows: Rows, seconds: np.ndarray[Any, np.dtype[Any]]) -> None:
    """Refuse seconds that are none."""
    if seconds[-1] > LATEST_SECONDS:
        likely = [unit for unit in ("ms", "us", "ns") if _RECENT[0] < seconds[-1] / UNITS[unit] < _RECENT[1]]
        others = "'ms', 'us' or 'ns'" if not likely else f"{likely[0]!r}"
        raise refusal(
            READER,
            path,
            f"count seconds in its clock column {label!r}",
            f"{seconds[-1]:.0f} at line {rows.lines[-1]}, beyond the year 5000",
            f"Say its unit with time_unit={others}, or with time_format= how dates are written",
        )


def _check_unit(path: str, label: str, seconds: np.ndarray[Any, np.dtype[Any]]) -> None:
    """Refuse numbers that are days, or that count epochs, rather than seconds."""
    days = any(low < seconds[0] and seconds[-1] < high for low, high in _SERIAL_DAYS)
    step = float(np.median(np.diff(seconds))) if len(seconds) > 1 else 1.0
    within_days = days and step < _PART_OF_A_DAY
    if (days and (_DATED.search(label) or _is_of_days(step))) or (within_days and _STAMPED.search(label)):
        got = f"numbers such as {seconds[0]:.10g}"
        raise refusal(
            READER,
            path,
            f"hold dates in its clock column {label!r}, or state their unit",
            got,
            "Give time_unit='d' for days, as Excel and MATLAB count them, or time_unit='s'",
        )
    if _YEARS.search(label):
        raise refusal(
            READER,
            path,
            f"count seconds in its clock column {label!r}",
            "years",
            f"Leave it out with drop_channels=[{label!r}], {SET_CLOCK_ASIDE}",
        )
    if label.strip().lower() == "epoch" and seconds[0] < _SINCE_1970 and (np.diff(seconds) == 1).all():
        raise refusal(
            READER,
            path,
            f"count seconds in its clock column {label!r}",
            "numbers that count epochs",
            f"Leave it out with drop_channels=[{label!r}], or give time_unit='s' if they are seconds",
        )


def _is_of_days(step: float) -> bool:
    """Whether a step is one of days rather than of seconds: tiny, or of whole minutes and no whole milliseconds."""
    minutes, milliseconds = step * 24 * 60, step * 1000
    whole = abs(minutes - round(minutes)) < _NEARLY * minutes and round(minutes) > 0
    return 0 < step < _TINY_STEP or (whole and abs(milliseconds - round(milliseconds)) > _NEARLY * milliseconds)


def _one_rate(seconds: np.ndarray[Any, np.dtype[Any]]) -> float | None:
    """The rate of a clock whose steps are the same, but for long holes; None for others, which have to be fitted."""
    steps = np.diff(seconds)
    if not len(steps) or not (steps > 0).all():
        return None
    usual = float(np.median(steps))
    within = steps[steps < _HOLE_STEPS * usual]
    return float(1 / np.mean(within)) if np.ptp(within) <= _SAME_STEP * usual else None


def _not_forward(
    path: str, label: str, lines: Sequence[int], instants: np.ndarray[Any, np.dtype[Any]], row: int
) -> ValueError:
    """Build the error of a clock that repeats or goes backwards."""
    now, before = instants[row], instants[row - 1]
    anew = bool(now <= instants[0]) and float(np.mean(instants[1:] < instants[:-1])) < _MOST_ANEW
    split = "If another recording begins there, split the table at that line and open each; otherwise give "
    how = "repeats" if now == before else f"goes backwards from {instant_text(before)}"
    return refusal(
        READER,
        path,
        f"have increasing times in its clock column {label!r}",
        f"{instant_text(now)} at line {lines[row]}, which {how}",
        (split if anew and now != before else "Give ")
        + "order='sort' for rows that are shuffled, duplicates='first' for times that repeat, or timezone= for "
        f"local times ('Europe/Berlin'), {SET_CLOCK_ASIDE}",
    )
