"""The arithmetic of classic NetCDF: whether the sizes that the header declares agree with the file.

SciPy reads a file that was cut as far as it goes, or not at all, by chance. The header is a list of dimensions,
attributes and variables, each variable with the byte at which its values begin; *records* are slices along the
one dimension that grows, those of all variables side by side.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

_TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8}
# A variable's own count of bytes does not hold more.
_WRAPS = 2**32 - 4
_MOST_ITEMS, _MOST_BYTES, _MOST_DIMS = 100_000, 2**24, 32


class Variable3(NamedTuple):
    """One variable: name, shape with records left out, bytes of a value, where it begins, whether it has records."""

    name: str
    shape: tuple[int, ...]
    itemsize: int
    begin: int
    records: bool


class _DamagedError(ValueError):
    """What of the header cannot be."""


def is_netcdf3(path: Path) -> bool:
    r"""Whether a file is classic NetCDF, of 32-bit or 64-bit offsets.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.nc")
    >>> _ = path.write_bytes(b"CDF\x01")
    >>> is_netcdf3(path)
    True
    """
    with path.open("rb") as file:
        return file.read(4) in (b"CDF\x01", b"CDF\x02")


def check_netcdf3(path: Path) -> None:
    """Refuse a classic NetCDF file that is shorter than its header says, or whose header makes no sense.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    ValueError
        It was cut, or damaged.
    """
    held = os.path.getsize(path)
    try:
        with path.open("rb") as file:
            n_records, variables = _header(file)
    except _DamagedError as error:
        raise _unreadable(path, f"its header must be sound; got {error}") from None
    if n_records == 0xFFFFFFFF:  # a stream that nobody closed
        raise _unreadable(path, "its header must say how many records there are; got a stream that was never closed")
    expected = max((_end(variable, variables, n_records) for variable in variables), default=0)
    if expected > held:
        raise _unreadable(path, f"it must be {expected} bytes long for its header; got {held} (the file was cut short)")
    stride = _stride(variables)
    if any(variable.records for variable in variables) and held - expected >= max(stride, 4):
        got = f"{held}, room for {(held - expected) // max(stride, 1)} records more (its writer was stopped)"
        raise _unreadable(path, f"it must be {expected} bytes long for its {n_records} records; got {got}")


def _unreadable(path: Path, why: str) -> ValueError:
    """Build the error of a file that is not whole."""
    return ValueError(f"open_recording: {path} could not be read: {why}. Is it damaged? Copy it again.")


def _end(variable: Variable3, variables: list[Variable3], n_records: int) -> int:
    """Byte after the last value of a variable."""
    own = math.prod(variable.shape) * variable.itemsize
    if not variable.records:
        return variable.begin + own
    return variable.begin + (n_records - 1) * _stride(variables) + own if n_records else variable.begin


def _stride(variables: list[Variable3]) -> int:
    """Bytes from one record to the next."""
    together = [math.prod(other.shape) * other.itemsize for other in variables if other.records]
    # One variable alone is not padded.
    return together[0] if len(together) == 1 else sum(-(-size // 4) * 4 for size in together)


def _header(file: BinaryIO) -> tuple[int, list[Variable3]]:
    """Number of records, and the variables."""
    wide = file.read(4)[3:] == b"\x02"
    n_records = _integer(file)
    dims = []
    for _ in range(_count(file, 0x0A)):
        _text(file)
        dims.append(_integer(file))
    _skip_attributes(file)
    variables = []
    for _ in range(_count(file, 0x0B)):
        name = _text(file)
        numbers = [_integer(file) for _ in range(_few(_integer(file)))]
        if any(number >= len(dims) for number in numbers):
            raise _DamagedError(f"variable {name!r} along dimension {max(numbers)} of {len(dims)}")
        _skip_attributes(file)
        itemsize = _itemsize(_integer(file))
        claimed = _integer(file)
        begin = _integer(file, 8 if wide else 4)
        sizes = [dims[number] for number in numbers]
        records = bool(sizes) and sizes[0] == 0
        n_bytes = math.prod(sizes[records:]) * itemsize
        empty = records and not n_records and not claimed
        if not empty and claimed not in (n_bytes, -(-n_bytes // 4) * 4) and n_bytes < _WRAPS:
            raise _DamagedError(f"{claimed} bytes for variable {name!r}, whose dimensions make {n_bytes}")
        variables.append(Variable3(name, tuple(sizes[records:]), itemsize, begin, records))
    return n_records, variables


def _skip_attributes(file: BinaryIO) -> None:
    """Read over a list of attributes, whose sizes must be possible."""
    for _ in range(_count(file, 0x0C)):
        _text(file)
        n_bytes = _itemsize(_integer(file)) * _integer(file)
        _read(file, -(-n_bytes // 4) * 4)


def _count(file: BinaryIO, tag: int) -> int:
    """Length of a list, which begins with its tag, or with zeros where it is empty."""
    found, count = _integer(file), _integer(file)
    if found not in (0, tag) or (found == 0 and count):
        raise _DamagedError(f"the tag {found} where {tag} is due")
    if count > _MOST_ITEMS:
        raise _DamagedError(f"a list of {count} items")
    return count


def _few(count: int) -> int:
    """A number of dimensions that is possible."""
    if count > _MOST_DIMS:
        raise _DamagedError(f"a variable of {count} dimensions")
    return count


def _itemsize(number: int) -> int:
    """Bytes of a value, by the number of its type."""
    if number not in _TYPE_BYTES:
        raise _DamagedError(f"the type number {number}")
    return _TYPE_BYTES[number]


def _text(file: BinaryIO) -> str:
    """A name, padded to four bytes."""
    length = _integer(file)
    return _read(file, -(-length // 4) * 4)[:length].decode("utf-8", "replace")


def _integer(file: BinaryIO, n_bytes: int = 4) -> int:
    """A big-endian number."""
    return int.from_bytes(_read(file, n_bytes), "big")


def _read(file: BinaryIO, n_bytes: int) -> bytes:
    """So many bytes, which must be there."""
    if n_bytes > _MOST_BYTES:
        raise _DamagedError(f"{n_bytes} bytes of text in its header")
    found = file.read(n_bytes)
    if len(found) < n_bytes:
        raise _DamagedError(f"a file that ends within it, at byte {file.tell()}")
    return found
