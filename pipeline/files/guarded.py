"""Variables of a recording whose every read looks at the file first: it may have been changed, or cut, since."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from ..stores.address import Place
from .mapped import release
from .ordinary import refusal
from .plain import PlainRows, Span
from .plain_places import plain_rows
from .stored import Stored, check_channels, check_stored

MOST_INDEXED = 2**22
"""A coordinate of more values gets no index, which would hold it in memory: it is read when it is used."""
# Bytes of a chunk of what a file does not store in chunks.
_RUN_BYTES = 2**24


def guarded(path: Place, dataset: xr.Dataset, stored: Mapping[str, Stored], *, quiet: bool) -> xr.Dataset:
    """The variables of a recording, whose every read looks at the file first, and coordinates with indexes where short.

    Parameters
    ----------
    path
        Where it comes from.
    dataset
        As :func:`open_lazily` gave it, without what is not used.
    stored
        What its arrays store.
    quiet
        Do not warn of chunks that are missing.

    Raises
    ------
    ValueError
        Hardly anything of what it declares is stored.
    """
    for dim, n in dataset.sizes.items():
        if dim != "time":
            check_channels(path, n)
    used = [str(name) for name in dataset.variables]
    check_stored(path, [(name, stored[name]) for name in used if name in stored], quiet=quiet)
    mark = _Mark.of(path)
    short, lazy = {}, {}
    for name in used:
        variable = dataset[name].variable
        if name in dataset.xindexes:
            continue
        if name in dataset.dims and variable.size <= MOST_INDEXED:
            short[name] = _read_now(path, name, variable)
        else:
            lazy[name] = _watched(mark, name, variable)
    series = {name: lazy.pop(name) for name in used if name in dataset.data_vars}
    lazy = {name: variable.chunk(_preferred(variable)) for name, variable in lazy.items()}
    return dataset.assign(series).assign_coords(short).assign_coords(xr.Coordinates(lazy, indexes={}))


def _read_now(path: Place, name: str, variable: xr.Variable) -> xr.Variable:
    """A short coordinate in memory."""
    with _Named(path, name):
        return variable.load()


def _watched(mark: _Mark, name: str, variable: xr.Variable) -> xr.Variable:
    """A lazy variable that says what it could not read."""
    if isinstance(variable._data, np.ndarray):
        return variable
    array = indexing.LazilyIndexedArray(Guarded(mark, name, variable))
    return xr.Variable(variable.dims, array, variable.attrs, variable.encoding)


def _preferred(variable: xr.Variable) -> dict[Hashable, Any]:
    """Chunks as the file has them; of a file without chunks, runs of about 16 MB along the first dimension."""
    preferred = variable.encoding.get("preferred_chunks", {})
    whole = {dim: preferred.get(dim, n) for dim, n in variable.sizes.items()}
    first = next(iter(whole), None)
    if first is not None and first not in preferred:
        row_bytes = max(1, variable.dtype.itemsize * variable.size // max(1, variable.shape[0]))
        whole[first] = max(1, min(variable.shape[0], _RUN_BYTES // row_bytes))
    return whole


class _Mark:
    """Which file it was, when it was opened."""

    def __init__(self, path: str, found: os.stat_result | None) -> None:
        self.path, self.found = path, found

    @classmethod
    def of(cls, path: Place) -> _Mark:
        """The mark of a file or a folder; an address has none."""
        return cls(os.path.abspath(path), os.stat(path)) if isinstance(path, Path) else cls(str(path), None)

    def check(self) -> None:
        """Refuse a file that is not what was opened: a memory map of one that shrank ends the process."""
        if self.found is None:
            return
        try:
            now = os.stat(self.path)
        except OSError as error:
            raise refusal(
                self.path, "stay in place while it is read", error.strerror or "an error", "Restore it"
            ) from None
        if os.path.isdir(self.path):
            return  # the size of a folder says nothing
        if now.st_size < self.found.st_size:
            got = f"{now.st_size} bytes of {self.found.st_size}"
            raise refusal(self.path, "not shrink while it is read", got, "Restore it, and open it again")
        if now.st_ino != self.found.st_ino and now.st_mtime_ns != self.found.st_mtime_ns:
            got = "another file in its place"
            raise refusal(self.path, "stay in place while it is read", got, "Open it again")


class _Named:
    """Errors of reading name the file and the variable."""

    def __init__(self, path: str | Place, name: str, where: str = "") -> None:
        self.path, self.name, self.where = str(path), name, where

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and self.path not in str(error):
            said = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(
                f"open_recording: {self.path}: {self.name!r}{self.where} could not be read: {said.rstrip('.')}. "
                "It is damaged, or was changed while it was read; copy it again."
            ) from None


class Guarded(BackendArray):
    """An array of a file, which is looked at before every read.

    Parameters
    ----------
    mark
        Which file it was.
    name
        Of the variable.
    variable
        As xarray opened it, lazily.
    """

    def __init__(self, mark: _Mark, name: str, variable: xr.Variable) -> None:
        self.mark, self.name, self.variable = mark, name, variable
        self.shape, self.dtype = variable.shape, variable.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read one range."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray[Any, np.dtype[Any]]:
        """Read through xarray, which decodes."""
        rows = range(self.shape[0])[key[0]] if key and isinstance(key[0], slice) else range(0)
        where = f" in {rows[0]} .. {rows[-1]}" if rows else ""
        with _Named(self.mark.path, self.name, where):
            self.mark.check()
            values = np.asarray(self.variable[key].values)
            release(self.variable)
            return values


class GuardedRows:
    """Rows that need no library, of files which are looked at before every read.

    Parameters
    ----------
    mark
        Which file it was.
    name
        Of the variable.
    rows
        Where they lie.
    """

    def __init__(self, mark: _Mark, name: str, rows: PlainRows) -> None:
        self.mark, self.name, self.rows, self.scale = mark, name, rows, rows.scale
        self.itemsize = rows.itemsize
        self.row_bytes = rows.itemsize * math.prod(rows.shape[1:])

    def pieces(self, spans: Sequence[Span], *, scaled: bool = True) -> Iterator[np.ndarray[Any, np.dtype[Any]] | None]:
        """Rows of some spans, each in the room of the one before; None where a library has to read them."""
        where = f" in {spans[0][0]} .. {spans[-1][1] - 1}"
        with _Named(self.mark.path, self.name, where):
            self.mark.check()
            made = self.rows.pieces(spans, scaled=scaled)
        for _ in spans:
            with _Named(self.mark.path, self.name, where):
                piece = next(made)
            yield piece


def rows_of_file(path: Place, variable: xr.Variable) -> GuardedRows | None:
    """Rows of a variable of :func:`guarded`, along its first dimension, if they need no library.

    Parameters
    ----------
    path
        Where it comes from.
    variable
        Of the dataset.

    Examples
    --------
    >>> rows_of_file(Path("a.nc"), xr.Variable("time", [1.0])) is None
    True
    """
    lazy = variable._data
    array = lazy.array if isinstance(lazy, indexing.LazilyIndexedArray) else None
    if not isinstance(array, Guarded):
        return None
    found = plain_rows(path, array.variable)
    return None if found is None else GuardedRows(array.mark, array.name, found)
