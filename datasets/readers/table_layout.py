"""How a text table is written (encoding, delimiter, decimal mark, header, labels), and its rows."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TextIO

from .contract import check_channels, refusal
from .digits import find_decimal
from .sniff import TEXT, describe
from .table_encoding import known_encoding, likely_encoding, marked_encoding, wide_encoding
from .table_exports import exported_top
from .table_find import (
    LEAST_ROWS,
    check_commas,
    commented,
    evened,
    find_delimiter,
    find_header,
    first_rows,
    is_idle,
    separated,
    separator,
    with_names,
    with_units,
)
from .table_top import Top, known_top, leading_comments

READER = "csv"
_SAMPLE_BYTES = 2**16
_SAMPLE_ROWS = 100
# Longer lines are not rows of a table; a row is held as cells, each of some fifty bytes.
LONGEST_LINE = 2**22  # characters, as of a block, which are enough for pandas to be quick
_FIRST_BLOCK, _BLOCK = 2**16, 2**21


@dataclass(frozen=True)
class Layout:
    """How one table is written."""

    encoding: str
    """Of the text."""
    delimiter: str
    """What separates cells."""
    decimal: str
    """Decimal mark."""
    has_header: bool
    """Whether the first row holds labels."""
    thousands: str | None
    """What groups the digits of numbers; None for nothing."""
    labels: tuple[str, ...]
    """Label of each column, all different."""
    unnamed: frozenset[int] = frozenset()
    """Columns whose label is empty in the header."""
    ends_empty: bool = False
    """Whether each row ends with a delimiter, so that its last cell is empty and no column."""
    top: Top = field(default_factory=Top)
    """What stands above the rows."""
    missing: tuple[str, ...] = ()
    """Cells that stand for nothing, in small letters."""
    comment: str | None = None
    """Mark of lines that are no rows, wherever they stand."""

    @property
    def n_cells(self) -> int:
        """Cells of a row."""
        return len(self.labels) + self.ends_empty


def read_layout(
    path: str,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    thousands: str | None = None,
    skip_rows: int | None = None,
    comment: str | None = None,
    units_row: bool | None = None,
    missing: Sequence[str] = (),
) -> Layout:
    r"""Find out how a table is written, from its first rows.

    Parameters
    ----------
    path
        The file.
    delimiter
        What separates cells; None to find it.
    decimal
        Decimal mark; None to find it.
    header
        Whether the first row holds labels; None to find out.
    encoding
        Of the text; None for UTF-8, or UTF-16 with a byte-order mark.
    thousands
        What groups the digits of numbers; None for nothing.
    skip_rows
        Lines above the header; None to find the table.
    comment
        Mark of lines that are no rows, wherever they stand; None for # and % above the table.
    units_row
        Whether units stand below the header; None to find out.
    missing
        Cells that stand for nothing, besides the usual ones.

    Returns
    -------
    The layout.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("time;x;x\n0;1,5;2\n")
    ...     layout = read_layout(folder + "/a.csv")
    >>> layout.delimiter, layout.decimal, layout.labels
    (';', ',', ('time', 'x', 'x_2'))
    """
    if (words := describe(path)) != TEXT and encoding is None:
        wide = wide_encoding(path)
        remedy = f"Give encoding={wide!r}" if wide else "Replace it with the table"
        raise refusal(READER, path, "be a text table", "UTF-16 without a byte-order mark" if wide else words, remedy)
    asked, encoding = delimiter, known_encoding(encoding) or marked_encoding(path)
    lines, marks = _first_lines(path, encoding), tuple(cell.strip().lower() for cell in missing)
    top = known_top(lines) or exported_top(lines) if skip_rows is None and comment is None else None
    skip = top.skip if top else leading_comments(lines, comment) if skip_rows is None else skip_rows
    if comment:
        lines = [line for n, line in enumerate(lines) if n < skip or not line.startswith(comment)]
    delimiter = separator(delimiter, lines[:skip]) or find_delimiter(lines[skip:])
    rows, skip = first_rows(path, lines, delimiter, skip, preamble=top is None and skip_rows is None)
    check_channels(READER, path, max(map(len, rows)))
    if decimal is None and asked is None:
        check_commas(path, rows, delimiter)
    decimal = decimal or find_decimal([cell for row in rows for cell in row], thousands)
    top = top or Top(skip, commented(lines[:skip], rows, delimiter, decimal) if skip_rows is None else None)
    has_header = header if header is not None else top.names is None and find_header(rows, decimal)
    rows = evened(rows) if has_header else rows
    if len(rows) == 1 and has_header:
        raise refusal(READER, path, "hold rows below its header", "a header alone", "Export the table again")
    if not top.below and has_header and units_row is not False:
        top = with_units(top, rows, decimal, units_row)
    if not top.below and has_header and top.names is None:
        top = with_names(top, rows, decimal)
    return _label(
        Layout(encoding, delimiter, decimal, has_header, thousands, (), top=top, missing=marks, comment=comment), rows
    )


class Readable(Protocol):
    """A text that is read line by line."""

    def readline(self, limit: int, /) -> str:
        """The next line, or its first characters; nothing at the end."""
        ...


class Lines:
    """The lines of a text, of bounded length.

    Parameters
    ----------
    path
        The file, for the error.
    file
        The open text, its line ends as they are.
    count
        Lines before it.
    comment
        Mark of lines to leave out.
    """

    def __init__(self, path: str, file: Readable, count: int = 0, comment: str | None = None) -> None:
        self.path, self.file, self.count, self.comment = path, file, count, comment
        self.is_cut = False
        """Whether the line that was read last has no end."""

    def __iter__(self) -> Iterator[str]:
        """Read line by line."""
        while line := self.file.readline(LONGEST_LINE + 1):
            self.count += 1
            if len(line) > LONGEST_LINE:
                must, got = f"have lines of at most {LONGEST_LINE} characters", f"a longer one, line {self.count}"
                raise refusal(
                    READER, self.path, must, got, "Is it a table with one row per sample? Transpose it, or export it"
                )
            self.is_cut = not line.endswith(("\n", "\r"))
            if not (self.comment and line.startswith(self.comment)):
                yield line


@dataclass
class Scan:
    r"""The rows of a table, text after text, refusing those that are not as wide as the first.

    Examples
    --------
    >>> import io
    >>> scan = Scan("a.csv", Layout("utf-8", ",", ".", True, None, ("x", "y")))
    >>> list(scan.rows(io.StringIO("x,y\n1,2\n"))), list(scan.rows(io.StringIO("3,4\n")))
    ([(2, ['1', '2'])], [(3, ['3', '4'])])
    """

    path: str
    """The file, for errors."""
    layout: Layout
    """How it is written."""
    growing: bool = False
    """Leave the last row out where its line has no end: its last cell may be cut."""
    line: int = 0
    """Lines that were read."""
    open_line: int | None = None
    """The last line, where it has no end."""
    blank_line: int | None = None
    """The first blank line, after which no row may follow."""
    begun: bool = False
    """Whether a row of values was read, or what stands above them."""
    any_row: bool = False
    """Whether a row of values was read by cells."""
    above: int = 0
    """Rows that are still above the values: the header, and units."""

    def __post_init__(self) -> None:
        """Begin below what is skipped."""
        self.line = self.line or self.layout.top.skip
        self.above = self.layout.has_header + self.layout.top.below

    def rows(self, text: Readable) -> Iterator[tuple[int, list[str]]]:
        """Yield the line of the file on which each row ends, from 1, and the row's cells."""
        lines = Lines(self.path, text, self.line, self.layout.comment)
        cut = separated(lines, self.layout.delimiter)
        reader = csv.reader(cut, delimiter=self.layout.delimiter, skipinitialspace=True)
        for cells in self._parsed(reader, lines):
            self.line = lines.count
            if lines.is_cut:
                self.open_line = self.line
                if self.growing:
                    return
            if not cells:
                self.blank_line = self.blank_line or (self.line if self.any_row else None)
                continue
            self._check(cells)
            self.begun = self.above <= 1
            if not self.above:
                self.any_row = True
                yield self.line, cells
            self.above = max(0, self.above - 1)

    def _check(self, cells: Sequence[str]) -> None:
        """Refuse a row after a blank line, or of another width."""
        if self.blank_line is not None:
            raise self._ragged(self.blank_line, "a blank line")
        widths = range(self.layout.n_cells - 1, self.layout.n_cells + 2) if self.above else (self.layout.n_cells,)
        if len(cells) not in widths or (self.layout.ends_empty and not self.above and cells[-1].strip()):
            raise self._ragged(self.line, f"{len(cells)} cells")

    def _parsed(self, reader: Iterator[list[str]], lines: Lines) -> Iterator[list[str]]:
        """Yield the rows of a csv reader, naming the file in its errors."""
        try:
            yield from reader
        except UnicodeError as error:
            raise _undecodable(self.path, self.layout.encoding) from error
        except csv.Error as error:
            got = f"{error} after line {lines.count}"
            raise refusal(READER, self.path, "be a table of cells", got, "Export the table again") from error

    def _ragged(self, line: int, got: str) -> ValueError:
        """Build the error of a row that is not as wide as the first."""
        return refusal(
            READER,
            self.path,
            f"have {self.layout.n_cells} cells in every row, separated by {self.layout.delimiter!r}",
            f"{got} at line {line}",
            "Correct or remove that line, skip what stands above the table with skip_rows=, name the mark of comments "
            "with comment=, or name the separator with delimiter=",
        )


