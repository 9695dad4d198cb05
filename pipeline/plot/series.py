"""Values over frames as lines and points that can be drawn: read chunk by chunk, with gaps, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.plot import clouds, lines

from ..frames.given import array_of
from ..frames.labels import segment_of
from ..frames.segments import restarts

Floats = NDArray[np.float64]
Reduced = TypeVar("Reduced")

# Points of a line: several times the pixels of a wide screen.
MOST_POINTS = 20_000
# Numbers that are read at a time, 32 MB.
_BLOCK_NUMBERS = 2**22


class Series(NamedTuple):
    """Some values over time; rows of NaN are gaps."""

    time: NDArray[Any]
    """Seconds, date-times, or the number of the frame, shape (k,)."""
    values: Floats
    """Shape (k, m)."""
    frames_per_point: float
    """1 where every frame is there; else frames from whose least and largest value two points are."""


def series(values: xr.DataArray, most: int = MOST_POINTS) -> Series:
    """Values over time as lines: all of them, or the least and the largest of every bucket; this computes.

    Parameters
    ----------
    values
        Dims ``(frame, ...)`` with one other dimension or none; lazy ones are read chunk by chunk.
    most
        Points of a line, about.

    Examples
    --------
    >>> wave = xr.DataArray(np.sin(np.arange(1000.0)), dims="frame")
    >>> found = series(wave, most=100)
    >>> found.values.shape, found.frames_per_point, bool(found.values.max() == wave.max())
    ((100, 1), 20.0, True)
    """
    columns = in_columns(values)
    time, starts = times_of(columns), restarts(segment_of(columns))
    n = len(starts)
    if n <= most:
        read = np.asarray(columns.values, np.float64)
        return Series(lines.times_with_gaps(time, starts), lines.with_gaps(read, starts), 1.0)
    edges = lines.bucket_edges(n, np.flatnonzero(starts), most // 2)
    low, high = (np.concatenate(parts) for parts in zip(*reduced(columns, edges, lines.extremes), strict=True))
    middle = time[(edges[:-1] + edges[1:] - 1) // 2]
    pairs = np.stack([low, high], axis=1).reshape(-1, columns.shape[1])
    begins = np.repeat(np.add.reduceat(starts, edges[:-1]) > 0, 2) & np.tile([True, False], len(low))
    return Series(lines.times_with_gaps(np.repeat(middle, 2), begins), lines.with_gaps(pairs, begins), n / len(low))


def reduced(
    columns: xr.DataArray, edges: NDArray[np.int64], reduce: Callable[[Floats, NDArray[np.int64]], Reduced]
) -> Iterator[Reduced]:
    """What a function of whole buckets gives for some of them after the other, with few values in memory at a time."""
    for block, own in _bucket_blocks(columns, edges):
        yield reduce(block, own)


def _bucket_blocks(columns: xr.DataArray, edges: NDArray[np.int64]) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
    """Rows of whole buckets, with the edges within them."""
    rows = max(1, _BLOCK_NUMBERS // max(1, columns.shape[1]))
    first = 0
    while first < len(edges) - 1:
        last = max(first + 1, int(np.searchsorted(edges, edges[first] + rows, side="right")) - 1)
        last = min(last, len(edges) - 1)
        begin, end = int(edges[first]), int(edges[last])
        yield np.asarray(columns[begin:end].values, np.float64), edges[first : last + 1] - begin
        first = last


def rows_of(values: xr.DataArray, at: NDArray[np.int64]) -> Floats:
    """Some rows of values, in order, read chunk by chunk."""
    columns = in_columns(values)
    if len(at) == columns.shape[0]:
        return np.asarray(columns.values, np.float64)
    rows = max(1, _BLOCK_NUMBERS // max(1, columns.shape[1]))
    parts = [np.zeros((0, columns.shape[1]))]
    for begin in range(0, columns.shape[0], rows):
        own = at[(at >= begin) & (at < begin + rows)] - begin
        if len(own):
            parts.append(np.asarray(columns[begin : begin + rows].values, np.float64)[own])
    return np.concatenate(parts)


def sampled_rows(n: int, most: int) -> NDArray[np.int64]:
    """Numbers of frames that stand for all, spread over time."""
    return clouds.spread_sample(n, most)


def in_columns(values: xr.DataArray) -> xr.DataArray:
    """Values with frames as rows and whatever else there is as columns."""
    if not isinstance(values, xr.DataArray):
        values = array_of("plot: values", values, ("frame", "mode"))
    if "frame" not in values.dims or values.ndim > 2:
        raise ValueError(
            f"plot: values must have dims (frame, ...) with at most one more; got {values.dims}. "
            "Choose with isel what shall be drawn."
        )
    return values.expand_dims("column", axis=1) if values.ndim == 1 else values.transpose("frame", ...)


def times_of(labelled: xr.DataArray | xr.Dataset) -> NDArray[Any]:
    """Time of every frame, or its number where there is no clock."""
    time = labelled.coords.get("time")
    if time is not None and time.dims == ("frame",) and time.dtype.kind in "iufM":
        return np.asarray(time.values)
    return np.arange(labelled.sizes["frame"])
