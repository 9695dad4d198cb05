"""How certain states are that are read from coordinates: learnt from the embedded frames, kept beside the bank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.observers import certainty as tasks
from manifold_observer.tasks.observers.certainty import Errors, Runs

from ..embedding.read import known_columns, read
from ..frames.labels import segments_of
from ..frames.variables import annotate
from .bank import at_bound, in_deviations, memory_of, mixture_of
from .carries import BothWays, table_rows
from .dynamics import ends_of
from .starts import Starts, begun

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]
# Embedded frames from which deviations are learnt, and those that are read as if they were new, in as many runs.
_LEARNT, _READ_AGAIN, _RUNS = 8192, 1024, 4
# References that those are compared with at most.
_REFERENCES = 4096
_UNTOLD = "infinite: too few embedded frames follow another one to tell noise from what persists"
_BOUND = "infinite: the fit of the transitions ended at its bound, and does not tell how long coordinates last"
# Reading frames as new ones makes errors larger by no more than this, or the sample is too small to tell.
_MOST_WORSE = 4.0


def learn_certainty(embedding: xr.Dataset, *, new: bool, centred: bool = False) -> xr.Dataset:
    """Learn how far states are from coordinates without noise; this computes.

    Parameters
    ----------
    embedding
        With what :func:`learn_bank` added.
    new
        Whether new frames will be read too.
    centred
        Whether those are measured by the frames on both sides of them.

    Returns
    -------
    The embedding with ``bank_age(age)``, frames since the start of a segment; ``state_error(age, reading)``, error
    variance of a state in units of the coordinates' variance, ``mean_error(age, age_1, reading)``, that of the mean
    with the backward state; and with ``new`` also ``new_error(reading)``, the factor by which those of new frames are
    larger. What the embedding brings stays.

    Notes
    -----
    8,192 frames at most, 1,024 for new ones, of which each is compared with 4,096 references at most.
    """
    if "state_error" not in embedding:
        some = _sample(embedding, _LEARNT)
        found = _errors(embedding, some, _known(embedding, some))
        learnt: dict[str, Any] = {
            "bank_age": ("age", np.array(tasks.AGES[: len(found.forwards)])),
            "state_error": (("age", "reading"), found.forwards),
            "mean_error": (("age", "age_1", "reading"), found.both),
        }
        embedding = annotate(embedding.assign(learnt))
    if new and "new_error" not in embedding:
        embedding = annotate(embedding.assign(new_error=("reading", _new_error(embedding, centred))))
    return embedding


class Doubted(NamedTuple):
    """Frames that are new, or True for all, and those far from all references: of those nothing is known."""

    new: Booleans | Literal[True]
    far: Any


def state_deviations(
    embedding: xr.Dataset,
    starts: Sequence[Starts] | Sequence[BothWays],
    lengths: Sequence[int],
    doubted: Sequence[Doubted | None],
) -> xr.Variable:
    """Deviation of every state, lazily, dims ``(frame, mode)``.

    Parameters
    ----------
    embedding
        With what :func:`learn_certainty` added.
    starts
        Where filters start in every chunk; both ways for the mean of both.
    lengths
        Frames of every chunk.
    doubted
        Which frames of every chunk are not embedded ones.
    """
    name = "mean_error" if isinstance(starts[0], BothWays) else "state_error"
    known = np.sqrt(embedding[name].values)
    known = known.reshape(-1, known.shape[-1])
    factor = np.sqrt(embedding["new_error"].values) if "new_error" in embedding else np.ones(known.shape[1])
    table = np.concatenate([known, known * factor, np.full((1, known.shape[1]), np.inf)])
    chunks = list(zip(starts, doubted, strict=True))
    values = table_rows(chunks, lengths, _error_rows, table, np.asarray(embedding["bank_age"].values))
    told = bool(np.isfinite(known).any())
    why = _BOUND if at_bound(embedding) else _UNTOLD
    return xr.Variable(("frame", "mode"), values, {} if told else {"comment": why})


def _error_rows(chunk: tuple[Starts | BothWays, Doubted | None], known: Integers) -> Integers:
    """Row of the table of deviations, for every frame of a chunk: of embedded frames, of new ones, of far ones."""
    starts, doubted = chunk
    ages = starts.ages()
    places = [np.searchsorted(known, one, side="right") - 1 for one in (ages if isinstance(ages, tuple) else (ages,))]
    rows = places[0] if len(places) == 1 else places[0] * len(known) + places[1]
    if doubted is None:
        return rows
    size = len(known) ** len(places)
    return np.where(doubted.far, 2 * size, rows + np.where(doubted.new, size, 0))


def _sample(embedding: xr.Dataset, most: int) -> Integers:
    """Numbers of embedded frames, all of them or a few evenly spread runs."""
    n = embedding.sizes["frame"]
    if n <= most:
        return np.arange(n)
    length = most // _RUNS
    firsts = np.linspace(0, n - length, _RUNS).astype(np.int64)
    return np.unique(firsts[:, None] + np.arange(length))


def _with_fewer_references(embedding: xr.Dataset) -> xr.Dataset:
    """The embedding with some references only: how much worse new frames are shows well enough with those."""
    n = embedding.sizes["frame"]
    if n <= _REFERENCES or "landmark" in embedding.variables:
        return embedding
    return embedding.assign_coords(landmark=np.linspace(0, n - 1, _REFERENCES).astype(np.int64))


def _known(embedding: xr.Dataset, some: Integers) -> Floats:
    """Coordinates of some of the embedded frames."""
    cut = np.flatnonzero(np.diff(some) > 1) + 1
    return known_columns(embedding).here([(int(own[0]), int(own[-1]) + 1) for own in np.split(some, cut)])


def _errors(embedding: xr.Dataset, some: Integers, plain: Floats) -> Errors:
    """Errors of the mixtures over some of the frames, given their coordinates."""
    found = tasks.errors(*_both_ways(embedding, some, plain), _apart(embedding, some))
    return Errors(*(np.full_like(part, np.inf) for part in found)) if at_bound(embedding) else found


def _oldest_errors(embedding: xr.Dataset, some: Integers, plain: Floats) -> Floats:
    """Those of states forwards that began long ago."""
    found = tasks.oldest_errors(*_both_ways(embedding, some, plain), _apart(embedding, some))
    return np.full_like(found, np.inf) if at_bound(embedding) else found


def _both_ways(embedding: xr.Dataset, some: Integers, plain: Floats) -> tuple[Runs, Runs]:
    """Some of the frames, given their coordinates, in their order and in reverse order."""
    values, starts = in_deviations(embedding, plain), begun(embedding).places
    anew = np.isin(some, starts) | np.concatenate([[True], np.diff(some) > 1])
    ahead = Runs(values, anew, memory_of(embedding), mixture_of(embedding))
    return ahead, Runs(
        values[::-1], ends_of(anew), memory_of(embedding, "bank_back"), mixture_of(embedding, "bank_back")
    )


def _apart(embedding: xr.Dataset, some: Integers) -> Integers:
    """Segments of some of the frames, of which no two runs share one."""
    segment = segments_of(embedding)[some]
    return np.cumsum(np.concatenate([[True], (np.diff(some) > 1) | (segment[1:] != segment[:-1])]))


def _new_error(embedding: xr.Dataset, centred: bool) -> Floats:
    """By what factor error variances grow where the same frames are read as if they were new, once a mode."""
    some = _sample(embedding, _READ_AGAIN)
    frames = embedding["reference"].isel(frame=some).assign_coords(segment=("frame", _apart(embedding, some)))
    fewer, nothing = _with_fewer_references(embedding), np.zeros((0, embedding.sizes["axis"]))
    again = read(fewer, frames, np.full(len(some), -1), nothing, centred=centred).values
    errors = [_oldest_errors(embedding, some, plain) for plain in (_known(embedding, some), again)]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.clip(np.nan_to_num(errors[1] / errors[0], nan=_MOST_WORSE), 1.0, _MOST_WORSE))
