"""Reader of text tables: the xarray engine ``manifold-csv`` for ``.csv``, ``.tsv`` and ``.txt``.

A table is read whole, into memory: its rows have no fixed length, so there is no seeking in it.
Nothing is repaired: a row that is too short, a cell that is not a number and a clock that does not
go forward are refused with the line where they are. Empty cells become NaN. What stands above the rows
(preambles, comments, units) is skipped, and told in the attribute ``notes``.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendEntrypoint

from manifold_observer.datasets.regular import uniform_time

from .clock_names import UNITS, clock_unit, unit_of
from .contract import (
    check_sampling_rate,
    check_upright,
    has_suffix,
    local_file,
    recording_dataset,
    refusal,
)
from .digits import THOUSANDS, plain_mark
from .spikes import lists_spikes
from .table_cells import TableOptions, read_rows
from .table_clock import clock_column, clock_time, position, table_clock
from .table_labels import label_columns
from .table_layout import READER, Layout, read_layout

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
        "drop_channels",
        "delimiter",
        "decimal",
        "header",
        "encoding",
        "units",
        "thousands",
        "growing",
        "channels_first",
        "labels",
        "skip_rows",
        "comment",
        "units_row",
        "missing",
        "any_order",
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
        drop_channels: Sequence[str] = (),
        delimiter: str | None = None,
        decimal: str | None = None,
        header: bool | None = None,
        encoding: str | None = None,
        units: str = "unknown",
        thousands: str | None = None,
        growing: bool = False,
        channels_first: bool | None = None,
        labels: Sequence[str] = (),
        skip_rows: int | None = None,
        comment: str | None = None,
        units_row: bool | None = None,
        missing: Sequence[str] = (),
        any_order: bool = False,
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
            Unit of a clock of numbers, such as s, ms, us, ns, min or h. By default the one in its label, as in
            "time (ms)", or below it, else s.
        time_format
            How date-times are written, as for ``datetime.strptime``. By default ISO 8601.
        sampling_rate
            Rows per second, in Hz; the clock column, if there is one, is then not used.
        channels
            Labels of the columns to take, in this order. By default all but the clock.
        drop_channels
            Labels of the columns to leave out.
        delimiter
            What separates cells. By default a comma, a semicolon, a tab, a bar or blanks, as it is found.
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
        labels
            Labels of the columns that become coordinates along time; their cells may be words.
        skip_rows
            Lines above the header. By default preambles of words, comments and blank lines are skipped.
        comment
            Mark of lines that are no rows, wherever they stand. By default # and %, above the table.
        units_row
            Whether units stand below the header. By default as it looks.
        missing
            Cells that stand for nothing, besides empty ones, NA, NaN and the like.
        any_order
            Hand out a clock that repeats or goes backwards as it stands.

        Returns
        -------
        Dataset with the variable ``recording``, dims (time, channel): float64, or int64 where
        every channel holds whole numbers only.
        """
        check_sampling_rate(READER, sampling_rate)
        thousands = None if thousands is None else plain_mark(thousands)
        _check_marks(decimal, thousands)
        if channels_first:
            raise ValueError("csv: channels_first is for .npy files; got True. Transpose the table.")
        if time_unit is not None and unit_of(time_unit) is None:
            raise ValueError(f"csv: time_unit must be one of {list(UNITS)}; got {time_unit!r}.")
        options = TableOptions(
            time_column,
            None if time_unit is None else unit_of(time_unit),
            time_format,
            sampling_rate,
            None if channels is None else tuple(channels),
            tuple(drop_channels),
            doubt_marks=decimal is None and thousands is None,
            growing=growing,
            channels_first=channels_first,
            labels=tuple(labels),
            any_order=any_order,
        )
        path = local_file(READER, filename_or_obj)
        layout = read_layout(
            path,
            delimiter=delimiter,
            decimal=decimal,
            header=header,
            encoding=encoding,
            thousands=thousands,
            skip_rows=skip_rows,
            comment=comment,
            units_row=units_row,
            missing=missing,
        )
        return _dataset(path, layout, options, units, drop_variables)


def _dataset(
    path: str, layout: Layout, options: TableOptions, units: str, drop_variables: str | Iterable[str] | None
) -> xr.Dataset:
    """The recording with its labels, and what is known of it."""
    recording, time, rate, columns = _read_table(path, layout, options)
    own, told = _units(layout, columns, units)
    dataset = recording_dataset(
        xr.Variable(("time", "channel"), recording),
        path=path,
        channels=[layout.labels[column] for column in columns],
        time=time,
        sampling_rate=rate,
        units=own,
        long_name="recorded values",
        drop_variables=drop_variables,
    )
    dataset["recording"].attrs |= told | _notes(layout, dataset)
    return dataset.assign_coords(label_columns(path, layout, options, len(recording)))


