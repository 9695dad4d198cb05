"""Open a recording as a labelled, lazy DataArray, and read its clock."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xarray.indexes import RangeIndex

from ..files.opening import guarded, open_lazily
from ..files.ordinary import check_ordinary
from ..graph.slabs import in_slabs
from ..graph.spans import Span
from .segments import segment_spans
from .units import UNKNOWN, seconds_in

GAP_PERIODS = 1.5
"""A step of the clock longer than this many periods, of samples or of frames, is a gap."""


def open_recording(
    path: str | os.PathLike[str],
    *,
    sampling_rate: float | None = None,
    variable: str | None = None,
    engine: str | None = None,
    channels_first: bool | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    growing: bool = False,
    bin: float | None = None,
) -> xr.DataArray:
    r"""Open a recording lazily, whatever its format.

    WAV, FLAC, OGG, CSV, ``.npy``, NetCDF and Zarr are known; other files for which xarray has a backend
    can be opened by its name. Nothing is read but metadata (a CSV table is read whole). No code of a file
    runs, and no other file is read through it.

    Parameters
    ----------
    path
        File, or Zarr directory.
    sampling_rate
        Samples a second, for files that do not say it.
    variable
        Name of the variable that is the recording, where a file holds several.
    engine
        xarray engine, where the file's name does not tell.
    channels_first
        Whether a ``.npy`` file holds (channel, time); None refuses one that looks so.
    decimal
        Decimal mark of a CSV table; None to find it.
    thousands
        What groups the digits of numbers in a CSV table; None refuses numbers that look grouped.
    growing
        Whether the file is still written: the last row of a CSV table is then left out where its line has no end.
    bin
        Seconds in which spike times are counted, for files that hold those.

    Returns
    -------
    Dims ``(time, channel)``, Dask-backed in chunks of about 16 MB, however the file is cut. ``time`` is in seconds
    where the file has a clock.

    Raises
    ------
    FileNotFoundError
        There is nothing at ``path``.
    ValueError
        The file is not what its name says, is empty or damaged, holds no or several recordings, or would
        run code, read other files, or take far more memory than it holds.

    Warns
    -----
    UserWarning
        Chunks of a Zarr or HDF5 array are not stored, or the last line of a CSV table has no end.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "two_channels.csv"
    >>> _ = path.write_text("time,left,right\n0.0,1,2\n0.5,3,4\n1.0,5,6\n")
    >>> open_recording(path).sizes
    Frozen({'time': 3, 'channel': 2})
    """
    where = Path(path)
    check_ordinary(where)
    given = {
        "variable": variable,
        "channels_first": channels_first,
        "decimal": decimal,
        "thousands": thousands,
        "bin": bin,
    }
    options = {name: value for name, value in given.items() if value is not None}
    dataset, stored = open_lazily(where, engine, {**options, **({"growing": True} if growing else {})})
    names = _picked(dataset, variable, where)
    used = guarded(where, dataset[names], stored, quiet=growing)
    recording = in_slabs(used, partial(_as_recording, names=names, path=where))
    return _with_clock(recording, sampling_rate, where)


@dataclass(frozen=True)
class Clock:
    """When the samples of a recording were taken.

    ``sampling_rate`` in Hz; ``segments`` are spans of samples without a gap; ``known`` is False where
    the recording has no clock and sample numbers stand for seconds.
    """

    sampling_rate: float
    segments: list[Span]
    known: bool
    _start: float
    _step: float
    _values: NDArray[np.float64] | None

    @property
    def counted(self) -> bool:
        """Whether times follow from the numbers of the samples, without a stored clock."""
        return self._values is None

    def at(self, samples: NDArray[np.int64]) -> NDArray[Any]:
        """Times of the given samples, in seconds."""
        if self._values is not None:
            return self._values[samples]
        return self._start + self._step * samples


def clock(recording: xr.DataArray, period: float | None = None) -> Clock:
    """Read the clock of a recording: its rate, and where its gaps are.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``, with a ``time`` coordinate in seconds (or date-times), or an
        attribute ``sampling_rate``, or neither. A ``segment`` coordinate along ``time`` marks gaps
        that the clock does not show.
    period
        Seconds from sample to sample, by which gaps in a stored clock are found; its median step by default.

    Returns
    -------
    The clock.

    Raises
    ------
    ValueError
        The clock goes backwards, repeats, or is not finite.

    Notes
    -----
    A regular clock (``RangeIndex``) costs nothing; a stored one is read once, 8 bytes a sample.
    """
    n = recording.sizes["time"]
    rate = recording.attrs.get("sampling_rate")
    marked = _marked_segments(recording)
    index = recording.xindexes.get("time")
    if "time" not in recording.coords or isinstance(index, RangeIndex):
        step = _exact_step(float(index.step), rate) if isinstance(index, RangeIndex) else 1.0 / float(rate or 1.0)
        start = float(index.start) if isinstance(index, RangeIndex) else 0.0
        known = rate is not None or isinstance(index, RangeIndex)
        if not step > 0:
            raise ValueError(f"recording: time must increase from sample to sample; got steps of {step:g} s.")
        return Clock(1 / step, _cut(n, marked), known, start, step, None)
    times = _seconds(recording)
    steps = np.diff(times)
    _check_increasing(times, steps)
    usual = float(np.median(steps)) if len(steps) else 1.0 / float(rate or 1.0)
    gaps = np.flatnonzero(steps > GAP_PERIODS * (period or usual)) + 1
    return Clock(float(rate or 1 / usual), _cut(n, np.union1d(marked, gaps)), True, 0.0, usual, times)


def start_time(recording: xr.DataArray) -> str | None:
    """Date-time from which the seconds of :func:`clock` count, in ISO 8601, where the recording tells it.

    Examples
    --------
    >>> noon = xr.Variable("time", np.array(["2020-03-09T12:00", "2020-03-09T12:01"], "datetime64[ns]"))
    >>> start_time(xr.DataArray(np.zeros((2, 1)), dims=("time", "channel"), coords={"time": noon}))
    '2020-03-09T12:00'
    """
    if "time" not in recording.coords:
        return None
    time = recording["time"]
    if time.dtype.kind == "M" and time.size:
        return str(np.datetime_as_string(time[0].values, unit="auto"))
    return str(time.attrs["start_time"]) if "start_time" in time.attrs else None


def _picked(dataset: xr.Dataset, variable: str | None, path: Path) -> list[str]:
    """Names of the variables that are the recording: one, or several series of one channel each."""
    if variable is None and "recording" in dataset.data_vars:
        variable = "recording"
    along = [str(name) for name, values in dataset.data_vars.items() if "time" in values.dims]
    if variable is not None and variable not in dataset.variables:
        raise ValueError(f"open_recording: {path} has no variable {variable!r}; it has {along}.")
    if variable is None and not along:
        raise ValueError(
            f"open_recording: {path} has no variable along 'time' (variables: {[*dataset.data_vars]}). "
            "Rename the dimension, as in xr.open_dataset(path).rename(samples='time')."
        )
    if variable is None and len(along) > 1:
        if any(dataset[name].dims != ("time",) for name in along):
            raise ValueError(
                f"open_recording: {path} holds several variables along 'time': {along}. "
                f"Choose one with variable={along[0]!r}."
            )
        return along
    return [variable or along[0]]


def _as_recording(dataset: xr.Dataset, names: list[str], path: Path) -> xr.DataArray:
    """The picked variables as one with dims (time, channel)."""
    if len(names) == 1:
        picked = dataset[names[0]]
        return _as_time_channel(picked.assign_attrs({**dataset.attrs, **picked.attrs}), path)
    joined = dataset.to_dataarray("channel").transpose("time", "channel")
    return joined.assign_attrs(dataset.attrs).rename("recording")


def _as_time_channel(recording: xr.DataArray, path: Path) -> xr.DataArray:
    """Transpose to (time, channel), making the channel dimension where there is none."""
    others = [dim for dim in recording.dims if dim != "time"]
    if "time" not in recording.dims or len(others) > 1:
        raise ValueError(
            f"open_recording: {path}: variable {recording.name} must have dims (time, channel); got {recording.dims}."
        )
    if not others:
        return recording.expand_dims(channel=[str(recording.name)]).transpose("time", "channel")
    return recording.rename({others[0]: "channel"}).transpose("time", "channel")


def _with_clock(recording: xr.DataArray, sampling_rate: float | None, path: Path) -> xr.DataArray:
    """Attach the lazy clock of a regular rate where the file has no time of its own."""
    if recording.sizes["time"] == 0:
        raise ValueError(f"open_recording: {path} holds no samples.")
    rate = sampling_rate if sampling_rate is not None else recording.attrs.get("sampling_rate")
    recording = recording.rename("recording").assign_attrs(source=str(path))
    if rate is None:
        return recording
    if not (np.isfinite(rate) and rate > 0):
        raise ValueError(
            f"open_recording: sampling_rate must be above 0; got {rate} ({path}). Give it with sampling_rate=."
        )
    recording = recording.assign_attrs(sampling_rate=float(rate))
    if "time" in recording.coords and sampling_rate is None:
        return recording
    n = recording.sizes["time"]
    regular = RangeIndex.linspace(0.0, n / float(rate), n, endpoint=False, dim="time")
    return recording.drop_vars("time", errors="ignore").assign_coords(xr.Coordinates.from_xindex(regular))


def _exact_step(step: float, rate: float | None) -> float:
    """The step of a regular clock; where a rate is known, its own inverse, which does not round with the length."""
    return 1.0 / float(rate) if rate is not None and abs(step * rate - 1) < 1e-9 else step


def _seconds(recording: xr.DataArray) -> NDArray[np.float64]:
    """The stored clock in seconds, whatever its unit; date-times count from the first."""
    values = recording["time"].values
    if values.dtype.kind == "M":
        return (values - values[0]) / np.timedelta64(1, "s")
    if values.dtype.kind == "m":
        return values / np.timedelta64(1, "s")
    if values.dtype.kind not in "fiu":
        raise ValueError(f"recording: time must be numbers of seconds or date-times; got dtype {values.dtype}.")
    units = str(recording["time"].attrs.get("units", "s"))
    factor = seconds_in(units)
    if factor is None and units.strip().lower() not in (*UNKNOWN, "1"):
        raise ValueError(
            f"recording: time must be in seconds, or another unit of time; got {units!r}. Correct its attribute "
            "'units', or give sampling_rate= to count the samples."
        )
    seconds = values.astype(np.float64)
    if factor is None:
        return seconds
    # Milliseconds are divided by 1000: a thousandth is not exact.
    return seconds * factor if factor >= 1 else seconds / round(1 / factor)


def _check_increasing(times: NDArray[np.float64], steps: NDArray[np.float64]) -> None:
    """A clock must run forwards."""
    bad = np.flatnonzero(~(steps > 0))
    if len(bad) or not np.isfinite(times).all():
        at = int(bad[0]) if len(bad) else int(np.argmin(np.isfinite(times)))
        raise ValueError(
            f"recording: time must increase from sample to sample; got {times[at : at + 2].tolist()} at "
            f"samples {at} and {at + 1}. Sort it with recording.sortby('time') and drop repeats with "
            "recording.drop_duplicates('time')."
        )


def _marked_segments(recording: xr.DataArray) -> NDArray[np.int64]:
    """Samples at which a 'segment' coordinate says that a new segment begins."""
    if "segment" not in recording.coords:
        return np.zeros(0, np.int64)
    spans = segment_spans(recording["segment"].values)
    return np.array([start for start, _ in spans[1:]], np.int64)


def _cut(n: int, firsts: NDArray[np.int64]) -> list[Span]:
    """Spans between the first samples of the segments."""
    bounds = [0, *(int(first) for first in firsts), n]
    return list(itertools.pairwise(bounds))