def blocks(file: TextIO) -> Iterator[str]:
    r"""Cut a text into blocks of whole lines; what follows the last line end is a block of its own.

    The first block is small: what a table is like shows there.

    Examples
    --------
    >>> import io
    >>> list(blocks(io.StringIO("1,2\n3,4\n5", newline="")))
    ['1,2\n3,4\n', '5']
    """
    size = _FIRST_BLOCK
    while text := file.read(size):
        if not text.endswith("\n"):
            text += file.readline(LONGEST_LINE + 1)
        if not text.endswith(("\n", "\r")):
            cut = text.rfind("\n") + 1
            yield from filter(None, (text[:cut], text[cut:]))
            return
        yield text
        size = _BLOCK


class Joined:
    """Some texts as one."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = (io.StringIO(text, newline="") for text in texts)
        self._text = io.StringIO()

    def readline(self, limit: int, /) -> str:
        """The next line, or its first characters; nothing at the end."""
        while not (line := self._text.readline(limit)):
            if (text := next(self._texts, None)) is None:
                return ""
            self._text = text
        return line


def open_rows(path: str, layout: Layout) -> TextIO:
    """Open a table below what is skipped."""
    file = open(path, encoding=layout.encoding, newline="")  # noqa: SIM115 - the caller closes it
    for _ in range(layout.top.skip):
        file.readline(LONGEST_LINE)
    return file


def first_row(path: str, layout: Layout) -> list[str]:
    """Cells of the first row below the header; empty ones where there is no row."""
    with open_rows(path, layout) as file:
        return next((cells for _, cells in Scan(path, layout).rows(file)), [""] * layout.n_cells)


def unique_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Number repeated labels, so that none of their columns is lost.

    Parameters
    ----------
    labels
        Labels, some of them perhaps the same.

    Returns
    -------
    All different; the first of each stays as it is.

    Examples
    --------
    >>> unique_labels(["x", "x", "x_2", "x"])
    ('x', 'x_3', 'x_2', 'x_4')
    """
    taken, renamed = set(labels), dict[str, None]()
    counts = dict.fromkeys(labels, 1)
    for label in labels:
        candidate = label
        while candidate in renamed or (candidate != label and candidate in taken):
            counts[label] += 1
            candidate = f"{label}_{counts[label]}"
        renamed[candidate] = None
    return tuple(renamed)


