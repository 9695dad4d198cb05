"""How a text table is written (encoding, delimiter, decimal mark, header, labels), and its rows."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TextIO

from .clock import looks_like_date
from .contract import check_channels, refusal
from .digits import find_decimal, is_number
from .sniff import TEXT, describe, read_head

READER = "csv"
_DELIMITERS = (";", "\t", ",")
_SAMPLE_BYTES = 2**16
_SAMPLE_ROWS, _LEAST_ROWS = 100, 3
# Longer lines are not rows of a table; a row is held as cells, each of some fifty bytes.
LONGEST_LINE = 2**22
# Characters of a block: enough for pandas to be quick, few enough for the memory.
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
        raise refusal(READER, path, "be a text table", words, "Replace it with the table")
    encoding = encoding or _encoding(path)
    lines = _first_lines(path, encoding)
    try:
        delimiter = delimiter or _find_delimiter(lines)
        rows = [cells for cells in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if cells]
    except csv.Error as error:
        raise refusal(READER, path, "be a table of cells", f"{error} in its first rows", "Export it again") from error
    if not rows:
        raise refusal(READER, path, "hold rows", "blank lines only", "Export the table again")
    check_channels(READER, path, max(map(len, rows)))
    decimal = decimal or find_decimal([cell for row in rows for cell in row], thousands)
    has_header = _find_header(rows, decimal) if header is None else header
    if len(rows) == 1 and has_header:
        raise refusal(READER, path, "hold rows below its header", "a header alone", "Export the table again")
    return _label(Layout(encoding, delimiter, decimal, has_header, thousands, ()), rows)


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
    """

    def __init__(self, path: str, file: Readable, count: int = 0) -> None:
        self.path, self.file, self.count = path, file, count
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
    """Whether the header is behind, where there is one."""

    def rows(self, text: Readable) -> Iterator[tuple[int, list[str]]]:
        """Yield the line of the file on which each row ends, from 1, and the row's cells."""
        before, lines = self.line, Lines(self.path, text, self.line)
        reader = csv.reader(lines, delimiter=self.layout.delimiter, skipinitialspace=True)
        for cells in self._parsed(reader, before):
            self.line = before + reader.line_num
            if lines.is_cut:
                self.open_line = self.line
                if self.growing:
                    return
            if not cells:
                self.blank_line = self.blank_line or self.line
                continue
            self._check(cells)
            if self.begun or not self.layout.has_header:
                yield self.line, cells
            self.begun = True

    def _check(self, cells: Sequence[str]) -> None:
        """Refuse a row after a blank line, or of another width."""
        if self.blank_line is not None:
            raise self._ragged(self.blank_line, "a blank line")
        if len(cells) != self.layout.n_cells or (self.layout.ends_empty and cells[-1].strip()):
            raise self._ragged(self.line, f"{len(cells)} cells")

    def _parsed(self, reader: Iterator[list[str]], before: int) -> Iterator[list[str]]:
        """Yield the rows of a csv reader, naming the file in its errors."""
        try:
            yield from reader
        except UnicodeError as error:
            raise _undecodable(self.path, self.layout.encoding) from error
        except csv.Error as error:
            got = f"{error} after line {before + getattr(reader, 'line_num', 0)}"
            raise refusal(READER, self.path, "be a table of cells", got, "Export the table again") from error

    def _ragged(self, line: int, got: str) -> ValueError:
        """Build the error of a row that is not as wide as the first."""
        return refusal(
            READER,
            self.path,
            f"have {self.layout.n_cells} cells in every row, separated by {self.layout.delimiter!r}",
            f"{got} at line {line}",
            "Correct or remove that line, or name the separator with delimiter=",
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


def first_row(path: str, layout: Layout) -> list[str]:
    """Cells of the first row below the header; empty ones where there is no row."""
    with open(path, encoding=layout.encoding, newline="") as file:
        return next((cells for _, cells in Scan(path, layout).rows(file)), [""] * layout.n_cells)


def unique_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Number repeated labels, so that none of their columns is lost.

    Parameters
    ----------
    labels
        Labels, some of them perhaps the same.

    Returns
    -------
    As many labels, all different; the first of each stays as it is.

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


def _encoding(path: str) -> str:
    """Tell UTF-16 from UTF-8 by the byte-order mark."""
    return "utf-16" if read_head(path, 2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _first_lines(path: str, encoding: str) -> list[str]:
    """Read the first lines: a few however long they are, more while they are short."""
    lines: list[str] = []
    n_characters = 0
    try:
        with open(path, encoding=encoding, newline="") as file:
            for line in Lines(path, file):
                if len(lines) >= _SAMPLE_ROWS or (len(lines) >= _LEAST_ROWS and n_characters >= _SAMPLE_BYTES):
                    break
                lines.append(line)
                n_characters += len(line)
    except UnicodeError as error:
        raise _undecodable(path, encoding) from error
    return lines


def _undecodable(path: str, encoding: str) -> ValueError:
    """Build the error of text in another encoding."""
    got = "bytes that are not"
    return refusal(READER, path, f"be text in {encoding}", got, "Name its encoding, such as encoding='cp1252'")


def _find_delimiter(lines: Sequence[str]) -> str:
    """Choose what cuts most rows into the same number of cells, two or more."""
    for delimiter in _DELIMITERS:
        try:
            widths = Counter(map(len, csv.reader(lines, delimiter=delimiter, skipinitialspace=True)))
        except csv.Error:  # a wide row is one long cell to the wrong one
            continue
        widths.pop(0, None)
        width, count = widths.most_common(1)[0] if widths else (0, 0)
        if width > 1 and 2 * count > widths.total():
            return delimiter
    return ","


def _find_header(rows: Sequence[Sequence[str]], decimal: str) -> bool:
    """Tell a header: words over values, or words alone."""
    words = [not _is_value(cell, decimal) for cell in rows[0]]
    if all(words) or len(rows) == 1:
        return all(words)
    return any(word and _is_value(cell, decimal) for word, cell in zip(words, rows[1], strict=False))


def _is_value(cell: str, decimal: str) -> bool:
    """Tell whether a cell can be a value: a number, nothing, or a date-time."""
    return is_number(cell, decimal=decimal) or looks_like_date(cell)


def _label(layout: Layout, rows: Sequence[Sequence[str]]) -> Layout:
    """Give each column a label, its own or ``ch1``, ``ch2``, ...; an empty last column is not a column."""
    names = [cell.strip().lstrip("#").strip() for cell in rows[0]] if layout.has_header else [""] * len(rows[0])
    ends_empty = len(names) > 1 and all(not cells[-1].strip() for cells in rows if len(cells) == len(names))
    names = names[: len(names) - ends_empty]
    labels = unique_labels([name or f"ch{column + 1}" for column, name in enumerate(names)])
    unnamed = frozenset(column for column, name in enumerate(names) if not name) if layout.has_header else ()
    return replace(layout, labels=labels, unnamed=frozenset(unnamed), ends_empty=ends_empty)
