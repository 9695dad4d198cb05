"""What one call hands to the next, and whether frames follow it without a gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from ..frames.join import seconds_between
from ..frames.labels import frame_labels, frame_period
from ..frames.recording import GAP_PERIODS

SINCE = "frames_since_start"
"""Attribute of a carry: how many frames of the segment are behind it."""
_LONG_AGO = 2**62


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


def ages_of(starts: NDArray[np.bool_], carry: xr.DataArray | None = None) -> NDArray[np.int64]:
    """Frames before each frame in its segment, those of earlier calls included.

    A carry that does not say how many (of a steady gain, or of an earlier version) counts as from long ago.

    Examples
    --------
    >>> ages_of(np.array([False, False, True]), xr.DataArray([0.0], dims="mode", attrs={"frames_since_start": 7}))
    array([7, 8, 0])
    """
    before = _LONG_AGO if carry is None else int(carry.attrs.get(SINCE, _LONG_AGO))
    numbers = np.arange(len(starts))
    firsts = np.maximum.accumulate(np.where(starts, numbers, -before))
    return numbers - firsts


def joined(parts: Sequence[Delayed], lengths: Sequence[int], n_columns: int) -> da.Array:
    """Delayed blocks (length, columns) as one Dask array."""
    meta = np.empty((0, 0))
    return da.concatenate(
        [
            da.from_delayed(part, (length, n_columns), dtype=np.float64, meta=meta)
            for part, length in zip(parts, lengths, strict=True)
        ]
    )


def table_rows(rows: NDArray[np.int64], table: NDArray[np.float64], like: da.Array) -> da.Array:
    """A row of a small table for every frame, lazily.

    Examples
    --------
    >>> table_rows(np.array([1, 0, 1]), np.array([[2.0], [3.0]]), da.zeros((3, 1))).compute().ravel()
    array([3., 2., 3.])
    """
    numbers = da.from_array(rows, chunks=(like.chunks[0],))
    return numbers.map_blocks(_take, table, new_axis=1, chunks=like.chunks, dtype=np.float64, meta=np.empty((0, 0)))


def _take(rows: NDArray[np.int64], table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of a table."""
    return table[rows]
