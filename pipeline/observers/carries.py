"""What one call hands to the next, and whether frames follow it without a gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from ..frames.join import seconds_between
from ..frames.labels import frame_labels, frame_period
from ..frames.recording import GAP_PERIODS
from ..graph.compute import task
from ..graph.kept import array_of
from .starts import LONG_AGO, Starts

SINCE = "frames_since_start"
"""Attribute of a carry: how many frames of the segment are behind it."""
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Seam(NamedTuple):
    """Between a carry and the first frame: whether windows start anew, and whether observers do."""

    windows: bool
    filters: bool


def seam(carry: xr.DataArray, frames: xr.DataArray, bridged: int = 0) -> Seam:
    """Whether the frames begin later than the carry's next frame.

    A clock that starts over, as that of every sound file does, continues. Gaps of fewer than ``bridged`` frames do not
    make observers start anew.

    Examples
    --------
    >>> left = xr.DataArray([0.0], dims="mode", attrs={"last_time": 5.0, "frame_period": 1.0})
    >>> frames = xr.DataArray([[1.0]], dims=("frame", "feature"), coords={"time": ("frame", [8.0])})
    >>> seam(left, frames, bridged=5)
    Seam(windows=True, filters=False)
    """
    if "last_time" not in carry.attrs or "time" not in frames.coords:
        return Seam(False, False)
    apart = seconds_between(carry.attrs.get("start_time"), frames["time"].attrs.get("start_time"))
    wait = float(frames["time"][0]) + (apart or 0.0) - float(carry.attrs["last_time"])
    period = float(carry.attrs["frame_period"])
    if apart and wait <= 0:
        raise ValueError(
            "observe: frames must come after the carry; got frames of a recording from "
            f"{frames['time'].attrs['start_time']}, {-wait:g} s before the last frame that the carry has seen. "
            "Observe recordings in the order of their clocks, or give no carry."
        )
    gap = wait > GAP_PERIODS * period
    return Seam(gap, gap and not (bridged and wait < (bridged + 1) * period))


def given_carry(who: str, carry: xr.DataArray | None) -> xr.DataArray | None:
    """The carry that a user gives, which must be that of a result, and finite.

    Raises
    ------
    TypeError, ValueError
        It is not a DataArray, or holds NaN; where it is lazy, that shows as it is computed.

    Examples
    --------
    >>> given_carry("observe", xr.DataArray([np.nan], dims="mode"))
    Traceback (most recent call last):
    ValueError: observe: carry must hold finite numbers; got NaN or infinity in 1 of 1. Give the carry ...
    """
    if carry is None:
        return None
    if not isinstance(carry, xr.DataArray):
        raise TypeError(
            f"{who}: carry must be the carry of an earlier result, a DataArray with its attributes; got "
            f"{type(carry).__name__}. Give it as in carry=state.carry."
        )
    if carry.dtype.kind not in "iuf":
        raise TypeError(f"{who}: carry must hold real numbers; got dtype {carry.dtype}.")
    if carry.chunks is None:
        _finite(carry.values, who)
        return carry
    return carry.copy(data=carry.data.map_blocks(_finite, who, dtype=carry.dtype))


def _finite(values: NDArray[np.float64], who: str) -> NDArray[np.float64]:
    """Refuse NaN and infinity."""
    bad = int(np.count_nonzero(~np.isfinite(values)))
    if bad:
        raise ValueError(
            f"{who}: carry must hold finite numbers; got NaN or infinity in {bad} of {values.size}. Give the carry of "
            "a result whose frames are all finite, or none to start anew."
        )
    return values


def carry_attrs(frames: xr.DataArray) -> dict[str, float | str]:
    """When the carry was left: what tells a gap before later frames."""
    if "time" not in frame_labels(frames) or not ("frame_period" in frames.attrs or frames.sizes["frame"] > 1):
        return {}
    attrs: dict[str, float | str] = {"last_time": float(frames["time"][-1]), "frame_period": frame_period(frames)}
    return attrs | {k: v for k, v in frames["time"].attrs.items() if k == "start_time"}


def behind(carry: xr.DataArray | None) -> int:
    """Frames of the segment that are behind a carry.

    One that does not say how many (of a steady gain, or of an earlier version) counts as from long ago.

    Examples
    --------
    >>> behind(xr.DataArray([0.0], dims="mode", attrs={"frames_since_start": 7}))
    7
    """
    return LONG_AGO if carry is None else int(carry.attrs.get(SINCE, LONG_AGO))


def joined(parts: Sequence[Delayed], lengths: Sequence[int], n_columns: int) -> da.Array:
    """Delayed blocks (length, columns) as one Dask array."""
    meta = np.empty((0, 0))
    return da.concatenate(
        [
            da.from_delayed(part, (length, n_columns), dtype=np.float64, meta=meta)
            for part, length in zip(parts, lengths, strict=True)
        ]
    )


def cuts(starts: Starts, lengths: Sequence[int]) -> list[Starts]:
    """Starts of every chunk."""
    stops = np.cumsum(lengths).tolist()
    return [starts.cut(span) for span in zip([0, *stops], stops, strict=False)]


class BothWays(NamedTuple):
    """Starts of a chunk, and those of the same frames in reverse order."""

    starts: Starts
    back: Starts

    def ages(self) -> tuple[Integers, Integers]:
        """Frames before each frame in its segment, and frames after it."""
        return self.starts.ages(), self.back.ages()[::-1]


def both_ways(starts: Starts, lengths: Sequence[int]) -> list[BothWays]:
    """Starts of every chunk and of its frames in reverse order.

    Examples
    --------
    >>> both_ways(Starts(5, np.array([0, 3])), (2, 3))[1].ages()
    (array([2, 0, 1]), array([0, 1, 0]))
    """
    back = cuts(starts.reversed(), lengths[::-1])[::-1]
    return [BothWays(*pair) for pair in zip(cuts(starts, lengths), back, strict=True)]


def table_rows(
    chunks: Sequence[Any], lengths: Sequence[int], rows: Callable[..., Integers], table: Floats, *arguments: Any
) -> da.Array:
    """A row of a small table for every frame, lazily: the one that a function tells of what is known of each chunk.

    Examples
    --------
    >>> chunks = cuts(Starts(3, np.array([0, 2])), (2, 1))
    >>> table_rows(chunks, (2, 1), Starts.ages, np.array([[5.0], [6.0]])).compute().ravel()
    array([5., 6., 5.])
    """
    parts = [task(_rows, rows, chunk, table, arguments) for chunk in chunks]
    return array_of(parts, lengths, table.shape[1], np.asarray)


def _rows(rows: Callable[..., Integers], chunk: Any, table: Floats, arguments: tuple[Any, ...]) -> Floats:
    """Rows of a table for one chunk."""
    return np.asarray(table[rows(chunk, *arguments)])
