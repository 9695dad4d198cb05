"""Time and segment of every frame; where frames are many and their clock is counted, made as they are used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..graph.compute import task
from ..graph.kept import array_of
from ..graph.limits import LAZY_FRAMES
from .recording import Clock, start_time
from .segments import FrameRun


def frame_coords(
    recording: xr.DataArray, ticks: Clock, runs: list[FrameRun], length: int, stride: int
) -> dict[str, Any]:
    """Centre and segment of every frame."""
    kept = {segment: number for number, segment in enumerate(dict.fromkeys(run.segment for run in runs))}
    note = {} if ticks.known else {"comment": "the recording has no clock: sample numbers stand for seconds"}
    start = start_time(recording)
    if start is not None:
        note["start_time"] = start
    numbered = [run._replace(segment=kept[run.segment]) for run in runs]
    if ticks.counted and sum(run.n_frames for run in runs) > LAZY_FRAMES:
        return _lazy_coords(ticks, numbered, length, stride, note)
    centre, segment = _centres(ticks, numbered, length, stride), _segments(numbered)
    return {"time": ("frame", centre, note), "segment": ("frame", segment)}


def _lazy_coords(ticks: Clock, runs: list[FrameRun], length: int, stride: int, note: dict[str, str]) -> dict[str, Any]:
    """The same of many frames, made as they are used: a few numbers tell all of them."""
    groups = in_groups(runs, LAZY_FRAMES)
    lengths = [sum(run.n_frames for run in group) for group in groups]
    bare = replace(ticks, segments=[])  # which may be as many as there are frames
    centres = [task(_centres, bare, group, length, stride) for group in groups]
    segments = [task(_segments, group) for group in groups]
    return {
        "time": ("frame", array_of(centres, lengths, None, np.asarray), note),
        "segment": ("frame", array_of(segments, lengths, None, np.asarray, dtype=np.int64)),
    }


def in_groups(runs: list[FrameRun], most: int) -> list[list[FrameRun]]:
    """Neighbouring runs of so many frames together at most, or single ones; each is looked at once.

    Examples
    --------
    >>> [len(group) for group in in_groups([FrameRun(0, 0, 3), FrameRun(1, 9, 2), FrameRun(2, 20, 9)], 5)]
    [2, 1]
    """
    groups: list[list[FrameRun]] = []
    room = 0
    for run in runs:
        if not groups or run.n_frames > room:
            groups.append([])
            room = most
        groups[-1].append(run)
        room -= run.n_frames
    return groups


def _centres(ticks: Clock, runs: list[FrameRun], length: int, stride: int) -> NDArray[np.float64]:
    """Time of the centre of every frame."""
    firsts = np.concatenate([run.first_sample + stride * np.arange(run.n_frames) for run in runs])
    return np.asarray((ticks.at(firsts) + ticks.at(firsts + length - 1)) / 2)


def _segments(runs: list[FrameRun]) -> NDArray[np.int64]:
    """Segment of every frame."""
    return np.concatenate([np.full(run.n_frames, run.segment, np.int64) for run in runs])