def _first_lines(path: str, encoding: str) -> list[str]:
    """Read the first lines: a few however long they are, more while they are short."""
    lines: list[str] = []
    n_characters = 0
    try:
        with open(path, encoding=encoding, newline="") as file:
            for line in Lines(path, file):
                if len(lines) >= _SAMPLE_ROWS or (len(lines) >= LEAST_ROWS and n_characters >= _SAMPLE_BYTES):
                    break
                lines.append(line)
                n_characters += len(line)
    except UnicodeError as error:
        raise _undecodable(path, encoding) from error
    return lines


def _undecodable(path: str, encoding: str) -> ValueError:
    """Build the error of text in another encoding."""
    got, plain = "bytes that are not", "UTF-8" if encoding == "utf-8-sig" else encoding
    likely = likely_encoding(path)
    return refusal(READER, path, f"be text in {plain}", got, f"Name its encoding, such as encoding={likely!r}")


def _label(layout: Layout, rows: Sequence[Sequence[str]]) -> Layout:
    """Give each column a label, its own or ``ch1``, ``ch2``, ...; an empty last column is not a column."""
    width = len(rows[0])
    names = [cell.strip().lstrip("#").strip() for cell in rows[0]] if layout.has_header else [""] * width
    if layout.top.names is not None and len(layout.top.names) in (width, width - 1):
        names = [*layout.top.names, *[""] * (width - len(layout.top.names))]
    ends_empty = len(names) > 1 and all(not cells[-1].strip() for cells in rows if len(cells) == len(names))
    names = names[: len(names) - ends_empty]
    labels = unique_labels([name or f"ch{column + 1}" for column, name in enumerate(names)])
    told = layout.has_header or layout.top.names is not None
    unnamed = frozenset(column for column, name in enumerate(names) if not name) if told else ()
    body = [cells for cells in rows[layout.has_header + layout.top.below :] if len(cells) >= len(names)]
    idle = [labels[at] for at in sorted(unnamed) if is_idle([cells[at] for cells in body])]
    top = replace(layout.top, aside=(*layout.top.aside, *idle))
    return replace(layout, labels=labels, unnamed=frozenset(unnamed), ends_empty=ends_empty, top=top)
