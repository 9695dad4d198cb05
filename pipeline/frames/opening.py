"""Options with which recordings are opened, and the one policy for their time.

**Time**: by default nothing is done to a clock that is not as it should be; it is refused, with the option that says
what to do. ``order`` is for rows that are not in the order of time, ``duplicates`` for times that repeat, ``gaps`` for
what interrupts a recording, ``rates`` for clocks of no constant rate, ``timezone`` for local times, ``missing`` for
values that stand for nothing. What was done is in the attribute ``opened`` of the recording, and the commands print it.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from .label_place import names_file
from .settings import check_settings, setting

Names = str | Sequence[str]
"""One name or several."""

ORDERS = ("refuse", "sort")
DUPLICATES = ("refuse", "first", "last", "spread")
RATES = ("refuse", "mean")
GAPS = ("clock", "nan", "ignore")

_LISTS = ("channels", "drop_channels", "labels", "missing")
_DURATION = re.compile(r"\s*(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*(?:us|ms|s|min|h)\s*")


@dataclass(frozen=True)
class OpenConfig:
    """How recordings are opened: the options of :func:`open_recording`.

    Examples
    --------
    >>> OpenConfig(sampling_rate=8000, labels="stage").options()
    {'sampling_rate': 8000, 'labels': ('stage',)}
    """

    sampling_rate: float | None = None
    """Samples per second, for files that do not say; it must fit the clock of those that do."""
    variable: str | None = None
    """Variable of the file that is the recording."""
    channels_first: bool | None = setting(None, option="--channels-first/--channels-last")
    """Whether .npy files are (channel, time); files that look like it are refused by default."""
    decimal: str | None = None
    """Decimal mark of CSV tables; found from the table by default."""
    thousands: str | None = None
    """Mark that groups digits by three in CSV tables; none by default."""
    engine: str | None = None
    """xarray engine, for files of other formats."""
    group: str | None = None
    """Group of a NetCDF file or a Zarr folder that holds the recording; the root by default."""
    time_dim: str | None = None
    """Name of the dimension along time, where it is not 'time'."""
    channels: Names | None = setting(None, metavar="NAME,...|all")
    """Columns or channels to take, in this order; 'all' takes those that look like labels or clocks, too."""
    drop_channels: Names | None = setting(None, metavar="NAME,...")
    """Columns or channels to leave out."""
    labels: Names | None = setting(None, metavar="NAME,...|FILE")
    """Columns or channels that are labels: kept beside the recording, never fed in; or a file of labels, which frames
    are given and results scored by, where {stem} stands for the recording's name."""
    label_column: str | None = None
    """Column that holds the labels, for files of labels with several."""
    time_column: str | None = None
    """Column or variable that is the clock; found by its name by default."""
    time_unit: str | None = None
    """Unit of a clock of numbers, such as ms; by default as the file says, else s."""
    time_format: str | None = None
    """How date-times are written, such as '%d.%m.%Y %H:%M'; ISO 8601 by default."""
    timezone: str | None = None
    """Zone of date-times without one, such as Europe/Berlin or +01:00; they become UTC."""
    delimiter: str | None = None
    """What separates the cells of a table; found by default. 'tab' and 'space' are understood."""
    encoding: str | None = None
    """Encoding of a table, such as cp1252; UTF-8 by default, or UTF-16 with a byte-order mark."""
    skip_rows: int | None = setting(None, least=0)
    """Lines above the table; found by default."""
    comment: str | None = None
    """Mark at the beginning of lines that are not rows; # and % above the table by default."""
    units_row: bool | None = setting(None, option="--units-row/--no-units-row")
    """Whether units stand below the header of a table; found by default."""
    missing: Names | None = setting(None, metavar="VALUE,...")
    """Values that stand for nothing, such as -200 or ERROR; empty cells always do."""
    gaps: str | None = setting(None, metavar="clock|nan|ignore|DURATION")
    """What interrupts a recording: jumps of its clock (clock, the default), also NaN (nan), steps longer than a
    duration, or nothing (ignore: samples are numbered)."""
    duplicates: str | None = setting(None, choices=DUPLICATES)
    """Times that repeat are refused (the default); the first or last sample is kept, or all are spread evenly."""
    order: str | None = setting(None, choices=ORDERS)
    """Samples that are not in the order of time are refused (the default), or sorted."""
    rates: str | None = setting(None, metavar="refuse|mean|hold|HZ", option="--clock-rates")
    """Clocks that do not run at one rate are refused (the default), or have their mean rate; of channels that differ in
    rate, those of one are taken (HZ), or slower ones repeat their values (hold)."""
    bin: float | None = None
    """Seconds in which spike times are counted, for files that hold those."""
    shortest_segment: int | float | str | None = setting(None, metavar="SAMPLES|DURATION")
    """Segments between gaps that are shorter are left out."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, before anything is read."""
        for name in _LISTS:
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        check_settings("open_recording", self)
        if self.rates is not None:
            object.__setattr__(self, "rates", _rates(self.rates))
        if self.gaps is not None and self.gaps not in GAPS and not _DURATION.fullmatch(str(self.gaps)):
            raise ValueError(
                f"open_recording: gaps must be {', '.join(map(repr, GAPS))} or a duration with unit, such as 20ms; got "
                f"{self.gaps!r}."
            )
        if self.gaps == "ignore" and self.sampling_rate is None:
            raise ValueError("open_recording: gaps='ignore' numbers the samples, and needs sampling_rate=; got none.")

    def options(self) -> dict[str, Any]:
        """Options of :func:`open_recording` that are given; labels in a file are carried to the frames."""
        beside = ("label_column", "labels") if names_file(self.labels) else ("label_column",)
        return {name: value for name, value in asdict(self).items() if value is not None and name not in beside}

    def given(self, *names: str) -> dict[str, Any]:
        """Those of some options that are given."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def _rates(value: float | str) -> str:
    """What to do about several rates, as text."""
    if value in (*RATES, "hold"):
        return str(value)
    try:
        rate = float(value)
    except ValueError:
        rate = math.nan
    if not (rate > 0 and math.isfinite(rate)):
        listed = ", ".join(map(repr, (*RATES, "hold")))
        raise ValueError(f"open_recording: rates must be {listed} or a number of Hz; got {value!r}.")
    return f"{rate:.17g}"


def _names(option: str, value: Any) -> tuple[str, ...] | None:
    """Names as a tuple, as options are compared and hashed."""
    if value is None:
        return None
    if isinstance(value, str | int | float | os.PathLike):
        return (str(value),)
    if not isinstance(value, Sequence) and not hasattr(value, "tolist"):
        raise TypeError(f"open_recording: {option} must be a name or a list of names; got {value!r}.")
    return tuple(str(name) for name in value)


OPTIONS = tuple(each.name for each in fields(OpenConfig) if each.name != "label_column")
"""Names of all options of :func:`open_recording`."""
