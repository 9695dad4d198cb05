"""Frames are stored as they are computed, a few chunks at a time, so that a cluster never holds many of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import xarray as xr
import zarr
from dask.delayed import Delayed
from numpy.typing import NDArray

from ..frames.runs import require_features
from ..graph.client import on_cluster
from ..graph.compute import stream, task
from ..graph.limits import LAZY_FRAMES
from ..graph.progress import Progress, silent
from ..graph.spans import Span, blocks
from ..stores.address import Address, Place
from ..stores.zarrs import zarr_target
from .held import lazy_labels
from .store import write_group

_GROUP = "frames"


def write_frames(folder: Place, frames: xr.DataArray, progress: Progress = silent) -> xr.DataArray:
    """Compute frames into the group ``/frames`` of a result, and open them lazily as they stand there.

    Parameters
    ----------
    folder
        As :func:`writing` gave it.
    frames
        Dims ``(frame, feature)``.
    progress
        Called with (stage, chunks done, chunks in all).

    Returns
    -------
    The frames on disk.

    Raises
    ------
    ValueError
        A task would not fit into a worker.
    Exception
        Whatever a task raised.

    Notes
    -----
    A thread has two chunks of the store in hand, and the blocks of frames that they are made of.
    """
    require_features(frames)
    lazy = frames.chunks is not None
    # Labels may be lazy too, as those of a simulation are, or stored; few of them are written with the rest.
    frames = lazy_labels(frames.to_dataset(name=_GROUP), LAZY_FRAMES)[_GROUP]
    named = {name: label for name, label in frames.coords.items() if label.chunks}
    many = {name: label for name, label in named.items() if lazy and label.size > LAZY_FRAMES}
    labelled = frames.assign_coords({name: label.compute() for name, label in named.items() if name not in many})
    stored = write_group(folder, _GROUP, labelled.to_dataset(name=_GROUP), fill=not lazy)[_GROUP]
    if not lazy:
        progress("features", 1, 1)
        return stored
    stops = np.cumsum(stored.data.chunks[0]).tolist()
    spans = list(zip([0, *stops[:-1]], stops, strict=True))
    group = (folder if isinstance(folder, Address) else folder.resolve()) / _GROUP
    for name, label in many.items():
        _fill(group / str(name), label.data)
    place = group / _GROUP
    for _ in stream(_regions(frames.data.rechunk({1: -1}), spans, place), len(spans), "features", progress):
        pass
    return stored


def _fill(place: Place, label: da.Array) -> None:
    """Compute many labels here into their place, one chunk after the other."""
    # A chunk of zeros is no missing chunk.
    with zarr.config.set({"array.write_empty_chunks": True}):
        stored = zarr.open_array(zarr_target(place), mode="r+")
        for first, stop in blocks(stored.shape[0], stored.chunks[0]):
            stored[first:stop] = label[first:stop].compute(scheduler=dask.get)


def _regions(data: da.Array, spans: list[Span], place: Place) -> Iterator[Delayed]:
    """A task for each chunk of the store, made of the blocks of frames that lie in it.

    On a cluster blocks are asked for as the chunks are, once each: two chunks may need the same.
    """
    stops = np.cumsum(data.chunks[0])
    apart = on_cluster()
    made: dict[int, Any] = {} if apart else dict(enumerate(data.to_delayed().ravel()))
    for span in spans:
        first, last = np.searchsorted(stops, [span[0], span[1] - 1], side="right").tolist()
        for number in range(first, last + 1):
            if number not in made:
                made[number] = dask.persist(data.blocks[number].to_delayed().ravel()[0])[0]
        numbers = range(first, last + 1)
        cuts = [_within(span, int(stops[number]), data.chunks[0][number]) for number in numbers]
        yield task(_write, place, span, [made[number] for number in numbers], cuts)
        if apart:  # what no later chunk needs is let go; the tasks above hold theirs
            made = {number: block for number, block in made.items() if stops[number] > span[1]}


def _within(span: Span, stop: int, length: int) -> Span:
    """The rows of a block of frames, which ends at ``stop``, that lie in a span."""
    start = stop - length
    return max(span[0] - start, 0), min(span[1], stop) - start


def _write(place: Place, span: Span, blocks: list[NDArray[np.float64]], cuts: list[Span]) -> None:
    """One task: rows of some blocks as one chunk of the store."""
    rows = [block[start:stop] for block, (start, stop) in zip(blocks, cuts, strict=True)]
    zarr.open_array(zarr_target(place), mode="r+")[span[0] : span[1]] = (
        rows[0] if len(rows) == 1 else np.concatenate(rows)
    )
