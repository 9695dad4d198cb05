"""Feature graphs: a recording goes in, labelled frames come out, lazily.

Every function here cuts the recording into frames that stay within its gap-free segments; each task
reads just the samples that its frames are made of.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeGuard

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.frames import histogram as histogram_task
from manifold_observer.tasks.frames import log_rms as log_rms_task
from manifold_observer.tasks.frames import stft as stft_task

from .carried import carried
from .edges import given_edges, shared_edges
from .frame_times import frame_coords
from .given import keeps_dates
from .labels import channel_name, in_order
from .recording import Clock, clock
from .runs import Cut, computed
from .segments import FrameRun, frame_runs, run_groups, unused_samples
from .units import spelt_units
from .variables import annotate

Frame = int | float | str | timedelta | np.timedelta64
# A frame of fewer samples asks whether the unit of the clock is right, where the file does not state it.
_LEAST_ASSUMED = 2.0
# As fast a clock in milliseconds would be faster than any.
_SURE_RATE = 100.0
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


@keeps_dates
def histogram(
    recording: xr.DataArray,
    *,
    frame: Frame,
    hop: Frame | None = None,
    edges: NDArray[Any] | None = None,
    bins: int | None = None,
    outside: str = "raise",
) -> xr.DataArray:
    """Normalised histograms of the samples of every frame, one per channel, side by side.

    Without ``edges`` this computes the range of the recording, in one pass over it: integer samples
    get one bin per count, others need ``bins``.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``.
    frame
        Samples in a frame, or a duration such as ``"0.5s"``.
    hop
        Samples (or duration) between the starts of two frames; ``frame`` by default.
    edges
        Bounds of the bins, shared by all channels, in the unit of the samples.
    bins
        Number of equal bins over the range of the data, in place of ``edges``.
    outside
        What to do with samples outside the edges: ``"raise"``, or ``"clip"`` into the end bins.

    Returns
    -------
    Dims ``(frame, feature)``, Dask-backed, without unit; each channel's part sums to 1. Coordinates
    ``time``, ``segment``, ``channel`` and ``bin`` (lower bound). Each task holds about 16 MB of samples.

    Raises
    ------
    ValueError
        The frame is longer than every segment, or the bins cannot be chosen. When computed: a sample
        lies outside the edges.

    See Also
    --------
    stft : for sound.

    Examples
    --------
    >>> counts = xr.DataArray(np.array([[0], [1], [1], [1]]), dims=("time", "channel"))
    >>> histogram(counts, frame=2).values
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    if outside not in ("raise", "clip"):
        raise ValueError(f"histogram: outside must be 'raise' or 'clip'; got {outside!r}.")
    recording = _checked(recording, "histogram")
    edges = shared_edges([recording], bins) if edges is None else given_edges(edges)
    compute = partial(histogram_task.histogram, edges=edges, clip=outside == "clip")
    labels = _labels(recording, "bin", edges[:-1])
    attrs = {"features": "histogram", "edges": [float(edge) for edge in edges], "outside": outside}
    return _frames(recording, frame, hop, compute, labels, attrs)


@keeps_dates
def stft(recording: xr.DataArray, *, frame: Frame, hop: Frame | None = None, window: str = "hann") -> xr.DataArray:
    """Magnitudes of the short-time Fourier transform: linear, no padding, no overlap by default.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``.
    frame
        Samples in a frame, or a duration such as ``"23ms"`` (rounded to whole samples).
    hop
        Samples (or duration) between the starts of two frames; ``frame`` by default.
    window
        Name of a window of :func:`scipy.signal.get_window`.

    Returns
    -------
    Dims ``(frame, feature)``, Dask-backed, in the unit of the samples. Coordinates ``time``,
    ``segment``, ``channel`` and ``frequency`` (Hz). Each task holds about 16 MB of samples.

    Raises
    ------
    ValueError
        The frame is longer than every segment.

    Examples
    --------
    >>> wave = xr.DataArray(np.cos(np.pi * np.arange(8) / 2)[:, None], dims=("time", "channel"))
    >>> stft(wave.assign_attrs(sampling_rate=8.0), frame="1s").round(2).values
    array([[0., 1., 2., 1., 0.]])
    """
    recording = _checked(recording, "stft")
    ticks = clock(recording)
    rate = ticks.sampling_rate
    length = _samples_in(frame, ticks, recording, "stft: frame")
    labels = _labels(recording, "frequency", np.fft.rfftfreq(length, 1 / rate))
    attrs = {"features": "stft", "window": window, "units": str(recording.attrs.get("units", "1"))}
    return _frames(recording, frame, hop, partial(stft_task.stft_magnitude, window=window), labels, attrs)


