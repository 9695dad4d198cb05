"""What is done to the time of a recording as it is opened, where the user asks for it; ``opening.py`` has the policy.

Throughout: a *note* says in a few words what was done; the attribute ``opened`` has them all.
"""

from __future__ import annotations

import re
from typing import Any

import dask
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from xarray.indexes import RangeIndex

from ..graph.spans import Span, segment_spans
from .clock import clock, seconds_of
from .opening import OpenConfig

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(us|ms|s|min|h)\s*")


def noted(recording: xr.DataArray, *notes: str) -> xr.DataArray:
    """A recording whose attribute ``opened`` says what was done to it.

    Examples
    --------
    >>> noted(noted(xr.DataArray(0.0), "sorted 3 samples"), "left out 'class'").attrs["opened"]
    "sorted 3 samples; left out 'class'"
    """
    told = [text for text in (recording.attrs.get("opened"), *notes) if text]
    return recording.assign_attrs(opened="; ".join(told)) if notes else recording


def seconds_in_text(text: str) -> float:
    """Seconds of a duration such as '23ms', which must be one.

    Examples
    --------
    >>> seconds_in_text("23ms")
    0.023
    """
    match = _DURATION.fullmatch(text)
    if match is None or not np.isfinite(float(match[1])):
        raise ValueError(f"open_recording: a duration must have a unit (us, ms, s, min, h); got {text!r}.")
    return float(match[1]) * _SECONDS[match[2]]


def in_order_of_time(recording: xr.DataArray, config: OpenConfig, path: object) -> xr.DataArray:
    """A recording in UTC, sorted, and without times that repeat, as far as that is asked for.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``, opened.
    config
        How it is to be opened.
    path
        Where it comes from, for errors.

    Raises
    ------
    ValueError
        A local time is ambiguous, or the time is not in order and nothing was asked for.
    """
    if "time" not in recording.coords or not _is_stored(recording):
        if config.timezone is not None and "start_time" not in recording.coords.get("time", recording).attrs:
            raise ValueError(f"open_recording: timezone is for date-times; {path} has none. Leave it out.")
        return recording
    asked = (config.timezone, config.order, config.duplicates)
    if recording["time"].chunks and not any(asked):
        return recording  # a long clock is read, and refused, where it is used
    if config.timezone is not None:
        recording = _in_utc(recording, config.timezone, path)
    recording = _sorted(recording, config.order, path)
    return _without_repeats(recording, config.duplicates, path)


def cut_at_gaps(recording: xr.DataArray, config: OpenConfig) -> xr.DataArray:
    """A recording whose coordinate ``segment`` marks gaps and what is left out, as far as that is asked for.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``, in the order of time.
    config
        How it is to be opened.

    Notes
    -----
    ``gaps="nan"`` reads the whole recording, in slabs. Samples that are left out stay where they are, in a segment
    of number -1.
    """
    if config.gaps is not None and config.gaps not in ("clock", "nan", "ignore"):
        # A rate that the file tells for itself is that of its own gaps.
        old = {"sampling_rate"} if "time" in recording.coords and _is_stored(recording) else set()
        told = {name: value for name, value in recording.attrs.items() if name not in old}
        recording = recording.copy(deep=False)
        recording.attrs = told | {"longest_step": seconds_in_text(config.gaps)}
        recording = noted(recording, f"took steps of the clock longer than {config.gaps} for gaps")
    if config.gaps == "nan":
        recording = _without_nan(recording)
    return recording if config.shortest_segment is None else _without_short(recording, config.shortest_segment)


def _is_stored(recording: xr.DataArray) -> bool:
    """Whether a clock has a time of every sample."""
    return not isinstance(recording.xindexes.get("time"), RangeIndex)


def _in_utc(recording: xr.DataArray, zone: str, path: object) -> xr.DataArray:
    """Date-times without a zone as UTC."""
    time = recording["time"]
    start = time.attrs.get("start_time")
    if time.dtype.kind == "M":
        local = time.values.astype("datetime64[ns]")
    elif start is None or str(start).endswith("Z"):
        what = "numbers" if start is None else "date-times in UTC"
        raise ValueError(
            f"open_recording: timezone is for date-times without a zone; {path} has {what}. Leave timezone= out."
        )
    else:
        local = np.datetime64(str(start), "ns") + np.rint(seconds_of(recording) * 1e9).astype("timedelta64[ns]")
    instants = _localized(local, zone, path)
    if time.dtype.kind == "M":
        moved = time.copy(data=instants).assign_attrs(timezone="UTC")
    else:
        first = str(np.datetime_as_string(instants[0], unit="ns")).rstrip("0").rstrip(".")
        seconds = (instants - instants[0]) / np.timedelta64(1, "s")
        moved = time.copy(data=seconds).assign_attrs(start_time=f"{first}Z")
    return noted(recording.assign_coords(time=moved), f"read local times of {zone} as UTC")


