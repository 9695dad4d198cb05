"""Where a table begins, what separates its cells, and whether it has a header and units: told from its first rows."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from .clock import looks_like_date
from .clock_names import clock_unit
from .contract import refusal
from .digits import is_integer, is_number
from .table_top import COMMENTS, Top, is_units_row, plain_units

_READER = "csv"
# A blank comes last: texts have blanks, too.
_DELIMITERS = (";", "\t", ",", "|", " ")
_SPELT = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}
# Cells of a preamble: a name and its value.
_NARROW = 2
# Rows of names, one below the other, at most.
_MOST_NAMES = 4
LEAST_ROWS = 3
"""Rows below which a table is not looked for."""


def first_rows(
    path: str, lines: Sequence[str], delimiter: str, skip: int, *, preamble: bool
) -> tuple[list[list[str]], int]:
    """Cells of the first rows, and how many lines stand above them."""
    rows, ends = [], []
    try:
        reader = csv.reader(separated(lines[skip:], delimiter), delimiter=delimiter, skipinitialspace=True)
        for cells in reader:
            if cells:
                rows.append(cells)
                ends.append(reader.line_num)
    except csv.Error as error:
        raise refusal(_READER, path, "be a table of cells", f"{error} in its first rows", "Export it again") from error
    if not rows:
        raise refusal(_READER, path, "hold rows", "blank lines only", "Export the table again")
    above = _preamble(rows) if preamble else 0
    return rows[above:], skip + (ends[above] - 1 if above else 0)


def _preamble(rows: Sequence[Sequence[str]]) -> int:
    """Rows above the table: of words, and of another width than all that follow."""
    width = Counter(map(len, rows)).most_common(1)[0][0]
    above = max((n for n, cells in enumerate(rows, 1) if len(cells) != width), default=0)
    if above and _heads(rows[above - 1], rows[above:]):
        header = len(rows[above - 1])
        body = rows[above:]
        while above and len(rows[above - 1]) == header and _heads(rows[above - 1], body):
            above -= 1
    words = all(any(not is_number(cell) for cell in cells) for cells in rows[:above] if any(map(str.strip, cells)))
    # A row of many words above values may be a header of another width.
    narrow = all(len(cells) <= _NARROW for cells in rows[:above])
    headed = above < len(rows) and not any(cell.strip() and _is_value(cell, ".") for cell in rows[above])
    told = words and (narrow or headed)
    return above if width > _NARROW - 1 and told and len(rows) - above >= LEAST_ROWS - 1 else 0


def _heads(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a row of words is the header of rows of another width, for which :func:`widened` has a reason."""
    words = all(not is_number(cell) for cell in header if cell.strip()) and any(cell.strip() for cell in header)
    return words and widened(header, rows) is not None


def evened(rows: Sequence[list[str]]) -> list[list[str]]:
    """Rows whose header, and what stands below it, have a cell for every column.

    Examples
    --------
    >>> evened([["t", "x"], ["s", "V"], ["0", "1", ""], ["1", "5", ""]])[1]
    ['s', 'V', '']
    """
    count = next((n for n, cells in enumerate(rows) if len(cells) != len(rows[0])), 0)
    if not 0 < count <= _MOST_NAMES or not all(_heads(cells, rows[count:]) for cells in rows[:count]):
        return [*rows]
    return [*(widened(cells, rows[count:]) or cells for cells in rows[:count]), *rows[count:]]


def widened(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str] | None:
    """A header with a name for every cell of its rows, where it has one too many or too few; None for others.

    It has one too few where rows end with a delimiter, or begin with the number of the row as R writes them; one too
    many where it alone ends with a delimiter.

    Examples
    --------
    >>> widened(["t", "x"], [["0", "1", ""], ["1", "5", ""]]), widened(["t", "x"], [["1", "0", "5"], ["2", "1", "7"]])
    (['t', 'x', ''], ['', 't', 'x'])
    """
    width = len(rows[0]) if rows else 0
    if not width or any(len(cells) != width for cells in rows):
        return None
    if len(header) == width + 1 and not header[-1].strip():
        return [*header[:-1]]
    if len(header) != width - 1:
        return None
    if not any(cells[-1].strip() for cells in rows):
        return [*header, ""]
    return ["", *header] if len(rows) > 1 and counts([cells[0] for cells in rows]) else None


def counts(cells: Sequence[str]) -> bool:
    """Whether cells number the rows, from 0 or 1.

    Examples
    --------
    >>> counts(["1", "2", "3"]), counts(["1", "3"]), counts(["7", "8"])
    (True, False, False)
    """
    first = cells[0].strip()
    return first in ("0", "1") and [cell.strip() for cell in cells] == [
        str(number) for number in range(int(first), int(first) + len(cells))
    ]


def is_idle(cells: Sequence[str]) -> bool:
    """Whether a column without a name holds nothing, or only numbers the rows.

    Examples
    --------
    >>> is_idle(["", ""]), is_idle(["0", "1"]), is_idle(["0", "4"])
    (True, True, False)
    """
    return bool(cells) and (not any(cell.strip() for cell in cells) or (len(cells) > 1 and counts(cells)))


