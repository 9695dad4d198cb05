"""The clock of a recording: its rate, its gaps, and the date from which it counts."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xarray.indexes import RangeIndex

from manifold_observer.tasks.frames.ticks import Ticks, read_ticks

from ..graph.spans import Span, segment_spans
from .dates import as_text
from .units import UNKNOWN, seconds_in

SAME_RATE = 1e-3
"""Rates that differ by less say the same: headers are written with few digits."""

_ROUNDED = 1e-9
# Shares of steps that are not near the period, and ratios of periods within a clock, that no rate describes.
_MOST_IRREGULAR, _MOST_SPREAD, _FEW = 0.4, 1.5, 16


@dataclass(frozen=True)
class Clock:
    """When the samples of a recording were taken.

    ``sampling_rate`` in Hz; ``segments`` are spans of samples without a gap; ``known`` is False where
    the recording has no clock and sample numbers stand for seconds.
    """

    sampling_rate: float
    segments: list[Span]
    known: bool
    _start: float
    _step: float
    _values: NDArray[np.float64] | None

    @property
    def counted(self) -> bool:
        """Whether times follow from the numbers of the samples, without a stored clock."""
        return self._values is None

    def at(self, samples: NDArray[np.int64]) -> NDArray[Any]:
        """Times of the given samples, in seconds."""
        if self._values is not None:
            return self._values[samples]
        return self._start + self._step * samples


def clock(recording: xr.DataArray, period: float | None = None) -> Clock:
    """Read the clock of a recording: its rate, and where its gaps are.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``, with a ``time`` coordinate in seconds (or date-times), or an
        attribute ``sampling_rate``, or neither. A ``segment`` coordinate along ``time`` marks gaps
        that the clock does not show, and with negative numbers samples that are left out.
    period
        Seconds from sample to sample, where they are known; else they are fitted to a stored clock.

    Returns
    -------
    The clock.

    Raises
    ------
    ValueError
        The clock goes backwards, repeats, is not finite, or runs at no one rate.

    Warns
    -----
    UserWarning
        The attribute ``sampling_rate`` does not fit the clock, which decides.

    Notes
    -----
    A regular clock (``RangeIndex``) costs nothing; a stored one is read once, 8 bytes a sample.
    """
    n, rate = recording.sizes["time"], told_rate(recording)
    index = recording.xindexes.get("time")
    if "time" not in recording.coords:
        return Clock(rate or 1.0, _cut(recording), rate is not None, 0.0, 1.0 / (rate or 1.0), None)
    if isinstance(index, RangeIndex):
        step = _exact_step(float(index.step), rate)
        if not step > 0:
            raise ValueError(f"recording: time must increase from sample to sample; got steps of {step:g} s.")
        return Clock(_agreed(1 / step, rate, 1e-9), _cut(recording), True, float(index.start), step, None)
    times = seconds_of(recording)
    _check_increasing(times)
    if n < 2:
        return Clock(rate or 1 / (period or 1.0), _cut(recording), True, 0.0, period or 1 / (rate or 1.0), times)
    ticks = read_ticks(times, tick=_tick(recording), period=period, longest=recording.attrs.get("longest_step"))
    if period is None:
        _check_one_rate(recording, ticks, n)
    found = 1 / ticks.period if period else _agreed(1 / ticks.period, rate, 3 * ticks.error / ticks.period)
    return Clock(found, _cut(recording, ticks.gaps), True, 0.0, ticks.period, times)


def start_time(recording: xr.DataArray) -> str | None:
    """Date-time from which the seconds of :func:`clock` count, in ISO 8601, where the recording tells it.

    Examples
    --------
    >>> noon = xr.Variable("time", np.array(["2020-03-09T12:00", "2020-03-09T12:01"], "datetime64[ns]"))
    >>> start_time(xr.DataArray(np.zeros((2, 1)), dims=("time", "channel"), coords={"time": noon}))
    '2020-03-09T12:00'
    """
    if "time" not in recording.coords:
        return None
    time = recording["time"]
    if time.dtype.kind == "M" and time.size:
        return as_text(time[0].values)
    return str(time.attrs["start_time"]) if "start_time" in time.attrs else None


def told_rate(recording: xr.DataArray) -> float | None:
    """The attribute ``sampling_rate`` as a number of Hz; None where there is none.

    Examples
    --------
    >>> told_rate(xr.DataArray(0.0, attrs={"sampling_rate": "250 Hz"}))
    Traceback (most recent call last):
    ValueError: recording: the attribute sampling_rate must be one number of Hz above 0; got '250 Hz'. Correct ...
    """
    told = recording.attrs.get("sampling_rate")
    if told is None:
        return None
    try:
        rate = float(np.asarray(told).reshape(()))
    except (TypeError, ValueError):
        rate = np.nan
    if isinstance(told, bool) or not (np.isfinite(rate) and rate > 0):
        raise ValueError(
            f"recording: the attribute sampling_rate must be one number of Hz above 0; got {_plain(told)!r}. Correct "
            "it, or give sampling_rate= to open_recording."
        )
    return rate


def _plain(value: Any) -> Any:
    """A value as an error shows it."""
    return value.tolist() if hasattr(value, "tolist") else value


def seconds_of(recording: xr.DataArray) -> NDArray[np.float64]:
    """The stored clock in seconds, whatever its unit; date-times count from the first."""
    values = recording["time"].values
    if values.dtype.kind == "M":
        return (values - values[0]) / np.timedelta64(1, "s")
    if values.dtype.kind == "m":
        return values / np.timedelta64(1, "s")
    if values.dtype.kind not in "fiu":
        raise ValueError(
            f"recording: time must be numbers of seconds or date-times; got dtype {values.dtype}. "
            "Convert it, as with pandas.to_datetime, or drop it with recording.drop_vars('time') and set the attribute "
            "sampling_rate."
        )
    units = str(recording["time"].attrs.get("units", "s"))
    factor = seconds_in(units.partition(" since ")[0])
    if factor is None and units.strip().lower() not in (*UNKNOWN, "1"):
        raise ValueError(
            f"recording: time must be in seconds, or another unit of time; got {units!r}. Correct its attribute "
            "'units', or give time_unit= to open_recording."
        )
    seconds = values.astype(np.float64)
    if factor is None:
        return seconds
    # Milliseconds are divided by 1000: a thousandth is not exact.
    return seconds * factor if factor >= 1 else seconds / round(1 / factor)


def _exact_step(step: float, rate: float | None) -> float:
    """The step of a regular clock; where a rate is known, its own inverse, which does not round with the length."""
    return 1.0 / float(rate) if rate is not None and abs(step * rate - 1) < 1e-9 else step


def _agreed(found: float, told: float | None, error: float) -> float:
    """The rate that the attribute tells where it fits the clock; else that of the clock."""
    if told is None:
        return found
    apart = abs(told / found - 1)
    if apart <= max(SAME_RATE, error):
        return told if apart <= max(_ROUNDED, error) else found
    warnings.warn(
        f"recording: its attribute sampling_rate says {told:g} Hz, but its clock runs at {found:g} Hz, which is used. "
        "The attribute may be older than a selection or a resampling; correct or drop it.",
        stacklevel=4,
    )
    return found


def _tick(recording: xr.DataArray) -> float:
    """Resolution of a clock that was stored in single precision, in seconds."""
    time = recording["time"]
    stored = np.dtype(time.encoding.get("dtype", time.dtype))
    if stored.kind != "f" or stored.itemsize >= 8 or not time.size:
        return 0.0
    told = str(time.encoding.get("units", time.attrs.get("units", "s")))
    unit, _, since = told.partition(" since ")
    factor = seconds_in(unit) or 1.0
    largest = _since(time.values, since) / factor if time.dtype.kind == "M" else float(np.abs(time.values).max())
    return factor * float(np.spacing(np.array(largest, stored)))


def _since(values: NDArray[Any], reference: str) -> float:
    """Most seconds of some date-times from a reference, or from the first where it cannot be read."""
    try:
        start = np.datetime64(reference.strip().replace(" ", "T"))
    except ValueError:
        start = values[0]
    return float(np.abs((values - start) / np.timedelta64(1, "s")).max())


def _check_increasing(times: NDArray[np.float64]) -> None:
    """A clock must run forwards."""
    bad = np.flatnonzero(~(np.diff(times) > 0))
    if len(bad) or not np.isfinite(times).all():
        at = int(bad[0]) if len(bad) else int(np.argmin(np.isfinite(times)))
        raise ValueError(
            f"recording: time must increase from sample to sample; got {times[at : at + 2].tolist()} at "
            f"samples {at} and {at + 1}. Open it with order='sort' or duplicates='first' (open_recording), or use "
            "recording.sortby('time') and recording.drop_duplicates('time')."
        )


def _check_one_rate(recording: xr.DataArray, ticks: Ticks, n: int) -> None:
    """Refuse a clock that no rate describes, unless it was asked to take the mean."""
    if recording.attrs.get("rates") == "mean" or n < _FEW:
        return
    if ticks.irregular > _MOST_IRREGULAR:
        got = f"steps of which {ticks.irregular:.0%} are far from the usual {ticks.period:g} s"
    elif ticks.spread > _MOST_SPREAD:
        got = f"stretches of which the slowest have {ticks.spread:.3g} times the period of the fastest"
    else:
        return
    raise ValueError(
        f"recording: time must run at one rate; got {got}. Resample it, open it with rates='mean' to take the mean, "
        "or number its samples with gaps='ignore' and sampling_rate= (open_recording)."
    )


def _cut(recording: xr.DataArray, gaps: NDArray[np.int64] | None = None) -> list[Span]:
    """Spans between gaps and where a 'segment' coordinate changes, without those of negative numbers."""
    n, found = recording.sizes["time"], [] if gaps is None else gaps.tolist()
    if "segment" not in recording.coords:
        return [(start, stop) for start, stop in itertools.pairwise([0, *found, n]) if stop > start]
    marked: NDArray[Any] = np.asarray(recording["segment"].values)
    bounds = sorted({0, *(start for start, _ in segment_spans(marked)), *found, n})
    kept = marked >= 0 if marked.dtype.kind in "iuf" else np.ones(n, bool)
    return [(start, stop) for start, stop in itertools.pairwise(bounds) if kept[start]]
