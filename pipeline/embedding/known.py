"""Which frames are embedded ones: told by their times, and by the values of a few of them."""

from __future__ import annotations

import numpy as np
import xarray as xr

from manifold_observer.tasks.arrays import Array, Floats, Integers

from ..frames.join import seconds_between
from ..frames.segments import batches
from ..graph.compute import compute, task
from ..graph.slabs import rows_of
from ..graph.spans import blocks

# Frames whose numbers tell whether frames of the same times are the embedded ones: evenly spread, and the extreme ones
# of some coordinates, for the others may all be silent.
_COMPARED, _EXTREMES = 5, 3
# Coordinates that one task looks at.
_READ_TOGETHER = 2**17
# Share of the shortest step of time by which times of the same frame may differ.
_NEAR = 1e-6


def are_all_embedded(embedding: xr.Dataset, frames: xr.DataArray) -> bool:
    """Whether frames are all the embedded ones in their order, by their times and a few of them by their values.

    Labels and coordinates are read a piece at a time.

    Examples
    --------
    >>> known = xr.DataArray([[5.0], [6.0]], dims=("frame", "feature"), coords={"time": ("frame", [0.0, 1.0])})
    >>> are_all_embedded(known.to_dataset(name="reference"), known)
    True
    """
    n = frames.sizes["frame"]
    if n != embedding.sizes["frame"] or "reference" not in embedding or not _same_times(embedding, frames):
        return False
    if _are_one(frames, embedding["reference"]):
        return True
    some = _telling(embedding, n)
    own, theirs = (
        data.transpose("frame", "feature").isel(frame=some).values.astype(np.float64)
        for data in (frames, embedding["reference"])
    )
    return np.array_equal(own, theirs)


def _are_one(frames: xr.DataArray, reference: xr.DataArray) -> bool:
    """Whether both are one Dask array, as in a run: nothing has to be read to know its values."""
    both = frames.chunks is not None and reference.chunks is not None and frames.dims == reference.dims
    return both and frames.data.name == reference.data.name


def _same_times(embedding: xr.Dataset, frames: xr.DataArray) -> bool:
    """Whether as many frames have the same times, which increase; so they have where neither has any."""
    if "time" not in embedding.coords or "time" not in frames.coords:
        return "time" not in embedding.coords and "time" not in frames.coords
    ours, theirs = embedding["time"], frames["time"]
    if _apart(embedding, frames) != 0.0 or ours.dtype.kind != theirs.dtype.kind:
        return False
    last = None
    for known, given in zip(batches(ours), batches(theirs), strict=True):
        if not np.array_equal(known, given) or (np.diff(known) <= 0).any() or (last is not None and known[0] <= last):
            return False
        last = known[-1]
    return True


def embedded_numbers(embedding: xr.Dataset, frames: xr.DataArray) -> Integers:
    """Which embedded frame each frame is, by its time and (a few of them) by their values; -1 for new ones.

    Examples
    --------
    >>> labels = {"time": ("frame", [0.0, 1.0, 2.0])}
    >>> known = xr.DataArray([[5.0], [6.0], [7.0]], dims=("frame", "feature"), coords=labels)
    >>> embedding = known.to_dataset(name="reference")
    >>> embedded_numbers(embedding, known[1:]), embedded_numbers(embedding, known + 1)
    (array([1, 2]), array([-1, -1, -1]))
    """
    n = frames.sizes["frame"]
    if n == embedding.sizes["frame"] and are_all_embedded(embedding, frames):
        return np.arange(n)
    number = by_time(embedding, frames)
    known = np.flatnonzero(number >= 0)
    if not len(known) or "reference" not in embedding:
        return np.full(n, -1)
    some = known[_telling(embedding, len(known), number[known])]
    own, theirs = (
        data.transpose("frame", "feature").isel(frame=numbers).values.astype(np.float64)
        for data, numbers in ((frames, some), (embedding["reference"], number[some]))
    )
    return number if np.array_equal(own, theirs) else np.full(n, -1)


def _telling(embedding: xr.Dataset, n: int, known: Integers | None = None) -> Integers:
    """Places among n embedded frames, all of them or ``known`` ones, of which a few tell the recording from another."""
    spread = np.linspace(0, n - 1, _COMPARED).astype(int)
    if "coordinate" not in embedding:
        return np.unique(spread)
    if known is not None:
        psi = embedding["coordinate"].isel(frame=known).values[:, :_EXTREMES]
        return np.unique(np.concatenate([spread, psi.argmin(axis=0), psi.argmax(axis=0)]))
    found = [
        task(_extremes, rows_of(embedding["coordinate"].data, span), span[0]) for span in blocks(n, _READ_TOGETHER)
    ]
    values, places = (np.stack(column) for column in zip(*compute(found), strict=True))
    # The first of equal ones, as argmax has it.
    best = values.argmax(axis=0)
    return np.unique(np.concatenate([spread, places[best, np.arange(values.shape[1])]]))


def _extremes(psi: Array, first: int) -> tuple[Floats, Integers]:
    """Largest entries of some columns and of their negatives, and the frames that they belong to."""
    both = np.hstack([psi[:, :_EXTREMES], -psi[:, :_EXTREMES]])
    places = both.argmax(axis=0)
    return both[places, np.arange(both.shape[1])], first + places


def by_time(embedding: xr.Dataset, frames: xr.DataArray) -> Integers:
    """Embedded frames of the same times; all in their order where neither has times and there are as many."""
    n, n_known = frames.sizes["frame"], embedding.sizes["frame"]
    if "time" not in embedding.coords or "time" not in frames.coords:
        same = n == n_known and "time" not in embedding.coords and "time" not in frames.coords
        return np.arange(n) if same else np.full(n, -1)
    ours, theirs = embedding["time"], frames["time"].values
    apart = _apart(embedding, frames)
    least = None if apart is None or ours.dtype.kind != theirs.dtype.kind else _least_step(ours)
    number = np.full(n, -1)
    if apart is None or least is None:
        return number
    # Some frames of a dated recording count from the first of them, which rounds otherwise.
    wanted, near = (theirs + apart, _NEAR * least) if apart else (theirs, 0.0)
    first = 0
    for times in batches(ours):
        place = np.minimum(np.searchsorted(times, wanted - near), len(times) - 1)
        found = np.abs(times[place] - wanted) <= near
        number[found] = first + place[found]
        first += len(times)
    return number


def _least_step(times: xr.DataArray) -> float | None:
    """The shortest step of a clock, 1 where it has none; None where it does not run forwards."""
    least, last = 1.0, None
    for piece in batches(times):
        steps = np.diff(piece if last is None else np.concatenate([last, piece]))
        if (steps <= 0).any():
            return None
        least, last = min(least, float(steps.min(initial=1.0))), piece[-1:]
    return least


def _apart(embedding: xr.Dataset, frames: xr.DataArray) -> float | None:
    """Seconds from the start of an embedding's clock to that of frames; None where they have no common clock."""
    begun = [labelled["time"].attrs.get("start_time") for labelled in (embedding, frames)]
    return 0.0 if begun[0] == begun[1] else seconds_between(*begun)
