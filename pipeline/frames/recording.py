"""Open a recording as a labelled, lazy DataArray, and read its clock."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.indexes import RangeIndex

from manifold_observer.tasks.frames.ticks import GAP_PERIODS

from ..files.guarded import GuardedRows, guarded, rows_of_file
from ..files.opening import open_lazily
from ..files.ordinary import check_ordinary
from ..files.remote import at_hand
from ..graph.slabs import chunk_bytes, in_slabs
from ..stores.address import Address, Place, place
from .chunking import warn_of_chunks
from .clock import SAME_RATE, Clock, clock, start_time, told_rate
from .columns import ALL, check_signals, chosen, is_real, rows_of_sample, with_names
from .label_place import names_file, only
from .opening import OPTIONS, RATES, Names, OpenConfig
from .policy import cut_at_gaps, in_order_of_time, noted
from .regular import regular
from .timing import along_time, in_seconds
from .variables import label_name

# A stored chunk of more bytes is not decoded for a few rows.
_MOST_DECODED = 2**27

__all__ = ["GAP_PERIODS", "Clock", "clock", "open_recording", "start_time"]


def open_recording(
    path: str | os.PathLike[str] | Address,
    *,
    sampling_rate: float | None = None,
    variable: str | None = None,
    engine: str | None = None,
    channels_first: bool | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    growing: bool = False,
    bin: float | None = None,
    group: str | None = None,
    time_dim: str | None = None,
    channels: Names | None = None,
    drop_channels: Names | None = None,
    labels: Names | None = None,
    time_column: str | None = None,
    time_unit: str | None = None,
    time_format: str | None = None,
    timezone: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    skip_rows: int | None = None,
    comment: str | None = None,
    units_row: bool | None = None,
    missing: Names | None = None,
    gaps: str | None = None,
    duplicates: str | None = None,
    order: str | None = None,
    rates: float | str | None = None,
    shortest_segment: int | float | str | None = None,
) -> xr.DataArray:
    r"""Open a recording lazily, whatever its format.

    WAV, FLAC, OGG, MP3, CSV, Parquet, Feather, ``.npy``, MATLAB, NetCDF, Zarr, EDF, BDF, WFDB, NWB, BrainVision,
    EEGLAB, FIF and XDF are known; other files for which xarray has a backend can be opened by its name. Nothing is read
    but metadata and a few rows (a CSV table is read whole). No code of a file runs, and no other file is read through
    it but those that lie beside it and belong to its format. Channels that look like labels, flags, counters or clocks
    are asked about.

    Parameters
    ----------
    path
        File, or Zarr directory; or the address of one, such as ``s3://bucket/night.zarr``.
    sampling_rate
        Samples a second, for files that do not say it. It must fit a clock that is stored in the file.
    variable
        Name of the variable that is the recording, where a file holds several; several names with commas.
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
    group
        Group of a NetCDF file or a Zarr folder that holds the recording.
    time_dim
        Name of the dimension along time, where it is not 'time'.
    channels, drop_channels
        Names of the channels to take, in this order ('all' takes those that look like labels, too), and to leave out.
    labels
        Names of the channels that are labels: they become coordinates along ``time``. Labels in a file of their own are
        for :func:`open_labels`.
    time_column, time_unit, time_format
        Column or variable that is the clock; its unit, where it holds numbers; how date-times are written.
    timezone
        Zone of date-times without one; they become UTC.
    delimiter, encoding, skip_rows, comment, units_row
        How a CSV table is written: what separates cells, its encoding, lines above the table, the mark of lines that
        are no rows, whether units stand below the header. All are found by default.
    missing
        Values that stand for nothing, such as -200 or 'ERROR'.
    gaps
        What interrupts a recording: 'clock' (jumps of its clock, the default), 'nan' (NaN as well; this reads the
        recording once), a duration above which steps are gaps, or 'ignore' (samples are numbered).
    duplicates, order, rates
        What to do about times that repeat ('first', 'last', 'spread'), samples that are not in order ('sort'), and
        clocks that run at no one rate ('mean'); they are refused by default. Channels of several rates are
        refused, too, but for a number of Hz, which takes those of that rate, or 'hold', which repeats slow samples.
    shortest_segment
        Samples, or a duration: segments between gaps that are shorter are left out.

    Returns
    -------
    Dims ``(time, channel)``, Dask-backed in chunks of about 16 MB, however the file is cut. ``time`` is in seconds
    where the file has a clock. The attribute ``opened`` says what was done to the file's content.

    Raises
    ------
    FileNotFoundError
        There is nothing at ``path``.
    ValueError
        The file is not what its name says, is empty or damaged, holds no or several recordings, or would
        run code, read other files, or take far more memory than it holds; or its clock or channels have to be asked
        about, and the message says how to answer.

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
    given = locals()
    config = OpenConfig(**{name: given[name] for name in OPTIONS})
    where = place(path)
    if isinstance(where, Path):
        check_ordinary(where)
    if names_file(config.labels):
        raise ValueError(
            f"open_recording: labels must name channels of {path}; got the file {only(config.labels)}. Open it with "
            "mo.open_labels, and give its labels to frames with mo.label_frames."
        )
    with at_hand(where, engine) as here:
        source = str(path) if isinstance(where, Path) else str(where)
        return _opened(here, config, source, growing=growing)


