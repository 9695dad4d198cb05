"""Segments of a recording, and the runs of frames that they are cut into; integers only.

A frame never leaves its segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..graph.spans import Integers, Span, segment_spans

# Bytes of samples that one feature task reads (float64), about.
FEATURE_TASK_BYTES = 2**24


# Labels that are looked at together, where those of a recording are not here.
_READ_TOGETHER = 2**19


@dataclass(frozen=True, eq=False)
class Segments:
    """Segment of every frame, held as stretches of one number; some frames are read as the whole array gives them.

    Examples
    --------
    >>> Segments.of([np.array([4, 4]), np.array([4, 5])])[2:]
    array([4, 5])
    """

    firsts: Integers
    """First frame of every stretch."""
    numbers: Integers
    """Its number."""
    n: int
    """Frames in all."""

    @classmethod
    def of(cls, parts: Iterable[Integers]) -> Segments:
        """Of arrays one after the other; one is held at a time."""
        firsts, numbers, n = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
        for part in parts:
            own = np.flatnonzero(restarts(part))
            firsts.append(n + own)
            numbers.append(part[own])
            n += len(part)
        joined = np.concatenate(numbers[1:] or numbers)
        kept = restarts(joined)
        return cls(np.concatenate(firsts)[kept], joined[kept], n)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, which: Any) -> Any:
        """Numbers of some frames."""
        if isinstance(which, slice):
            which = np.arange(*which.indices(self.n))
        return self.numbers[np.searchsorted(self.firsts, which, side="right") - 1]

    def spans(self) -> list[Span]:
        """Frames of every stretch."""
        return list(zip(self.firsts.tolist(), [*self.firsts[1:].tolist(), self.n], strict=True)) if self.n else []


def batches(labels: xr.DataArray) -> Iterator[NDArray[Any]]:
    """Values of a label one piece after the other; those that are stored are not all held.

    Examples
    --------
    >>> [piece.tolist() for piece in batches(xr.DataArray([1, 2], dims="frame"))]
    [[1, 2]]
    """
    variable = labels.variable
    for first in range(0, len(variable), _READ_TOGETHER):
        yield np.asarray(variable[first : first + _READ_TOGETHER].values)


def at(labels: xr.DataArray, frames: Integers) -> NDArray[np.float64]:
    """Values of a label at some frames, as float64.

    Examples
    --------
    >>> at(xr.DataArray([1, 2], dims="frame"), np.array([1]))
    array([2.])
    """
    return np.asarray(labels.variable[frames].values, np.float64)


class FrameRun(NamedTuple):
    """Consecutive frames of one segment that one task computes.

    ``segment``: number of the segment; ``first_sample``: where the first frame starts; ``n_frames``.
    """

    segment: int
    first_sample: int
    n_frames: int

    def samples(self, frame: int, hop: int) -> Span:
        """Samples that the run is computed from."""
        return self.first_sample, self.first_sample + (self.n_frames - 1) * hop + frame


def frame_runs(segments: list[Span], frame: int, hop: int, n_channels: int) -> list[FrameRun]:
    """Cut the segments of a recording into runs of whole frames.

    Parameters
    ----------
    segments
        Spans of samples without a gap.
    frame, hop
        Samples in a frame, and between the starts of two.
    n_channels
        Channels of the recording.

    Returns
    -------
    Runs in order; a segment shorter than one frame has none.

    Examples
    --------
    Two segments of 7 and 2 samples, frames of 3; the last sample of the first is left over:

    >>> frame_runs([(0, 7), (7, 9)], 3, 3, 1)
    [FrameRun(segment=0, first_sample=0, n_frames=2)]
    """
    at_most = max(1, FEATURE_TASK_BYTES // (8 * max(hop, frame) * n_channels))
    runs = []
    for segment, (start, stop) in enumerate(segments):
        total = max(0, (stop - start - frame) // hop + 1)
        for first in range(0, total, at_most):
            runs.append(FrameRun(segment, start + first * hop, min(at_most, total - first)))
    return runs


def run_groups(runs: list[FrameRun], frame: int, hop: int, n_channels: int) -> list[list[FrameRun]]:
    """Runs that one task computes: neighbours, as long as their samples together are no more than a long run's.

    Recordings with many short segments have a run for each, and would have a task for each.

    Examples
    --------
    >>> [len(group) for group in run_groups(frame_runs([(0, 7), (7, 9), (9, 14)], 3, 3, 1), 3, 3, 1)]
    [2]
    """
    most = FEATURE_TASK_BYTES // (8 * n_channels)
    groups: list[list[FrameRun]] = []
    for run in runs:
        if groups and run.samples(frame, hop)[1] - groups[-1][0].first_sample <= most:
            groups[-1].append(run)
        else:
            groups.append([run])
    return groups


def unused_samples(segments: list[Span], frame: int, hop: int) -> int:
    """Samples at the ends of the segments that no frame holds.

    Examples
    --------
    >>> unused_samples([(0, 7), (7, 9)], 3, 3)
    3
    """
    return sum((stop - start) - _covered(stop - start, frame, hop) for start, stop in segments)


def _covered(n: int, frame: int, hop: int) -> int:
    """Samples from the first to the last that the frames of one segment span."""
    total = max(0, (n - frame) // hop + 1)
    return (total - 1) * hop + frame if total else 0


def short_segments(segment: Integers | Segments, window: int) -> list[Span]:
    """Spans of the segments that hold no whole window.

    Examples
    --------
    >>> short_segments(np.array([0, 0, 3]), 2)
    [(2, 3)]
    """
    spans = segment.spans() if isinstance(segment, Segments) else segment_spans(segment)
    return [(start, stop) for start, stop in spans if stop - start < window]


def restarts(segment: Integers) -> NDArray[np.bool_]:
    """True at the first frame of every segment.

    Examples
    --------
    >>> restarts(np.array([4, 4, 5]))
    array([ True, False,  True])
    """
    return np.concatenate([[True], np.diff(segment) != 0]) if len(segment) else np.zeros(0, bool)


def check_windows(segment: Integers | Segments, window: int) -> None:
    """Refuse segments that hold no whole window, by the first of them.

    Raises
    ------
    ValueError
        A segment is shorter than the window.
    """
    for start, stop in short_segments(segment, window):
        raise ValueError(
            f"embed: every segment must hold at least window={window} frames; got {stop - start} in segment "
            f"{segment[start]} (frames {start} .. {stop - 1}). {_shorter(stop - start)}eave the segment out with "
            f"frames.where(frames.segment != {segment[start]}, drop=True)."
        )


def _shorter(n: int) -> str:
    """A window that would fit, where there is one."""
    return f"Give window={n}, or l" if n > 1 else "L"
