"""States read from coordinates: which frames are embedded ones, what comes before them, and what is handed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import dask.array as da
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..embedding.known import are_all_embedded, embedded_numbers
from ..embedding.read import Columns, Read, along_axes, known_columns, read, read_lazily
from ..frames.labels import frame_labels, segments_of
from ..frames.variables import annotate
from ..graph.compute import task
from ..graph.limits import LAZY_FRAMES
from ..graph.slabs import rows_of
from ..graph.spans import together
from ..graph.warn import warn
from .bank import Readings, dynamics_attrs, learn_bank, reading_names, scan_bank
from .carries import SINCE, Seam, behind, both_ways, carry_attrs, cuts, joined, seam
from .certainty import Doubted, learn_certainty, state_deviations
from .starts import BRIDGED, LONG_AGO, Starts, begun

Floats = NDArray[np.float64]
# Share and number of far frames above which a recording is said to be unlike the embedded one.
_MANY_FAR = 0.25
_FEW_FAR = 10
# Embedded frames of one task, about: they are a few coordinates each, however wide the frames are.
_TOGETHER = 2**14


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
    return _observed(learn_certainty(embedding, new=found.any_new), frames, found)


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
    found = _Readings(Columns((read_as_new.values,)), begun(frames), before, Doubted(new, read_as_new.far), centred)
    state = _observed(embedding, frames, found)
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
    learnt = learn_certainty(embedding, new=found.any_new, centred=centred)
    return _smoothed(learnt, frames, found)


class _Readings(NamedTuple):
    """Coordinates of all frames, where observers start anew, what came before, which are new, how those are seen.

    ``doubted`` is None where all are embedded ones: their coordinates are then read where they are used.
    """

    values: Columns
    starts: Starts
    before: Carried
    doubted: Doubted | None
    centred: bool = False

    @property
    def any_new(self) -> bool:
        """Whether some frames are no embedded ones."""
        return self.doubted is not None and bool(np.any(self.doubted.new))

    def lengths(self, frames: xr.DataArray) -> tuple[int, ...]:
        """Frames of every chunk: those of the frames, of which some are joined where the frames are not read."""
        own = frames.chunks[0] if frames.chunks else (frames.sizes["frame"],)
        return own if self.doubted is not None else together(own, _TOGETHER)

    def doubted_in(self, lengths: Sequence[int]) -> list[Doubted | None]:
        """What is new and far in every chunk."""
        if self.doubted is None:
            return [None] * len(lengths)
        stops = np.cumsum(lengths).tolist()
        new, far = self.doubted
        spans = zip([0, *stops], stops, strict=False)
        return [Doubted(new if new is True else new[a:b], rows_of(far, (a, b))) for a, b in spans]


def _observed(embedding: xr.Dataset, frames: xr.DataArray, found: _Readings) -> xr.Dataset:
    """States of frames whose coordinates have been read."""
    lengths = found.lengths(frames)
    parts, last = scan_bank(embedding, Readings(found.values, found.starts), lengths, found.before.bank)
    states = joined(parts, lengths, found.values.width)
    result = _labelled(embedding, frames, states, found).assign_attrs(has_seen=_seen(embedding, found.centred))
    doubted = found.doubted_in(lengths)
    result["state_std"] = state_deviations(embedding, cuts(found.starts, lengths), lengths, doubted)
    past = _past(embedding, frames, found.before.past)
    size = len(found.before.bank) + past.size
    handed = da.from_delayed(task(_carry_of, last, past), (size,), dtype=np.float64, meta=np.empty(0))
    attrs = {**carry_attrs(frames), "bank": len(found.before.bank), SINCE: found.starts.next_age}
    result["carry"] = ("carried", handed, attrs)
    annotate(result)
    return result if frames.chunks else result.compute()


def _smoothed(embedding: xr.Dataset, frames: xr.DataArray, found: _Readings) -> xr.Dataset:
    """Smoothed states of frames whose coordinates have been read."""
    lengths = found.lengths(frames)
    ahead = Readings(found.values, found.starts._replace(before=LONG_AGO))
    forwards, _ = scan_bank(embedding, ahead, lengths, found.before.bank)
    backwards, _ = scan_bank(embedding, ahead.back(), lengths, found.before.bank, "bank_back")
    parts = [task(_mean, ahead, back) for ahead, back in zip(forwards, backwards[::-1], strict=True)]
    states = joined(parts, lengths, found.values.width)
    result = _labelled(embedding, frames, states, found)
    chunks = both_ways(ahead.starts, lengths)
    result["state_std"] = state_deviations(embedding, chunks, lengths, found.doubted_in(lengths))
    result = annotate(result.assign_attrs(smoothed="forwards and backwards", has_seen="all frames"))
    return result if frames.chunks else result.compute()


def _readings(
    embedding: xr.Dataset, frames: xr.DataArray, carry: xr.DataArray | None, at: Seam | None, *, centred: bool = False
) -> _Readings:
    """Read all frames, embedded and new ones."""
    before, at = _before(embedding, frames, carry, at, embedding.sizes["bank"])
    starts = begun(frames).first_of(at.filters)._replace(before=behind(carry))
    if are_all_embedded(embedding, frames):
        return _Readings(known_columns(embedding), starts, before, None, centred)
    number = embedded_numbers(embedding, frames)
    if len(number) > LAZY_FRAMES and number.max() < 0:
        new = read_lazily(embedding, frames, before.past, centred=centred)
        _warn_far(new.n_far, len(number), new.first_far)
        return _Readings(new.values, starts, before, Doubted(True, new.far), centred)
    found = read(embedding, frames, number, before.past, centred=centred)
    _warn_far(int(np.count_nonzero(found.far)), len(number), int(np.argmax(found.far)))
    return _Readings(Columns((found.values,)), starts, before, Doubted(number < 0, found.far), centred)


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
    segments = segments_of(frames)
    begins = int(segments.firsts[-1])
    own = along_axes(embedding, frames.isel(frame=slice(max(begins, len(segments) - most), None)))
    return np.concatenate([before, own])[-most:] if begins == 0 else own


def _carry_of(bank: Floats, past: Floats) -> Floats:
    """Bank and past in one row."""
    return np.concatenate([bank, past.ravel()])


def _mean(ahead: Floats, back: Floats) -> Floats:
    """Mean state of one chunk; those of the backward pass come in its own order."""
    return (ahead + back[::-1]) / 2


def _labelled(embedding: xr.Dataset, frames: xr.DataArray, states: da.Array, found: _Readings) -> xr.Dataset:
    """States with the labels of their frames, and what they are."""
    names = reading_names(embedding)
    labels = {"mode": np.arange(1, len(names) + 1), "reads": ("mode", np.array(names, object))}
    nowhere = da.zeros(states.shape[0], dtype=bool, chunks=(states.chunks[0],))
    far = nowhere if found.doubted is None else found.doubted.far
    result = xr.Dataset(
        {"state": (("frame", "mode"), states), "far": ("frame", far)}, coords={**frame_labels(frames), **labels}
    )
    return result.assign_attrs({"reading": "coordinates", "gain": "bank", **dynamics_attrs(embedding)})


def _seen(embedding: xr.Dataset, centred: bool) -> str:
    """Which frames an estimate depends on, beside those that the embedding was made of."""
    ahead = int(embedding.attrs["window"]) - 1 - int(embedding.attrs["window"]) // 2
    if embedding.attrs.get("causal") and not centred:
        return "the frames up to this one"
    which = "" if centred else "for an embedded frame, "
    return f"the frames up to this one; {which}the covariance of the {ahead} after it too"


def _warn_far(n_far: int, n: int, first: int) -> None:
    """Many new frames unlike all embedded ones are worth a word; a few are in every recording."""
    if n_far > max(_MANY_FAR * n, _FEW_FAR):
        warn(
            f"observe: {n_far} of {n} frames are far from all embedded ones (the first is frame {first}): their "
            "coordinates are extrapolated. Embed such frames too, or leave them out where far is true."
        )