def _opened(where: Place, config: OpenConfig, source: str, *, growing: bool) -> xr.DataArray:
    """Open what is at hand, under the name that the user gave it."""
    variable = config.variable
    options = _for_reader(config) | ({"growing": True} if growing else {})
    dataset, stored = open_lazily(where, config.engine, options, config.group, config.time_dim)
    dataset, config = along_time(dataset, config, where)
    names = _picked(dataset, variable, where)
    dataset, names = _series_aside(dataset, names, config)
    used = guarded(where, dataset[names], stored, quiet=growing)
    if dataset.encoding.get("chosen"):
        config = replace(config, drop_channels=None)
    recording = _selected(used, names, config, where, sampled=dataset.encoding.get("sampled", ""))
    for dim, held in (("time", "samples"), ("channel", "channels")):
        if recording.sizes[dim] == 0:
            raise ValueError(f"open_recording: {where} holds no {held}.")
    if not growing:
        warn_of_chunks(recording, source)
    recording = recording.rename("recording").assign_attrs(source=source)
    if "notes" in recording.attrs:
        recording = noted(recording, *recording.attrs.pop("notes"))
    if config.gaps != "ignore":
        recording = in_order_of_time(in_seconds(recording, config, where), config, where)
    return cut_at_gaps(regular(_with_clock(recording, config, where)), config)


def _for_reader(config: OpenConfig) -> dict[str, Any]:
    """Options that a reader of tables or arrays may heed."""
    names = ("channels_first", "decimal", "thousands", "time_format", "delimiter", "encoding", "skip_rows", "comment")
    options = config.given(
        *names, "units_row", "time_column", "time_unit", "drop_channels", "labels", "variable", "bin"
    )
    if config.channels not in (None, ALL):
        options["channels"] = (*config.channels, *(name for name in config.labels or () if name not in config.channels))
    if config.rates is not None and config.rates not in RATES:
        options["rates"] = config.rates
    if words := [value for value in config.missing or () if not is_real(value)]:
        options["missing"] = words
    if (
        any(option is not None for option in (config.order, config.duplicates, config.timezone))
        or config.gaps == "ignore"
    ):
        options["any_order"] = True
    return options


