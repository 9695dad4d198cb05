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
    looks_like_date,
    looks_like_time,
    past_midnight,
    seconds_since_first,
)
from .clock_names import clock_unit, told_unit, unit_of
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
_DATED = re.compile(r"date|datum|fecha|дата", re.IGNORECASE)
_STAMPED = re.compile(r"stamp", re.IGNORECASE)


def clock_column(path: str, layout: Layout, options: TableOptions) -> tuple[int | None, int | None]:
    """Find the clock column by the user's word, else by its label, and that of the time of day beside a date."""
    if options.time_column is not None:
        return position(path, layout, options.time_column, "time_column"), None
    spoken_for = (*(options.channels or ()), *options.drop_channels, *options.labels, *layout.top.aside)
    found = [label for label in layout.labels if clock_unit(label) and label not in spoken_for]
    if layout.top.clockless or not found:
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
    return options.time_unit or told_unit(layout.labels[column]) or unit_of(below)


def clock_time(
    path: str, layout: Layout, options: TableOptions, column: int, clock: Clock, rows: Rows
) -> tuple[xr.Coordinates, float | None]:
    """Make the time coordinate; the sampling rate is told where all steps are the same."""
    instants, label = np.concatenate(rows.instants), layout.labels[column]
    if clock.is_time_of_day:
        instants = past_midnight(instants)
    fault = None if options.any_order else first_fault(instants)
    if fault is not None:
        raise _not_forward(path, label, rows.lines, instants, fault)
    attrs: dict[str, Any] = {"units": "s", "long_name": "time"}
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


def _check_year(path: str, label: str, rows: Rows, seconds: np.ndarray[Any, np.dtype[Any]]) -> None:
    """Refuse seconds that are none."""
    if seconds[-1] > LATEST_SECONDS:
        raise refusal(
            READER,
            path,
            f"count seconds in its clock column {label!r}",
            f"{seconds[-1]:.0f} at line {rows.lines[-1]}, beyond the year 5000",
            "Say its unit with time_unit='ms', 'us' or 'ns'",
        )


def _check_unit(path: str, label: str, seconds: np.ndarray[Any, np.dtype[Any]]) -> None:
    """Refuse numbers that are days, or that count epochs, rather than seconds."""
    days = any(low < seconds[0] and seconds[-1] < high for low, high in _SERIAL_DAYS)
    within_days = days and len(seconds) > 1 and float(np.median(np.diff(seconds))) < _PART_OF_A_DAY
    if (days and _DATED.search(label)) or (within_days and _STAMPED.search(label)):
        got = f"numbers such as {seconds[0]:.10g}"
        raise refusal(
            READER,
            path,
            f"hold dates in its clock column {label!r}, or state their unit",
            got,
            "Give time_unit='d' for days, as Excel and MATLAB count them, or time_unit='s'",
        )
    if label.strip().lower() == "epoch" and seconds[0] < _SINCE_1970 and (np.diff(seconds) == 1).all():
        raise refusal(
            READER,
            path,
            f"count seconds in its clock column {label!r}",
            "numbers that count epochs",
            f"Leave it out with drop_channels=[{label!r}], or give time_unit='s' if they are seconds",
        )


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
    how = "repeats" if now == before else f"goes backwards from {instant_text(before)}"
    return refusal(
        READER,
        path,
        f"have increasing times in its clock column {label!r}",
        f"{instant_text(now)} at line {lines[row]}, which {how}",
        "Give order='sort' for rows that are shuffled, duplicates='first' for times that repeat, or timezone= for "
        f"local times ('Europe/Berlin'), {SET_CLOCK_ASIDE}",
    )
