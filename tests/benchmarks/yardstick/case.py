"""A recording with what is known about it.

Throughout: ``values`` of a truth are per sample of the recording, NaN or -1 where it is not known; a truth of a case
is per frame. Truths never enter the features.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import manifold_observer.pipeline as mo
from manifold_observer.tasks.frames import histogram, log_rms, stft

Array = NDArray[Any]

# Frames of a case at most: all pairs of them are held, by the yardstick's own diffusion maps too.
MOST_FRAMES = 4500
# A class of fewer frames says more about luck than about the estimate.
LEAST_CLASS = 15


class Truth(NamedTuple):
    """What is known, per frame: floats are a number (NaN unknown), whole numbers a class (-1 unknown).

    A ``control`` is not in the recording, or should not be: whoever reads it is fooling himself.
    """

    values: Array
    control: bool = False

    @property
    def is_class(self) -> bool:
        return self.values.dtype.kind in "iu"


class Case(NamedTuple):
    """A recording, the frames that a user without labels would take, and the truths.

    ``take`` makes frames of a recording, or of a part of it. ``frames`` are the project's, with whatever its feature
    function does by default; ``plain`` the numbers of the kind of feature itself, (frame, feature), for the rivals.
    ``kind``: counts, histogram, magnitude, log or sensor. ``draw``: which draw of a control it is; all but the first
    are read by the ways alone, for their mean and spread. ``apart``: nothing was tuned on it, and it counts in no mean.
    """

    name: str
    recording: xr.DataArray
    take: Callable[[xr.DataArray], xr.DataArray]
    frames: xr.DataArray
    plain: Array
    kind: str
    why: str
    truths: dict[str, Truth]
    draw: int = 1
    apart: bool = False


KINDS = {"histogram": "histogram", "stft": "magnitude", "log_rms": "log", "identity": "sensor"}


def case(
    name: str,
    recording: xr.DataArray,
    feature: str,
    why: str,
    truths: Mapping[str, Array],
    *,
    kind: str | None = None,
    controls: Iterable[str] = (),
    **options: Any,
) -> Case:
    """Make frames of a recording, and bring the truths from its samples to its frames."""
    take = partial(getattr(mo, feature), **options)
    frames = take(recording).isel(frame=slice(MOST_FRAMES)).compute()
    centres = _centres(frames, recording)
    at_frames = {key: Truth(_frequent(values[centres]), key in controls) for key, values in truths.items()}
    plain = _plain(feature, recording.values, frames, centres)
    return Case(name, recording, take, frames, plain, kind or KINDS[feature], why, at_frames)


def recording_of(
    values: Array, rate: float, channels: Sequence[str] | None = None, lengths: Sequence[int] | None = None
) -> xr.DataArray:
    """Samples (time, channel) at a regular rate; ``lengths`` of the pieces that were laid end to end."""
    values = values[:, None] if values.ndim == 1 else values
    names = channels if channels is not None else [str(k) for k in range(values.shape[1])]
    made = xr.DataArray(values, dims=("time", "channel"), coords={"channel": list(names)})
    made = made.assign_attrs(sampling_rate=float(rate))
    if lengths is None:
        return made
    return made.assign_coords(segment=("time", np.repeat(np.arange(len(lengths)), lengths)))


def labels_of(n: int, rate: float, intervals: Iterable[tuple[float, float, int]], outside: int = -1) -> Array:
    """Class of every sample from (onset, offset, class), times in s; the later one where they overlap."""
    labels = np.full(n, outside)
    for onset, offset, number in intervals:
        labels[max(0, round(onset * rate)) : max(0, round(offset * rate))] = number
    return labels


def numbered(names: Iterable[str]) -> dict[str, int]:
    """Class numbers in the order of the names."""
    return {name: number for number, name in enumerate(sorted(set(names)))}


def shuffled(known: Case, seed: int, draw: int = 1) -> Case:
    """The same frames in random order, the truths where they were: nothing is left to read."""
    order = np.random.default_rng(seed).permutation(known.frames.sizes["frame"])
    frames = known.frames.copy(data=known.frames.values[order])
    truths = {key: Truth(truth.values, True) for key, truth in known.truths.items()}
    name = f"{known.name}_shuffled" + (f"_{draw}" if draw > 1 else "")
    return known._replace(name=name, frames=frames, plain=known.plain[order], truths=truths, draw=draw)


def segments(frames: xr.DataArray) -> list[slice]:
    """Spans of frames without a gap."""
    n = frames.sizes["frame"]
    segment = frames["segment"].values if "segment" in frames.coords else np.zeros(n, int)
    bounds = [0, *(np.flatnonzero(np.diff(segment)) + 1), n]
    return [slice(first, stop) for first, stop in itertools.pairwise(bounds)]


def _centres(frames: xr.DataArray, recording: xr.DataArray) -> Array:
    """Number of the sample in the middle of every frame."""
    if "time" in recording.coords:
        return np.searchsorted(recording["time"].values, frames["time"].values)
    # A little more than half a sample: times of even frames round just below it.
    return np.floor(frames["time"].values * recording.attrs["sampling_rate"] + 0.501).astype(int)


def _plain(feature: str, samples: Array, frames: xr.DataArray, centres: Array) -> Array:
    """The feature without anything that the project may do to it: one block function on every segment."""
    length, hop = int(frames.attrs["frame_samples"]), int(frames.attrs["hop_samples"])
    compute = {
        "histogram": lambda x: histogram.histogram(x, length, np.asarray(frames.attrs["edges"]), hop),
        "stft": lambda x: stft.stft_magnitude(x, length, hop, window="hann"),
        "log_rms": lambda x: log_rms.log_rms(x, length, hop, floor=_floor(frames)),
        "identity": lambda x: x.astype(np.float64),
    }[feature]
    parts = []
    for span in segments(frames):
        first = centres[span.start] - length // 2
        parts.append(compute(samples[first : first + (span.stop - span.start - 1) * hop + length]))
    return np.concatenate(parts)


def _floor(frames: xr.DataArray) -> float | None:
    """Smallest level that counted."""
    floor = frames.attrs["floor"]
    return None if floor == "none" else float(floor)


def _frequent(values: Array) -> Array:
    """A truth whose rare classes are unknown."""
    if values.dtype.kind not in "iu":
        return values.astype(np.float64)
    classes, counts = np.unique(values, return_counts=True)
    rare = np.isin(values, classes[counts < LEAST_CLASS])
    return np.where(rare, -1, values).astype(np.int64)