@keeps_dates
def log_rms(
    recording: xr.DataArray, *, frame: Frame, hop: Frame | None = None, floor: float | None = None
) -> xr.DataArray:
    """Natural logarithm of the root mean square of every channel: for EEG, EMG and the like.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``.
    frame
        Samples in a frame, or a duration such as ``"100ms"``.
    hop
        Samples (or duration) between the starts of two frames; ``frame`` by default.
    floor
        Smallest root mean square, in the unit of the samples; needed where a channel falls silent.

    Returns
    -------
    Dims ``(frame, feature)``, Dask-backed; one feature a channel. Coordinates ``time``, ``segment``,
    ``channel``. Each task holds about 16 MB of samples.

    Raises
    ------
    ValueError
        The frame is longer than every segment. When computed: a frame is exactly zero without ``floor``.

    Examples
    --------
    >>> level = xr.DataArray(np.array([[1.0], [-1.0]]), dims=("time", "channel"))
    >>> log_rms(level, frame=2).values
    array([[0.]])
    """
    if floor is not None and not floor > 0:
        raise ValueError(f"log_rms: floor must be above 0; got {floor}.")
    recording = _checked(recording, "log_rms")
    attrs = {"features": "log_rms", "floor": "none" if floor is None else float(floor)}
    compute = partial(log_rms_task.log_rms, floor=floor)
    return _frames(recording, frame, hop, compute, _labels(recording), attrs)


@keeps_dates
def identity(recording: xr.DataArray) -> xr.DataArray:
    """Take every sample as a frame: for data that already are features (counts, sensor rows).

    Parameters
    ----------
    recording
        Dims ``(time, channel)``.

    Returns
    -------
    Dims ``(frame, feature)``, Dask-backed, float64, in the unit of the samples. Coordinates ``time``,
    ``segment``, ``channel``.

    Examples
    --------
    >>> identity(xr.DataArray([[1, 2], [3, 4]], dims=("time", "channel"))).sizes
    Frozen({'frame': 2, 'feature': 2})
    """
    recording = _checked(recording, "identity")
    attrs = {"features": "identity", "units": str(recording.attrs.get("units", "1"))}
    return _frames(recording, 1, None, _as_float, _labels(recording), attrs)


FEATURES: dict[str, Callable[..., xr.DataArray]] = {
    function.__name__: inspect.unwrap(function) for function in (histogram, stft, log_rms, identity)
}
"""Features by name; these count seconds, whatever the clock of the recording."""


def _as_float(samples: NDArray[Any], frame: int, hop: int, scale: float = 1.0) -> NDArray[np.float64]:
    """The samples themselves, as frames of one sample."""
    return samples[::hop].astype(np.float64) * scale


def _checked(recording: xr.DataArray, name: str) -> xr.DataArray:
    """Check dims and dtype; make it Dask-backed."""
    remedy = "Rename them with recording.rename(...), or add one with recording.expand_dims('channel')."
    recording = in_order(f"{name}: recording", recording, ("time", "channel"), remedy)
    if recording.sizes["channel"] == 0:
        raise ValueError(f"{name}: recording must have at least 1 channel; got 0.")
    return recording if recording.chunks else recording.chunk()


def samples_in(frame: Frame, rate: float, what: str) -> int:
    """Whole samples in a frame that was given as samples or as a duration."""
    count = int(frame) if _is_count(frame) else round(_duration(frame, what) * rate)
    if count < 1:
        raise ValueError(f"{what} must hold at least 1 sample; got {frame!r} at {rate:g} Hz.")
    return count


def _is_count(frame: Frame) -> TypeGuard[int]:
    """Whether a length is a number of samples; NumPy's timedeltas count as integers."""
    return isinstance(frame, int | np.integer) and not isinstance(frame, bool | np.timedelta64)


def _samples_in(frame: Frame, ticks: Clock, recording: xr.DataArray, what: str) -> int:
    """Whole samples in a frame of a recording; a duration needs a clock, whose unit must be sure."""
    if _is_count(frame):
        return samples_in(frame, ticks.sampling_rate, what)
    seconds = _duration(frame, what)
    if not ticks.known:
        raise ValueError(
            f"{what} must be whole samples where the recording has no sampling rate; got {frame!r}. Give "
            "sampling_rate=, or a number of samples, as in frame=60."
        )
    held = seconds * ticks.sampling_rate
    assumed = "time" in recording.coords and "unit_assumed" in recording["time"].attrs
    assumed = assumed and ticks.sampling_rate < _SURE_RATE
    if assumed and held < _LEAST_ASSUMED:
        raise ValueError(
            f"{what} must hold at least {_LEAST_ASSUMED:.0f} samples; got {frame!r} at {ticks.sampling_rate:g} Hz, for "
            f"the clock {recording['time'].attrs['unit_assumed']!r} states no unit and was read as seconds. If it is "
            "in ms, give time_unit='ms'; if it is in seconds, time_unit='s'."
        )
    return samples_in(frame, ticks.sampling_rate, what)


