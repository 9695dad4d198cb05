"""Reader of Parquet and Feather tables: the xarray engine ``manifold-arrow``, by pyarrow.

Only the groups of rows that are asked for are decoded. A column of instants, or of numbers that is called time, is the
clock; columns of text are no channels.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from manifold_observer.datasets.regular import uniform_time

from .arrow_files import READER, Cells, Column, Layout, read_layout, read_words
from .contract import (
    CHUNK_BYTES,
    check_channels,
    check_sampling_rate,
    has_suffix,
    lazy_variable,
    local_file,
    recording_dataset,
    refusal,
)
from .label_table import name_and_units
from .mixed_rates import listed
from .sampled import SampledArray, told
from .sniff import FEATHER, PARQUET, describe, holds

_CLOCKS = ("time", "times", "timestamp", "timestamps", "t", "date", "datetime", "date_time", "seconds", "elapsed")
_PER_SECOND = {"": 1, "s": 1, "sec": 1, "secs": 1, "seconds": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_SECONDS = {"min": 60, "h": 3600}
_INDEX = "__index_level_"


class ArrowBackend(BackendEntrypoint):
    """Opens Parquet and Feather tables as lazy recordings with ``xr.open_dataset``."""

    description = "Open Parquet and Feather tables as recordings (time, channel), lazily"
    open_dataset_parameters = (
        "filename_or_obj",
        "drop_variables",
        "time_column",
        "time_unit",
        "sampling_rate",
        "channels",
        "drop_channels",
        "labels",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim files by their name or their signature."""
        known = {".parquet", ".pq", ".feather", ".arrow"}
        return has_suffix(filename_or_obj, known) or self.recognises(filename_or_obj)

    def recognises(self, filename_or_obj: Any) -> bool:
        """Claim files by their signature alone."""
        return holds(filename_or_obj, PARQUET, FEATHER)

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        time_column: str | None = None,
        time_unit: str | None = None,
        sampling_rate: float | None = None,
        channels: Sequence[str] | None = None,
        drop_channels: Sequence[str] = (),
        labels: Sequence[str] = (),
    ) -> xr.Dataset:
        """Open one table; its cells are read when they are used.

        Parameters
        ----------
        filename_or_obj
            Path of the file.
        drop_variables
            Names to leave out.
        time_column
            Name of the clock. By default the one of instants, or one that is called time.
        time_unit
            Unit of a clock of numbers. By default the one in its name, as in "time_ms", else s.
        sampling_rate
            Rows per second, in Hz; the clock is then not used.
        channels
            Names of the columns to take, in this order. By default all numbers but the clock.
        drop_channels
            Names of the columns to leave out.
        labels
            Names of columns of words that become coordinates along time; those of numbers stay channels.

        Returns
        -------
        Dataset with the variable ``recording``, dims (time, channel).
        """
        check_sampling_rate(READER, sampling_rate)
        path = local_file(READER, filename_or_obj)
        if (found := describe(path)) not in (PARQUET, FEATHER):
            raise refusal(READER, path, "be a Parquet or Feather table", found, "Replace it with the recording")
        parquet = found == PARQUET
        layout = read_layout(path, parquet=parquet)
        words = tuple(column.name for column in layout.columns if column.name in labels and column.kind == "text")
        clock = _clock(path, layout, time_column, (*(channels or ()), *drop_channels))
        wanted = None if channels is None else [name for name in channels if name not in words]
        columns = _channels(path, layout, clock, wanted, (*drop_channels, *words))
        dtype = np.result_type(*(np.float64 if c.gappy and c.dtype.kind != "f" else c.dtype for c in columns))
        dtype = np.dtype(np.float32 if dtype == np.float16 else dtype)
        cells = Cells(path, parquet, tuple(column.name for column in columns), layout.stops, dtype)
        check_channels(READER, path, len(columns))
        if not cells.shape[0]:
            raise refusal(READER, path, "hold rows", "none", "Wait until one is written")
        dataset = recording_dataset(
            lazy_variable(SampledArray(cells), dtype, cells.shape),
            path=path,
            channels=list(cells.columns),
            time=_time(path, parquet, layout, clock, time_unit, sampling_rate),
            sampling_rate=sampling_rate,
            units="unknown",
            long_name="recorded values",
            drop_variables=drop_variables,
        )
        beside = read_words(path, words, parquet=parquet) if words else {}
        return dataset.assign_coords({name: ("time", np.array(texts, str)) for name, texts in beside.items()})


