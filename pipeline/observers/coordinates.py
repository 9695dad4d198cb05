"""States read from coordinates: which frames are embedded ones, what comes before them, and what is handed on."""

from __future__ import annotations

from typing import NamedTuple

import dask.array as da
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..embedding.read import Read, along_axes, embedded_numbers, read
from ..frames.labels import frame_labels, segment_of
from ..frames.segments import restarts
from ..frames.variables import annotate
from ..graph.compute import task
from ..graph.warn import warn
from .bank import (
    BRIDGED,
    Readings,
    dynamics_attrs,
    in_deviations,
    learn_bank,
    reading_names,
    scan_bank,
    starts_of,
)
from .carries import SINCE, Seam, ages_of, carry_attrs, joined, seam
from .certainty import learn_certainty, state_deviations
from .dynamics import ends_of

Floats = NDArray[np.float64]
# Share and number of far frames above which a recording is said to be unlike the embedded one.
_MANY_FAR = 0.25
_FEW_FAR = 10


class Placed(NamedTuple):
    """States of a whole recording, the smoothed ones if they were asked for, and what they were read from."""

    state: xr.Dataset
    smoothed: xr.Dataset | None
    read: Read


class Carried(NamedTuple):
    """What a stream hands on: the bank (k,) after the last frame, and the frames before the next (h, axes)."""

    bank: Floats
    past: Floats


def reads_coordinates(embedding: xr.Dataset) -> bool:
    """Whether an embedding holds what coordinates of embedded and new frames are read with."""
    return all(name in embedding for name in ("principal", "mean_covariance", "coordinate"))


def observe_coordinates(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    carry: xr.DataArray | None,
    at: Seam | None = None,
    dynamics: str = "auto",
) -> xr.Dataset:
    """Run a bank of contracting observers over the coordinates of frames, and mix them into states.

    Parameters
    ----------
    embedding
        As :func:`embed` made it, with principal components.
    frames
        Dims ``(frame, feature)``, embedded or new ones.
    carry
        Of an earlier result, to continue from.
    at
        How the frames follow the carry; by their times where it is None.
    dynamics
        As for :func:`observe`.

    Returns
    -------
    ``state(frame, mode)``, ``state_std(frame, mode)``, ``far(frame)`` and ``carry(carried)``.
    """
    embedding = learn_bank(embedding, dynamics)
    found = _readings(embedding, frames, carry, at)
    return _observed(learn_certainty(embedding, new=bool(found.new.any())), frames, found, carry)


def place_coordinates(
    embedding: xr.Dataset, frames: xr.DataArray, *, centred: bool = False, smoothed: bool = False
) -> Placed:
    """Observe all frames of a recording as new ones, whether or not some of them were embedded.

    Parameters
    ----------
    embedding
        With what :func:`learn_bank` and :func:`learn_certainty` added.
    frames
        Dims ``(frame, feature)``, a whole recording.
    centred
        Measure every frame by those on both sides of it.
    smoothed
        Also estimate every state from all frames.

    Returns
    -------
    As :func:`observe_coordinates` and :func:`smooth_coordinates`, and what was read.
    """
    new, nothing = np.ones(frames.sizes["frame"], bool), np.zeros((0, embedding.sizes["axis"]))
    read_as_new = read(embedding, frames, np.full(len(new), -1), nothing, centred=centred)
    before = Carried(np.zeros(embedding.sizes["bank"]), nothing)
    found = _Readings(read_as_new, starts_of(frames), before, new, centred)
    state = _observed(embedding, frames, found, None)
    return Placed(state, _smoothed(embedding, frames, found) if smoothed else None, read_as_new)


def smooth_coordinates(embedding: xr.Dataset, frames: xr.DataArray, dynamics: str = "auto") -> xr.Dataset:
    """The mean of the states that the bank gives forwards and backwards.

    Parameters
    ----------
    embedding, frames, dynamics
        As for :func:`observe_coordinates`.

    Returns
    -------
    ``state(frame, mode)``, ``state_std(frame, mode)`` and ``far(frame)``.
    """
    embedding = learn_bank(embedding, dynamics)
    # It may look ahead, so new frames are measured by those on both sides of them, as the embedded ones were.
    centred = not embedding.attrs.get("causal")
    found = _readings(embedding, frames, None, None, centred=centred)
    learnt = learn_certainty(embedding, new=bool(found.new.any()), centred=centred)
    return _smoothed(learnt, frames, found)


class _Readings(NamedTuple):
    """Coordinates of all frames, where observers start anew, what came before, which are new, how those are seen."""

    read: Read
    anew: NDArray[np.bool_]
    before: Carried
    new: NDArray[np.bool_]
    centred: bool = False


def _observed(
    embedding: xr.Dataset, frames: xr.DataArray, readings: _Readings, carry: xr.DataArray | None
) -> xr.Dataset:
    """States of frames whose coordinates have been read."""
    found, anew, before, new, centred = readings
    lazy = frames if frames.chunks else frames.chunk()
    lengths = lazy.data.chunks[0]
    parts, last = scan_bank(embedding, Readings(in_deviations(embedding, found.values), anew), lengths, before.bank)
    states = joined(parts, lengths, found.values.shape[1])
    result = _labelled(embedding, frames, states, found).assign_attrs(has_seen=_seen(embedding, centred))
    ages = ages_of(anew, carry)
    result["state_std"] = state_deviations(embedding, ages, (new, found.far), states)
    past = _past(embedding, frames, before.past)
    size = len(before.bank) + past.size
    handed = da.from_delayed(task(_carry_of, last, past), (size,), dtype=np.float64, meta=np.empty(0))
    result["carry"] = ("carried", handed, {**carry_attrs(frames), "bank": len(before.bank), SINCE: int(ages[-1]) + 1})
    annotate(result)
    return result if frames.chunks else result.compute()


