"""Stored samples and frames, read by the tasks that use them.

Throughout: a *source* is an array on disk that is read by slices; a *slab* is a run of its rows; a *reading* is a
slab that a task reads itself. A Dask task for each stored chunk is not needed for that, and would be worse: a
recording may have a million chunks of a few bytes, and a cluster that is given reads and their users as separate
tasks reads ahead, until its memory is full.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol
from uuid import uuid4

import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from dask.highlevelgraph import MaterializedLayer
from numpy.typing import NDArray
from xarray.core.indexing import ImplicitToExplicitIndexingAdapter

from manifold_observer.tasks.arrays import aligned

from .spans import Span

SLAB_BYTES = 2**24
"""Bytes of a chunk of an open recording, about: one task reads it."""
# Bytes of rows that are read at a time where some of their channels are taken: those may be few of very many.
_WIDE_BYTES = 2**21
# Stored chunks between these sizes are decoded whole and the last one is kept, for the next slab lies in it too.
_KEPT_BYTES = 2**28

Pick = Callable[[xr.Dataset], xr.DataArray]


class Rows(Protocol):
    """Rows of a recording that need no library: as they lie in files, but for a factor and one codec."""

    scale: float
    itemsize: int
    row_bytes: int

    def pieces(self, spans: Sequence[Span], *, scaled: bool = True) -> Iterator[NDArray[Any] | None]:
        """Rows of some spans, each in the room of the one before; None where a library has to read them."""


@dataclass(frozen=True)
class Reading:
    """Rows of a source, to be read by the task that gets this as an argument."""

    source: Any
    """Array on disk, of any number of dimensions, whose first is cut."""
    start: int
    """First row."""
    stop: int
    """Row after the last."""

    def read(self) -> NDArray[Any]:
        """The rows."""
        return self._slice(self.start, self.stop)

    def pieces(self, spans: Sequence[Span]) -> Iterator[tuple[NDArray[Any], float]]:
        """Rows of some spans, and what they are to be multiplied by; each piece may be overwritten by the next one.

        Parameters
        ----------
        spans
            Rows of the source, all of them in the reading.

        Yields
        ------
        Their values, and a power of two.
        """
        found = self.source.pieces(spans, scaled=False) if self.seeks else (None for _ in spans)
        for (start, stop), piece in zip(spans, found, strict=True):
            yield (self._slice(start, stop), 1.0) if piece is None else (piece, self.source.rows.scale)

    @property
    def seeks(self) -> bool:
        """Whether a few rows are read as fast as many."""
        return isinstance(self.source, Stored) and self.source.rows is not None

    def _slice(self, start: int, stop: int) -> NDArray[Any]:
        """Rows that a library reads."""
        whole = (slice(None),) * (len(self.source.shape) - 1)
        return np.asarray(self.source[(slice(start, stop), *whole)])


@dataclass(frozen=True)
class Later:
    """A reading that is not made when its task begins, but when NumPy asks for it: of many, one at a time is held."""

    reading: Reading

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The rows."""
        found: NDArray[Any] = aligned(self.reading.read())
        return found if dtype is None else found.astype(dtype, copy=False)


