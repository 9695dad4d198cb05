"""Where the time of a file is: under another name, as a variable, in another unit, in another calendar."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from xarray.indexes import RangeIndex

from .clock import seconds_of
from .opening import OpenConfig
from .policy import noted
from .units import UNKNOWN, seconds_in

_CLOCK_DIM = re.compile(
    r"(?:\w+_)?(?:t|time|times|timestamps?|datetime|date|epoch|seconds?|millis(?:econds)?)(?:_\w+)?"
)

# A letter alone is a unit in brackets or after a slash; words and ms, us, ns also after a blank.
_ENDING = re.compile(r"[\[({/]\s*([^\W\d_]+)\s*[\])}]?\s*$|(?:^|[\W_])([^\W\d_]{2,})$")


def along_time(dataset: xr.Dataset, config: OpenConfig, path: object) -> tuple[xr.Dataset, OpenConfig]:
    """A dataset whose dimension along time is called so, with the clock that the user names, and what is left to do.

    Parameters
    ----------
    dataset
        As it was opened, without indexes.
    config
        ``time_dim`` and ``time_column``.
    path
        Where it comes from, for errors.

    Raises
    ------
    ValueError
        It has no such dimension, or no such variable along it.

    Examples
    --------
    >>> dataset = xr.Dataset({"volts": ("samples", [1.0, 2.0])})
    >>> along_time(dataset, OpenConfig(time_dim="samples"), "a.nc")[0].sizes
    Frozen({'time': 2})
    """
    encoding = dataset.encoding
    if config.time_dim is not None and config.time_dim != "time":
        dataset = _renamed(dataset, config.time_dim, path)
    name = config.time_column
    if name is not None and name in dataset.variables and dataset[name].dims == ("time",):
        clock = _with_unit(dataset[name].variable, name)
        dataset = dataset.drop_vars([name, "time"], errors="ignore").assign_coords(xr.Coordinates({"time": clock}, {}))
        config = replace(config, time_column=None)
    dataset.encoding = encoding
    return dataset, config if encoding.get("sampled") != "read" else replace(config, time_column=None)


def in_seconds(recording: xr.DataArray, config: OpenConfig, path: object) -> xr.DataArray:
    """A recording whose clock of numbers is in seconds, from the unit that the user or the file names.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``.
    config
        ``time_unit`` and ``time_column``.
    path
        Where it comes from, for errors.

    Raises
    ------
    ValueError
        The unit is not known, or the clock has none to be given.
    """
    recording = _clock_among_channels(recording, config, path)
    regular = isinstance(recording.xindexes.get("time"), RangeIndex)
    if "time" not in recording.coords or regular or recording["time"].dtype.kind not in "fiuO":
        if config.time_unit is not None:
            raise ValueError(
                f"open_recording: time_unit is for a stored clock of numbers; {path} has none. Leave it out."
            )
        return recording
    if recording["time"].dtype.kind == "O":
        return _of_calendar(recording)
    return _of_numbers(recording, config, path)


def _of_numbers(recording: xr.DataArray, config: OpenConfig, path: object) -> xr.DataArray:
    """A clock of numbers in seconds."""
    time = recording["time"]
    told = str(time.attrs.get("units", "")).strip()
    units = config.time_unit if config.time_unit and "unit_assumed" not in time.attrs and told != "s" else told
    plain = units.partition(" since ")[0]
    if plain.lower() in (*UNKNOWN, "1"):
        return noted(_told(recording, unit_assumed="time"), "read its clock, which states no unit, as seconds")
    if seconds_in(plain) is None:
        raise ValueError(
            f"open_recording: time must be in seconds, or another unit of time; {path} has {units!r}. Give its unit, "
            "as in time_unit='ms', or gaps='ignore' and sampling_rate= to number the samples."
        )
    if time.chunks:  # too long to be held in memory twice; who uses it converts it
        return _told(recording, units=units)
    if plain == "s" and plain == told:
        assumed = time.attrs.get("unit_assumed")
        return (
            noted(recording, f"read its clock {assumed!r}, which states no unit, as seconds") if assumed else recording
        )
    seconds = seconds_of(recording.assign_coords(time=time.assign_attrs(units=plain)))
    attrs = {name: value for name, value in time.attrs.items() if name not in ("units", "unit_assumed")}
    since = {"counted_from": units} if " since " in units else {}
    moved = xr.Variable("time", seconds, {**attrs, **since, "units": "s"}, time.encoding)
    return noted(recording.assign_coords(time=moved), f"converted the clock from {plain} to s")


def _told(recording: xr.DataArray, **attrs: str) -> xr.DataArray:
    """A recording whose time has more attributes, and the index that it had."""
    told = recording.copy(deep=False)
    told["time"].attrs.update(attrs)
    return told


def _of_calendar(recording: xr.DataArray) -> xr.DataArray:
    """A clock of dates in another calendar as seconds since the first."""
    values = recording["time"].values
    if not all(hasattr(value, "calendar") for value in values[:1]):
        return recording
    seconds = np.array([(value - values[0]).total_seconds() for value in values])
    attrs: dict[str, Any] = {"units": "s", "counted_from": f"{values[0].isoformat()} ({values[0].calendar})"}
    return noted(
        recording.assign_coords(time=("time", seconds, attrs)), f"counted seconds of a {values[0].calendar} calendar"
    )


def _clock_among_channels(recording: xr.DataArray, config: OpenConfig, path: object) -> xr.DataArray:
    """The channel that the user names as the clock, which is read, as the time."""
    name = config.time_column
    known = [str(each) for each in recording["channel"].values] if "channel" in recording.coords else []
    if name is None:
        return recording
    if name not in known:
        raise ValueError(
            f"open_recording: time_column must name a variable or a channel of {path}; got {name!r} where there are "
            f"{known[:20]}. Check the spelling."
        )
    place = known.index(name)
    values = np.asarray(recording.isel(channel=place).values)
    rest = recording.isel(channel=[k for k in range(len(known)) if k != place]).drop_vars("time", errors="ignore")
    clock = _with_unit(xr.Variable("time", values), name)
    return noted(rest.assign_coords(time=clock), f"took {name!r} for the clock")


def _with_unit(clock: xr.Variable, name: str) -> xr.Variable:
    """A clock of numbers with the unit at the end of its name, as in 'elapsed [ms]', where it states no other."""
    found = _ENDING.search(name)
    unit = next(filter(None, found.groups()), "") if found else ""
    if clock.dtype.kind not in "fiu" or clock.attrs.get("units") or not unit or seconds_in(unit) is None:
        return clock
    named = clock.copy(deep=False)
    named.attrs["units"] = unit
    return named


def _renamed(dataset: xr.Dataset, dim: str, path: object) -> xr.Dataset:
    """A dataset with another name of the dimension along time."""
    if dim not in dataset.sizes:
        dims = ", ".join(repr(str(name)) for name in dataset.sizes)
        raise ValueError(
            f"open_recording: time_dim must name a dimension of {path}; got {dim!r} where there are {dims}."
        )
    if "time" in dataset.sizes:
        raise ValueError(f"open_recording: {path} has a dimension 'time' beside {dim!r}. Leave time_dim= out.")
    if "time" in dataset.variables:
        return dataset.drop_vars(dim, errors="ignore").swap_dims({dim: "time"})
    if dim in dataset.variables and not _CLOCK_DIM.fullmatch(dim.lower()) and _counts(dataset[dim]):
        dataset = dataset.drop_vars(dim)
    names: dict[Hashable, Hashable] = {dim: "time"}
    return dataset.rename(names)


def _counts(values: xr.DataArray) -> bool:
    """Whether a coordinate only numbers the samples."""
    return values.dtype.kind in "iu" and bool((np.diff(values.values) == 1).all())
