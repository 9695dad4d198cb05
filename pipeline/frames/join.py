"""Frames of several recordings as segments of one, with a gap between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..graph.warn import warn
from .alike import aligned, meaning_of
from .dates import in_dates, is_dated
from .given import frames_in_order
from .labels import MAKE_FRAMES, in_order

# Frame periods of pause between recordings that have no common clock.
_PAUSE = 2.0


def concat(parts: Iterable[xr.DataArray]) -> xr.DataArray:
    """Join frames in their order, each recording a segment (or several) of its own.

    Recordings whose clocks go on one after the other keep them. Where a clock starts over, as that of
    sound files does, the later recording is moved to two frame periods after the earlier one; the
    shifts are in the attribute ``time_shifts``, and the times before which nobody knows how long it paused in the
    attribute ``unknown_pauses`` of ``time``.

    Parameters
    ----------
    parts
        Dims ``(frame, feature)`` with coordinates ``time`` and ``segment``; the same features in each.

    Returns
    -------
    Dims ``(frame, feature)``, lazily; ``segment`` grows from part to part.

    Raises
    ------
    ValueError
        The parts have different features or frame periods.

    Examples
    --------
    >>> part = xr.DataArray(
    ...     np.zeros((2, 1)), dims=("frame", "feature"), attrs={"frame_period": 1.0},
    ...     coords={"time": ("frame", [0.5, 1.5]), "segment": ("frame", [0, 0])},
    ... )
    >>> joined = concat([part, part])
    >>> joined.time.values, joined.segment.values
    (array([0.5, 1.5, 3.5, 4.5]), array([0, 0, 1, 1]))
    """
    given = _listed(parts)
    dated = all(isinstance(part, xr.DataArray) and is_dated(part) for part in given)
    parts = [_frames_of(k, part) for k, part in enumerate(given, 1)]
    first = parts[0]
    if len(parts) == 1:
        return in_dates(first) if dated else first
    moved, shifts, invented, known = [first], [0.0], [], meaning_of(first)
    for number, other in enumerate(parts[1:], 2):
        part = aligned(f"concat: the frames of recording {number}", known, other, "the first")
        before = moved[-1]
        end, period = float(before["time"][-1]), float(first.attrs["frame_period"])
        shift = _shift(first, part, end)
        invented.append(shift is None)
        shift = end + _PAUSE * period - float(part["time"][0]) if shift is None else shift
        segment = part["segment"] - int(part["segment"][0]) + int(before["segment"][-1]) + 1
        moved.append(part.assign_coords(time=part["time"] + shift, segment=segment))
        shifts.append(shift)
    joined = xr.concat(
        shared_labels("concat", moved), "frame", coords="minimal", compat="override", combine_attrs="override"
    )
    unused = sum(int(part.attrs.get("unused_samples", 0)) for part in parts)
    joined["time"].attrs |= first["time"].attrs
    if unknown := [float(part["time"][0]) for part, made_up in zip(moved[1:], invented, strict=True) if made_up]:
        joined["time"].attrs["unknown_pauses"] = unknown
    joined = joined.assign_attrs(time_shifts=shifts, unused_samples=unused)
    return in_dates(joined) if dated else joined


def _listed(parts: Any) -> list[Any]:
    """The parts of a list, or of whatever gives them one by one."""
    if isinstance(parts, xr.DataArray | xr.Dataset) or not isinstance(parts, Iterable):
        raise TypeError(
            f"concat: parts must be a list of the frames of each recording; got a {type(parts).__name__}. Write "
            "mo.concat([frames, more_frames])."
        )
    given = list(parts)
    if not given:
        raise ValueError("concat: parts must hold the frames of at least 1 recording; got none.")
    return given


def _frames_of(number: int, part: Any) -> xr.DataArray:
    """Frames of one recording, at least one."""
    what = f"concat: the frames of recording {number}"
    frames = in_order(what, frames_in_order(what, part), ("frame", "feature"), MAKE_FRAMES)
    if not frames.sizes["frame"]:
        raise ValueError(f"{what} must hold at least 1 frame; got 0. Leave that recording out.")
    missing = [name for name in ("time", "segment") if name not in frames.coords]
    if missing or "frame_period" not in frames.attrs:
        got = f"no {missing[0]!r}" if missing else "no attribute 'frame_period'"
        raise ValueError(
            f"{what} must have 'time', 'segment' and the attribute 'frame_period'; got {got}. {MAKE_FRAMES}"
        )
    return frames


def shared_labels(who: str, parts: Sequence[xr.DataArray]) -> list[xr.DataArray]:
    """Parts with the coordinates along their frames that all of them have; others are told."""
    named = [{name for name, values in part.coords.items() if "frame" in values.dims} for part in parts]
    shared = set.intersection(*named)
    if lost := sorted({str(name) for names in named for name in names - shared}):
        warn(f"{who}: only some recordings have {', '.join(map(repr, lost))}, which is left out.")
    return [part.drop_vars(names - shared) for part, names in zip(parts, named, strict=True)]


def _shift(first: xr.DataArray, part: xr.DataArray, end: float) -> float | None:
    """Seconds to add to a part's clock, so that it counts from the start of the first; None where nobody knows."""
    apart = seconds_between(first["time"].attrs.get("start_time"), part["time"].attrs.get("start_time"))
    if apart is not None:
        if float(part["time"][0]) + apart <= end:
            raise ValueError(
                "concat: recordings must follow each other in time; got one from "
                f"{part['time'].attrs['start_time']} after one that ends later. Name them in the order of their clocks."
            )
        return apart
    return 0.0 if float(part["time"][0]) > end else None


def seconds_between(start: str | None, other: str | None) -> float | None:
    """Seconds from one date-time to another; None where they cannot be compared (one in UTC, one of no zone)."""
    if not start or not other or start.endswith("Z") != other.endswith("Z"):
        return None
    instants = [np.datetime64(text.removesuffix("Z")) for text in (start, other)]
    return float((instants[1] - instants[0]) / np.timedelta64(1, "s"))