class Stored:
    """Samples (time, channel) of an opened dataset, read by slices; it can be pickled.

    Parameters
    ----------
    dataset
        Opened without chunks, and without coordinates along time.
    pick
        Makes the recording of it, or of a part of it along time.
    like
        The recording of all of it.
    grain
        Samples of a stored chunk, or 1.
    rows
        The same samples as they lie in files, in the order of the recording, or None.
    kept
        Channels that are taken of those.

    Examples
    --------
    >>> dataset = xr.Dataset({"x": ("time", [1, 2, 3])})
    >>> pick = lambda part: part["x"].expand_dims(channel=["x"]).transpose("time", "channel")
    >>> np.asarray(Stored(dataset, pick, pick(dataset), 1)[1:, :]).ravel()
    array([2, 3])
    """

    ndim = 2

    def __init__(
        self,
        dataset: xr.Dataset,
        pick: Pick,
        like: xr.DataArray,
        grain: int,
        rows: Rows | None = None,
        kept: tuple[int, ...] | None = None,
    ) -> None:
        self.dataset, self.pick, self.grain, self.rows, self.kept = dataset, pick, grain, rows, kept
        self.shape, self.dtype = like.shape, like.dtype
        self.name = uuid4().hex

    @property
    def row_bytes(self) -> int:
        """Bytes of one sample of all channels."""
        return self.shape[1] * self.dtype.itemsize

    @property
    def file_row_bytes(self) -> int:
        """The same with numbers of the size that they have in files."""
        return self.row_bytes if self.rows is None else self.shape[1] * self.rows.itemsize

    @property
    def kept_bytes(self) -> int:
        """Bytes of a stored chunk that stays in memory between two slabs."""
        size = 0 if self.rows is not None else self.grain * self.row_bytes
        return size if SLAB_BYTES < size <= _KEPT_BYTES else 0

    def __getitem__(self, key: tuple[Any, Any]) -> NDArray[Any]:
        """Read one range; of single samples, and of lists of them, the range that holds them."""
        if not isinstance(key[0], slice):
            first, last = int(np.min(key[0], initial=self.shape[0] - 1)), int(np.max(key[0], initial=0))
            return np.asarray(self[first : last + 1, :][np.asarray(key[0]) - first][..., key[1]])
        rows = range(self.shape[0])[key[0]]
        if not self.kept_bytes or not rows:
            return self._read(key[0])[:, key[1]]
        first, last = rows[0] // self.grain, rows[-1] // self.grain
        parts = [self._within(number, rows)[:, key[1]] for number in range(first, last + 1)]
        return parts[0].copy() if len(parts) == 1 else np.concatenate(parts)

    def _read(self, rows: slice) -> NDArray[Any]:
        """Rows as they are picked."""
        start, stop, step = rows.indices(self.shape[0])
        if self.rows is not None and step == 1 and start < stop:
            found = next(self.pieces([(start, stop)]))
            if found is not None:
                return found
        return np.asarray(self.pick(self.dataset.isel(time=rows)).values)

    def pieces(self, spans: Sequence[Span], *, scaled: bool = True) -> Iterator[NDArray[Any] | None]:
        """Samples of some spans as they lie in files, each in the room of the one before; None where they do not."""
        if self.rows is None:
            yield from (None for _ in spans)
        elif self.kept is None:
            for piece in self.rows.pieces(spans, scaled=scaled):
                yield None if piece is None else piece.reshape(len(piece), -1)
        else:
            yield from self._taken(self.rows, self.kept, spans, scaled)

    def _taken(
        self, rows: Rows, kept: tuple[int, ...], spans: Sequence[Span], scaled: bool
    ) -> Iterator[NDArray[Any] | None]:
        """Some channels of rows that are read a few at a time."""
        step = max(1, _WIDE_BYTES // rows.row_bytes)
        cut = [[(at, min(at + step, stop)) for at in range(start, stop, step)] for start, stop in spans]
        found = rows.pieces([part for parts in cut for part in parts], scaled=scaled)
        for parts in cut:
            pieces = islice(found, len(parts))
            tables = [None if piece is None else piece.reshape(len(piece), -1)[:, kept] for piece in pieces]
            whole = [table for table in tables if table is not None]
            yield np.concatenate(whole) if len(whole) == len(tables) else None

    def _within(self, number: int, rows: range) -> NDArray[Any]:
        """Those of some rows that lie in one stored chunk."""
        start = number * self.grain
        chunk = _LAST.chunk(self, number)
        wanted = [row - start for row in rows if 0 <= row - start < len(chunk)] if rows.step != 1 else None
        return chunk[wanted] if wanted is not None else chunk[max(rows.start - start, 0) : rows.stop - start]


class _Last:
    """The last stored chunk that this process decoded; who wants the same one at the same time waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[str, int] | None = None
        self._chunk: NDArray[Any] = np.empty((0, 0))

    def chunk(self, stored: Stored, number: int) -> NDArray[Any]:
        """One stored chunk."""
        with self._lock:
            if self._key != (stored.name, number):
                self._key, self._chunk = None, np.empty((0, 0))  # gone before the next one is there
                start = number * stored.grain
                self._chunk = stored._read(slice(start, min(start + stored.grain, stored.shape[0])))
                self._key = stored.name, number
            return self._chunk


_LAST = _Last()


def in_slabs(
    dataset: xr.Dataset, pick: Pick, rows: Rows | None = None, kept: tuple[int, ...] | None = None
) -> xr.DataArray:
    """The recording of an opened dataset, lazily in slabs of about 16 MB, whatever the chunks in which it is stored.

    Parameters
    ----------
    dataset
        Opened without chunks.
    pick
        Makes the recording of it, or of a part of it along time.
    rows, kept
        As :class:`Stored` takes them.

    Returns
    -------
    Dims ``(time, channel)``, Dask-backed; what is in memory already is cut as it is.

    Examples
    --------
    >>> dataset = xr.Dataset({"x": (("time", "channel"), [[1], [2], [3]])})
    >>> in_slabs(dataset, lambda part: part["x"]).chunks
    ((3,), (1,))
    """
    along = [v.variable for v in dataset.data_vars.values() if "time" in v.dims]
    if any(v.chunks for v in along):
        return pick(dataset)
    if all(v._in_memory for v in along):
        here = pick(dataset)
        return here.chunk(time=_slab_rows(here, 1))
    recording = pick(dataset.chunk())
    bare = dataset.drop_vars([name for name, values in dataset.coords.items() if "time" in values.dims])
    stored = Stored(bare, pick, recording, _grain(along), rows, kept)
    chunks = (_slab_rows(recording, stored.grain), recording.shape[1])
    meta = np.empty((0, 0), recording.dtype)
    return recording.copy(data=da.from_array(stored, chunks, name=f"recording-{stored.name}", meta=meta))


def source_of(array: da.Array) -> Any:
    """What a Dask array reads, where it holds nothing but reads of one array on disk; else None.

    Arrays that :func:`open_recording` and xarray opened are such, until something is done to them.

    Examples
    --------
    >>> source_of(da.ones(3)) is None
    True
    """
    original = f"original-{array.name}"
    layers = array.dask.layers
    if set(layers) != {array.name, original}:
        return None
    node = next(iter(dict(layers[original]).values()))
    source = getattr(node, "value", node)  # of a DataNode
    known = isinstance(source, Stored | ImplicitToExplicitIndexingAdapter)
    return source if known and source.shape == array.shape and source.dtype == array.dtype else None


def chunk_bytes(array: da.Array) -> int:
    """Bytes of a stored chunk of what a Dask array reads, decoded; 0 where it reads nothing, or seeks.

    Examples
    --------
    >>> chunk_bytes(da.ones(3))
    0
    """
    source = source_of(array)
    return source.grain * source.row_bytes if isinstance(source, Stored) and source.grain > 1 else 0


def kept_bytes(array: da.Array) -> int:
    """Bytes of a stored chunk that tasks of a Dask array decode whole and keep, the largest; 0 where there is none.

    Examples
    --------
    >>> kept_bytes(da.ones(3))
    0
    """
    readings = (part for layer in array.dask.layers.values() for part in _first_task(layer))
    sources = [part.source for part in readings if isinstance(part, Reading)]
    return max((source.kept_bytes for source in sources if isinstance(source, Stored)), default=0)


def _first_task(layer: Any) -> tuple[Any, ...]:
    """The first task of a layer that was written out, as a tuple; one stands for all."""
    first = next(iter(layer.values()), None) if isinstance(layer, MaterializedLayer) else None
    return first if isinstance(first, tuple) else ()


def rows_of(data: da.Array | NDArray[Any], span: Span) -> Reading | Delayed | NDArray[Any]:
    """Rows as one NumPy array within a task, all other axes whole: here, read by the task, or delayed.

    Examples
    --------
    >>> rows_of(np.arange(3), (1, 3))
    array([1, 2])
    """
    if isinstance(data, np.ndarray):
        return data[span[0] : span[1]]
    source = source_of(data)
    if source is not None:
        return Reading(source, *span)
    return data[span[0] : span[1]].rechunk(-1).to_delayed().ravel()[0]


def chunks_of(data: da.Array) -> list[Reading | Delayed]:
    """The chunks along the first axis, of which the others have one; as :func:`rows_of`."""
    source = source_of(data)
    if source is None:
        return list(data.to_delayed().ravel())
    stops = np.cumsum(data.chunks[0]).tolist()
    return [Reading(source, start, stop) for start, stop in zip([0, *stops], stops, strict=False)]


def _slab_rows(recording: xr.DataArray, grain: int) -> int:
    """Samples of a slab: whole stored chunks, about 16 MB of them; a larger stored chunk is cut."""
    row_bytes = max(1, recording.shape[1] * recording.dtype.itemsize)
    wanted = max(1, SLAB_BYTES // row_bytes)
    if _KEPT_BYTES >= grain * row_bytes > SLAB_BYTES:
        return grain
    return max(wanted // grain * grain, 1) if grain <= wanted else wanted


def _grain(along: list[xr.Variable]) -> int:
    """Samples of a stored chunk, the longest of all variables."""
    known = [stored_chunks(v).get("time", 1) for v in along]
    return max(known, default=1)


def stored_chunks(variable: xr.Variable) -> dict[Hashable, int]:
    """Sizes of a variable's stored chunks by dimension, also where those were given other names; empty without chunks.

    Examples
    --------
    >>> stored_chunks(xr.Variable("time", [1, 2, 3], encoding={"chunks": (2,)}))
    {'time': 2}
    """
    preferred = variable.encoding.get("preferred_chunks") or {}
    if set(variable.dims) <= set(preferred):
        return {dim: int(np.max(preferred[dim])) for dim in variable.dims}
    sizes = variable.encoding.get("chunks") or variable.encoding.get("chunksizes") or ()
    return dict(zip(variable.dims, map(int, sizes), strict=True)) if len(sizes) == variable.ndim else {}


ROWS_BYTES = 2**22
"""Bytes of frames that a task takes where it only adds them up."""
