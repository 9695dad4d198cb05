"""Frames are computed run by run: the tasks, what they take, and where in the recording an error is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
import xarray as xr
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray

from manifold_observer.tasks.arrays import aligned
from manifold_observer.tasks.frames import histogram as histogram_task
from manifold_observer.tasks.frames import log_rms as log_rms_task

from ..graph.limits import Memory, fewer_threads, require, workers
from ..graph.slabs import Reading, kept_bytes, source_of
from ..graph.spans import Span
from .bounds import feature_memory
from .segments import FrameRun

# Bytes that are read and worked on while they are in cache, and how many overlaps of frames they hold at least.
_PIECE_BYTES, _OVERLAPS = 2**21, 8


@dataclass(frozen=True)
class Cut:
    """How samples become frames."""

    compute: Callable[..., NDArray[np.float64]]
    """Features of a run of frames."""
    length: int
    """Samples in a frame."""
    stride: int
    """Samples from a frame to the next."""
    n_features: int
    """Features of a frame."""


def computed(samples: da.Array, groups: list[list[FrameRun]], cut: Cut) -> da.Array:
    """Frames, a task for each group of runs; stored samples are read by the same task.

    Parameters
    ----------
    samples
        Shape (samples, channels).
    groups
        Runs that one task computes.
    cut
        How they become frames.

    Returns
    -------
    Shape (frames, features), a block for each group; blocks of one length where the groups differ, since Zarr has
    no others.
    """
    name = f"frames-{uuid4().hex}"
    graph: dict[tuple[str, int, int], Any] = {}
    inputs: list[da.Array] = []
    source = source_of(samples)
    for number, group in enumerate(groups):
        slab = group[0].first_sample, group[-1].samples(cut.length, cut.stride)[1]
        if source is not None:
            graph[name, number, 0] = (partial(_read_and_compute, runs=group, cut=cut), Reading(source, *slab))
        else:
            inputs.append(samples[slab[0] : slab[1]].rechunk(-1))
            graph[name, number, 0] = (partial(_compute_runs, runs=group, cut=cut), inputs[-1].__dask_keys__()[0][0])
    layers = HighLevelGraph.from_collections(name, graph, dependencies=inputs)
    lengths = tuple(sum(run.n_frames for run in group) for group in groups)
    made = da.Array(layers, name, (lengths, (cut.n_features,)), meta=np.empty((0, 0)))
    return made if _even(lengths) else made.rechunk((max(lengths), -1))


def _even(lengths: tuple[int, ...]) -> bool:
    """Whether all blocks but the last are equally long, and that no longer."""
    return len(set(lengths[:-1])) <= 1 and lengths[-1] <= lengths[0]


def _read_and_compute(reading: Reading, runs: list[FrameRun], cut: Cut) -> NDArray[np.float64]:
    """One task that reads its own samples."""
    if len(runs) == 1 and reading.seeks:
        return _read_in_pieces(reading, runs[0], cut)
    return _compute_runs(reading.read(), runs, cut)


def _read_in_pieces(reading: Reading, run: FrameRun, cut: Cut) -> NDArray[np.float64]:
    """One task that works on samples while they are in cache, and the disk reads those that follow."""
    pieces = _pieces(run, cut, reading.source.file_row_bytes)
    frames, first = np.empty((run.n_frames, cut.n_features)), 0
    for (start, _), (samples, scale) in zip(pieces, reading.pieces(pieces), strict=True):
        compute = cut.compute if scale == 1 else partial(cut.compute, scale=scale)
        own = _compute_run(aligned(np.ascontiguousarray(samples)), compute, start, cut.length, cut.stride)
        frames[first : first + len(own)] = own
        first += len(own)
    return frames


def _pieces(run: FrameRun, cut: Cut, row_bytes: int) -> list[Span]:
    """Samples of a run in pieces of whole frames; where frames overlap, samples are read again, few of them."""
    overlap = max(0, cut.length - cut.stride)
    few = max(_PIECE_BYTES // row_bytes, _OVERLAPS * overlap) // cut.stride
    firsts = [*range(0, run.n_frames, max(1, few))]
    starts = [run.first_sample + first * cut.stride for first in firsts]
    last = run.samples(cut.length, cut.stride)[1]
    return [
        (start, min(following + overlap, last)) for start, following in zip(starts, [*starts[1:], last], strict=True)
    ]


def _compute_runs(samples: NDArray[Any], runs: list[FrameRun], cut: Cut) -> NDArray[np.float64]:
    """One task: the frames of some runs, whose samples begin with those of the first."""
    # Sums along the samples round by how they lie in memory, and that depends on the file and its chunks.
    samples, parts = aligned(np.ascontiguousarray(samples)), []
    for run in runs:
        start, stop = run.samples(cut.length, cut.stride)
        first = runs[0].first_sample
        parts.append(_compute_run(samples[start - first : stop - first], cut.compute, start, cut.length, cut.stride))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _compute_run(
    samples: NDArray[Any], compute: Callable[..., NDArray[np.float64]], start: int, length: int, stride: int
) -> NDArray[np.float64]:
    """Frames of one run; its errors say where in the recording they are, and what helps."""
    try:
        return compute(samples, frame=length, hop=stride)
    except histogram_task.OutsideEdgesError as error:
        wider = "Give wider edges=, or outside='clip'."
        remedy = wider if "edges" in str(error) else "Cut the stretch out of the recording."
        raise ValueError(f"histogram: {error}, in samples {start} .. {start + len(samples)}. {remedy}") from None
    except log_rms_task.SilentFrameError as error:
        remedy = "Give the smallest level that counts, as in floor=1e-6."
        raise ValueError(f"log_rms: {error} at sample {start}. {remedy}") from None


def task_memory(frames: xr.DataArray) -> Memory | None:
    """Bound the memory of computing frames that the functions of this module made; None for frames that are there.

    Parameters
    ----------
    frames
        Dims ``(frame, feature)``.

    Returns
    -------
    The bounds; nothing is computed.

    Examples
    --------
    >>> from manifold_observer.pipeline import log_rms
    >>> recording = xr.DataArray(np.zeros((100, 2)), dims=("time", "channel"))
    >>> task_memory(log_rms(recording, frame=10)).task
    9760
    >>> task_memory(log_rms(recording, frame=10, floor=1.0).compute()) is None
    True
    """
    if frames.chunks is None or "hop_samples" not in frames.attrs or source_of(frames.data) is not None:
        return None
    n_channels = len(set(frames["channel"].values.tolist()))
    rows, p = max(frames.chunks[0]), frames.sizes["feature"]
    length, stride = int(frames.attrs["frame_samples"]), int(frames.attrs["hop_samples"])
    samples, framed = ((rows - 1) * stride + length) * n_channels, rows * length * n_channels
    return feature_memory(samples, framed, rows * p, kept_bytes(frames.data))


def require_features(frames: xr.DataArray) -> Memory | None:
    """Refuse frames whose computation would not fit into a worker, before anything is computed.

    Parameters
    ----------
    frames
        Dims ``(frame, feature)``.

    Returns
    -------
    The bounds, with a task on every thread of a worker; None as :func:`task_memory` says.

    Raises
    ------
    ValueError
        The predicted peak of a worker is above its limit.
    """
    memory = task_memory(frames)
    if memory is None:
        return None
    there = workers()
    memory = memory.at_once(min(there.threads, frames.data.numblocks[0]))
    fits = f"Take shorter frames or fewer channels, or give the workers more memory{fewer_threads(there)}."
    require(memory, there.limit, fits, str(frames.attrs["features"]))
    return memory
