"""Reader of text tables: the xarray engine ``manifold-csv`` for ``.csv``, ``.tsv`` and ``.txt``.

A table is read whole, into memory: its rows have no fixed length, so there is no seeking in it.
Nothing is repaired: a row that is too short, a cell that is not a number and a clock that does not
go forward are refused with the line where they are. Empty cells become NaN.
"""

import functools
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendEntrypoint

from manifold_observer.datasets.regular import uniform_time

from .clock import (
    LATEST_SECONDS,
    UNITS,
    Clock,
    clock_of,
    clock_unit,
    first_fault,
    instant_text,
    seconds_since_first,
)
from .contract import (
    check_sampling_rate,
    check_upright,
    has_suffix,
    local_file,
    recording_dataset,
    refusal,
)
from .digits import THOUSANDS, number
from .table_cells import SET_CLOCK_ASIDE, Rows, TableOptions, read_rows
from .table_layout import READER, Layout, first_row, read_layout

_BLOCK_ROWS = 4096


class CsvBackend(BackendEntrypoint):
    r"""Opens text tables as recordings with ``xr.open_dataset``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "bench.csv").write_text("time;x;y\n0,0;1,5;2\n0,5;1,25;3\n")
    ...     dataset = xr.open_dataset(Path(folder, "bench.csv"))
    >>> dataset["recording"].values
    array([[1.5 , 2.  ],
           [1.25, 3.  ]])
    >>> dataset["time"].values, dataset["channel"].values.tolist()
    (array([0. , 0.5]), ['x', 'y'])
    """

    description = "Open text tables (CSV, TSV) as recordings (time, channel), read whole"
    open_dataset_parameters = (
        "filename_or_obj",
        "drop_variables",
        "time_column",
        "time_unit",
        "time_format",
        "sampling_rate",
        "channels",
        "drop_columns",
        "delimiter",
        "decimal",
        "header",
        "encoding",
        "units",
        "thousands",
        "growing",
        "channels_first",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim files by their name, whatever they hold."""
        return has_suffix(filename_or_obj, {".csv", ".tsv", ".txt"})

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        time_column: str | None = None,
        time_unit: str | None = None,
        time_format: str | None = None,
        sampling_rate: float | None = None,
        channels: Sequence[str] | None = None,
        drop_columns: Sequence[str] = (),
        delimiter: str | None = None,
        decimal: str | None = None,
        header: bool | None = None,
        encoding: str | None = None,
        units: str = "unknown",
        thousands: str | None = None,
        growing: bool = False,
        channels_first: bool | None = None,
    ) -> xr.Dataset:
        """Read one table whole.

        Parameters
        ----------
        filename_or_obj
            Path of the file.
        drop_variables
            Names to leave out.
        time_column
            Label of the clock column. By default one named time, timestamp, date or alike.
        time_unit
            Unit of a clock of numbers: s, ms, us or ns. By default the one in its label, as in
            "time (ms)", else s.
        time_format
            How date-times are written, as for ``datetime.strptime``. By default ISO 8601.
        sampling_rate
            Rows per second, in Hz; the clock column, if there is one, is then not used.
        channels
            Labels of the columns to take, in this order. By default all but the clock.
        drop_columns
            Labels of the columns to leave out.
        delimiter
            What separates cells. By default a comma, a semicolon or a tab, as it is found.
        decimal
            Decimal mark, a point or a comma. By default as it is found.
        header
            Whether the first row holds labels. By default as it looks.
        encoding
            Of the text. By default UTF-8, or UTF-16 with a byte-order mark.
        units
            Unit of the values.
        thousands
            What groups the digits of numbers: a comma, a point, a space or an apostrophe. By default
            nothing, and a table whose numbers look grouped throughout is refused.
        growing
            Whether the file is still written: a last row whose line has no end is then left out.
        channels_first
            False believes a table without header that is far wider than long.

        Returns
        -------
        Dataset with the variable ``recording``, dims (time, channel): float64, or int64 where
        every channel holds whole numbers only.
        """
        check_sampling_rate(READER, sampling_rate)
        _check_marks(decimal, thousands)
        if channels_first:
            raise ValueError("csv: channels_first is for .npy files; got True. Transpose the table.")
        if time_unit not in (None, *UNITS):
            raise ValueError(f"csv: time_unit must be one of {list(UNITS)}; got {time_unit!r}.")
        options = TableOptions(
            time_column,
            time_unit,
            time_format,
            sampling_rate,
            None if channels is None else tuple(channels),
            tuple(drop_columns),
            decimal is None and thousands is None,
            growing,
            channels_first,
        )
        path = local_file(READER, filename_or_obj)
        layout = read_layout(
            path, delimiter=delimiter, decimal=decimal, header=header, encoding=encoding, thousands=thousands
        )
        recording, time, rate, labels = _read_table(path, layout, options)
        return recording_dataset(
            xr.Variable(("time", "channel"), recording),
            path=path,
            channels=labels,
            time=time,
            sampling_rate=rate,
            units=units,
            long_name="recorded values",
            drop_variables=drop_variables,
        )


def _read_table(
    path: str, layout: Layout, options: TableOptions
) -> tuple[np.ndarray[Any, np.dtype[Any]], xr.Coordinates | None, float | None, list[str]]:
    """Read values, time, sampling rate and labels."""
    clock_column = _clock_column(path, layout, options)
    columns = _channel_columns(path, layout, options, clock_column)
    used = clock_column if options.sampling_rate is None else None
    clock = None if used is None else _clock(path, layout, options, used)
    rows = read_rows(path, layout, options, columns, used, clock, block_rows=_BLOCK_ROWS)
    if not rows.values:
        raise refusal(READER, path, "hold rows below its header", "no complete row", "Wait until one is written")
    values = np.concatenate(rows.values)
    if not layout.has_header and options.channels_first is None:
        check_upright(READER, path, values.shape[0], values.shape[1], "transpose the table to one row per sample")
    if rows.open_line is not None and not options.growing:
        warnings.warn(
            f"csv: {path}: line {rows.open_line}, the last, has no line end, so its last number may be incomplete. "
            "Wait until the file is complete, or end the line.",
            stacklevel=2,
        )
    recording = values.astype(np.int64) if rows.integers else values
    labels = [layout.labels[column] for column in columns]
    if clock is None:
        rate = options.sampling_rate
        return recording, None if rate is None else uniform_time(len(values), rate), rate, labels
    time, rate = _clock_time(path, layout.labels[used or 0], clock, rows)
    return recording, time, rate, labels


def _clock_column(path: str, layout: Layout, options: TableOptions) -> int | None:
    """Find the clock column by the user's word, else by its label."""
    if options.time_column is not None:
        return _position(path, layout, options.time_column, "time_column")
    spoken_for = (*(options.channels or ()), *options.drop_columns)
    found = [label for label in layout.labels if clock_unit(label) and label not in spoken_for]
    if len(found) > 1 and options.sampling_rate is None:
        raise refusal(
            READER,
            path,
            "have one clock column",
            f"several that look like one, {found}",
            f"Choose with time_column={found[0]!r}, drop_columns={found[1:]!r}",
        )
    return layout.labels.index(found[0]) if found else None


def _channel_columns(path: str, layout: Layout, options: TableOptions, clock_column: int | None) -> list[int]:
    """List the columns to take, in the user's order; an unnamed one has to be asked for."""
    dropped = {_position(path, layout, label, "drop_columns") for label in options.drop_columns}
    if options.channels is not None:
        wanted = [_position(path, layout, label, "channels") for label in options.channels]
    else:
        wanted = [column for column in range(len(layout.labels)) if column != clock_column]
        if options.sampling_rate is not None:
            wanted = [column for column in wanted if not clock_unit(layout.labels[column])]
    columns = [column for column in wanted if column not in dropped]
    for column in columns:
        label = layout.labels[column]
        if column in layout.unnamed and options.channels is None:
            raise refusal(
                READER,
                path,
                "name every column in its header",
                f"no name for column {column + 1}, which may number the rows",
                f"Leave it out with drop_columns=[{label!r}], or list it in channels=",
            )
    if not columns:
        raise refusal(READER, path, "hold a channel", f"only the columns {list(layout.labels)}", "Check it")
    return columns


def _position(path: str, layout: Layout, label: str, option: str) -> int:
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


def _clock(path: str, layout: Layout, options: TableOptions, column: int) -> Clock:
    """Tell from the first row how the clock is written."""
    cell = first_row(path, layout)[column]
    label = layout.labels[column]
    unit = options.time_unit or clock_unit(label) or "s"
    read = functools.partial(number, decimal=layout.decimal, thousands=layout.thousands)
    return clock_of(cell, read, label=label, unit=unit, time_format=options.time_format)


def _check_marks(decimal: str | None, thousands: str | None) -> None:
    """Refuse marks that cannot be."""
    if decimal not in (None, ",", "."):
        raise ValueError(f"csv: decimal must be '.' or ','; got {decimal!r}.")
    if thousands not in (None, *THOUSANDS) or (thousands is not None and thousands == decimal):
        raise ValueError(
            f"csv: thousands must be one of {list(THOUSANDS)} and not the decimal mark; got {thousands!r}. "
            "Leave it out where digits are not grouped."
        )


def _clock_time(path: str, label: str, clock: Clock, rows: Rows) -> tuple[xr.Coordinates, float | None]:
    """Make the time coordinate, and the sampling rate by the median interval."""
    instants = np.concatenate(rows.instants)
    fault = first_fault(instants)
    if fault is not None:
        raise _not_forward(path, label, rows.lines, instants, fault)
    attrs = {"units": "s", "long_name": "time"}
    if clock.kind == "seconds":
        seconds = instants
        if clock.per_second == 1 and seconds[-1] > LATEST_SECONDS:
            raise refusal(
                READER,
                path,
                f"count seconds in its clock column {label!r}",
                f"{seconds[-1]:.0f} at line {rows.lines[-1]}, beyond the year 5000",
                "Say its unit with time_unit='ms', 'us' or 'ns'",
            )
    else:
        seconds, attrs["start_time"] = seconds_since_first(instants, has_zone=clock.has_zone)
    rate = float(1 / np.median(np.diff(seconds))) if len(seconds) > 1 else None
    return xr.Coordinates({"time": ("time", seconds, attrs)}), rate


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
        "Write local times in UTC, sort the rows and keep one of each time, " + SET_CLOCK_ASIDE,
    )