def _read_table(
    path: str, layout: Layout, options: TableOptions
) -> tuple[np.ndarray[Any, np.dtype[Any]], xr.Coordinates | None, float | None, list[int]]:
    """Read values, time and sampling rate, and tell which columns they are."""
    _check_samples(path, layout, options)
    at, split = clock_column(path, layout, options)
    columns = _channel_columns(path, layout, options, {at, split})
    used = at if options.sampling_rate is None else None
    options = replace(options, split_clock=split)
    clock = None if used is None else table_clock(path, layout, options, used)
    rows = read_rows(path, layout, options, columns, used, clock, block_rows=_BLOCK_ROWS)
    if not rows.values:
        raise refusal(READER, path, "hold rows below its header", "no complete row", "Wait until one is written")
    values = np.concatenate(rows.values)
    if not layout.has_header and not layout.top.logger and options.channels_first is None:
        check_upright(READER, path, values.shape[0], values.shape[1], "transpose the table to one row per sample")
    if rows.open_line is not None and not options.growing:
        warnings.warn(
            f"csv: {path}: line {rows.open_line}, the last, has no line end, so its last number may be incomplete. "
            "Wait until the file is complete, or end the line.",
            stacklevel=2,
        )
    recording = values.astype(np.int64) if rows.integers else values
    if clock is None or used is None:
        return recording, *_counted(layout, options, len(values)), columns
    return recording, *clock_time(path, layout, options, used, clock, rows), columns


def _check_samples(path: str, layout: Layout, options: TableOptions) -> None:
    """Refuse a list of spikes, unless the user says what its columns are."""
    said = (options.channels, options.labels, options.drop_channels, options.time_column, options.sampling_rate)
    if layout.has_header and lists_spikes(layout.labels) and not any(said):
        unit, time = layout.labels
        raise refusal(
            READER,
            path,
            "hold samples, not spikes",
            f"the columns {unit!r} and {time!r}",
            "Give the seconds in which spikes are counted with bin=0.1, or name the channels with channels=",
        )


def _counted(layout: Layout, options: TableOptions, n: int) -> tuple[xr.Coordinates | None, float | None]:
    """The time coordinate and the rate of a table whose rows are numbered."""
    rate = options.sampling_rate or layout.top.sampling_rate
    if rate is None:
        return None, None
    time = uniform_time(n, rate)
    if layout.top.start_time is not None and options.sampling_rate is None:
        time["time"].attrs["start_time"] = layout.top.start_time
    return time, rate


def _units(layout: Layout, columns: Sequence[int], units: str) -> tuple[str, dict[str, Any]]:
    """Unit of the values, where all channels have one, and the units of the channels, where they differ."""
    if units != "unknown" or not layout.top.units:
        return units, {}
    own = [layout.top.units[column] if column < len(layout.top.units) else "" for column in columns]
    return (own[0] or units, {}) if len(set(own)) == 1 else (units, {"channel_units": own})


def _notes(layout: Layout, dataset: xr.Dataset) -> dict[str, Any]:
    """What was done to the table."""
    top, notes = layout.top, []
    if top.logger:
        notes.append(f"read as a table of {top.logger}")
    if top.skip:
        notes.append(f"skipped {top.skip} line{'s' if top.skip > 1 else ''} above the table")
    if top.below and top.units:
        notes.append("took the row below the header for units")
    if top.aside:
        notes.append(f"left out {', '.join(map(repr, top.aside))}, which number or date the rows")
    if top.below and not top.units and not top.logger and top.names is not None:
        notes.append(f"joined the names in {top.below + 1} rows")
    if wraps := dataset["time"].attrs.pop("wraps", 0) if "time" in dataset.coords else 0:
        notes.append(f"let the counter of its clock, which has 32 bits, run on where it began anew ({wraps} times)")
    if layout.has_header and all(label.isdigit() for label in layout.labels if label not in top.aside):
        notes.append("took the numbers in the first row for names of the columns")
    return {"notes": notes} if notes else {}


def _channel_columns(path: str, layout: Layout, options: TableOptions, clocks: set[int | None]) -> list[int]:
    """List the columns to take, in the user's order; an unnamed one has to be asked for."""
    dropped = {position(path, layout, label, "drop_channels") for label in options.drop_channels}
    dropped |= {position(path, layout, label, "labels") for label in options.labels}
    if options.channels is None:
        dropped |= {layout.labels.index(label) for label in layout.top.aside if label in layout.labels}
    if options.channels is not None:
        wanted = [position(path, layout, label, "channels") for label in options.channels]
    else:
        wanted = [column for column in range(len(layout.labels)) if column not in clocks]
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
                f"Leave it out with drop_channels=[{label!r}], or list it in channels=",
            )
    if not columns:
        raise refusal(READER, path, "hold a channel", f"only the columns {list(layout.labels)}", "Check it")
    return columns


def _check_marks(decimal: str | None, thousands: str | None) -> None:
    """Refuse marks that cannot be."""
    if decimal not in (None, ",", "."):
        raise ValueError(f"csv: decimal must be '.' or ','; got {decimal!r}.")
    if thousands not in (None, *THOUSANDS) or (thousands is not None and thousands == decimal):
        raise ValueError(
            f"csv: thousands must be one of {list(THOUSANDS)} and not the decimal mark; got {thousands!r}. "
            "Leave it out where digits are not grouped."
        )
