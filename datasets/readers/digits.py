"""Cells of a table as numbers, and what their marks mean: ``1,234`` is 1.234 or 1234, by who wrote it.

Throughout: the *decimal mark* stands before the fraction; a *grouped* number has a mark before every three digits.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

# Nothing, as people, C libraries and spreadsheets write it.
MISSING = frozenset(
    (
        *("", "na", "n/a", "nan", "null", "none", "<na>", "nat", "nan(ind)", "-nan(ind)"),
        *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "#n/a", "#na", "#nv", "#div/0!", "#num!", "#value!"),
    )
)
# Beyond fifteen digits a whole number may not be exact as float64.
_INTEGER = re.compile(r"\s*[+-]?\d{1,15}\s*")
_DECIMAL = {
    ",": re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*"),
    ".": re.compile(r"\s*[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?\s*"),
}
_GROUPED = {mark: re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}(?:{re.escape(mark)}\d{{3}})+\s*") for mark in ",. '"}
# Whole numbers of which the groups are certain, with the other mark before a fraction.
_GROUPED_PARTS = {
    mark: re.compile(rf"\s*[+-]?\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+(?:[{fraction}]\d*)?(?:[eE][+-]?\d+)?\s*")
    for mark, fraction in {",": ".", ".": ",", " ": ".,", "'": ".,"}.items()
}
# Fortran writes double precision with a D.
_FORTRAN = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)[dD][+-]?\d+\s*")
_BARE = re.compile(r"\s*[+-]?[1-9]\d{0,2}\s*")
THOUSANDS = (",", ".", " ", "'")
# What typesetters put for a space, and for an apostrophe.
_SPELT = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'"})


def number(cell: str, *, decimal: str = ".", thousands: str | None = None, more: Sequence[str] = ()) -> float:
    """Read a cell as a number, NaN if it is missing; raises ``ValueError`` for anything else.

    Parameters
    ----------
    cell
        The text.
    decimal
        Decimal mark.
    thousands
        What groups digits by three; None for nothing.
    more
        What else stands for nothing, in small letters.

    Returns
    -------
    The number.

    Examples
    --------
    >>> number("-0,25", decimal=","), number(""), number("1e3"), number("1,234.5", thousands=",")
    (-0.25, nan, 1000.0, 1234.5)
    """
    if more and cell.strip().lower() in more:
        return float("nan")
    if thousands is not None:
        cell = _ungrouped(cell, thousands)
    if decimal != ".":
        if "." in cell:  # in such a table it may group thousands
            raise ValueError(cell)
        cell = cell.replace(decimal, ".")
    if "_" in cell:  # Python reads 1_000 as a thousand
        raise ValueError(cell)
    try:
        return float(cell)
    except ValueError:
        if cell.strip().lower() in MISSING:
            return float("nan")
        if _FORTRAN.fullmatch(cell):
            return float(cell.upper().replace("D", "E"))
        raise


def is_number(cell: str, *, decimal: str = ".", thousands: str | None = None, more: Sequence[str] = ()) -> bool:
    """Tell whether a cell is a number, or missing.

    Parameters
    ----------
    cell
        The text.
    decimal
        Decimal mark.
    thousands
        What groups digits by three; None for nothing.
    more
        What else stands for nothing, in small letters.

    Returns
    -------
    True where :func:`number` reads it.

    Examples
    --------
    >>> is_number("1,5", decimal=","), is_number("E5")
    (True, False)
    """
    try:
        number(cell, decimal=decimal, thousands=thousands, more=more)
    except ValueError:
        return False
    return True


def is_integer(cell: str) -> bool:
    """Tell whether a cell is a whole number that float64 holds exactly.

    Parameters
    ----------
    cell
        The text.

    Returns
    -------
    True for at most fifteen digits with or without a sign.

    Examples
    --------
    >>> is_integer("-12"), is_integer("12.0"), is_integer("")
    (True, False, False)
    """
    return _INTEGER.fullmatch(cell) is not None


def find_decimal(cells: Sequence[str], thousands: str | None = None) -> str:
    """Choose the comma where a cell has it as decimal mark and none has the point.

    Parameters
    ----------
    cells
        Of the first rows.
    thousands
        What groups digits, which cannot be the decimal mark.

    Examples
    --------
    >>> find_decimal(["time", "0,5"]), find_decimal(["0.5", "1,234"]), find_decimal(["1.234,5"], ".")
    (',', '.', ',')
    """
    if thousands in (",", "."):
        return "," if thousands == "." else "."
    if thousands is not None:
        cells = [cell.translate(_SPELT).strip().replace(thousands, "") for cell in cells]
    has_comma = any(map(_DECIMAL[","].fullmatch, cells))
    return "," if has_comma and not any(map(_DECIMAL["."].fullmatch, cells)) else "."


def grouping_mark(cell: str) -> str | None:
    """The mark that groups the digits of a cell, None where none does.

    Examples
    --------
    >>> grouping_mark("1,234.5"), grouping_mark("1 234"), grouping_mark("1.5")
    (',', ' ', None)
    """
    plain = cell.translate(_SPELT)
    return next((mark for mark in THOUSANDS if _GROUPED_PARTS[mark].fullmatch(plain)), None)


@dataclass
class Marks:
    """What the cells of a table tell of its decimal mark, as they are read.

    A table in which every number with a mark looks like ``1,234`` may mean thousands. It does not where one number
    has another count of decimals, or a leading zero.
    """

    decimal: str
    """The mark as it was found."""
    sure: bool = False
    """Whether a number was seen in which it can be nothing else."""
    grouped: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Line and cell of the first number that looks grouped, by column."""
    bare: set[int] = field(default_factory=set)
    """Columns with whole numbers below a thousand, as grouped numbers have them."""

    def look(self, lines: Iterable[int], rows: Iterable[Sequence[str]]) -> None:
        """Look at some rows."""
        if self.sure:
            return
        decimal, grouped = _DECIMAL[self.decimal], _GROUPED[self.decimal]
        for line, cells in zip(lines, rows, strict=True):
            for column, cell in enumerate(cells):
                if self.decimal not in cell:
                    if column not in self.bare and _BARE.fullmatch(cell):
                        self.bare.add(column)
                elif grouped.fullmatch(cell):
                    self.grouped.setdefault(column, (line, cell))
                elif decimal.fullmatch(cell):
                    self.sure = True
                    return

    def doubt(self, delimiter: str) -> tuple[int, int, str] | None:
        """Column, line and cell of a number that may be a thousand times as large; None where none is.

        A point is doubted only in tables with semicolons, as those are written where it groups digits, and beside
        whole numbers below a thousand; a comma always.
        """
        for column, (line, cell) in self.grouped.items():
            if not self.sure and (self.decimal == "," or delimiter == ";" or column in self.bare):
                return column, line, cell
        return None


def plain_mark(mark: str) -> str:
    """A mark as it is typed: typesetters have other spaces and apostrophes.

    Examples
    --------
    >>> plain_mark("\u202f"), plain_mark(",")
    (' ', ',')
    """
    return mark.translate(_SPELT)


def _ungrouped(cell: str, thousands: str) -> str:
    """A number without its groups; groups that are none of three digits are an error."""
    plain = cell.translate(_SPELT)
    if thousands not in plain.strip():
        return plain
    if not _GROUPED_PARTS[thousands].fullmatch(plain):
        raise ValueError(cell)
    return plain.strip().replace(thousands, "")