class ColumnTimes(BackendArray):
    """A column of times in s, read when it is used.

    Parameters
    ----------
    cells
        The column.
    first
        Taken from every number, before it is divided.
    per_second
        Numbers of the column in a second.
    """

    def __init__(self, cells: Cells, first: int, per_second: float) -> None:
        self.cells, self.first, self.per_second = cells, first, per_second
        self.shape, self.dtype = cells.shape[:1], np.dtype(np.float64)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Times of some rows."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        """An integer or a slice of positive step."""
        part = key[0] if isinstance(key[0], slice) else slice(key[0], key[0] + 1)
        rows = range(self.shape[0])[part]
        stop = rows[-1] + 1 if rows else rows.start
        column = self.cells.read(rows.start, stop)[:: rows.step, 0]
        times = (column - self.first) / self.per_second
        return times if isinstance(key[0], slice) else times[0]


def _clock(path: str, layout: Layout, time_column: str | None, spoken_for: Sequence[str]) -> Column | None:
    """The clock: by the user's word, else of instants, else by its name."""
    if time_column is not None:
        return _named(path, layout, time_column, "time_column")
    free = [column for column in layout.columns if column.name not in spoken_for]
    instants = [column for column in free if column.kind == "instant"]
    called = [column for column in free if column.kind == "number" and name_and_units(column.name)[0] in _CLOCKS]
    passed = [column for column in free if column.kind == "duration"]
    found = instants or passed or called
    if len(found) > 1:
        names = [column.name for column in found]
        remedy = f"Choose with time_column={names[0]!r}"
        raise refusal(READER, path, "have one clock column", f"several that look like one, {names}", remedy)
    return found[0] if found else None


def _channels(
    path: str, layout: Layout, clock: Column | None, channels: Sequence[str] | None, dropped: Sequence[str]
) -> list[Column]:
    """The columns of numbers that are wanted."""
    out = {_named(path, layout, name, "drop_channels") for name in dropped}
    if channels is not None:
        wanted = [_named(path, layout, name, "channels") for name in channels]
    else:
        wanted = [
            c
            for c in layout.columns
            if c != clock and c.kind not in ("instant", "duration") and not c.name.startswith(_INDEX)
        ]
    wanted = [column for column in wanted if column not in out]
    numbers = [column for column in wanted if column.kind in ("number", "flag")]
    others = [column.name for column in wanted if column not in numbers]
    if others and channels is not None:
        raise refusal(READER, path, "hold numbers in its channels", f"text in {listed(others)}", "Leave them out")
    if not numbers:
        names = [column.name for column in layout.columns]
        raise refusal(READER, path, "hold a column of numbers", f"only {listed(names)}", "Check what was exported")
    if others:
        told(READER, path, f"{listed(others)} hold no numbers and are left out. Keep labels with labels={others!r}.")
    return numbers


def _named(path: str, layout: Layout, name: str, option: str) -> Column:
    """A column by its name."""
    found = next((column for column in layout.columns if column.name == name), None)
    if found is None:
        names = [column.name for column in layout.columns]
        raise refusal(READER, path, f"have the column that {option} names", repr(name), f"It has {listed(names, 99)}")
    return found


def _time(
    path: str, parquet: bool, layout: Layout, clock: Column | None, time_unit: str | None, sampling_rate: float | None
) -> xr.Coordinates | None:
    """The time coordinate, in s; instants count from the first row."""
    n = layout.stops[-1]
    if sampling_rate is not None:
        return uniform_time(n, sampling_rate)
    if clock is None:
        return None
    attrs, first, per_second = {"units": "s", "long_name": "time"}, 0, 1.0
    if clock.kind == "instant":
        dtype = np.dtype(np.float64 if clock.gappy else np.int64)
        cells = Cells(path, parquet, (clock.name,), layout.stops, dtype)
        beginning = cells.read(0, 1)[0, 0]
        if not np.isfinite(beginning):
            raise refusal(READER, path, f"have a time in its first row of {clock.name!r}", "none", "Leave it out")
        first, per_second = int(beginning), 1e9
        attrs["start_time"] = str(np.datetime64(first, "ns")) + ("Z" if clock.zoned else "")
    elif clock.kind == "duration":
        cells = Cells(path, parquet, (clock.name,), layout.stops, np.dtype(np.float64))
        per_second = 1e9
    elif clock.kind == "number":
        cells = Cells(path, parquet, (clock.name,), layout.stops, np.dtype(np.float64))
        per_second = _per_second(path, clock.name, time_unit)
    else:
        raise refusal(READER, path, f"have times in its clock {clock.name!r}", "text", "Convert it to instants")
    array = indexing.LazilyIndexedArray(ColumnTimes(cells, first, per_second))
    chunks = {"preferred_chunks": {"time": min(n, CHUNK_BYTES // 8)}}
    return xr.Coordinates({"time": xr.Variable(("time",), array, attrs, chunks)}, indexes={})


def _per_second(path: str, name: str, time_unit: str | None) -> float:
    """How many of its unit a second has."""
    unit = time_unit or name_and_units(name)[1]
    if unit in _SECONDS:
        return 1 / _SECONDS[unit]
    if unit not in _PER_SECOND:
        known = ", ".join([*_PER_SECOND, *_SECONDS][1:])
        raise refusal(READER, path, f"count its clock {name!r} in one of {known}", repr(unit), "Give time_unit=")
    return float(_PER_SECOND[unit])
