"""Blocks of a table that pandas reads, many times faster than cell by cell, where that gives the same to the bit.

Throughout: a *block* is a text of whole lines; it is *plain* where each of its lines is one row, in which every
delimiter ends a cell. What is not plain, or holds anything that pandas might read in another way than
:func:`.digits.number` and :class:`.clock.Clock`, is left to them, and so is every error.
"""

import io
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .clock import Clock, Instants
from .digits import MISSING
from .table_layout import LONGEST_LINE, Layout

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

_DELIMITERS = ",;\t|"
# pandas takes half a millisecond for a block and some microseconds for a column of it.
_LEAST_ROWS, _MOST_CELLS = 64, 4096
_SURE_DIGITS = 15
# Spellings of a missing cell. True and False are numbers to pandas: their letters are looked for.
_MISSING = sorted({"".join(word) for cell in MISSING for word in itertools.product(*((a, a.upper()) for a in cell))})
_LETTERS = b"uUlL"
_OF_INTEGERS = np.isin(np.arange(256), list(b"0123456789+- \t\n"))
# Since 3.1 pandas rounds correctly by itself, and warns of the option that had it do so.
_EXACT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)
# Shapes of times: a 0 for every digit. Other ways to write them are left to the slow reader.
_ISO_SHAPE = re.compile(r"0000-00-00(?:[T ]00:00(?::00(?:[.,]0{1,9})?)?(?P<zone>Z|[+-]00:00)?)?")
_DIRECTIVES = {"Y": "0000", "m": "00", "d": "00", "H": "00", "M": "00", "S": "00", "f": "0{1,6}"}
_FORMAT = re.compile(r"(?:%[YmdHMS]|[-/.:, T])+(?:[-/.:, T]%f)?")
_FIRST, _LAST = np.datetime64("1700", "s"), np.datetime64("2200", "s")
_LONGEST_TIME, _MOST_SHAPES = 40, 16


@dataclass(frozen=True)
class Block:
    """What a block holds."""

    values: Floats
    """The channels' numbers."""
    instants: Instants | None
    """The clock."""
    integers: bool
    """Whether every cell of the channels is a whole number, where that was asked."""