def _selected(used: xr.Dataset, names: list[str], config: OpenConfig, path: Place, *, sampled: str) -> xr.DataArray:
    """The channels of a recording that are wanted, after those that may be no signals were asked about."""
    absent = tuple(float(value) for value in config.missing or () if is_real(value))
    rows = None if absent else _rows(used, names, path)
    whole = in_slabs(used, partial(_as_recording, names=names, path=path, absent=absent), rows)
    whole = with_names(whole)
    if sampled == "read":  # the reader has chosen, and taken the labels out
        own = [name for name in config.labels or () if name in whole.coords and name not in ("time", "channel")]
        whole = whole.rename({name: label_name(name) for name in own if name != label_name(name)})
        config = replace(config, drop_channels=None, labels=None, channels=None if config.channels is None else ALL)
    if "channel" not in whole.coords and not sampled:
        return whole
    known = [str(name) for name in whole["channel"].values] if "channel" in whole.coords else []
    aside = {
        *(config.labels or ()),
        *(config.drop_channels or ()),
        *((config.time_column,) if config.time_column else ()),
    }
    places = [place for place, name in enumerate(known) if name not in aside]
    sampled = sampled if chunk_bytes(whole.data) <= _MOST_DECODED else ""
    sample = rows_of_sample(whole, places, read=sampled == "read") if sampled and known else None
    check_signals(path, [known[place] for place in places], sample, config, clocked="time" in whole.coords)
    found = chosen(whole, config, path)
    if "channel" not in found.coords or found["channel"].equals(whole["channel"]):
        return found
    kept = tuple(known.index(str(name)) for name in found["channel"].values)
    part = in_slabs(used, partial(_as_recording, names=names, path=path, absent=absent, kept=kept), rows, kept)
    return found.copy(data=part.data)


def _rows(used: xr.Dataset, names: list[str], path: Place) -> GuardedRows | None:
    """The samples as they lie in files, where that is how the recording has them: one variable, time first."""
    variable = used[names[0]].variable
    return rows_of_file(path, variable) if len(names) == 1 and variable.dims[0] == "time" else None


def _series_aside(dataset: xr.Dataset, names: list[str], config: OpenConfig) -> tuple[xr.Dataset, list[str]]:
    """Where every channel is a variable of its own: labels become coordinates, what is dropped is left out."""
    if len(names) < 2:
        return dataset, names
    labels = [name for name in config.labels or () if name in names]
    dropped = [name for name in config.drop_channels or () if name in names]
    words = [name for name in names if dataset[name].dtype.kind not in "iufb" and name not in (*labels, *dropped)]
    if words:
        raise ValueError(
            f"open_recording: channels must hold numbers; {words[0]!r} holds {dataset[words[0]].dtype}. Keep it as "
            f"labels with labels={words!r}, or leave it out with drop_channels={words!r}."
        )
    # Left to the choice of channels, they would have to have the kind of the others.
    kept = [name for name in names if name not in (*labels, *dropped)]
    moved = {label_name(name): dataset[name].variable for name in labels}
    return dataset.drop_vars([*labels, *dropped]).assign_coords(moved), kept


def _picked(dataset: xr.Dataset, variable: str | None, path: Place) -> list[str]:
    """Names of the variables that are the recording: one, or several series of one channel each."""
    along = [str(name) for name, values in dataset.data_vars.items() if "time" in values.dims]
    if isinstance(path, Address) or path.is_dir():  # a Zarr folder lists its arrays as the disk has them
        along.sort()
    if variable is None and along and "recording" in dataset.data_vars:
        variable = "recording"
    several = [] if variable is None or variable in dataset.variables else [v.strip() for v in variable.split(",")]
    if several and all(name in along for name in several):
        return several
    if variable is not None and variable not in dataset.variables:
        raise ValueError(f"open_recording: {path} has no variable {variable!r}; it has {along}.")
    if variable is None and not along:
        raise ValueError(_nothing_along_time(dataset, path))
    if variable is None and len(along) > 1:
        if any(dataset[name].dims != ("time",) for name in along):
            raise ValueError(
                f"open_recording: {path} holds several variables along 'time': {along}. "
                f"Choose one with variable={along[0]!r}."
            )
        return along
    return [variable or along[0]]


def _nothing_along_time(dataset: xr.Dataset, path: Place) -> str:
    """Why no variable is a recording, and what may help."""
    told = f"open_recording: {path} has no variable along 'time' (variables: {[*dataset.data_vars]})."
    if groups := dataset.encoding.get("groups"):
        return f"{told} Name the group that holds it, as in group={groups[0]!r} (there are {', '.join(groups[:9])})."
    longest = max(dataset.sizes, key=lambda dim: dataset.sizes[dim], default="samples")
    return f"{told} Name the dimension along time, as in time_dim={str(longest)!r}."


