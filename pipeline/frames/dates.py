"""Date-times and seconds: the stages count seconds from the first frame, users may have date-times."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..graph.limits import LAZY_FRAMES

Labelled = TypeVar("Labelled", xr.DataArray, xr.Dataset)

# Nanoseconds that float64 tells apart as seconds: a hundred days. Longer recordings are dated to the microsecond.
_EXACT_SECONDS = 2.0**53 / 1e9


def is_dated(labelled: xr.DataArray | xr.Dataset) -> bool:
    """Whether ``time`` holds date-times."""
    return "time" in labelled.coords and labelled["time"].dtype.kind == "M"


def in_seconds(labelled: Labelled) -> Labelled:
    """The same with ``time`` in seconds from its first frame, whose date-time is the attribute ``start_time``.

    Examples
    --------
    >>> noon = np.array(["2020-03-09T12:00", "2020-03-09T12:01"], "datetime64[ns]")
    >>> found = in_seconds(xr.DataArray([1.0, 2.0], dims="frame", coords={"time": ("frame", noon)}))
    >>> found.time.values, found.time.attrs["start_time"]
    (array([ 0., 60.]), '2020-03-09T12:00')
    """
    time = labelled["time"]
    start = time.values[0] if time.size else np.datetime64(0, "s")
    kept = {name: value for name, value in time.attrs.items() if name not in ("units", "calendar")}
    attrs = {**kept, "units": "s", "start_time": as_text(start)}
    return labelled.assign_coords(time=(time.dims, (time.values - start) / np.timedelta64(1, "s"), attrs))


def in_dates(labelled: Labelled) -> Labelled:
    """The same with ``time`` as date-times, where its attribute ``start_time`` says from when it counts; else as it is.

    Examples
    --------
    >>> dated = {"time": ("frame", [0.0, 60.0], {"start_time": "2020-03-09T12:00"})}
    >>> in_dates(xr.DataArray([1.0, 2.0], dims="frame", coords=dated)).time.values[1].item()
    1583755260000000000
    """
    if not _counts_from_a_date(labelled):
        return labelled
    time = labelled["time"]
    attrs = {name: value for name, value in time.attrs.items() if name not in ("units", "start_time")}
    return labelled.assign_coords(time=(time.dims, _dates(time.variable, str(time.attrs["start_time"])), attrs))


def _dates(time: xr.Variable, start: str) -> Any:
    """Date-times of seconds; those of long stored clocks are made as they are read."""
    if time._in_memory or time.size <= LAZY_FRAMES:
        return to_dates(time.values, start)
    lazy = time if time.chunks else time.chunk(dict.fromkeys(time.dims, LAZY_FRAMES))
    # The clock runs forwards: its ends tell how fine dates can be.
    most = float(np.abs(time[[0, -1]].values).max())
    return lazy.data.map_blocks(to_dates, start, most, dtype="datetime64[ns]", meta=np.empty(0, "datetime64[ns]"))


AS_RECORDED = "recorded"
"""Time as the recordings have it: date-times where they have some."""


def in_times(labelled: Labelled, times: str, start: Any, what: str) -> Labelled:
    """The same with ``time`` as somebody wants it.

    Parameters
    ----------
    labelled
        With ``time`` in seconds, or without a time.
    times
        ``"recorded"``, ``"datetime"`` or ``"seconds"``.
    start
        Date-time of second 0 where the recording has none, or None.
    what
        Begins the error.

    Raises
    ------
    ValueError
        Date-times are wanted, and nobody knows when the recording began; or its own start is another one.

    Examples
    --------
    >>> second = xr.DataArray([1.0], dims="frame", coords={"time": ("frame", [60.0])})
    >>> in_times(second, "datetime", "2020-03-09T12:00", "load: a.zarr").time.values
    array(['2020-03-09T12:01:00.000000000'], dtype='datetime64[ns]')
    """
    if "time" not in labelled.coords:
        return labelled
    if start is not None:
        labelled = _begun(labelled, start, what)
    if times == "seconds":
        return labelled
    if times == "datetime" and "start_time" not in labelled["time"].attrs:
        raise ValueError(
            f"{what} has no date-times; got times='datetime'. Say when its second 0 was, as in "
            "start='2020-03-09T12:00'."
        )
    return in_dates(labelled)


def _begun(labelled: Labelled, start: Any, what: str) -> Labelled:
    """The same with a start of its clock, which must be the only one."""
    try:
        said = as_text(np.datetime64(start))
    except ValueError:
        said = "NaT"
    if said == "NaT":
        raise ValueError(f"{what}: start must be a date-time such as '2020-03-09T12:00'; got {start!r}.")
    own = str(labelled["time"].attrs.get("start_time", said))
    if np.datetime64(own.removesuffix("Z")) != np.datetime64(said):
        raise ValueError(f"{what}: start must be that of the recording, {own}; got {said}. Leave it out.")
    attrs = {**labelled["time"].attrs, "start_time": own}
    return labelled.assign_coords(time=_with_attrs(labelled["time"].variable, attrs))


def as_calendar(stored: xr.Dataset) -> xr.Dataset:
    """The same numbers, with the unit that the CF conventions have for seconds from a date-time, where that is known.

    Examples
    --------
    >>> dated = {"time": ("frame", [0.0, 60.0], {"units": "s", "start_time": "2020-03-09T12:00"})}
    >>> as_calendar(xr.Dataset(coords=dated)).time.attrs["units"]
    'seconds since 2020-03-09T12:00'
    """
    if not _counts_from_a_date(stored):
        return stored
    time = stored["time"].variable
    since = f"seconds since {time.attrs['start_time']}"
    attrs = {**time.attrs, "units": since, "calendar": "proleptic_gregorian"}
    return stored.assign_coords(time=_with_attrs(time, attrs))


def from_calendar(stored: xr.Dataset) -> xr.Dataset:
    """What :func:`as_calendar` was given."""
    if "time" not in stored.coords or not str(stored["time"].attrs.get("units", "")).startswith("seconds since "):
        return stored
    time = stored["time"].variable
    attrs = {name: value for name, value in time.attrs.items() if name != "calendar"} | {"units": "s"}
    return stored.assign_coords(time=_with_attrs(time, attrs))


def _with_attrs(variable: xr.Variable, attrs: dict[Any, Any]) -> xr.Variable:
    """The same numbers, read or not, with other attributes."""
    renamed = variable.copy(deep=False)
    renamed.attrs = attrs
    return renamed


def to_dates(seconds: NDArray[np.float64], start: str, most: float | None = None) -> NDArray[np.datetime64]:
    """Date-times that lie so many seconds, ``most`` at most, after a start in ISO 8601; UTC where that says Z."""
    if most is None:
        most = float(np.abs(seconds).max()) if seconds.size else 0.0
    ticks = np.rint(seconds * 1e9) if most < _EXACT_SECONDS else np.rint(seconds * 1e6) * 1e3
    return np.datetime64(start.removesuffix("Z"), "ns") + ticks.astype(np.int64).astype("timedelta64[ns]")


def as_text(instant: Any) -> str:
    """A date-time in ISO 8601, no finer than it has to be."""
    return str(np.datetime_as_string(instant, unit="auto"))


def _counts_from_a_date(labelled: xr.DataArray | xr.Dataset) -> bool:
    """Whether ``time`` holds seconds, and the date-time is known from which they count."""
    return "time" in labelled.coords and "start_time" in labelled["time"].attrs and not is_dated(labelled)
