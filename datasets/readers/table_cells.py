"""The cells of a table as numbers, read a block of rows at a time; errors name the line of the first bad cell."""

import functools
import io
import itertools
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

import numpy as np

from .clock import BadCellError, Clock, looks_like_date, written_as
from .contract import refusal
from .digits import Marks, grouping_mark, is_integer, is_number, number
from .table_fast import is_simple, read_block
from .table_layout import READER, Joined, Layout, Readable, Scan, blocks, open_rows

_BLOCK_CELLS = 2**19
# Cells that are looked at to tell how dates are written; a date-time with the letters of its zone.
_MOST_LOOKED_AT = 2000
_ZONE = re.compile(r"(.*\d)\s+([A-Z]{3,4})")
# A number with its unit, its name or the time in one cell, as Grafana and the Arduino's serial monitor write them.
_NUMBER = r"[+-]?[\d.,]+(?:[eE][+-]?\d+)?"
_MEASURED = re.compile(rf"{_NUMBER}\s?(?:%|°?[^\W\d_]\S{{0,7}})|[^\W\d]\w*\s*[:=]\s*{_NUMBER}|[\d:.]+ -> .*")
SET_CLOCK_ASIDE = "or give gaps='ignore' and sampling_rate= to number the rows instead of using the clock"


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
    drop_channels: tuple[str, ...] = ()
    """Labels of the columns to leave out."""
    labels: tuple[str, ...] = ()
    """Labels of the columns to keep beside the recording."""
    split_clock: int | None = None
    """Number of the column that has the time of the day, where the clock's has the date."""
    doubt_marks: bool = True
    """Whether a number such as 1,234 may mean a thousand: nobody said what its mark is."""
    growing: bool = False
    """Whether the file is still written."""
    any_order: bool = False
    """Whether a clock may repeat or go backwards."""
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
    begin = functools.partial(_Reading, path, layout, options, columns, clock_column, clock, block_rows)
    try:
        rows = begin().by_blocks()
    except ValueError:
        rows = None
    # What is wrong, and on which line, is found cell by cell.
    return begin().by_cells() if rows is None else rows


