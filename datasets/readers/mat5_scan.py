"""A look at a MATLAB 5 file before SciPy reads it: damage in its structure would end the process.

Throughout: an *element* is a type, a number of bytes and so many bytes, of which a *matrix* holds others.
"""

import math
import os
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .contract import refusal

_COPY = "Copy it again, or save it again in MATLAB"
_MATRIX, _COMPRESSED = 14, 15
# Bytes of a number of each type.
_WIDTHS = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 16: 1, 17: 2, 18: 4}
_REAL = (1, 2, 3, 4, 5, 6, 7, 9, 12, 13)
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE, _FUNCTION, _OPAQUE = 1, 2, 3, 4, 5, 16, 17
_DEEPEST, _MOST_DIMS, _HEAD = 24, 32, 65_536
_MOST_EXPANSION, _LARGE = 1000, 2**26


class _Element(NamedTuple):
    """Type, and where its bytes begin, end, and what follows."""

    kind: int
    start: int
    stop: int
    after: int


class _DamagedError(Exception):
    """What is wrong."""


def scan_mat5(reader: str, path: str, variable: str | None = None) -> None:
    """Refuse a file whose structure does not add up.

    Parameters
    ----------
    reader
        Short name of the reader, for the error.
    path
        The file.
    variable
        The one that is to be read; the heads alone of the others are looked at. None looks at all of each.

    Raises
    ------
    ValueError
        It is damaged, or would grow beyond all measure.
    """
    try:
        for raw, order, whole in _variables(path):
            name = _name(raw, order)
            if variable is None or name == variable:
                _Walk(whole(), order).matrix(0, 0)
    except (_DamagedError, zlib.error, struct.error, UnicodeDecodeError) as error:
        said = " ".join(str(error).split()) or "another structure"
        raise refusal(reader, path, "be a MATLAB file that adds up", said, _COPY) from None


class _Lazy(NamedTuple):
    """Bytes of a variable: a part of a file, compressed or not."""

    path: str
    start: int
    stop: int
    compressed: bool

    def __call__(self) -> bytes:
        """All of them."""
        with open(self.path, "rb") as file:
            file.seek(self.start)
            raw = file.read(self.stop - self.start)
        if len(raw) < self.stop - self.start:
            raise _DamagedError("a variable that is cut short")
        if not self.compressed:
            return raw
        most = max(_LARGE, _MOST_EXPANSION * len(raw))
        opened = zlib.decompressobj()
        plain = opened.decompress(raw, most)
        if not opened.eof:
            raise _DamagedError("compressed data that are cut short, or grow beyond all measure")
        return plain

    def head(self) -> bytes:
        """The first of them."""
        with open(self.path, "rb") as file:
            file.seek(self.start)
            raw = file.read(min(self.stop - self.start, _HEAD))
        return zlib.decompressobj().decompress(raw, _HEAD) if self.compressed else raw


