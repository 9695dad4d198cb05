"""Arrays that lie in files as they would in memory: their rows are read straight into a buffer, without a library.

Libraries copy such rows several times, a call for every few of them costs as much again, and nothing is computed
meanwhile. Files that are coded as a whole are decoded first (``coded``). Arrays that are stored otherwise, or of which
a part is missing, are left to their libraries.
"""

from __future__ import annotations

import io
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .coded import DECODED

Array = NDArray[Any]
Span = tuple[int, int]

# On Windows a file that is open can be neither deleted nor replaced: there it is closed after every read.
_STAYS_OPEN = os.name == "posix"
# Bytes that are left out, or read again where frames overlap, between what one task reads and the next.
_NEAR = 2**18


class Lying(NamedTuple):
    """Where the rows of an array lie.

    ``before`` and ``after`` are around the number of a file, where there are several (``after`` is None for one), each
    of which holds ``rows`` and nothing else; ``offset``: bytes before the first row; ``dtype``: of the numbers, with
    their byte order; ``codec``: decodes such files, None where the numbers lie in them as they are.
    """

    before: str
    after: str | None
    rows: int
    offset: int
    dtype: np.dtype[Any]
    codec: Any = None

    def path(self, number: int) -> str:
        """One of the files."""
        return self.before if self.after is None else f"{self.before}{number}{self.after}"


@dataclass(frozen=True)
class Fixed:
    """An array that lies where it was found when its file was opened, until the file is written to."""

    found: Lying
    written: tuple[int, int] | None = None
    """As :func:`last_written` says of the file; None for one whose arrays stay where they are."""

    def __call__(self) -> Lying | None:
        """Where it lies; None where it may have moved."""
        moved = self.written is not None and self.written != last_written(self.found.before)
        return None if moved else self.found


def last_written(path: str) -> tuple[int, int]:
    """Size of a file, and when it was written to."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


class PlainRows:
    """Rows of an array that lies in files as it is; it can be pickled.

    Parameters
    ----------
    shape, dtype
        Of the array as it is handed out, scaled.
    lying
        Says where it lies, each time that it is read; None where a library has to read it.
    scale
        What the numbers in the file are multiplied by, a power of two.
    itemsize
        Bytes of a number in the file, where they are not those of ``dtype``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(np.arange(6, dtype=">i2").tobytes())
    ...     file.flush()
    ...     where = Fixed(Lying(file.name, None, 3, 0, np.dtype(">i2")))
    ...     PlainRows((3, 2), np.dtype("i2"), where).read(1, 3)
    array([[2, 3],
           [4, 5]], dtype=int16)
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        lying: Callable[[], Lying | None],
        scale: float = 1.0,
        itemsize: int | None = None,
    ) -> None:
        self.shape, self.dtype, self.lying, self.scale = shape, dtype, lying, scale
        self.itemsize = itemsize or dtype.itemsize

    def read(self, start: int, stop: int) -> Array | None:
        """Some rows; None where a library has to read them."""
        return next(self.pieces([(start, stop)]))

    def pieces(self, spans: Sequence[Span], *, scaled: bool = True) -> Iterator[Array | None]:
        """Rows of some spans, as `read`, each in the room of the one before; as they are stored, if not scaled."""
        lies = self.lying()
        if lies is None:
            yield from (None for _ in spans)
            return
        room = np.empty((max(stop - start for start, stop in spans), *self.shape[1:]), lies.dtype)
        scale = self.scale if scaled else 1.0
        dtype = self.dtype if scaled or self.scale == 1 else lies.dtype.newbyteorder("=")
        made = room if scale == 1 and lies.dtype == dtype else np.empty(room.shape, dtype)
        _ask_for(lies, spans[0][0], spans[-1][1], self._row_bytes(lies))
        for start, stop in spans:
            own, out = room[: stop - start], made[: stop - start]
            yield _decoded(own, scale, out) if _read(lies, start, own, self._row_bytes(lies)) else None

    def _row_bytes(self, lies: Lying) -> int:
        """Bytes of a row as it is stored."""
        return lies.dtype.itemsize * math.prod(self.shape[1:])


def _decoded(stored: Array, scale: float, out: Array) -> Array:
    """Numbers as they are handed out."""
    if scale != 1:
        np.multiply(stored, out.dtype.type(scale), out=out)
    elif out.dtype != stored.dtype:
        out[...] = stored
    return out