@dataclass(frozen=True)
class _Plain:
    """The bytes of a plain block, and where its cells end."""

    text: bytes
    codes: Bytes
    ends: np.ndarray[Any, np.dtype[np.int64]]
    """Place of the delimiter or line end after each cell, shape (rows, cells)."""

    @property
    def begins(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Place of the first byte of each cell."""
        begins = np.empty_like(self.ends)
        begins.flat[0], begins.flat[1:] = 0, self.ends.flat[:-1] + 1
        return begins


def read_block(
    text: str, layout: Layout, columns: Sequence[int], clock_column: int | None, clock: Clock | None, *, integers: bool
) -> Block | None:
    r"""Read a block by pandas.

    Parameters
    ----------
    text
        The block.
    layout
        How it is written.
    columns
        Numbers of the columns that are channels.
    clock_column, clock
        Number of the clock's column, and how its cells are written; None for no clock.
    integers
        Whether to look if all cells of the channels are whole numbers.

    Returns
    -------
    What it holds; None where only the slow reader is sure to read it right.

    Examples
    --------
    >>> layout = Layout("utf-8", ",", ".", False, None, ("x", "y"))
    >>> read_block("1,2.5\n" * 64, layout, [1], None, None, integers=True).values[:2].tolist()
    [[2.5], [2.5]]
    >>> read_block("1,2.5\n" * 64 + "oops\n", layout, [1], None, None, integers=True) is None
    True
    """
    plain = _plain(text, layout) if _suits(layout) else None
    if plain is None:
        return None
    numbers = [*columns]
    if clock is not None and clock_column is not None and clock.kind == "seconds":
        numbers.append(clock_column)
    if _has_letters(plain, numbers):
        return None
    try:
        table = _parsed(plain, layout, numbers)
        instants = _clock(plain, layout, table, clock_column, clock)
    except ValueError:  # no number, or no time
        return None
    if clock is not None and instants is None:
        return None
    values = np.stack([table[column].to_numpy() for column in columns], axis=1)
    whole = _are_integers(plain, values, columns) if integers else False
    return None if whole is None else Block(values, instants, whole)


def is_simple(text: str, delimiter: str) -> bool:
    r"""Tell whether no row of a block can go on in the next one: quotes stand in pairs around cells of one line.

    Examples
    --------
    >>> is_simple('a,"b"\n', ","), is_simple('a,"b\n', ",")
    (True, False)
    """
    return '"' not in _unquoted(text, delimiter)


def _suits(layout: Layout) -> bool:
    """Whether pandas reads tables of this kind as we do; groups of digits it takes out unseen."""
    return layout.delimiter in _DELIMITERS and layout.thousands is None and layout.n_cells <= _MOST_CELLS


def _plain(text: str, layout: Layout) -> _Plain | None:
    """Where the cells of a block end; None where that is not certain."""
    text = _unquoted(text, layout.delimiter)
    text = text.replace("\r\n", "\n") if "\r" in text else text
    if any(mark in text for mark in '"\r\0\v\f') or text.startswith("\ufeff") or not text.endswith("\n"):
        return None
    try:
        whole = text.encode()
    except UnicodeEncodeError:
        return None
    codes = np.frombuffer(whole, np.uint8)
    is_line = codes == ord("\n")
    ends = np.flatnonzero(is_line | (codes == ord(layout.delimiter)))
    n_rows = int(is_line.sum())
    if n_rows < _LEAST_ROWS or ends.size != n_rows * layout.n_cells:
        return None
    plain = _Plain(whole, codes, ends.reshape(n_rows, layout.n_cells))
    return plain if _is_even(plain, layout, is_line) else None


def _is_even(plain: _Plain, layout: Layout, is_line: np.ndarray[Any, np.dtype[np.bool_]]) -> bool:
    """Whether every line is a row of so many cells, none is blank, and none too long."""
    ends = plain.ends
    if not is_line[ends[:, -1]].all() or np.diff(ends[:, -1], prepend=-1).max() > LONGEST_LINE:
        return False
    if layout.ends_empty and (ends[:, -1] != ends[:, -2] + 1).any():
        return False
    return layout.n_cells > 1 or bool((plain.begins < ends).all())


def _unquoted(text: str, delimiter: str) -> str:
    """A text without the quotes around cells that do not need them; other quotes stay."""
    if '"' not in text:
        return text
    mark = re.escape(delimiter)
    cell = re.compile(rf'(^|{mark}) *"([^"\r\n{mark}]*)"(?=[\r\n{mark}]|\Z)', re.MULTILINE)
    return cell.sub(r"\1\2", text)


def _are_in(plain: _Plain, places: np.ndarray[Any, np.dtype[np.int64]], columns: Sequence[int]) -> bool:
    """Whether any of some bytes lies in a cell of some columns."""
    found = np.searchsorted(plain.ends.ravel(), places) % plain.ends.shape[1]
    return bool(np.isin(found, columns).any())


def _has_letters(plain: _Plain, columns: Sequence[int]) -> bool:
    """Whether a number of some columns is written with letters of True or False."""
    if not any(letter in plain.text for letter in _LETTERS):
        return False
    return _are_in(plain, np.flatnonzero(np.isin(plain.codes, list(_LETTERS))), columns)


def _parsed(plain: _Plain, layout: Layout, columns: Sequence[int]) -> pd.DataFrame:
    """Columns as numbers; raises ``ValueError`` where a cell is not a number."""
    return pd.read_csv(
        io.BytesIO(plain.text),
        sep=layout.delimiter,
        decimal=layout.decimal,
        header=None,
        names=range(layout.n_cells),
        usecols=sorted(set(columns)),
        index_col=False,
        dtype=np.float64,
        engine="c",
        low_memory=False,
        quoting=3,
        skipinitialspace=True,
        skip_blank_lines=False,
        keep_default_na=False,
        na_values=[*_MISSING, *_as_spelt(layout.missing)],
        **_EXACT,
    )


def _as_spelt(words: Sequence[str]) -> list[str]:
    """Words in small letters, in capitals and with one; in other mixtures they are left to the slow reader."""
    return [spelt for word in words for spelt in (word, word.upper(), word.capitalize())]


def _are_integers(plain: _Plain, values: Floats, columns: Sequence[int]) -> bool | None:
    """Whether all cells of some columns are whole numbers that float64 holds exactly; None where they may not be."""
    if np.isnan(values).any():
        return False
    others = np.flatnonzero(~_OF_INTEGERS[plain.codes])
    others = others[plain.codes[others] != plain.codes[plain.ends[0, 0]]]
    if _are_in(plain, others, columns):
        return False
    widths = (plain.ends - plain.begins)[:, list(columns)]
    return True if widths.max() <= _SURE_DIGITS else None


def _clock(
    plain: _Plain, layout: Layout, table: pd.DataFrame, column: int | None, clock: Clock | None
) -> Instants | None:
    """Instants of the clock; None where the slow reader has to look."""
    if clock is None or column is None:
        return None
    if clock.kind == "seconds":
        seconds = table[column].to_numpy()
        return clock.in_seconds(seconds) if np.isfinite(seconds).all() else None
    cells = _cells(plain, column)
    shape = _shape_of(clock)
    if cells is None or shape is None or not _have_shape(cells, shape, clock.has_zone) or _leaps(cells, clock):
        return None
    text = np.where(cells == ord(","), ord("."), cells) if clock.format is None else cells
    return _instants(_strings(text).astype(str), clock)


def _instants(cells: np.ndarray[Any, Any], clock: Clock) -> Instants | None:
    """Date-times by pandas; None out of the years that nanoseconds reach with ease."""
    times = pd.to_datetime(cells, format=clock.format or "ISO8601", utc=clock.has_zone)
    instants = times.tz_localize(None).to_numpy()
    if not ((instants > _FIRST) & (instants < _LAST)).all():
        return None
    return instants.astype("datetime64[ns]")


def _cells(plain: _Plain, column: int) -> Bytes | None:
    """The bytes of a column's cells, shape (rows, longest), filled with 0; None where they are too long for times."""
    begins, ends = plain.begins[:, column], plain.ends[:, column]
    longest = int((ends - begins).max())
    if longest > _LONGEST_TIME:
        return None
    places = begins[:, None] + np.arange(longest)
    return np.where(places < ends[:, None], plain.codes[np.minimum(places, plain.codes.size - 1)], 0).astype(np.uint8)


def _strings(cells: Bytes) -> np.ndarray[Any, Any]:
    """Rows of bytes as byte strings."""
    return np.ascontiguousarray(cells).view(f"S{cells.shape[1]}").ravel()


def _have_shape(cells: Bytes, shape: re.Pattern[str], has_zone: bool) -> bool:
    """Whether every cell has the shape of a time, with a zone or without."""
    return all(
        (found := shape.fullmatch(one)) is not None and (found.groupdict().get("zone") is not None) == has_zone
        for one in _shapes(cells)
    )


def _shapes(cells: Bytes) -> Iterator[str]:
    """The different shapes of some cells; an empty one where there are too many."""
    if cells.shape[1] == 0:
        yield ""
        return
    shapes = np.where((cells >= ord("0")) & (cells <= ord("9")), ord("0"), cells)
    for _ in range(_MOST_SHAPES):
        yield bytes(shapes[0].astype(np.uint8)).rstrip(b"\0").decode("latin-1")
        shapes = shapes[(shapes != shapes[0]).any(axis=1)]
        if not len(shapes):
            return
    yield ""


def _shape_of(clock: Clock) -> re.Pattern[str] | None:
    """The shape of a clock's cells; None where pandas may read them in another way."""
    if clock.format is None:
        return _ISO_SHAPE
    if not _FORMAT.fullmatch(clock.format) or any(clock.format.count(f"%{each}") != 1 for each in "Ymd"):
        return None
    # The point is the only literal that means something else in a pattern.
    return re.compile(_filled(clock.format.replace(".", r"\.")))


def _filled(written: str) -> str:
    """A format with zeros in place of its directives."""
    return re.sub(r"%([YmdHMSf])", lambda found: _DIRECTIVES[found[1]], written)


def _leaps(cells: Bytes, clock: Clock) -> bool:
    """Whether a second is the sixtieth or later, which pandas takes for the next minute."""
    before, mark, _ = (clock.format or "").partition("%S")
    return bool(mark) and bool((cells[:, len(_filled(before))] >= ord("6")).any())