def _localized(local: NDArray[Any], zone: str, path: object) -> NDArray[Any]:
    """Local times as UTC; of an hour that comes twice, the second begins where the clock goes backwards."""
    index = pd.DatetimeIndex(local)
    try:
        known = index.tz_localize(zone, ambiguous="NaT", nonexistent="shift_forward")
        gone = index.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    except (KeyError, ValueError, TypeError, LookupError, OSError):
        raise ValueError(
            f"open_recording: timezone must be the name of a zone, such as Europe/Berlin, UTC or +01:00; got {zone!r}."
        ) from None
    if (missing := np.flatnonzero(gone.isna() & known.notna())).size:
        raise ValueError(
            f"open_recording: {path}: {local[missing[0]]!s:.19} does not exist in {zone}, for clocks were put forward. "
            "Give the zone in which the times were written, such as timezone='+01:00'."
        )
    ambiguous = np.asarray(known.isna())
    if not ambiguous.any():
        return np.asarray(known.tz_convert("UTC").tz_localize(None).values)
    summer = _first_passes(local, ambiguous, zone, path)
    return np.asarray(index.tz_localize(zone, ambiguous=summer).tz_convert("UTC").tz_localize(None).values)


def _first_passes(local: NDArray[Any], ambiguous: NDArray[np.bool_], zone: str, path: object) -> NDArray[np.bool_]:
    """Which of the times that come twice are of the first hour."""
    first = np.zeros(len(local), bool)
    for start, stop in segment_spans(ambiguous.astype(np.int64)):
        if not ambiguous[start]:
            continue
        back = np.flatnonzero(np.diff(local[start:stop]) < np.timedelta64(0, "s"))
        if len(back) != 1:
            raise ValueError(
                f"open_recording: {path}: {local[start]!s:.19} comes twice in {zone}, for clocks were put back, and "
                "nothing tells which is meant. Give the zone in which times were written, such as timezone='+01:00'."
            )
        first[start : start + back[0] + 1] = True
    return first


def _sorted(recording: xr.DataArray, order: str | None, path: object) -> xr.DataArray:
    """Samples in the order of time."""
    values = recording["time"].values
    if len(values) < 2 or values.dtype.kind not in "fiuMm" or not (values[1:] < values[:-1]).any():
        return recording
    at = int(np.flatnonzero(values[1:] < values[:-1])[0])
    if order != "sort":
        raise ValueError(
            f"open_recording: time must increase from sample to sample; {path} has {_shown(values[at + 1])} after "
            f"{_shown(values[at])}, at samples {at} and {at + 1}. Give order='sort' to sort them, timezone= for local "
            "times whose clock was put back, or gaps='ignore' and sampling_rate= to number the samples."
        )
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(f"open_recording: {path}: time must be known for every sample; got NaN. Leave those rows out.")
    places = np.argsort(values, kind="stable")
    moved = int(np.count_nonzero(places != np.arange(len(places))))
    return noted(_from_first(recording.isel(time=places)), f"sorted {moved} samples into the order of time")


def _from_first(recording: xr.DataArray) -> xr.DataArray:
    """A recording whose seconds count from a date-time again count from its first sample."""
    time = recording["time"]
    start = time.attrs.get("start_time")
    if start is None or time.dtype.kind != "f" or not time.size or float(time[0]) == 0:
        return recording
    zone = "Z" if str(start).endswith("Z") else ""
    first = np.datetime64(str(start).removesuffix("Z"), "ns") + np.timedelta64(round(float(time[0]) * 1e9), "ns")
    text = str(np.datetime_as_string(first, unit="ns")).rstrip("0").rstrip(".") + zone
    return recording.assign_coords(time=(time - time[0]).assign_attrs({**time.attrs, "start_time": text}))


