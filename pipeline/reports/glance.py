"""The recording at a glance: its traces with their gaps, and its frames as lines or as an image."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.plot import lines

from ..frames.dates import to_dates
from ..frames.labels import segment_of
from ..frames.recording import clock
from ..frames.segments import restarts
from ..jobs.config import RunConfig
from ..jobs.run import open_all
from ..plot.series import in_columns, reduced, times_of
from .panels import Page, Section
from .shown import Shown

Floats = NDArray[np.float64]

_MOST_TRACES = 6
_TRACE_POINTS = 8_000
_COLUMNS, _ROWS = 1_500, 128
_MOST_NAMES = 10
# Numbers of recordings that are read once more, some seconds' worth.
_MOST_NUMBERS = 2**28


class Trace(NamedTuple):
    """Channels of one recording: times, values (NaN between stretches), names and units."""

    time: NDArray[Any]
    values: Floats
    names: list[str]
    units: str
    of: int
    """Channels that the recording has."""


def glance(page: Page, shown: Shown) -> Section:
    """The section that shows the recording and its frames."""
    traces, why = _traces(shown)
    panels, notes = [], [why] if why else []
    for k, name in enumerate(traces[0].names if traces else ()):
        drawn = [
            {"name": name, "t": page.array(shown.time.numbers(one.time), "f8"), "y": page.array(one.values[:, k], "i2")}
            for one in traces
        ]
        for one in drawn:
            one["colour"] = "#404040"
        panels.append(page.panel("lines", title=name, y=traces[0].units, series=drawn, height=70))
    if traces and traces[0].of > len(traces[0].names):
        notes.append(f"Shown are {len(traces[0].names)} of {traces[0].of} channels.")
    frames = shown.group("frames")
    if frames is not None:
        panels += _of_frames(page, shown, frames["frames"])
        notes += _gaps(shown, frames["frames"])
    return Section("The recording at a glance", tuple(panels), tuple(notes))


def _traces(shown: Shown) -> tuple[list[Trace], str]:
    """Traces of the recordings, or why there are none."""
    attrs = shown.tree.attrs
    try:
        opened = open_all(shown.recordings, RunConfig.from_json(attrs["settings"]))
    except (OSError, ValueError, TypeError, KeyError, ImportError) as error:
        return [], f"The recording could not be opened ({_short(error)}), so that only its frames are shown."
    sizes = [recording.sizes["time"] for recording in opened]
    if list(attrs.get("source_samples", sizes)) != sizes:
        return [], "The recording has changed since the run, so that only its frames are shown."
    if sum(recording.size for recording in opened) > _MOST_NUMBERS:
        return [], "The recording is too long to be read again for a page, so that only its frames are shown."
    shifts = np.resize(np.ravel(_frame_attrs(shown).get("time_shifts", 0.0)).astype(float), len(opened))
    dated = shown.time.start is not None
    try:
        return [_trace(one, shift, dated, len(opened)) for one, shift in zip(opened, shifts, strict=True)], ""
    except (OSError, ValueError) as error:
        return [], f"The recording could not be read ({_short(error)}), so that only its frames are shown."


def _trace(recording: xr.DataArray, shift: float, dated: bool, n_recordings: int) -> Trace:
    """Some channels of one recording, as few points."""
    found, n = clock(recording), recording.sizes["time"]
    kept = np.unique(np.linspace(0, recording.sizes["channel"] - 1, _MOST_TRACES).astype(int))
    begins = np.array([start for start, _ in found.segments], np.int64)
    bounds = np.unique([edge for span in found.segments for edge in span])
    edges = lines.bucket_edges(n, bounds, max(2, _TRACE_POINTS // 2 // n_recordings))
    columns = recording.isel(channel=kept).rename(time="frame").reset_coords(drop=True)
    low, high = (np.concatenate(parts) for parts in zip(*reduced(columns, edges, lines.extremes), strict=True))
    time = found.at((edges[:-1] + edges[1:] - 1) // 2) + shift
    stops = np.array([stop for _, stop in found.segments], np.int64)
    inside = edges[:-1] < stops[np.clip(np.searchsorted(begins, edges[:-1], side="right") - 1, 0, None)]
    begin = np.repeat(np.isin(edges[:-1], begins) | ~inside, 2) & np.tile([True, False], len(low))
    pairs = np.where(np.repeat(inside, 2)[:, None], np.stack([low, high], axis=1).reshape(-1, len(kept)), np.nan)
    start = str(recording["time"].attrs.get("start_time", "")) if "time" in recording.coords else ""
    times = to_dates(time, start) if dated and start else time
    names = (
        [str(name) for name in recording["channel"].values[kept]]
        if "channel" in recording.coords
        else [f"channel {k + 1}" for k in kept]
    )
    return Trace(
        lines.times_with_gaps(np.repeat(times, 2), begin),
        lines.with_gaps(pairs, begin),
        names,
        _units(recording),
        recording.sizes["channel"],
    )


def _of_frames(page: Page, shown: Shown, frames: xr.DataArray) -> list[int]:
    """Frames as lines where features are few sensors, else as an image."""
    if frames.attrs.get("features") == "identity" and frames.sizes["feature"] <= _MOST_TRACES:
        return []
    time, n = times_of(frames), frames.sizes["frame"]
    starts = restarts(segment_of(frames))
    edges = lines.bucket_edges(n, np.flatnonzero(starts), _COLUMNS)
    values = np.concatenate(list(reduced(in_columns(frames), edges, lines.means)))
    values, what = _levels(_pooled(values), frames)
    low, high = np.nanquantile(values, [0.01, 0.995]) if np.isfinite(values).any() else (0.0, 1.0)
    scaled = np.clip((values - low) / (high - low or 1.0), 0, 1)
    t = shown.time.numbers(time)
    begin, end = _columns(t, edges, starts)
    bottom, top, label = _rows(frames)
    names = {} if (found := _names(frames)) is None else {"names": found}
    return [
        page.panel(
            "image",
            title="Frames",
            begin=page.array(begin, "f8"),
            end=page.array(end, "f8"),
            rows=values.shape[1],
            levels=page.array(np.rint(np.nan_to_num(scaled) * 255), "u1"),
            bottom=bottom,
            top=top,
            y=label,
            z=what,
            low=float(low),
            high=float(high),
            height=150,
            **names,
        )
    ]


def _columns(t: Floats, edges: NDArray[np.int64], starts: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """From when to when each column of the image lasts: to the next one, unless a gap lies between."""
    half = float(np.median(np.diff(t))) / 2 if len(t) > 1 else 0.5
    begin, end = t[edges[:-1]] - half, t[edges[1:] - 1] + half
    end[:-1] = np.where(starts[edges[1:-1]], end[:-1], begin[1:])
    return begin, end


def _names(frames: xr.DataArray) -> list[str] | None:
    """Names of the rows of the image, where these are few channels."""
    if "channel" not in frames.coords or frames.sizes["feature"] > _MOST_NAMES:
        return None
    names = [str(name) for name in frames["channel"].values]
    return names if len(set(names)) == len(names) else None


def _pooled(values: Floats) -> Floats:
    """Neighbouring features taken together, so that an image has few rows."""
    if values.shape[1] <= _ROWS:
        return values
    edges = np.unique(np.linspace(0, values.shape[1], _ROWS + 1).astype(np.int64))
    return lines.means(np.ascontiguousarray(values.T), edges).T


def _levels(values: Floats, frames: xr.DataArray) -> tuple[Floats, str]:
    """What the colours of the image mean: levels of a spectrum, or features, each in its own deviations."""
    kind = frames.attrs.get("features")
    if kind == "stft":
        floor = np.nanmax(np.abs(values), initial=0.0) * 1e-6 or 1.0
        return 20 * np.log10(np.maximum(np.abs(values), floor)), "level (dB)"
    if kind in ("histogram", "log_rms"):
        return values, {"histogram": "share of samples", "log_rms": "log level"}[str(kind)]
    spread = np.nanstd(values, axis=0)
    return (values - np.nanmean(values, axis=0)) / np.where(spread > 0, spread, 1.0), "deviations from the mean"


def _rows(frames: xr.DataArray) -> tuple[float, float, str]:
    """From where to where the rows of the image go, and what they are."""
    if "frequency" in frames.coords and len(np.unique(frames["frequency"])) == frames.sizes["feature"]:
        frequency = frames["frequency"].values.astype(float)
        if (np.diff(frequency) > 0).all():
            return frequency[0] / 1000, frequency[-1] / 1000, "frequency (kHz)"
    return 0.5, frames.sizes["feature"] + 0.5, "" if _names(frames) else "feature"


def _gaps(shown: Shown, frames: xr.DataArray) -> list[str]:
    """What there is to say about gaps."""
    segment = segment_of(frames)
    n = int(restarts(segment).sum())
    if n <= 1:
        return ["No gaps."]
    return [f"{n} stretches without a gap, of {_span(segment)} frames. Lines are not drawn across gaps."]


def _span(segment: NDArray[np.int64]) -> str:
    """Shortest and longest stretch."""
    begin, end = lines.runs(segment)
    least, most = (end - begin).min(), (end - begin).max()
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _frame_attrs(shown: Shown) -> dict[str, Any]:
    """Attributes of the frames."""
    frames = shown.group("frames")
    return {} if frames is None else {str(k): v for k, v in frames["frames"].attrs.items()}


def _units(recording: xr.DataArray) -> str:
    """Unit of a recording, where it is one word for all channels."""
    units = recording.attrs.get("units", "")
    return "" if not isinstance(units, str) or units in ("1", "unknown") else units


def _short(error: BaseException) -> str:
    """The first sentence of an error."""
    return " ".join(str(error).split())[:300]
