"""Scans over chunks of frames, each handing its carry to the next, as delayed values."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.arrays import first_not_finite
from manifold_observer.tasks.engine.conditioning import Conditioning, conditioned
from manifold_observer.tasks.observers import kalman, observer
from manifold_observer.tasks.observers.kalman import Schedule
from manifold_observer.tasks.observers.observer import Filter

from ..frames.conditioning import conditioning_of
from ..graph.compute import task
from ..graph.slabs import chunks_of
from .carries import cuts
from .filters import Chosen
from .starts import Starts

Floats = NDArray[np.float64]


class Scanned(NamedTuple):
    """One delayed array of states a chunk, the delayed last state, and the frames of every chunk."""

    parts: list[Delayed]
    last: Delayed
    lengths: tuple[int, ...]


def scan_chunks(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    starts: Starts,
    before: Floats | None,
    carry: Any,
    chosen: Filter,
) -> Scanned:
    """Read the drives of every chunk on its own, then hand the carry from chunk to chunk.

    Parameters
    ----------
    embedding
        For the feature means.
    frames
        Dims ``(frame, feature)``.
    starts
        Where the recursion starts anew.
    before
        States before the first frames of the segments, in order; None for those of the filter.
    carry
        State before the first frame, maybe lazy.
    chosen
        The filter.

    Returns
    -------
    One delayed array a chunk, and the last state.
    """
    rows = whole_rows(frames)
    mean, conditioning = embedding["feature_mean"].values, conditioning_of(embedding)
    state, parts, lengths = dask.delayed(carry), [], rows.chunks[0]
    first = used = 0
    for block, length, anew in zip(chunks_of(rows), lengths, cuts(starts, lengths), strict=True):
        count = len(anew.places)
        given = None if before is None else before[used : used + count]
        drives, steady = task(_drives, block, mean, chosen.drive, chosen.start, anew, first, conditioning, outputs=2)
        begin = steady if given is None else given
        scanned, state = task(_scan_block, drives, anew, begin, state, chosen.transition, outputs=2)
        parts.append(scanned)
        first, used = first + length, used + count
    return Scanned(parts, state, lengths)


def scan_varying(embedding: xr.Dataset, frames: xr.DataArray, starts: Starts, carry: Any, chosen: Chosen) -> Scanned:
    """The same for a gain that varies with the frames since the segment began.

    Parameters
    ----------
    embedding, frames, carry
        As for :func:`scan_chunks`.
    starts
        Where segments begin.
    chosen
        A filter with its model and schedule.

    Returns
    -------
    One delayed array a chunk, and the last state.
    """
    model, schedule = chosen.varying()
    rows = whole_rows(frames)
    mean, conditioning = embedding["feature_mean"].values, conditioning_of(embedding)
    state, parts, lengths = dask.delayed(carry), [], rows.chunks[0]
    gains, first = dask.delayed(schedule, traverse=False), 0
    for block, length, own in zip(chunks_of(rows), lengths, cuts(starts, lengths), strict=True):
        none = Starts(length, np.zeros(0, np.int64))
        readings, _ = task(_drives, block, mean, model.reading, model.reading, none, first, conditioning, outputs=2)
        scanned, state = task(_varying_block, readings, own, state, gains, outputs=2)
        parts.append(scanned)
        first += length
    return Scanned(parts, state, lengths)


def whole_rows(frames: xr.DataArray) -> da.Array:
    """Frames in chunks that hold all features."""
    # Not DataArray.chunk, which would take the labels along.
    return frames.data.rechunk({1: -1}) if frames.chunks else da.from_array(frames.values, chunks=-1)


def _varying_block(readings: Floats, starts: Starts, carry: Floats, gains: Schedule) -> tuple[Floats, Floats]:
    """One chunk."""
    return kalman.run(readings, starts.ages(), carry, gains)


def _drives(
    frames: NDArray[Any],
    mean: Floats,
    drive: Floats,
    start: Floats,
    anew: Starts,
    first: int,
    conditioning: Conditioning | None,
) -> tuple[Floats, Floats]:
    """Drives of one chunk, and the states before its segments; frames that are not finite are told."""
    bad = first_not_finite(frames)
    if bad is not None:
        raise ValueError(
            f"observe: frames must be finite; frame {first + bad} holds NaN or infinity. Leave such "
            "frames out, with a new segment after each hole."
        )
    values = conditioned(np.asarray(frames, np.float64), conditioning)
    return observer.project(values, mean, drive), observer.project(values[anew.places], mean, start)


def _scan_block(
    drives: Floats, anew: Starts, before: Floats, carry: Floats, transition: Floats
) -> tuple[Floats, Floats]:
    """One chunk."""
    return observer.scan(drives, anew.mask(), before, carry, transition)