def _without_repeats(recording: xr.DataArray, duplicates: str | None, path: object) -> xr.DataArray:
    """One sample of each time, or all of them spread over the time to the next."""
    values = recording["time"].values
    if len(values) < 2 or values.dtype.kind not in "fiuMm" or not (values[1:] == values[:-1]).any():
        return recording
    same = values[1:] == values[:-1]
    if duplicates in ("first", "last"):
        kept = np.concatenate([[True], ~same]) if duplicates == "first" else np.concatenate([~same, [True]])
        note = f"kept the {duplicates} of the samples whose times repeat: left out {int(same.sum())}"
        return noted(recording.isel(time=np.flatnonzero(kept)), note)
    if duplicates == "spread":
        note = f"spread {int(same.sum())} samples whose times repeat over the time to the next"
        return noted(_spread(recording, values), note)
    at = int(np.flatnonzero(same)[0])
    often = "duplicates='spread' to spread them evenly" if np.mean(same) > 0.1 else "duplicates='first' or 'last'"
    raise ValueError(
        f"open_recording: time must increase from sample to sample; {path} has {_shown(values[at])} at samples {at} "
        f"and {at + 1}, and {int(same.sum())} repeats in all. Give {often}, or gaps='ignore' and sampling_rate= to "
        "number the samples."
    )


def _spread(recording: xr.DataArray, values: NDArray[Any]) -> xr.DataArray:
    """Samples of one time, evenly up to the next time; those of the last as those before."""
    firsts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
    counts = np.diff(np.concatenate([firsts, [len(values)]]))
    distinct = seconds_of(recording)[firsts]
    usual = float(np.median(np.diff(distinct))) if len(firsts) > 1 else float(len(values))
    room = np.minimum(np.append(np.diff(distinct), usual), usual)
    within = np.arange(len(values)) - np.repeat(firsts, counts)
    seconds = np.repeat(distinct, counts) + within * np.repeat(room / counts, counts)
    time = recording["time"]
    if time.dtype.kind == "M":
        moved = values[0] + np.rint(seconds * 1e9).astype("timedelta64[ns]")
        return recording.assign_coords(time=time.copy(data=moved))
    return recording.assign_coords(time=("time", seconds, {**time.attrs, "units": "s"}))


def _without_nan(recording: xr.DataArray) -> xr.DataArray:
    """Samples with NaN or infinity in any channel are left out, and are gaps."""
    if recording.dtype.kind != "f":
        return recording
    bad = np.asarray(dask.compute(~np.isfinite(recording.data).all(axis=1))[0])
    if not bad.any():
        return recording
    if bad.all():
        raise ValueError(
            "open_recording: gaps='nan' must leave some sample; got NaN or infinity in a channel of each. Leave that "
            "channel out with drop_channels=."
        )
    number = np.cumsum(np.diff(bad, prepend=bad[:1]))
    note = f"took {bad.sum()} samples ({bad.mean():.2%}) with NaN or infinity for gaps"
    return noted(_marked(recording, number, bad), note)


def _without_short(recording: xr.DataArray, shortest: int | float | str) -> xr.DataArray:
    """Segments that are too short are left out."""
    ticks = clock(recording)
    least = shortest if not isinstance(shortest, str) else seconds_in_text(shortest) * ticks.sampling_rate
    short: list[Span] = [span for span in ticks.segments if span[1] - span[0] < least]
    if len(short) == len(ticks.segments):
        longest = max((stop - start for start, stop in ticks.segments), default=0)
        raise ValueError(
            f"open_recording: shortest_segment must leave some segment; got {shortest!r} where the longest holds "
            f"{longest} samples. Give a smaller one."
        )
    if not short:
        return recording
    bad, number = np.ones(recording.sizes["time"], bool), np.zeros(recording.sizes["time"], np.int64)
    for count, (start, stop) in enumerate(ticks.segments):
        bad[start:stop], number[start:stop] = (start, stop) in short, count
    left = sum(stop - start for start, stop in short)
    note = f"left out {left} samples in segments shorter than {shortest} ({len(short)} of {len(ticks.segments)})"
    return noted(_marked(recording, number, bad), note)


def _marked(recording: xr.DataArray, number: NDArray[Any], bad: NDArray[np.bool_]) -> xr.DataArray:
    """A recording with numbers of segments, -1 where samples are left out; earlier marks stay."""
    if "segment" in recording.coords:
        earlier = np.asarray(recording["segment"].values)
        if earlier.dtype.kind in "iuf":
            bad = bad | (earlier < 0)
        number = 2 * np.cumsum(np.concatenate([[0], (earlier[1:] != earlier[:-1]) | (np.diff(number) != 0)]))
    attrs = {"long_name": "number of the gap-free stretch; -1 is left out"}
    return recording.assign_coords(segment=("time", np.where(bad, -1, number).astype(np.int64), attrs))


def _shown(value: Any) -> str:
    """A time, as an error shows it."""
    return str(value)[:26] if isinstance(value, np.datetime64) else f"{value:.10g}"
