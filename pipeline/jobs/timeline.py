"""Consecutive recordings: stretches laid end to end, with one count of samples and one clock for all.

Throughout: a *stretch* is a recording, a *stream* the stretches one after the other. Samples count from the
first sample of the first stretch. Stream time is in seconds, on the clock of the result that is continued.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..frames.carried import beside
from ..frames.join import seconds_between
from ..frames.recording import GAP_PERIODS, Clock, clock, start_time
from ..graph.spans import Span

# Relative differences allowed in a sampling rate: if given, and if measured from stored times.
_TOLD, _MEASURED = 1e-6, 1e-2
_ENOUGH_STEPS = 20


class Place(NamedTuple):
    """Where a stretch stands in the stream.

    ``first``: number of its first sample; ``samples``: how many it had; ``shift``: seconds from its own
    clock to stream time; ``counted``: samples that its sample 0 is counted on from; ``told``: whether its
    clock tells where it stands; ``parted``: whether a gap lies before it.
    """

    first: int
    samples: int
    shift: float
    counted: int
    told: bool
    parted: bool


@dataclass(frozen=True)
class Stretch:
    """One recording of a stream, open and in its place; ``holes`` are spans of the stream that are left out."""

    recording: xr.DataArray
    ticks: Clock
    place: Place
    holes: tuple[Span, ...] = ()

    @property
    def stop(self) -> int:
        """Number of the sample after its last."""
        return self.place.first + self.place.samples

    def times(self, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """Stream times of samples, which count from the start of the stream."""
        own = samples - self.place.first
        if self.ticks.counted:
            return self.place.shift + self.ticks.at(own + self.place.counted)
        times = self.ticks.at(own)
        if self.place.shift and start_time(self.recording):
            # In whole nanoseconds, as date-times of one long recording are read.
            return (np.rint(times * 1e9) + np.rint(self.place.shift * 1e9)) / 1e9
        return times + self.place.shift

    def gaps(self) -> list[int]:
        """Samples that begin a new segment, or a hole."""
        inner = {self.place.first + start for start, _ in self.ticks.segments if start > 0}
        inner |= {bound for hole in self.holes for bound in hole}
        return sorted(inner | {self.place.first} if self.place.parted else inner)


@dataclass(frozen=True)
class Lay:
    """What must be known to lay the next stretch.

    ``period``: seconds between samples; ``end``: stream time of the last sample; ``first``: number of the
    next; ``shift``: of the last stretch; ``anchor``: where its clock began when it last started over;
    ``dated`` and ``dated_shift``: a date-time, and the stream time of it.
    """

    period: float
    end: float
    first: int
    shift: float
    anchor: float
    dated: str | None
    dated_shift: float = 0.0

    def place(self, path: object, recording: xr.DataArray, ticks: Clock, *, begins: bool) -> tuple[Stretch, Lay]:
        """Lay a stretch after what is there: by its clock if that continues, otherwise without a gap.

        Before the stretch that ``begins`` a stream lie samples of the result that no frame holds: whether
        there is a gap is left to the frames.

        Raises
        ------
        ValueError
            Its clock says that it begins before the end of what is there.
        """
        own = float(ticks.at(np.zeros(1, np.int64))[0])
        date = start_time(recording)
        apart = seconds_between(self.dated, date)
        shift = self.shift if apart is None else self.dated_shift + apart
        if own + shift > self.end and not (ticks.counted and apart is None):
            parted = not begins and own + shift - self.end > GAP_PERIODS * self.period
            found = Place(self.first, recording.sizes["time"], shift, 0, told=True, parted=parted)
            return self._after(Stretch(recording, ticks, found), self.anchor, date)
        if apart is not None or (not ticks.counted and own > self.anchor + self.period / 2):
            raise ValueError(
                f"continue: recordings must follow each other in time; got {path}, which begins at {own + shift:g} s, "
                f"but the one before ends at {self.end:g} s. Give them in the order of their clocks."
            )
        place = Place(self.first, recording.sizes["time"], *self._going_on(own, ticks), told=False, parted=False)
        return self._after(Stretch(recording, ticks, place), own, date)

    def grown(self, recording: xr.DataArray, ticks: Clock) -> tuple[Stretch, Lay]:
        """Lay the very recording that the result ends with: its clock stays."""
        place = Place(0, recording.sizes["time"], self.shift, 0, told=True, parted=False)
        return self._after(Stretch(recording, ticks, place), self.anchor, start_time(recording))

    def again(self, recording: xr.DataArray, ticks: Clock, place: Place) -> tuple[Stretch, Lay]:
        """Put a stretch back where it was; it may have grown."""
        stretch = Stretch(recording, ticks, place._replace(samples=recording.sizes["time"]))
        return self._after(stretch, self.anchor, start_time(recording))

    def _going_on(self, own: float, ticks: Clock) -> tuple[float, int]:
        """Shift and count of a stretch that goes on where the last sample ended, one period later."""
        begins = self.end + self.period
        if not ticks.counted:
            return begins - own, 0
        step = float(ticks.at(np.ones(1, np.int64))[0]) - own
        count = round((begins - own) / step)
        # On the grid of sample numbers where it lies on it: the times are then the bits of one long recording.
        return (0.0, count) if abs(own + count * step - begins) < 1e-6 * step else (begins - own, 0)

    def _after(self, stretch: Stretch, anchor: float, date: str | None) -> tuple[Stretch, Lay]:
        """What there is to know with a stretch laid."""
        begin, end = stretch.times(np.array([stretch.place.first, stretch.stop - 1]))
        shift = float(begin - stretch.ticks.at(np.zeros(1, np.int64))[0])
        after = replace(self, end=float(end), first=stretch.stop, shift=shift, anchor=anchor)
        if date is not None and self.dated is None:
            after = replace(after, dated=date, dated_shift=shift)
        return stretch, after


def checked_clock(path: object, recording: xr.DataArray, period: float) -> Clock:
    """The clock of a stretch, whose rate must be that of the result.

    Raises
    ------
    ValueError
        Another rate, or a clock that does not run forwards.
    """
    ticks = clock(recording, period)
    told = ticks.counted  # with stored times, a rate in the attributes may come from a few of them
    found = 1 / ticks.sampling_rate if told else _measured(ticks, recording.sizes["time"], period)
    if abs(found / period - 1) > (_TOLD if told else _MEASURED):
        raise ValueError(
            f"continue: recordings must have the sampling rate of the result, {1 / period:g} Hz; got "
            f"{1 / found:g} Hz in {path}. Resample it."
        )
    return ticks


def _measured(ticks: Clock, n: int, period: float) -> float:
    """Usual step of a stored clock between gaps; the one that is expected, where too few could tell another."""
    steps = np.diff(ticks.at(np.arange(n)))
    if len(steps) < _ENOUGH_STEPS:
        return period
    within = steps[steps <= GAP_PERIODS * period]
    return float(np.median(within if len(within) else steps))


def times_of(stretches: Sequence[Stretch], samples: NDArray[np.int64]) -> NDArray[np.float64]:
    """Stream times of samples, which count from the start of the stream, in increasing order."""
    bounds = np.searchsorted(samples, [stretch.place.first for stretch in stretches[1:]])
    parts = np.split(samples, bounds)
    return np.concatenate([stretch.times(part) for stretch, part in zip(stretches, parts, strict=True)])


def without_holes(stretch: Stretch, begin: int) -> Stretch:
    """The stretch with what is NaN or infinite from a sample of the stream on as holes; this reads it.

    Parameters
    ----------
    stretch
        One stretch.
    begin
        Sample of the stream before which all is used already.

    Examples
    --------
    >>> values = np.array([[1.0], [np.nan], [np.inf], [2.0]])
    >>> recording = xr.DataArray(values, dims=("time", "channel"))
    >>> stretch = Stretch(recording, clock(recording), Place(10, 4, 0.0, 0, told=False, parted=False))
    >>> without_holes(stretch, 0).holes
    ((11, 13),)
    """
    first = max(begin, stretch.place.first)
    samples = stretch.recording.isel(time=slice(first - stretch.place.first, None))
    if samples.dtype.kind != "f" or not samples.sizes["time"]:
        return stretch
    bad = np.asarray(~np.isfinite(samples.data).all(axis=1))
    for start, stop in stretch.holes:
        bad[max(0, start - first) : max(0, stop - first)] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[False], bad, [False]]))) + first
    starts, stops = edges[::2].tolist(), edges[1::2].tolist()
    return replace(stretch, holes=tuple(zip(starts, stops, strict=True)))


def as_opened(stretch: Stretch) -> Stretch:
    """The stretch with what its recording leaves out of its segments as holes.

    Examples
    --------
    >>> left_out = {"segment": ("time", [0, -1, 1, 1])}
    >>> recording = xr.DataArray(np.zeros((4, 1)), dims=("time", "channel"), coords=left_out)
    >>> stretch = Stretch(recording, clock(recording), Place(10, 4, 0.0, 0, told=False, parted=False))
    >>> as_opened(stretch).holes
    ((11, 12),)
    """
    first = stretch.place.first
    bounds = [0, *(bound for span in stretch.ticks.segments for bound in span), stretch.place.samples]
    spans = zip(bounds[::2], bounds[1::2], strict=True)
    return replace(stretch, holes=tuple((first + start, first + stop) for start, stop in spans if start < stop))


def segments_from(stretches: Sequence[Stretch], begin: int, stop: int) -> list[Span]:
    """Spans without a gap from one sample of the stream to another, counted from the first of the two; no holes.

    Examples
    --------
    >>> recording = xr.DataArray(np.zeros((4, 1)), dims=("time", "channel"), coords={"segment": ("time", [0, 0, 0, 1])})
    >>> stretch = Stretch(recording, clock(recording), Place(10, 4, 0.0, 0, told=False, parted=False))
    >>> segments_from([stretch], 11, 14)
    [(0, 2), (2, 3)]
    """
    cuts = sorted({gap - begin for gap in gaps_of(stretches) if begin < gap < stop})
    spans = list(zip([0, *cuts], [*cuts, stop - begin], strict=True))
    holes = [hole for stretch in stretches for hole in stretch.holes]
    if not holes:
        return spans
    starts, ends = np.array(holes).T
    firsts = np.array([begin + a for a, _ in spans])
    last = np.searchsorted(starts, firsts, side="right") - 1
    inside = (last >= 0) & (firsts < ends[last])
    return [span for span, left_out in zip(spans, inside, strict=True) if not left_out]


def gaps_of(stretches: Iterable[Stretch]) -> list[int]:
    """Samples of the stream that begin a new segment, in order."""
    return [gap for stretch in stretches for gap in stretch.gaps()]


def joined(stretches: Sequence[Stretch], begin: int, stop: int, period: float) -> xr.DataArray:
    """The samples of a stream from one to another as one lazy recording without a clock, gaps marked."""
    spans = segments_from(stretches, begin, stop)
    parts: list[xr.DataArray] = []
    for stretch in stretches:
        # Without holes all spans meet: one slice a stretch, however many gaps.
        for start, end in spans if any(each.holes for each in stretches) else [(0, stop - begin)]:
            a, b = max(begin + start, stretch.place.first), min(begin + end, stretch.stop)
            if a < b:
                samples = stretch.recording.isel(time=slice(a - stretch.place.first, b - stretch.place.first))
                parts.append(samples if samples.chunks else samples.chunk())
    segment = np.repeat(np.arange(len(spans)), [b - a for a, b in spans])
    first = stretches[0].recording
    coords: dict[Hashable, Any] = {"channel": first["channel"]} if "channel" in first.coords else {}
    for name in beside(stretch.recording for stretch in stretches):
        coords[name] = ("time", np.concatenate([np.asarray(part[name].values) for part in parts]))
    attrs = {**first.attrs, "sampling_rate": 1 / period}
    return xr.DataArray(
        da.concatenate([part.data for part in parts]),
        dims=("time", "channel"),
        coords={**coords, "segment": ("time", segment)},
        attrs=attrs,
    )
