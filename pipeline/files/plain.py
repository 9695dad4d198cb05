"""Arrays that lie in files as they would lie in memory: their rows are read straight into the room of who asks.

Libraries copy such rows several times, a call for every few of them costs as much again, and nothing is computed
meanwhile. Where an array is stored otherwise, or a part of it is missing, libraries read it as ever.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Span = tuple[int, int]


class Lying(NamedTuple):
    """Where the rows of an array lie.

    ``before`` and ``after`` are around the number of a file, where there are several (``after`` is None for one), each
    of which holds ``rows`` and nothing else; ``offset``: bytes before the first row; ``dtype``: of the numbers, with
    their byte order; ``scale``: what they are multiplied by.
    """

    before: str
    after: str | None
    rows: int
    offset: int
    dtype: np.dtype[Any]
    scale: float | None = None

    def path(self, number: int) -> str:
        """One of the files."""
        return self.before if self.after is None else f"{self.before}{number}{self.after}"


@dataclass(frozen=True)
class Fixed:
    """An array that lies where it was found when its file was opened."""

    found: Lying

    def __call__(self) -> Lying:
        """Where it lies."""
        return self.found


class PlainRows:
    """Rows of an array that lies in files as it is; it can be pickled.

    Parameters
    ----------
    shape, dtype
        Of the array as it is handed out.
    lying
        Says where it lies, each time that it is read; None where a library has to read it.

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

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], lying: Callable[[], Lying | None]) -> None:
        self.shape, self.dtype, self.lying = shape, dtype, lying

    def read(self, start: int, stop: int) -> Array | None:
        """Some rows; None where a library has to read them."""
        return next(self.pieces([(start, stop)]))

    def pieces(self, spans: Sequence[Span]) -> Iterator[Array | None]:
        """Rows of some spans, as `read`, each in the room of the one before; the disk is asked for all at once."""
        lies = self.lying()
        if lies is None:
            yield from (None for _ in spans)
            return
        room = np.empty((max(stop - start for start, stop in spans), *self.shape[1:]), lies.dtype)
        same = lies.scale is None and lies.dtype == self.dtype
        made = room if same else np.empty(room.shape, self.dtype)
        with _Files(lies, self.shape[1:]) as files:
            files.ask_for(min(start for start, _ in spans), max(stop for _, stop in spans))
            for start, stop in spans:
                own, out = room[: stop - start], made[: stop - start]
                yield _decoded(own, lies, out) if files.read(start, own) else None


def _decoded(stored: Array, lies: Lying, out: Array) -> Array:
    """Numbers as they are handed out."""
    if lies.scale is not None:
        np.multiply(stored, out.dtype.type(lies.scale), out=out)
    elif out.dtype != stored.dtype:
        out[...] = stored
    return out


class _Files:
    """The files of an array, of which one is open."""

    def __init__(self, lies: Lying, shape: Iterable[int]) -> None:
        self.lies, self.row_bytes = lies, math.prod(shape) * lies.dtype.itemsize
        self._open: tuple[int, BinaryIO] | None = None

    def __enter__(self) -> Self:
        """Nothing is open yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close what is open."""
        if self._open is not None:
            self._open[1].close()

    def read(self, start: int, room: Array) -> bool:
        """Read rows into their room; whether all were there."""
        whole = room.reshape(-1).view(np.uint8).data
        for number, first, count in self._parts(start, start + len(room)):
            size = count * self.row_bytes
            part, whole = whole[:size], whole[size:]
            if not self._read_part(number, first, part):
                return False
        return True

    def ask_for(self, start: int, stop: int) -> None:
        """Have the disk read rows while others are worked on."""
        if not hasattr(os, "posix_fadvise"):
            return
        for number, first, count in self._parts(start, stop):
            file = self._file(number)
            if file is not None:
                place = self.lies.offset + first * self.row_bytes
                os.posix_fadvise(file.fileno(), place, count * self.row_bytes, os.POSIX_FADV_WILLNEED)

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Number of a file, first row in it and number of rows, for each file that holds some of the rows."""
        while start < stop:
            number, first = divmod(start, self.lies.rows)
            count = min(self.lies.rows - first, stop - start)
            yield number, first, count
            start += count

    def _read_part(self, number: int, first: int, part: memoryview) -> bool:
        """Read rows of one file."""
        file = self._file(number)
        if file is None:
            return False
        file.seek(self.lies.offset + first * self.row_bytes)
        while len(part):
            count = file.readinto(part)  # type: ignore[attr-defined]
            if not count:
                return False
            part = part[count:]
        return True

    def _file(self, number: int) -> BinaryIO | None:
        """One file, open; None where it is missing, or has another size than its rows."""
        if self._open is not None and self._open[0] == number:
            return self._open[1]
        self.__exit__(None, None, None)
        self._open = None
        try:
            file = open(self.lies.path(number), "rb", buffering=0)  # noqa: SIM115 - closed by this object
        except OSError:
            return None  # whoever reads it next says why
        if self.lies.after is not None and os.fstat(file.fileno()).st_size != self.lies.rows * self.row_bytes:
            file.close()
            return None
        self._open = number, file
        return file