def _as_recording(
    dataset: xr.Dataset,
    names: list[str],
    path: Place,
    absent: tuple[float, ...] = (),
    kept: tuple[int, ...] | None = None,
) -> xr.DataArray:
    """The picked variables as one with dims (time, channel): some channels, NaN for values that stand for nothing."""
    if len(names) == 1:
        picked = dataset[names[0]]
        recording = _as_time_channel(picked.assign_attrs({**dataset.attrs, **picked.attrs}), path)
    else:
        joined = dataset.to_dataarray("channel").transpose("time", "channel")
        recording = joined.assign_attrs(dataset.attrs).rename("recording")
    if kept is not None:
        recording = recording.isel(channel=list(kept))
    for value in absent:
        recording = recording.where(recording != value)
    return recording


def _as_time_channel(recording: xr.DataArray, path: Place) -> xr.DataArray:
    """Transpose to (time, channel), making the channel dimension where there is none."""
    others = [dim for dim in recording.dims if dim != "time"]
    if "time" not in recording.dims or len(others) > 1:
        remedy = (
            f" Open it with xarray, stack {others} into one dimension 'channel', and give that to the features instead."
            if "time" in recording.dims
            else ""
        )
        raise ValueError(
            f"open_recording: {path}: variable {recording.name} must have dims (time, channel); got {recording.dims}."
            + remedy
        )
    if not others:
        return recording.expand_dims(channel=[str(recording.name)]).transpose("time", "channel")
    return recording.rename({others[0]: "channel"}).transpose("time", "channel")


def _with_clock(recording: xr.DataArray, config: OpenConfig, path: Place) -> xr.DataArray:
    """Attach the lazy clock of a regular rate where the file has no time of its own, or its time is set aside."""
    if config.rates in RATES:
        recording = recording.assign_attrs(rates=config.rates)
    if config.sampling_rate is not None and not (np.isfinite(config.sampling_rate) and config.sampling_rate > 0):
        raise ValueError(
            f"open_recording: sampling_rate must be above 0; got {config.sampling_rate} ({path}). Give it with "
            "sampling_rate=."
        )
    stored = "time" in recording.coords and not isinstance(recording.xindexes.get("time"), RangeIndex)
    if stored and config.gaps != "ignore":
        return _checked_rate(recording, config.sampling_rate, path)
    rate = config.sampling_rate or told_rate(recording)
    if rate is None:
        return recording
    recording = recording.assign_attrs(sampling_rate=float(rate))
    if "time" in recording.coords and config.sampling_rate is None:
        return recording
    return _numbered(recording, float(rate), stored=stored)


def _checked_rate(recording: xr.DataArray, rate: float | None, path: Place) -> xr.DataArray:
    """A recording with a stored clock, which a rate that the user gives must fit."""
    if rate is None:
        return recording
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a rate in its attributes
        found = clock(recording.assign_attrs(sampling_rate=rate)).sampling_rate
    if abs(found / rate - 1) > SAME_RATE:
        raise ValueError(
            f"open_recording: sampling_rate must fit the clock of the file; got {rate:g} Hz, but {path} runs at "
            f"{found:g} Hz. Leave it out, give time_unit= if the clock is in another unit, or gaps='ignore' to number "
            "the samples and forget the clock."
        )
    return recording.assign_attrs(sampling_rate=float(rate))


def _numbered(recording: xr.DataArray, rate: float, *, stored: bool) -> xr.DataArray:
    """Samples that follow each other at a rate, from where the clock of the file begins."""
    n, attrs, first = recording.sizes["time"], {}, 0.0
    if "time" in recording.coords and not stored:
        attrs, first = recording["time"].attrs, float(recording["time"][0])
    regular = RangeIndex.linspace(first, first + n / rate, n, endpoint=False, dim="time")
    recording = recording.drop_vars("time", errors="ignore").assign_coords(xr.Coordinates.from_xindex(regular))
    recording["time"].attrs.update(attrs)
    note = f"numbered the samples at {rate:g} Hz, whatever their clock says"
    return noted(recording, note) if stored else recording
