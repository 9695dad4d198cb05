"""Variables of MATLAB files of both formats in one form: tables of numbers, lists for cells, dicts for structs.

Nothing of a file is executed: functions and objects in it are not loaded.
"""

import math
import os
import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from .contract import refusal
from .libraries import library
from .mat5_scan import scan_mat5

READER = "mat"
_COPY = "Save it again in MATLAB"
_NUMBERS = frozenset(
    ("double", "single", "logical", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
)
# Compressed data are at most so many times as large: more is made to exhaust the memory.
_MOST_EXPANSION, _LARGE = 1000, 2**26
_DEEPEST = 8

Array = np.ndarray[Any, np.dtype[Any]]


class Table(Protocol):
    """A table of numbers, with the ``shape`` that it has in MATLAB."""

    shape: tuple[int, ...]

    def array(self, turned: bool) -> "Array | TableOnDisk":
        """Its numbers, or what reads them; with dimensions the other way round if asked for."""


class Mat(Protocol):
    """A file."""

    def shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Kind (numbers, cells, struct, ...) and shape of every variable."""

    def variable(self, name: str) -> Any:
        """A table, or lists and dictionaries; with points before the fields of a struct."""


@dataclass(frozen=True)
class TableInMemory:
    """A table of version 5."""

    values: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """As in MATLAB."""
        return self.values.shape

    def array(self, turned: bool) -> Array:
        """The numbers."""
        return self.values.T if turned else self.values


class TableOnDisk(BackendArray):
    """A table of version 7.3, opened anew for every read; HDF5 holds the last dimension first.

    Parameters
    ----------
    path
        The file.
    name
        Of the dataset in it.
    shape
        As in MATLAB.
    dtype
        Of the numbers.
    turned
        Whether dimensions are handed out the other way round.
    """

    def __init__(
        self, path: str, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], turned: bool = False
    ) -> None:
        self.path, self.name, self.turned = path, name, turned
        self.shape, self.dtype = shape, dtype

    def array(self, turned: bool) -> "TableOnDisk":
        """What reads it."""
        return TableOnDisk(self.path, self.name, self.shape[::-1] if turned else self.shape, self.dtype, turned)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read one range."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        """Integers and slices of positive step, as HDF5 takes them."""
        with library(READER, self.path, "h5py").File(self.path, "r") as file:
            if self.turned:
                return np.asarray(file[self.name][key])
            return np.asarray(file[self.name][key[::-1]]).T


def open_mat(path: str, *, seven: bool) -> Mat:
    """Open a file of either format.

    Parameters
    ----------
    path
        The file.
    seven
        Whether it is HDF5.
    """
    return _Seven(path) if seven else _Five(path)


class _Five:
    """A file of version 5, by SciPy."""

    def __init__(self, path: str) -> None:
        self.path = path

    def shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """By the headers of its variables."""
        import scipy.io  # noqa: PLC0415 - slow

        scan_mat5(READER, self.path, "")
        with _Named(self.path, "be read"):
            found = scipy.io.whosmat(self.path)
        return {name: (_kind(kind), tuple(map(int, shape))) for name, shape, kind in found}

    def variable(self, name: str) -> Any:
        """Read one variable whole."""
        import scipy.io  # noqa: PLC0415 - slow

        top, *fields = name.split(".")
        shapes = self.shapes()
        if top not in shapes:
            raise refusal(READER, self.path, f"have the variable {name!r}", f"{[*shapes]}", "Name one of them")
        n_bytes = 8 * math.prod(shapes[top][1])
        if n_bytes > max(_LARGE, _MOST_EXPANSION * os.path.getsize(self.path)):
            got = f"{n_bytes} bytes declared for {top!r}"
            raise refusal(READER, self.path, "hold the data that it declares", got, _COPY)
        scan_mat5(READER, self.path, top)
        with _Named(self.path, f"hold {top!r}"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sparse matrices may be of either kind
            found = scipy.io.loadmat(self.path, variable_names=[top])[top]
        plain = _plain(found, 0)
        for field in fields:
            plain = _field(self.path, plain, field, name)
        return _as_table(self.path, plain, name)


class _Seven:
    """A file of version 7.3, by h5py."""

    def __init__(self, path: str) -> None:
        self.path = path

    def _file(self) -> Any:
        """The open file."""
        return library(READER, self.path, "h5py").File(self.path, "r")

    def shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """By the attributes of its datasets."""
        with _Named(self.path, "be read"), self._file() as file:
            return {
                name: (_class_of(item), tuple(item.shape[::-1]) if hasattr(item, "shape") else (1, 1))
                for name, item in file.items()
                if not name.startswith("#")
            }

    def variable(self, name: str) -> Any:
        """A table that is read when it is used; or cells, read now."""
        with _Named(self.path, f"hold {name!r}"), self._file() as file:
            item = file
            for part in name.split("."):
                # Links could lead to other files.
                if not hasattr(item, "keys") or not _held_here(item, part):
                    known = [key for key in getattr(item, "keys", list)() if not key.startswith("#")]
                    raise refusal(READER, self.path, f"have the variable {name!r}", f"{known}", "Name one of them")
                item = item[part]
            if _class_of(item) != "numbers":
                return _as_table(self.path, _read_seven(file, item, 0), name)
            if item.dtype.kind not in "iuf":
                raise _no_numbers(self.path, name, f"dtype {item.dtype}")
            return TableOnDisk(self.path, item.name, tuple(item.shape[::-1]), item.dtype.newbyteorder("="))


class _Named:
    """Errors of the libraries name the file; those of this project stay."""

    def __init__(self, path: str, must: str) -> None:
        self.path, self.must = path, must

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, ImportError) and self.path not in str(error):
            said = " ".join(str(error).split())[:200] or type(error).__name__
            raise refusal(READER, self.path, self.must, f"{said!r}: is it damaged?", _COPY) from None


def _kind(name: str) -> str:
    """What a class of MATLAB is here."""
    return "numbers" if name in _NUMBERS or name == "sparse" else {"cell": "cells"}.get(name, name)


def _class_of(item: Any) -> str:
    """What an object of HDF5 is in MATLAB."""
    if hasattr(item, "keys"):
        return "sparse" if "MATLAB_sparse" in item.attrs else "struct"
    name = item.attrs.get("MATLAB_class", b"double")
    return _kind(name.decode() if isinstance(name, bytes) else str(name))


def _held_here(group: Any, name: str) -> bool:
    """Whether a group itself holds an object of this name."""
    link = group.get(name, getlink=True) if name in group and not name.startswith("#") else None
    return type(link).__name__ == "HardLink"


def _read_seven(file: Any, item: Any, depth: int) -> Any:
    """Cells and structs of version 7.3 as lists and dictionaries."""
    if depth > _DEEPEST:
        return []
    if hasattr(item, "keys"):
        return {name: _read_seven(file, item[name], depth + 1) for name in item}
    if "MATLAB_empty" in item.attrs:
        return np.zeros((0, 0))
    if item.dtype.kind == "O":
        return [
            _read_seven(file, file[reference], depth + 1) for reference in np.asarray(item[()]).ravel() if reference
        ]
    return np.asarray(item[()]).T


def _plain(item: Any, depth: int) -> Any:
    """What SciPy makes of cells and structs, as lists and dictionaries."""
    if not isinstance(item, np.ndarray):
        return item
    if item.dtype.names:
        found = [{name: _plain(one[name], depth + 1) for name in item.dtype.names} for one in item.ravel()]
        return found[0] if len(found) == 1 else found
    if item.dtype.kind == "O":
        if depth > _DEEPEST:
            return []
        rows = item if min(item.shape) > 1 else item.ravel()
        return [_plain(one, depth + 1) for one in rows]
    return item


def _field(path: str, item: Any, field: str, name: str) -> Any:
    """A field of a struct."""
    if not isinstance(item, dict) or field not in item:
        known = [*item] if isinstance(item, dict) else "no struct"
        raise refusal(READER, path, f"have the variable {name!r}", f"{known}", "Name a field of the struct")
    return item[field]


def _as_table(path: str, item: Any, name: str) -> Any:
    """Numbers as a table; cells and structs as they are."""
    if isinstance(item, list | dict):
        return item
    if hasattr(item, "toarray"):
        if 8 * math.prod(item.shape) > _MOST_EXPANSION * _LARGE / 100:
            raise _no_numbers(path, name, f"a sparse matrix of {item.shape}")
        item = item.toarray()
    if not isinstance(item, np.ndarray) or item.dtype.kind not in "iufb":
        raise _no_numbers(path, name, f"{getattr(item, 'dtype', type(item).__name__)}")
    native = np.uint8 if item.dtype.kind == "b" else item.dtype.newbyteorder("=")
    return TableInMemory(item.astype(native, copy=False))


def _no_numbers(path: str, name: str, got: str) -> ValueError:
    """Build the error of a variable that is no recording."""
    return refusal(READER, path, f"hold real numbers in {name!r}", got, "Choose another with variable=")