def _smoothed(embedding: xr.Dataset, frames: xr.DataArray, readings: _Readings) -> xr.Dataset:
    """Smoothed states of frames whose coordinates have been read."""
    found, anew, before, new, _ = readings
    lazy = frames if frames.chunks else frames.chunk()
    lengths = lazy.data.chunks[0]
    values = in_deviations(embedding, found.values)
    forwards, _ = scan_bank(embedding, Readings(values, anew), lengths, before.bank)
    backwards, _ = scan_bank(embedding, Readings(values[::-1], ends_of(anew)), lengths[::-1], before.bank, "bank_back")
    parts = [task(_mean, ahead, back) for ahead, back in zip(forwards, backwards[::-1], strict=True)]
    states = joined(parts, lengths, values.shape[1])
    result = _labelled(embedding, frames, states, found)
    ages = np.stack([ages_of(anew), ages_of(ends_of(anew))[::-1]])
    result["state_std"] = state_deviations(embedding, ages, (new, found.far), states)
    result = annotate(result.assign_attrs(smoothed="forwards and backwards", has_seen="all frames"))
    return result if frames.chunks else result.compute()


def _readings(
    embedding: xr.Dataset, frames: xr.DataArray, carry: xr.DataArray | None, at: Seam | None, *, centred: bool = False
) -> _Readings:
    """Read all frames, embedded and new ones."""
    columns = embedding.sizes["bank"]
    before, at = _before(embedding, frames, carry, at, columns)
    number = embedded_numbers(embedding, frames)
    found = read(embedding, frames, number, before.past, centred=centred)
    anew = starts_of(frames)
    anew[0] = at.filters
    _warn_far(found)
    return _Readings(found, anew, before, number < 0, centred)


def _before(
    embedding: xr.Dataset, frames: xr.DataArray, carry: xr.DataArray | None, at: Seam | None, columns: int
) -> tuple[Carried, Seam]:
    """What an earlier call handed on, as far as it still counts."""
    none = np.zeros((0, embedding.sizes["axis"]))
    if carry is None:
        return Carried(np.zeros(columns), none), Seam(windows=True, filters=True)
    if carry.ndim != 1 or int(carry.attrs.get("bank", -1)) != columns or (carry.size - columns) % none.shape[1]:
        raise ValueError(
            f"observe: carry must be that of an earlier result with the same embedding; got shape {carry.shape}. Give "
            "the carry of what mo.observe returned, with its attributes."
        )
    values, at = np.asarray(carry.values), at or seam(carry, frames, BRIDGED)
    past = none if at.windows else values[columns:].reshape(-1, none.shape[1])
    return Carried(values[:columns], past), at


def _past(embedding: xr.Dataset, frames: xr.DataArray, before: Floats) -> Floats:
    """The last frames of the last segment along the axes, one fewer than a window at most."""
    most = int(embedding.attrs["window"]) - 1
    segment = segment_of(frames)
    firsts = np.flatnonzero(restarts(segment))
    first = max(int(firsts[-1]), len(segment) - most)
    own = along_axes(embedding, frames.isel(frame=slice(first, None)))
    return np.concatenate([before, own])[-most:] if firsts[-1] == 0 else own


def _carry_of(bank: Floats, past: Floats) -> Floats:
    """Bank and past in one row."""
    return np.concatenate([bank, past.ravel()])


def _mean(ahead: Floats, back: Floats) -> Floats:
    """Mean state of one chunk; those of the backward pass come in its own order."""
    return (ahead + back[::-1]) / 2


def _labelled(embedding: xr.Dataset, frames: xr.DataArray, states: da.Array, found: Read) -> xr.Dataset:
    """States with the labels of their frames, and what they are."""
    names = reading_names(embedding)
    labels = {"mode": np.arange(1, len(names) + 1), "reads": ("mode", np.array(names, object))}
    result = xr.Dataset(
        {"state": (("frame", "mode"), states), "far": ("frame", found.far)}, coords={**frame_labels(frames), **labels}
    )
    return result.assign_attrs({"reading": "coordinates", "gain": "bank", **dynamics_attrs(embedding)})


def _seen(embedding: xr.Dataset, centred: bool) -> str:
    """Which frames an estimate depends on, beside those that the embedding was made of."""
    ahead = int(embedding.attrs["window"]) - 1 - int(embedding.attrs["window"]) // 2
    if embedding.attrs.get("causal") and not centred:
        return "the frames up to this one"
    which = "" if centred else "for an embedded frame, "
    return f"the frames up to this one; {which}the covariance of the {ahead} after it too"


def _warn_far(found: Read) -> None:
    """Many new frames unlike all embedded ones are worth a word; a few are in every recording."""
    if np.count_nonzero(found.far) > max(_MANY_FAR * len(found.far), _FEW_FAR):
        warn(
            f"observe: {np.count_nonzero(found.far)} of {len(found.far)} frames are far from all embedded ones (the "
            f"first is frame {np.argmax(found.far)}): their coordinates are extrapolated. Embed such frames too, or "
            "leave them out where far is true."
        )
