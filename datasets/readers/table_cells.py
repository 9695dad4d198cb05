"""The cells of a table as numbers, read a block of rows at a time; the first that is none is named with its line."""

import functools
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .clock import BadCellError, Clock
from .contract import refusal
from .digits import Marks, grouping_mark, is_integer, is_number, number
from .table_layout import READER, Layout, table_rows

_BLOCK_CELLS = 2**19
SET_CLOCK_ASIDE = "or give sampling_rate= to number the rows instead of using the clock"


@dataclass(frozen=True)
class TableOptions:
    """What the user says about the columns of a table."""

    time_column: str | None = None
    """Label of the clock column; None to recognise it."""
    time_unit: str | None = None
    """Unit of a clock of numbers; None for the one in its label, else s."""
    time_format: str | None = None
    """How date-times are written, as for ``datetime.strptime``; None for ISO 8601."""
    sampling_rate: float | None = None
    """Rows per second, in Hz, in place of the table's clock."""
    channels: tuple[str, ...] | None = None
    """Labels of the columns to take; None for all."""
    drop_columns: tuple[str, ...] = ()
    """Labels of the columns to leave out."""
    doubt_marks: bool = True
    """Whether a number such as 1,234 may mean a thousand: nobody said what its mark is."""
    growing: bool = False
    """Whether the file is still written."""
    channels_first: bool | None = None
    """None to refuse a table without header that is far wider than long."""


@dataclass
class Rows:
    """The rows of a table as they are read."""

    values: list[np.ndarray[Any, np.dtype[np.float64]]] = field(default_factory=list)
    """Blocks of the channels' numbers."""
    instants: list[np.ndarray[Any, np.dtype[Any]]] = field(default_factory=list)
    """Blocks of the clock."""
    lines: "array[int]" = field(default_factory=lambda: array("q"))
    """Line of the file at which each row ends, from 1."""
    integers: bool = True
    """Whether every cell of the channels is a whole number."""
    open_line: int | None = None
    """The last line, where it has no end."""


def read_rows(
    path: str,
    layout: Layout,
    options: TableOptions,
    columns: Sequence[int],
    clock_column: int | None,
    clock: Clock | None,
    *,
    block_rows: int,
) -> Rows:
    """Read all rows, a block at a time, so that text never fills the memory.

    Parameters
    ----------
    path
        The file.
    layout
        How it is written.
    options
        What the user says of it.
    columns
        Numbers of the columns that are channels.
    clock_column, clock
        Number of the clock's column, and how its cells are written; None for no clock.
    block_rows
        Rows of a block at most; fewer where they are wide.

    Returns
    -------
    Blocks of values and instants.
    """
    rows, marks = Rows(), Marks(layout.decimal, sure=not options.doubt_marks or layout.decimal not in ",.")
    cells = table_rows(path, layout, growing=options.growing, at_end=functools.partial(setattr, rows, "open_line"))
    for lines, block in _blocks(cells, max(1, min(block_rows, _BLOCK_CELLS // layout.n_cells))):
        rows.lines.extend(lines)
        marks.look(lines, block)
        rows.values.append(_numbers(path, layout, lines, block, columns))
        rows.integers = rows.integers and all(is_integer(cells[at]) for cells in block for at in columns)
        if clock is not None and clock_column is not None:
            label = layout.labels[clock_column]
            read = functools.partial(number, decimal=layout.decimal, thousands=layout.thousands)
            try:
                rows.instants.append(clock.read([cells[clock_column] for cells in block], read))
            except BadCellError as bad:
                raise _unreadable_time(path, label, clock, lines[bad.row], bad.cell) from bad
    _check_doubt(path, layout, marks)
    return rows


def _check_doubt(path: str, layout: Layout, marks: Marks) -> None:
    """Refuse numbers that may be a thousand times as large."""
    if (doubt := marks.doubt(layout.delimiter)) is not None:
        column, line, cell = doubt
        other = "." if marks.decimal == "," else ","
        raise refusal(
            READER,
            path,
            "make clear what its marks mean",
            f"{cell!r} in column {layout.labels[min(column, len(layout.labels) - 1)]!r} at line {line}, which may be "
            f"{cell.strip().replace(marks.decimal, '')} or {cell.strip().replace(',', '.')}",
            f"Say thousands={marks.decimal!r} (decimal mark {other!r}), or decimal={marks.decimal!r}; on the command "
            f"line --thousands {marks.decimal!r} or --decimal {marks.decimal!r}",
        )


def _blocks(rows: Iterator[tuple[int, list[str]]], n_rows: int) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Group rows into blocks."""
    lines: list[int] = []
    block: list[list[str]] = []
    for line, cells in rows:
        lines.append(line)
        block.append(cells)
        if len(block) == n_rows:
            yield lines, block
            lines, block = [], []
    if block:
        yield lines, block


def _numbers(
    path: str, layout: Layout, lines: Sequence[int], block: Sequence[Sequence[str]], columns: Sequence[int]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Read the channels of a block as numbers."""
    read = functools.partial(number, decimal=layout.decimal, thousands=layout.thousands)
    try:
        return np.array([[read(cells[column]) for column in columns] for cells in block])
    except ValueError:
        raise _not_a_number(path, layout, lines, block, columns) from None


def _not_a_number(
    path: str, layout: Layout, lines: Sequence[int], block: Sequence[Sequence[str]], columns: Sequence[int]
) -> ValueError:
    """Build the error of the first cell in a block that is no number."""
    cells = ((line, column, row[column]) for line, row in zip(lines, block, strict=True) for column in columns)
    line, column, cell = next(
        bad for bad in cells if not is_number(bad[2], decimal=layout.decimal, thousands=layout.thousands)
    )
    label, mark = layout.labels[column], grouping_mark(cell)
    remedy = f"Leave the column out with drop_columns=[{label!r}], or list the others in channels="
    if mark is not None and layout.thousands is None:
        remedy = f"Say what groups its digits: thousands={mark!r}, or --thousands {mark!r} on the command line"
    return refusal(
        READER,
        path,
        "hold numbers in every channel",
        f"{_short(cell)} in column {label!r} at line {line}",
        remedy,
    )


def _short(cell: str) -> str:
    """A cell as an error can show it."""
    return repr(cell) if len(cell) < 80 else f"{cell[:60]!r}... ({len(cell)} characters)"


def _unreadable_time(path: str, label: str, clock: Clock, line: int, cell: str) -> ValueError:
    """Build the error of a clock's cell that is no time, or not of the first row's kind."""
    kinds = {
        "seconds": "numbers, or ISO date-times, throughout",
        "iso": f"ISO date-times {'with' if clock.has_zone else 'without'} an offset from UTC throughout",
        "format": f"date-times written {clock.format!r} throughout",
    }
    return refusal(
        READER,
        path,
        f"hold {kinds[clock.kind]} in its clock column {label!r}",
        f"{cell!r} at line {line}",
        f"Give time_format= (such as '%d.%m.%Y %H:%M'), name another column in time_column=, {SET_CLOCK_ASIDE}",
    )
