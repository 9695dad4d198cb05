"""Parquet and Feather files by pyarrow: their columns, and rows of them without the others.

Throughout: a *group* is a run of rows that is decoded at once, a row group of Parquet or a record batch of Feather.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .contract import refusal
from .libraries import library
from .sampled import Samples

READER = "arrow"
_COPY = "Copy it again, or export it again"


class Column(NamedTuple):
    """A column: name, ``kind`` (number, flag, instant, duration, text or other), type, and whether cells are empty.

    ``zoned``: instants are in UTC.
    """

    name: str
    kind: str
    dtype: np.dtype[Any]
    gappy: bool
    zoned: bool


class Layout(NamedTuple):
    """Columns of a file, and the rows at which its groups end."""

    columns: tuple[Column, ...]
    stops: tuple[int, ...]


@dataclass(frozen=True)
class Cells:
    """Some columns of a file, as (row, column) of one type."""

    path: str
    """The file."""
    parquet: bool
    """Whether it is Parquet."""
    columns: tuple[str, ...]
    """Names of the columns."""
    stops: tuple[int, ...]
    """Rows at which groups end."""
    dtype: np.dtype[Any]
    """Of what is handed out; instants are nanoseconds since 1970."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.stops[-1] if self.stops else 0, len(self.columns)

    def read(self, start: int, stop: int) -> Samples:
        """Rows from ``start`` to before ``stop``, from the groups that hold them."""
        answer = np.empty((stop - start, len(self.columns)), self.dtype)
        first = 0
        with _Opened(self.path, self.parquet) as file:
            for number, last in enumerate(self.stops):
                low, high = max(first, start), min(last, stop)
                if low < high:
                    table = file.group(number, self.columns).slice(low - first, high - low)
                    for place, name in enumerate(self.columns):
                        answer[low - start : high - start, place] = _numbers(table.column(name))
                first = last
        return answer


def read_words(path: str, names: tuple[str, ...], *, parquet: bool) -> dict[str, list[str]]:
    """Read columns of text whole; empty cells are empty texts.

    Parameters
    ----------
    path
        The file.
    names
        Of the columns.
    parquet
        Whether it is Parquet.
    """
    words: dict[str, list[str]] = {name: [] for name in names}
    with _Opened(path, parquet) as file:
        for number in range(len(file.lengths())):
            table = file.group(number, names)
            for name in names:
                words[name] += ["" if cell is None else str(cell) for cell in table.column(name).to_pylist()]
    return words


def read_layout(path: str, *, parquet: bool) -> Layout:
    """Read the schema of a file, and where its groups end.

    Parameters
    ----------
    path
        The file.
    parquet
        Whether it is Parquet.
    """
    with _Opened(path, parquet) as file:
        return Layout(tuple(file.columns()), tuple(int(stop) for stop in np.cumsum(file.lengths())))


class _Opened:
    """An open file, whose errors name it."""

    def __init__(self, path: str, parquet: bool) -> None:
        self.path, self.parquet = path, parquet
        self._arrow = library(READER, path, "pyarrow")
        self._of_format = library(READER, path, "pyarrow.parquet" if parquet else "pyarrow.ipc", "pyarrow")

    def __enter__(self) -> "_Opened":
        """Open it."""
        try:
            self._source = self._arrow.OSFile(self.path)
            opened = self._of_format.ParquetFile if self.parquet else self._of_format.open_file
            self._file = opened(self._source)
        except Exception as error:
            self.__exit__(type(error), error, None)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close it."""
        if (source := getattr(self, "_source", None)) is not None:
            source.close()
        if isinstance(error, Exception) and self.path not in str(error):
            said = " ".join(str(error).split())[:200] or type(error).__name__
            raise refusal(READER, self.path, "be a table that pyarrow can read", f"{said!r}", _COPY) from None

    def lengths(self) -> list[int]:
        """Rows of every group."""
        if self.parquet:
            meta = self._file.metadata
            return [meta.row_group(number).num_rows for number in range(meta.num_row_groups)]
        return [self._file.get_batch(number).num_rows for number in range(self._file.num_record_batches)]

    def group(self, number: int, columns: tuple[str, ...]) -> Any:
        """Columns of one group."""
        if self.parquet:
            return self._file.read_row_group(number, columns=list(columns))
        return self._arrow.Table.from_batches([self._file.get_batch(number)]).select(list(columns))

    def columns(self) -> list[Column]:
        """All columns."""
        schema = self._file.schema_arrow if self.parquet else self._file.schema
        if len(set(schema.names)) < len(schema.names):
            raise refusal(READER, self.path, "name every column once", f"{schema.names[:9]}", "Rename some")
        return [self._column(field, number) for number, field in enumerate(schema)]

    def _column(self, field: Any, number: int) -> Column:
        """One column."""
        types, kind = self._arrow.types, "other"
        if types.is_integer(field.type) or types.is_floating(field.type) or types.is_decimal(field.type):
            kind = "number"
        elif types.is_boolean(field.type):
            kind = "flag"
        elif types.is_timestamp(field.type) or types.is_date(field.type):
            kind = "instant"
        elif types.is_duration(field.type):
            kind = "duration"
        elif types.is_string(field.type) or types.is_large_string(field.type) or types.is_dictionary(field.type):
            kind = "text"
        dtype = np.dtype(np.uint8 if kind == "flag" else np.float64)
        if kind == "number" and not types.is_decimal(field.type):
            dtype = np.dtype(field.type.to_pandas_dtype())
        return Column(field.name, kind, dtype, self._gappy(number), bool(getattr(field.type, "tz", None)))

    def _gappy(self, number: int) -> bool:
        """Whether cells of a column may be empty; Parquet tells it in its statistics."""
        if not self.parquet:
            groups = range(self._file.num_record_batches)
            return any(self._file.get_batch(group).column(number).null_count for group in groups)
        meta = self._file.metadata
        if number >= meta.num_columns:
            return True
        found = [meta.row_group(group).column(number).statistics for group in range(meta.num_row_groups)]
        return any(each is None or not each.has_null_count or each.null_count for each in found)


def _numbers(column: Any) -> Samples:
    """Cells as numbers: empty ones NaN, instants nanoseconds."""
    values = column.to_numpy()
    if values.dtype.kind in "Mm":
        empty, ticks = np.isnat(values), values.astype(f"{values.dtype.kind}8[ns]").astype(np.int64)
        return np.where(empty, np.nan, ticks) if empty.any() else ticks
    return values.astype(np.float64) if values.dtype.kind == "O" else values
