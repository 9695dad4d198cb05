"""What the labels of frames say, and what frames and embedding must have to go together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.frames.ticks import GAP_PERIODS

from .given import array_of
from .segments import Segments, batches

MAKE_FRAMES = "Make them with mo.histogram, mo.stft, mo.log_rms or mo.identity."


def in_order(what: str, values: xr.DataArray, dims: tuple[str, str], remedy: str) -> xr.DataArray:
    """Real numbers with their two dims in this order, or a refusal.

    Parameters
    ----------
    what
        Begins the sentence, such as "embed: frames".
    values
        What the user gave.
    dims
        Dims that it must have, in any order.
    remedy
        What the user can do about other dims, a sentence.

    Raises
    ------
    ValueError, TypeError
        Other dims; no real numbers.

    Examples
    --------
    >>> in_order("embed: frames", xr.DataArray([[1.0]], dims=("feature", "frame")), ("frame", "feature"), "").dims
    ('frame', 'feature')
    """
    values = array_of(what, values, dims)
    if set(values.dims) != set(dims):
        raise ValueError(f"{what} must have dims ({', '.join(dims)}); got {values.dims}. {remedy}")
    if values.dtype.kind not in "iufb":
        raise TypeError(f"{what} must hold real numbers; got dtype {values.dtype}.")
    return values if values.dims == dims else in_rows(values.transpose(*dims))


def in_rows(values: xr.DataArray) -> xr.DataArray:
    """The same numbers, row after row in memory: sums along a row round by how it lies there.

    Examples
    --------
    >>> turned = xr.DataArray(np.eye(2), dims=("feature", "frame")).transpose()
    >>> turned.values.flags.c_contiguous, in_rows(turned).values.flags.c_contiguous
    (False, True)
    """
    if values.chunks:
        return values.copy(
            data=values.data.map_blocks(np.ascontiguousarray, dtype=values.dtype, meta=values.data._meta)
        )
    return values.copy(data=np.ascontiguousarray(values.values))


def segment_of(labelled: xr.DataArray | xr.Dataset) -> NDArray[np.int64]:
    """Segment of every frame; where nothing is said, a hole in the times begins another one.

    Examples
    --------
    >>> segment_of(xr.DataArray([1.0, 2.0], dims="frame"))
    array([0, 0])
    >>> segment_of(xr.DataArray([1.0, 2.0, 3.0, 3.0], dims="frame", coords={"time": ("frame", [0.0, 1.0, 2.0, 9.0])}))
    array([0, 0, 0, 1])
    """
    if "segment" in labelled.coords:
        return np.asarray(labelled["segment"].values)
    n = labelled.sizes["frame"]
    time = labelled.coords.get("time")
    if n < 2 or time is None or time.dims != ("frame",) or time.dtype.kind not in "iufM":
        return np.zeros(n, np.int64)
    steps = np.diff(time.values)
    if time.dtype.kind == "M":
        steps = steps / np.timedelta64(1, "s")
    period = float(labelled.attrs.get("frame_period", np.median(steps)))
    return np.concatenate([[0], np.cumsum(steps > GAP_PERIODS * period)])


def segments_of(labelled: xr.DataArray | xr.Dataset) -> Segments:
    """The same as :func:`segment_of`, as stretches; stored labels are read a piece at a time.

    Examples
    --------
    >>> segments_of(xr.DataArray([1.0, 2.0], dims="frame", coords={"segment": ("frame", [3, 4])})).spans()
    [(0, 1), (1, 2)]
    """
    if "segment" in labelled.coords:
        return Segments.of(batches(labelled["segment"]))
    time = labelled.coords.get("time")
    held = time is None or time.variable._in_memory or "frame_period" not in labelled.attrs
    return Segments.of([segment_of(labelled)] if held else _after_holes(labelled))


def _after_holes(labelled: xr.DataArray | xr.Dataset) -> Iterator[NDArray[np.int64]]:
    """Segments between holes of stored times, a piece at a time."""
    last, number, period = np.zeros(0), 0, float(labelled.attrs["frame_period"])
    for times in batches(labelled["time"]):
        steps = np.diff(np.concatenate([last, times])) if len(last) else np.diff(times, prepend=times[:1])
        found = number + np.cumsum(steps > GAP_PERIODS * period)
        last, number = times[-1:], int(found[-1])
        yield found


def channels_of(labelled: xr.DataArray | xr.Dataset) -> NDArray[Any] | None:
    """Channel of every feature, where features have one each.

    Examples
    --------
    >>> channels_of(xr.DataArray([1.0], dims="feature", coords={"channel": ("feature", ["left"])})).tolist()
    ['left']
    """
    return np.asarray(labelled["channel"].values) if "channel" in labelled.coords else None


def channel_name(name: Any) -> str:
    """Name of a channel, which some files give as padded bytes.

    Examples
    --------
    >>> channel_name(b"C3  "), channel_name(3)
    ('C3', '3')
    """
    return name.decode(errors="replace").rstrip("\0 ") if isinstance(name, bytes) else str(name)


def frame_labels(labelled: xr.DataArray | xr.Dataset) -> dict[Any, xr.DataArray]:
    """Coordinates that belong to the frames alone."""
    return {name: c for name, c in labelled.coords.items() if c.dims == ("frame",)}


def frame_period(frames: xr.DataArray) -> float:
    """Seconds between two frames.

    Raises
    ------
    ValueError
        The frames have neither a period nor times.
    """
    if "frame_period" in frames.attrs:
        return float(frames.attrs["frame_period"])
    if "time" not in frames.coords or frames.sizes["frame"] < 2:
        raise ValueError("observe: frames need a 'time' coordinate in seconds for rates='generator'.")
    return float(np.median(np.diff(frames["time"].values)))


def check_number(n: int, n_modes: int | None) -> None:
    """Refuse too few frames to embed, or for so many modes.

    Raises
    ------
    ValueError
        Fewer than three frames, or than two more than modes.
    """
    if n < 3:
        raise ValueError(f"embed: frames must hold at least 3 frames; got {n}. Choose shorter frames.")
    if n_modes is not None and n_modes > n - 2:
        raise ValueError(f"embed: n_modes must be at most {n - 2} for {n} frames; got {n_modes}. Ask for fewer modes.")


def require(who: str, embedding: xr.Dataset, *names: str) -> None:
    """Refuse an embedding that lacks one of some variables."""
    missing = [name for name in names if name not in embedding]
    if missing:
        raise ValueError(
            f"{who}: the embedding must hold its {missing[0]}; it does not. Embed again, or read a stored result "
            "with mo.read_embedding."
        )
