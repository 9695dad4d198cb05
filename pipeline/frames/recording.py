"""Open a recording as a labelled, lazy DataArray, and read its clock."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr
from xarray.indexes import RangeIndex

from manifold_observer.tasks.frames.ticks import GAP_PERIODS

from ..files.opening import guarded, open_lazily
from ..files.ordinary import check_ordinary
from ..graph.slabs import in_slabs
from .clock import Clock, clock, start_time

__all__ = ["GAP_PERIODS", "Clock", "clock", "open_recording", "start_time"]


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
    given = {"channels_first": channels_first, "decimal": decimal, "thousands": thousands}
    options = {name: value for name, value in given.items() if value is not None}
    dataset, stored = open_lazily(where, engine, {**options, **({"growing": True} if growing else {})})
    names = _picked(dataset, variable, where)
    used = guarded(where, dataset[names], stored, quiet=growing)
    recording = in_slabs(used, partial(_as_recording, names=names, path=where))
    return _with_clock(recording, sampling_rate, where)


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
