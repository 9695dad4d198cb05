"""Where a table begins, what separates its cells, and whether it has a header and units: told from its first rows."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from .clock import looks_like_date
from .contract import refusal
from .digits import is_number
from .table_top import COMMENTS, Top, is_units_row, plain_units

_READER = "csv"
# A blank comes last: texts have blanks, too.
_DELIMITERS = (";", "\t", ",", "|", " ")
_SPELT = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}
# Cells of a preamble: a name and its value.
_NARROW = 2
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
    words = all(any(cell.strip() and not is_number(cell) for cell in cells) for cells in rows[:above])
    # A row of many words above values may be a header of another width.
    narrow = all(len(cells) <= _NARROW for cells in rows[:above])
    headed = above < len(rows) and not any(cell.strip() and _is_value(cell, ".") for cell in rows[above])
    told = words and (narrow or headed)
    return above if width > _NARROW - 1 and told and len(rows) - above >= LEAST_ROWS - 1 else 0


def commented(
    above: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str, decimal: str
) -> tuple[str, ...] | None:
    """Labels in the last comment above the rows, where it has as many words as they have cells."""
    if not above or not above[-1].startswith(COMMENTS) or not all(_is_value(cell, decimal) for cell in rows[0]):
        return None
    text = above[-1].lstrip("#%/").strip()
    names = [cell.strip() for cell in next(csv.reader(separated([text], delimiter), delimiter=delimiter), [])]
    return tuple(names) if len(names) == len(rows[0]) and not any(_is_value(name, decimal) for name in names) else None


def with_units(top: Top, rows: Sequence[Sequence[str]], decimal: str, asked: bool | None) -> Top:
    """The top of a table with the units below its header, where there are some."""
    cells = rows[1]
    words = any(cell.strip() for cell in cells) and not any(cell.strip() and _is_value(cell, decimal) for cell in cells)
    if asked or (words and len(rows) > 2 and len(cells) == len(rows[0]) and is_units_row(cells)):
        return replace(top, below=1, units=plain_units(cells))
    return top


def separator(asked: str | None, above: Sequence[str]) -> str | None:
    """The separator that the user names, or a line for Excel; None to find it."""
    told = next((line.strip()[4:] for line in above if line.startswith("sep=")), None) if asked is None else asked
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
    if all(words) or len(rows) == 1:
        return all(words)
    return any(word and _is_value(cell, decimal) for word, cell in zip(words, rows[1], strict=False))


def _is_value(cell: str, decimal: str) -> bool:
    """Tell whether a cell can be a value: a number, nothing, or a date-time."""
    return is_number(cell, decimal=decimal) or looks_like_date(cell)