def _variables(path: str) -> Iterator[tuple[bytes, str, _Lazy]]:
    """The first bytes of every variable, their order, and what reads all of it."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        top = file.read(128)
        order = {b"IM": "<", b"MI": ">"}.get(top[126:128])
        if order is None:
            raise _DamagedError("a header without a mark of its byte order")
        at = 128
        while at + 8 <= size:
            file.seek(at)
            kind, n_bytes = struct.unpack(order + "II", file.read(8))
            if kind not in (_MATRIX, _COMPRESSED) or at + 8 + n_bytes > size:
                raise _DamagedError(f"an element of type {kind} and {n_bytes} bytes at byte {at} of {size}")
            # What is compressed has its own tag within.
            inner = _Lazy(path, at + (8 if kind == _COMPRESSED else 0), at + 8 + n_bytes, kind == _COMPRESSED)
            yield inner.head(), order, inner
            at += 8 + n_bytes


def _name(head: bytes, order: str) -> str:
    """The name of a variable, whose flags and dimensions are looked at."""
    walk = _Walk(head, order)
    kind, n_bytes = struct.unpack_from(order + "II", head, 0)
    if kind != _MATRIX:
        raise _DamagedError(f"a variable of type {kind}")
    if not n_bytes:
        return ""
    *_, name = walk.top(8, len(head))
    return head[name.start : name.stop].decode("latin-1")


class _Walk:
    """The bytes of a variable, looked at from matrix to matrix."""

    def __init__(self, raw: bytes, order: str) -> None:
        self.raw, self.order = raw, order

    def element(self, at: int, stop: int) -> _Element:
        """One element, which must lie before ``stop``."""
        if at + 8 > stop:
            raise _DamagedError("an element beyond the end of another")
        kind, n_bytes = struct.unpack_from(self.order + "II", self.raw, at)
        if kind >> 16:  # a small one
            kind, n_bytes = kind & 0xFFFF, kind >> 16
            found = _Element(kind, at + 4, at + 4 + n_bytes, at + 8)
            fits = n_bytes <= 4
        else:
            end = at + 8 + n_bytes
            found = _Element(kind, at + 8, end, end + (-end) % 8 if kind != _MATRIX else end)
            fits = end <= stop
        if not fits or (kind not in _WIDTHS and kind != _MATRIX):
            raise _DamagedError(f"an element of type {kind} and {n_bytes} bytes")
        return found

    def numbers(self, element: _Element, kinds: tuple[int, ...] | None = None) -> int:
        """How many numbers an element holds."""
        width = _WIDTHS.get(element.kind)
        if width is None or (kinds and element.kind not in kinds) or (element.stop - element.start) % width:
            raise _DamagedError(f"an element of type {element.kind} where numbers are due")
        return (element.stop - element.start) // width

    def top(self, at: int, stop: int) -> tuple[int, bool, list[int], _Element]:
        """Class, whether complex, and dimensions of a matrix, and the element of its name."""
        flags = self.element(at, stop)
        if flags.kind != 6 or flags.stop - flags.start != 8:
            raise _DamagedError("a matrix without flags")
        (bits,) = struct.unpack_from(self.order + "I", self.raw, flags.start)
        if bits & 0xFF == _OPAQUE:
            return _OPAQUE, False, [], self.element(flags.after, stop)
        shape = self.element(flags.after, stop)
        n_dims = self.numbers(shape, (5, 6))
        dims = list(struct.unpack_from(f"{self.order}{n_dims}i", self.raw, shape.start))
        if not 2 <= n_dims <= _MOST_DIMS or min(dims) < 0:
            raise _DamagedError(f"a matrix of the shape {dims[:9]}")
        name = self.element(shape.after, stop)
        self.numbers(name, (1, 2, 16))
        return bits & 0xFF, bool(bits & 0x800), dims, name

    def matrix(self, at: int, depth: int) -> int:
        """Look at a matrix and at all within; where it ends."""
        whole = self.element(at, len(self.raw))
        if whole.kind != _MATRIX or depth > _DEEPEST:
            raise _DamagedError(f"an element of type {whole.kind} where a matrix is due, {depth} deep")
        if whole.start == whole.stop:
            return whole.stop
        kind, is_complex, dims, name = self.top(whole.start, whole.stop)
        at, n = name.after, math.prod(dims)
        if kind in (_CELL, _STRUCT, _OBJECT):
            fields = 1 if kind == _CELL else None
            if kind == _OBJECT:
                at = self.element(at, whole.stop).after
            if fields is None:
                fields, at = self.fields(at, whole.stop)
            at = self.matrices(at, n * fields, whole.stop, depth)
        elif kind == _SPARSE:
            at = self.sparse(at, dims, whole.stop, is_complex)
        elif kind in (_FUNCTION, _OPAQUE):
            at = self.anything(at, whole.stop, depth)
        elif kind == _CHAR:
            at = self.plain(at, None, whole.stop)
        elif 6 <= kind <= 15:
            at = self.plain(at, n, whole.stop)
            at = self.plain(at, n, whole.stop) if is_complex else at
        else:
            raise _DamagedError(f"a matrix of class {kind}")
        if at - whole.stop > 7:
            raise _DamagedError("a matrix that ends before its numbers do")
        return whole.stop

    def plain(self, at: int, count: int | None, stop: int) -> int:
        """Look at numbers, of which there must be so many."""
        data = self.element(at, stop)
        found = self.numbers(data, None if count is None else _REAL)
        if count not in (None, found):
            raise _DamagedError(f"{found} numbers for a matrix of {count}")
        return data.after

    def matrices(self, at: int, count: int, stop: int, depth: int) -> int:
        """Look at so many matrices."""
        if count * 8 > stop - at:
            raise _DamagedError(f"{count} cells in {stop - at} bytes")
        for _ in range(count):
            if self.element(at, stop).stop > stop:
                raise _DamagedError("a cell beyond the end of the others")
            at = self.matrix(at, depth + 1)
        return at

    def fields(self, at: int, stop: int) -> tuple[int, int]:
        """How many fields a struct has, and what follows their names."""
        length = self.element(at, stop)
        if self.numbers(length, (5, 6)) != 1:
            raise _DamagedError("a struct without the length of its names")
        (width,) = struct.unpack_from(self.order + "i", self.raw, length.start)
        names = self.element(length.after, stop)
        n_bytes = self.numbers(names, (1,))
        if not 1 <= width <= 4096 or n_bytes % width:
            raise _DamagedError(f"names of {width} bytes in {n_bytes}")
        return n_bytes // width, names.after

    def sparse(self, at: int, dims: list[int], stop: int, is_complex: bool) -> int:
        """Look at the places of a sparse matrix."""
        rows = self.element(at, stop)
        ends = self.element(rows.after, stop)
        data = self.element(ends.after, stop)
        n_rows, n_ends = self.numbers(rows, (5, 6)), self.numbers(ends, (5, 6))
        n = self.parts(data)
        places = np.frombuffer(self.raw, self.order + "i4", n_rows, rows.start)
        steps = np.frombuffer(self.raw, self.order + "i4", n_ends, ends.start)
        fits = len(dims) == 2 and n_ends == dims[1] + 1 and not steps[0] and (np.diff(steps) >= 0).all()
        used = places[: steps[-1]] if fits else places
        if not fits or steps[-1] > min(n, n_rows) or (used < 0).any() or (used >= dims[0]).any():
            raise _DamagedError("places beyond those of a sparse matrix")
        if not is_complex:
            return data.after
        other = self.element(data.after, stop)
        if self.parts(other) != n:
            raise _DamagedError("a sparse matrix of unequal parts")
        return other.after

    def parts(self, data: _Element) -> int:
        """How many numbers of a sparse matrix there are; flags are bytes, whatever their type says."""
        if data.kind not in _REAL:
            raise _DamagedError(f"an element of type {data.kind} where numbers are due")
        n_bytes, width = data.stop - data.start, _WIDTHS[data.kind]
        return n_bytes if n_bytes % width else n_bytes // width

    def anything(self, at: int, stop: int, depth: int) -> int:
        """Look at elements up to an end, for functions and objects."""
        while at + 8 <= stop:
            element = self.element(at, stop)
            at = self.matrix(at, depth + 1) if element.kind == _MATRIX else element.after
        return at
