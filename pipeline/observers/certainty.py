"""How certain states are that are read from coordinates: learnt from the embedded frames, kept beside the bank."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.observers import certainty as tasks
from manifold_observer.tasks.observers.certainty import Errors, Runs

from ..embedding.read import known_coordinates, read
from ..frames.labels import segment_of
from ..frames.variables import annotate
from .bank import at_bound, in_deviations, memory_of, mixture_of, starts_of
from .carries import table_rows
from .dynamics import ends_of

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
        found = _errors(embedding, _sample(embedding, _LEARNT), known_coordinates(embedding))
        learnt: dict[str, Any] = {
            "bank_age": ("age", np.array(tasks.AGES[: len(found.forwards)])),
            "state_error": (("age", "reading"), found.forwards),
            "mean_error": (("age", "age_1", "reading"), found.both),
        }
        embedding = annotate(embedding.assign(learnt))
    if new and "new_error" not in embedding:
        embedding = annotate(embedding.assign(new_error=("reading", _new_error(embedding, centred))))
    return embedding


def state_deviations(
    embedding: xr.Dataset, ages: Integers, doubted: tuple[Booleans, Booleans], like: da.Array
) -> xr.Variable:
    """Deviation of every state, lazily, dims ``(frame, mode)``.

    Parameters
    ----------
    embedding
        With what :func:`learn_certainty` added.
    ages
        Frames since the filter started, shape (n,); beside them those to its end, shape (2, n), for the mean of both.
    doubted
        Where frames are new, and where they are far from all references: of those nothing is known.
    like
        The states.
    """
    place = np.searchsorted(embedding["bank_age"].values, ages, side="right") - 1
    name = "state_error" if ages.ndim == 1 else "mean_error"
    known = np.sqrt(embedding[name].values)
    size = known.shape[0]
    rows = place if ages.ndim == 1 else place[0] * size + place[1]
    known = known.reshape(-1, known.shape[-1])
    factor = np.sqrt(embedding["new_error"].values) if "new_error" in embedding else np.ones(known.shape[1])
    table = np.concatenate([known, known * factor, np.full((1, known.shape[1]), np.inf)])
    new, far = doubted
    rows = np.where(far, len(table) - 1, rows + np.where(new, len(known), 0))
    values = table_rows(rows, table, like)
    told = bool(np.isfinite(known).any())
    why = _BOUND if at_bound(embedding) else _UNTOLD
    return xr.Variable(("frame", "mode"), values, {} if told else {"comment": why})


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


def _errors(embedding: xr.Dataset, some: Integers, plain: Floats) -> Errors:
    """Errors of the mixtures over some of the frames, given the coordinates of all of these."""
    values = in_deviations(embedding, plain[some] if len(plain) > len(some) else plain)
    anew = starts_of(embedding)[some] | np.concatenate([[True], np.diff(some) > 1])
    ahead = Runs(values, anew, memory_of(embedding), mixture_of(embedding))
    back = Runs(values[::-1], ends_of(anew), memory_of(embedding, "bank_back"), mixture_of(embedding, "bank_back"))
    found = tasks.errors(ahead, back, _apart(embedding, some))
    return Errors(*(np.full_like(part, np.inf) for part in found)) if at_bound(embedding) else found


def _apart(embedding: xr.Dataset, some: Integers) -> Integers:
    """Segments of some of the frames, of which no two runs share one."""
    segment = segment_of(embedding)[some]
    return np.cumsum(np.concatenate([[True], (np.diff(some) > 1) | (segment[1:] != segment[:-1])]))


def _new_error(embedding: xr.Dataset, centred: bool) -> Floats:
    """By what factor error variances grow where the same frames are read as if they were new, once a mode."""
    some = _sample(embedding, _READ_AGAIN)
    frames = embedding["reference"].isel(frame=some).assign_coords(segment=("frame", _apart(embedding, some)))
    fewer, nothing = _with_fewer_references(embedding), np.zeros((0, embedding.sizes["axis"]))
    again = read(fewer, frames, np.full(len(some), -1), nothing, centred=centred).values
    errors = [_errors(embedding, some, plain).forwards[-1] for plain in (known_coordinates(embedding)[some], again)]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.clip(np.nan_to_num(errors[1] / errors[0], nan=_MOST_WORSE), 1.0, _MOST_WORSE))