def _parts(lies: Lying, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Number of a file, first row in it and number of rows, for each file that holds some of the rows."""
    while start < stop:
        number, first = divmod(start, lies.rows)
        count = min(lies.rows - first, stop - start)
        yield number, first, count
        start += count


def _ask_for(lies: Lying, start: int, stop: int, row_bytes: int) -> None:
    """Have the disk begin with rows, where they are not those that follow the last ones: the system reads on there."""
    if not hasattr(os, "posix_fadvise") or _KEPT.stands_at(lies.path(0), lies.offset + start * row_bytes):
        return
    for number, first, count in _parts(lies, start, stop):
        if lies.codec is None:
            _KEPT.ask_for(lies.path(number), lies.offset + first * row_bytes, count * row_bytes)
        else:
            _KEPT.ask_for(lies.path(number), 0, 0)  # all of it
            _KEPT.last = None


def _read(lies: Lying, start: int, room: Array, row_bytes: int) -> bool:
    """Read rows into their room, from one file or several; whether all were there."""
    whole = room.reshape(-1).view(np.uint8).data
    for number, first, count in _parts(lies, start, start + len(room)):
        part, whole = whole[: count * row_bytes], whole[count * row_bytes :]
        path, place, size = lies.path(number), lies.offset + first * row_bytes, lies.rows * row_bytes
        if lies.codec is not None:
            found = DECODED.read(path, place, part, size, lies.codec)
        else:
            found = _KEPT.read(path, place, part, None if lies.after is None else size)
        if not found:
            return False
    return True


class _Open:
    """An open file, and the byte after those that were read last."""

    def __init__(self, path: str) -> None:
        self.path, self.file, self.next = path, io.FileIO(path), 0
        if hasattr(os, "posix_fadvise"):
            self.advise(0, 0, os.POSIX_FADV_SEQUENTIAL)  # the system then reads on twice as far

    def advise(self, place: int, n_bytes: int, what: int) -> None:
        """Tell the system what will become of some bytes, or of all (0, 0)."""
        with suppress(OSError):  # some file systems have no such thing
            os.posix_fadvise(self.file.fileno(), place, n_bytes, what)

    def is_at(self, path: str) -> bool:
        """Whether it is the file that a path names now."""
        return path == self.path and os.path.samestat(os.stat(path), os.fstat(self.file.fileno()))

    def read(self, place: int, room: memoryview) -> int:
        """Fill room with the bytes from a place on; how many there were."""
        self.next = place
        while len(room):
            count = self._some(room)
            if not count:
                break
            self.next, room = self.next + count, room[count:]
        return self.next - place

    def _some(self, room: memoryview) -> int:
        """Some of the bytes, from a given place: forked processes share the position of an open file."""
        if hasattr(os, "preadv"):
            return os.preadv(self.file.fileno(), [room], self.next)
        self.file.seek(self.next)
        return self.file.readinto(room)

    def __del__(self) -> None:
        """Nobody reads it any more, or its thread has ended."""
        if hasattr(self, "file"):
            self.file.close()


class _Kept(threading.local):
    """The file that a thread read last, which stays open: the system reads on for whoever goes on where it was."""

    last: _Open | None = None

    def read(self, path: str, place: int, room: memoryview, size: int | None) -> bool:
        """Fill room with the bytes from a place on; whether the file is there, is of a size, and has as many."""
        file = self._opened(path)
        if file is None:
            return False
        held = os.fstat(file.file.fileno()).st_size
        found = size in (None, held) and file.read(place, room) == len(room)
        if not _STAYS_OPEN or file.next >= held:  # else a file that is deleted would keep its room on the disk
            self.last = None
        return found

    def stands_at(self, path: str, place: int) -> bool:
        """Whether the bytes that were read last are those before a place."""
        return self.last is not None and path == self.last.path and abs(self.last.next - place) < _NEAR

    def ask_for(self, path: str, place: int, n_bytes: int) -> None:
        """Have the disk begin with some bytes."""
        file = self._opened(path)
        if file is not None:
            file.advise(place, n_bytes, os.POSIX_FADV_WILLNEED)

    def _opened(self, path: str) -> _Open | None:
        """A file, which may have been replaced since; None where it cannot be opened."""
        try:
            if self.last is None or not self.last.is_at(path):
                self.last = None  # closed before the next one is open
                self.last = _Open(path)
        except OSError:
            self.last = None  # whoever reads it next says why
        return self.last


_KEPT = _Kept()