def check_commas(path: str, rows: Sequence[Sequence[str]], delimiter: str) -> None:
    """Refuse rows of whole numbers in which every second one looks like the decimals of the one before."""
    pairs = len(rows[0]) % 2 == 0 and len(rows) > LEAST_ROWS and len({len(cells) for cells in rows}) == 1
    if delimiter != "," or not pairs or not all(is_integer(cell) for cells in rows for cell in cells):
        return
    decimals = [[cells[at] for cells in rows] for at in range(1, len(rows[0]), 2)]
    if all(len(set(map(len, column))) == 1 and all(map(str.isdigit, column)) for column in decimals) and any(
        len(cell) > 1 and cell.startswith("0") for column in decimals for cell in column
    ):
        raise refusal(
            _READER,
            path,
            "separate numbers by another mark than it has for decimals",
            f"{','.join(rows[0])!r} as a row",
            "Give decimal=',' and delimiter=';' if commas stand before decimals, delimiter=',' if between numbers",
        )


def commented(
    above: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str, decimal: str
) -> tuple[str, ...] | None:
    """Labels in the last comment above the rows, where it has as many words as they have cells."""
    if not above or not above[-1].startswith(COMMENTS) or not any(_is_value(cell, decimal) for cell in rows[0]):
        return None
    told = [_cells_of(line, delimiter) for line in above[-2:]]
    # Units may stand below the names.
    names = told[0] if len(told[0]) == len(told[-1]) == len(rows[0]) and is_units_row(told[-1]) else told[-1]
    # Words among values are cells of the first row, unless it is the header itself.
    known = not any(_is_value(name, decimal) for name in names) and not find_header(rows, decimal)
    return tuple(names) if len(names) == len(rows[0]) and known else None


def _cells_of(comment: str, delimiter: str) -> list[str]:
    """Cells of a comment."""
    text = comment.lstrip("#%/").strip()
    return [cell.strip() for cell in next(csv.reader(separated([text], delimiter), delimiter=delimiter), [])]


def with_units(top: Top, rows: Sequence[Sequence[str]], decimal: str, asked: bool | None) -> Top:
    """The top of a table with the units below its header, where there are some."""
    cells = rows[1]
    words = any(cell.strip() for cell in cells) and not any(cell.strip() and _is_value(cell, decimal) for cell in cells)
    # Above more words, it is a row of names.
    last = len(rows) > 2 and any(cell.strip() and _is_value(cell, decimal) for cell in rows[2])
    if asked or (words and last and len(cells) == len(rows[0]) and is_units_row(cells)):
        return replace(top, below=1, units=plain_units(cells))
    return top


def separator(asked: str | None, above: Sequence[str]) -> str | None:
    """The separator that the user names, or a line for Excel; None to find it."""
    said = (line.strip('\r\n"')[4:] for line in above if line.lstrip('"').startswith("sep="))
    told = next(said, None) if asked is None else asked
    found = _SPELT.get(told or "", told) or None
    if found is not None and (len(found) != 1 or found in '\r\n"'):
        raise ValueError(f"csv: delimiter must be one character, or 'tab' or 'space'; got {asked!r}.")
    return found


def separated(lines: Iterable[str], delimiter: str) -> Iterator[str]:
    """Lines as the csv reader takes them: blanks between cells are one, and none are at the ends."""
    if delimiter != " ":
        yield from lines
        return
    for line in lines:
        yield " ".join(line.split()) + ("\n" if line.endswith(("\n", "\r")) else "")


def find_delimiter(lines: Sequence[str]) -> str:
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


def find_header(rows: Sequence[Sequence[str]], decimal: str) -> bool:
    """Tell a header: words over values, or words alone."""
    words = [not _is_value(cell, decimal) for cell in rows[0]]
    told = any(words) and not any(cell.strip() and _is_value(cell, decimal) for cell in rows[0])
    if told or len(rows) == 1:
        return told
    headed = any(word and _is_value(cell, decimal) for word, cell in zip(words, rows[1], strict=False))
    return headed or _numbers_columns(rows, decimal)


def _numbers_columns(rows: Sequence[Sequence[str]], decimal: str) -> bool:
    """Tell a header that numbers the columns from 0, as pandas writes it, perhaps beside an empty cell."""
    first = 0 if rows[0][0].strip() else 1
    names = [cell.strip() for cell in rows[0][first:]]
    if len(names) < 2 or names != [str(number) for number in range(len(names))]:
        return False
    below = [cells[first:] for cells in rows[1:]]
    return first == 1 or all(cell.strip() == "" or decimal in cell for cells in below for cell in cells)


def with_names(top: Top, rows: Sequence[Sequence[str]], decimal: str) -> Top:
    """The top of a table whose names stand in several rows, one below the other."""
    count = 1
    while count < min(_MOST_NAMES, len(rows) - 1) and _names_on(rows[count], rows[0], decimal):
        count += 1
    values = count > 1 and any(
        cell.strip() and _is_value(cell, decimal) for cell in rows[count] if len(rows[count]) == len(rows[0])
    )
    columns = [[part.strip() for part in parts if part.strip()] for parts in zip(*rows[:count], strict=True)]
    # A word that stands with the name of a clock may be a unit that is not known here.
    if not values or any(len(set(parts)) > 1 and any(map(clock_unit, parts)) for parts in columns):
        return top
    return replace(top, below=count - 1, names=tuple(" ".join(dict.fromkeys(parts)) for parts in columns))


def _names_on(cells: Sequence[str], header: Sequence[str], decimal: str) -> bool:
    """Whether a row of words, some of them empty, goes with a header."""
    words = [cell for cell in cells if cell.strip()]
    return len(cells) == len(header) and bool(words) and not any(_is_value(cell, decimal) for cell in words)


def _is_value(cell: str, decimal: str) -> bool:
    """Tell whether a cell can be a value: a number, nothing, or a date-time."""
    return is_number(cell, decimal=decimal) or looks_like_date(cell)