def _duration(text: Frame, what: str) -> float:
    """Seconds of a duration such as '23ms', or of a timedelta."""
    if isinstance(text, timedelta | np.timedelta64):
        return float(np.timedelta64(text) / np.timedelta64(1, "s"))
    match = re.fullmatch(r"\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(us|ms|s|min|h)\s*", str(text))
    if match is None or not np.isfinite(float(match[1])):
        raise ValueError(
            f"{what} must be whole samples or a duration with unit (us, ms, s, min, h); got {text!r}. "
            "Write frame=60 or frame='23ms'."
        )
    return float(match[1]) * _UNITS[match[2]]


def _labels(recording: xr.DataArray, name: str = "", values: NDArray[Any] | None = None) -> xr.Coordinates:
    """Labels of the features, channel by channel."""
    n = recording.sizes["channel"]
    known = "channel" in recording.coords
    channels = [channel_name(c) for c in recording["channel"].values] if known else [str(k) for k in range(n)]
    if values is None:
        return xr.Coordinates({"channel": ("feature", np.array(channels, object))})
    repeated = np.repeat(np.array(channels, object), len(values))
    units = {"frequency": "Hz"}.get(name, str(recording.attrs.get("units", "1")))
    tiled = ("feature", np.tile(values.astype(np.float64), n), {"units": units})
    return xr.Coordinates({"channel": ("feature", repeated), name: tiled})


def _frames(
    recording: xr.DataArray,
    frame: Frame,
    hop: Frame | None,
    compute: Callable[..., NDArray[np.float64]],
    labels: xr.Coordinates,
    attrs: dict[str, Any],
) -> xr.DataArray:
    """One task a run of frames, or some short ones, reading just its own samples."""
    ticks = clock(recording)
    length, stride, runs = _runs(recording, ticks, attrs["features"], frame, hop)
    groups = run_groups(runs, length, stride, recording.sizes["channel"])
    frames = xr.DataArray(
        computed(recording.data, groups, Cut(compute, length, stride, labels["channel"].size)),
        dims=("frame", "feature"),
        coords=carried(recording, runs, length, stride)
        | frame_coords(recording, ticks, runs, length, stride)
        | dict(labels),
        name="frames",
        attrs={
            "units": "1",
            "recording_units": spelt_units(recording),  # levels have no unit, and yet mean something in one
            **attrs,
            "frame_samples": length,
            "hop_samples": stride,
            "frame_period": stride / ticks.sampling_rate,
            "unused_samples": unused_samples(ticks.segments, length, stride),
        },
    )
    return annotate(frames.to_dataset())["frames"]


def count_frames(recording: xr.DataArray, name: str, frame: Frame, hop: Frame | None = None) -> int:
    """Frames that features would make of a recording; nothing is read.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``.
    name
        Kind of features.
    frame, hop
        As the features take them.

    Raises
    ------
    ValueError
        What the features would say of frame and hop.

    Examples
    --------
    >>> count_frames(xr.DataArray(np.zeros((300, 2)), dims=("time", "channel")), "histogram", 60)
    5
    """
    if name == "identity":
        return recording.sizes["time"]
    recording = _checked(recording, name)
    return sum(run.n_frames for run in _runs(recording, clock(recording), name, frame, hop)[2])


def _runs(
    recording: xr.DataArray, ticks: Clock, name: str, frame: Frame, hop: Frame | None
) -> tuple[int, int, list[FrameRun]]:
    """Samples in a frame and between two, and the runs of frames, of which there must be one."""
    length = _samples_in(frame, ticks, recording, f"{name}: frame")
    stride = _samples_in(hop, ticks, recording, f"{name}: hop") if hop is not None else length
    runs = frame_runs(ticks.segments, length, stride, recording.sizes["channel"])
    if not runs:
        longest = max((stop - start for start, stop in ticks.segments), default=0)
        raise ValueError(
            f"{name}: frame must fit into a segment of the recording; got {length} samples where the longest "
            f"holds {longest}. Choose a shorter frame."
        )
    return length, stride, runs