@dataclass
class _Reading:
    """One reading of a table."""

    path: str
    layout: Layout
    options: TableOptions
    columns: Sequence[int]
    clock_column: int | None
    clock: Clock | None
    block_rows: int
    rows: Rows = field(default_factory=Rows)
    unlooked: bool = False
    """Whether some blocks were not looked at for what the marks mean."""

    def __post_init__(self) -> None:
        self.scan = Scan(self.path, self.layout, self.options.growing)
        self.marks = Marks(self.layout.decimal, sure=not self.options.doubt_marks or self.layout.decimal not in ",.")

    def by_cells(self) -> Rows:
        """Read every cell by itself, and raise what is wrong with the first that cannot be read."""
        with self._open() as file:
            self._take(file)
        _check_doubt(self.path, self.layout, self.marks)
        return self._done()

    def by_blocks(self) -> Rows | None:
        """Read blocks by pandas where it reads them as we do; None where every cell has to be looked at."""
        if self.layout.comment or self.options.split_clock is not None:
            return self.by_cells()
        with self._open() as file:
            texts = blocks(file)
            for text in texts:
                if not is_simple(text, self.layout.delimiter):
                    self._take(Joined(itertools.chain([text], texts)))
                elif not self._take_block(text):
                    self._take(io.StringIO(text, newline=""))
        unsure = not self.marks.sure and self.unlooked and self.marks.grouped
        return None if unsure or self.marks.doubt(self.layout.delimiter) is not None else self._done()

    def _open(self) -> TextIO:
        return open_rows(self.path, self.layout)

    def _done(self) -> Rows:
        self.rows.open_line = self.scan.open_line
        return self.rows

    def _take_block(self, text: str) -> bool:
        """Take a block as pandas reads it; false where it has to be read cell by cell."""
        scan, rows = self.scan, self.rows
        if not scan.begun or scan.blank_line or not (self.marks.sure or self.layout.decimal not in text):
            return False
        block = read_block(text, self.layout, self.columns, self.clock_column, self.clock, integers=rows.integers)
        if block is None:
            return False
        rows.values.append(block.values)
        rows.instants += [] if block.instants is None else [block.instants]
        rows.lines.frombytes((scan.line + 1 + np.arange(len(block.values), dtype=np.int64)).tobytes())
        rows.integers = block.integers
        scan.line += len(block.values)
        self.unlooked |= not self.marks.sure
        return True

    def _take(self, text: Readable) -> None:
        """Take the rows of a text cell by cell."""
        n_rows = max(1, min(self.block_rows, _BLOCK_CELLS // self.layout.n_cells))
        for lines, block in _blocks(self.scan.rows(text), n_rows):
            self.rows.lines.extend(lines)
            self.marks.look(lines, block)
            self.rows.values.append(_numbers(self.path, self.layout, lines, block, self.columns))
            whole = self.rows.integers and all(is_integer(cells[at]) for cells in block for at in self.columns)
            self.rows.integers = whole
            self._take_clock(lines, block)

    def _take_clock(self, lines: Sequence[int], block: Sequence[Sequence[str]]) -> None:
        """Take the clock of some rows."""
        if self.clock is None or self.clock_column is None:
            return
        read = reads(self.layout)
        cells = [row[self.clock_column] for row in block]
        if (rest := self.options.split_clock) is not None:
            cells = [f"{cell.strip()} {row[rest].strip()}" for cell, row in zip(cells, block, strict=True)]
        try:
            self.rows.instants.append(self.clock.read(cells, read))
        except BadCellError as bad:
            label = self.layout.labels[self.clock_column]
            near = lines[bad.row] <= _last_of_top(self.layout)
            advice = _formats(bad.cell, cells, near=near)
            raise _unreadable_time(self.path, label, self.clock, lines[bad.row], bad.cell, advice) from bad


def reads(layout: Layout) -> Callable[[str], float]:
    """What reads a cell of a table as a number."""
    return functools.partial(number, decimal=layout.decimal, thousands=layout.thousands, more=layout.missing)


def _check_doubt(path: str, layout: Layout, marks: Marks) -> None:
    """Refuse numbers that may be a thousand times as large."""
    if (doubt := marks.doubt(layout.delimiter)) is not None:
        column, line, cell = doubt
        other = "." if marks.decimal == "," else ","
        raise refusal(
            READER,
            path,
            "use its decimal mark unambiguously",
            f"{cell!r} in column {layout.labels[min(column, len(layout.labels) - 1)]!r} at line {line}, which may be "
            f"{cell.strip().replace(marks.decimal, '')} or {cell.strip().replace(',', '.')}",
            f"Give thousands={marks.decimal!r} (decimal mark {other!r}), or decimal={marks.decimal!r}",
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
    read = reads(layout)
    try:
        return np.array([[read(cells[column]) for column in columns] for cells in block])
    except ValueError:
        raise _not_a_number(path, layout, lines, block, columns) from None


def _not_a_number(
    path: str, layout: Layout, lines: Sequence[int], block: Sequence[Sequence[str]], columns: Sequence[int]
) -> ValueError:
    """Build the error of the first cell in a block that is not a number."""
    cells = ((line, column, row[column]) for line, row in zip(lines, block, strict=True) for column in columns)
    line, column, cell = next(
        bad
        for bad in cells
        if not is_number(bad[2], decimal=layout.decimal, thousands=layout.thousands, more=layout.missing)
    )
    label, row = layout.labels[column], block[list(lines).index(line)]
    remedy = _remedy(layout, row, columns, column, near=line <= _last_of_top(layout))
    return refusal(
        READER,
        path,
        "hold numbers in every channel",
        f"{_short(cell)} in column {label!r} at line {line}",
        remedy,
    )


def _remedy(layout: Layout, row: Sequence[str], columns: Sequence[int], column: int, *, near: bool) -> str:
    """What can be done about a cell that is not a number; ``near`` where it stands in the first row."""
    cell, label, mark = row[column], layout.labels[column], grouping_mark(row[column])
    words = [at for at in columns if not is_number(row[at], decimal=layout.decimal, more=layout.missing)]
    if mark is not None and layout.thousands is None:
        return f"If the mark groups digits, give thousands={mark!r}"
    if not near and len(columns) > 1 and len(words) == len(columns):
        word = cell.strip()[:20]
        return f"Correct or remove that line if it is no row, or give missing=[{word!r}] if nothing was measured"
    if near and _MEASURED.fullmatch(cell.strip()):
        return "Write numbers alone in its cells, and their names and units in the header"
    names = [layout.labels[at] for at in words]
    if looks_like_date(cell) or written_as(cell):
        return (
            f"Make it the clock with time_column={label!r}, or leave out what is no signal with drop_channels={names!r}"
        )
    remedy = (
        f"Leave {'the columns' if len(names) > 1 else 'the column'} out with drop_channels={names!r}, keep "
        f"{'them' if len(names) > 1 else 'it'} as labels with labels={names!r}, or name what stands for nothing, as "
        f"in missing=[{cell.strip()[:20]!r}]"
    )
    above = ". For units below the header, give units_row=True; for lines above the table, skip_rows="
    return remedy + (above if near else "")


def _short(cell: str) -> str:
    """A cell as an error can show it."""
    return repr(cell) if len(cell) < 80 else f"{cell[:60]!r}... ({len(cell)} characters)"


def _last_of_top(layout: Layout) -> int:
    """The line up to which a row may be one of names, units or the like."""
    return layout.top.skip + layout.has_header + layout.top.below + 2


def _unreadable_time(path: str, label: str, clock: Clock, line: int, cell: str, advice: str) -> ValueError:
    """Build the error of a clock's cell that is not a time, or not of the first row's kind."""
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
        f"{advice}, name another column in time_column=, {SET_CLOCK_ASIDE}",
    )


def _formats(cell: str, others: Sequence[str], *, near: bool) -> str:
    """The format in which a cell and others of its column may be written, as an option; else what to do with it."""
    found, zone = written_as(cell, others[:_MOST_LOOKED_AT] if near else ()), _ZONE.fullmatch(cell.strip())
    if found:
        return "Give " + " or ".join(f"time_format={each!r}" for each in found[:2])
    if zone is not None:
        written = "%Y-%m-%d %H:%M:%S" if looks_like_date(zone[1]) else (written_as(zone[1]) or ["%d.%m.%Y %H:%M"])[0]
        return f"Give time_format='{written} {zone[2]}' and timezone={zone[2]!r}"
    return "Give time_format= (such as '%d.%m.%Y %H:%M')" if near else "Correct or remove that line if it is no row"
