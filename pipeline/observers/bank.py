"""The state read from coordinates: contracting observers, mixed by what foretells the frames to come."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.arrays import deviations
from manifold_observer.tasks.observers import bank as tasks
from manifold_observer.tasks.observers.bank import Memory, Mixture
from manifold_observer.tasks.observers.observer import Filter

from ..embedding.read import known_coordinates
from ..frames.labels import segment_of
from ..frames.segments import restarts
from ..frames.variables import annotate
from ..graph.compute import one_blas_thread, task
from .dynamics import AT_BOUND, Ahead, choose

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
BRIDGED = 5
"""Gaps of fewer frames than this do not make a filter start anew: a logger that skips a second forgets nothing."""
# Parts of the filter of learnt transitions, as an embedding holds them.
_PARTS = {"transition": ("bank", "bank_1"), "drive": ("bank", "reading"), "start": ("bank", "reading")}
# What else is learnt with a bank, and what is said of it.
_LEARNT = ("reading_mean", "reading_deviation", "transitions", "state_error", "mean_error", "new_error")
_TOLD = ("dynamics", "poles", "dynamics_foretold", AT_BOUND)


class Readings(NamedTuple):
    """Coordinates of frames (n, m) in units of their deviation, and where observers start anew (n,)."""

    values: Floats
    anew: Booleans


def learn_bank(embedding: xr.Dataset, dynamics: str = "auto") -> xr.Dataset:
    """Learn from the embedded frames how their coordinates are followed, and mixed into a state; this computes.

    Parameters
    ----------
    embedding
        As :func:`embed` made it, with ``principal`` components.
    dynamics
        ``"poles"``, ``"transitions"`` or ``"auto"``, as for :func:`observe`.

    Returns
    -------
    The embedding with the means and deviations of its coordinates and of the bank, and the weights of the mixture,
    forwards and (for :func:`smooth`) backwards; with learnt transitions their filters too. One that has them comes
    back as it is, unless other dynamics are wanted.

    Notes
    -----
    O(N k (k + m)) time for k = 7 m columns of the bank; a few thousand frames are held at a time.

    Examples
    --------
    >>> wave = np.sin(np.arange(300) / 9)
    >>> toy = xr.Dataset({"coordinate": (("frame", "mode"), wave[:, None]),
    ...                   "principal": (("frame", "component"), np.roll(wave, 14)[:, None])})
    >>> learn_bank(toy).bank_weights.sizes
    Frozen({'bank': 14, 'reading': 2})
    """
    if "bank_weights" in embedding:
        if dynamics in ("auto", embedding.attrs.get("dynamics", "poles")):
            return embedding
        embedding = _without_bank(embedding)
    plain = known_coordinates(embedding)
    mean, deviation = plain.mean(axis=0), deviations(plain)
    ahead = Ahead((plain - mean) / deviation, segment_of(embedding), starts_of(embedding))
    learnt: dict[str, Any] = {"reading_mean": ("reading", mean), "reading_deviation": ("reading", deviation)}
    with one_blas_thread():  # matrices of eight columns: threads would only wait for each other
        chosen = choose(ahead, dynamics)
    for name, memory, mixture in zip(("bank", "bank_back"), chosen.memories, chosen.mixtures, strict=True):
        learnt |= {
            f"{name}_mean": ("bank", mixture.mean),
            f"{name}_deviation": ("bank", mixture.deviation),
            f"{name}_weights": (("bank", "reading"), mixture.weights),
        }
        if isinstance(memory, Filter):
            learnt |= {f"{name}_{part}": (dims, getattr(memory, part)) for part, dims in _PARTS.items()}
    if chosen.transitions is not None:
        learnt["transitions"] = (("reading", "reading_1"), chosen.transitions)
    return annotate(embedding.assign(learnt).assign_attrs(chosen.attrs))


def _without_bank(embedding: xr.Dataset) -> xr.Dataset:
    """An embedding that has learnt nothing of the dynamics."""
    names = [name for name in embedding.data_vars if str(name).startswith("bank_") or name in _LEARNT]
    kept = embedding.drop_vars(names)
    kept.attrs = {key: value for key, value in embedding.attrs.items() if key not in _TOLD}
    return kept


def memory_of(embedding: xr.Dataset, name: str = "bank") -> Memory:
    """What follows the coordinates: poles, or the filter of learnt transitions."""
    if f"{name}_transition" in embedding:
        return Filter(*(np.ascontiguousarray(embedding[f"{name}_{part}"].values) for part in _PARTS))
    return np.asarray(np.atleast_1d(embedding.attrs["poles"]), np.float64)


def at_bound(embedding: xr.Dataset) -> bool:
    """Whether transitions were learnt whose fit ended at its bound."""
    return bool(embedding.attrs.get(AT_BOUND, 0))


def dynamics_attrs(embedding: xr.Dataset) -> dict[str, Any]:
    """What a state says of its dynamics."""
    memory = memory_of(embedding)
    told = {name: embedding.attrs[name] for name in _TOLD if name in embedding.attrs}
    if not isinstance(memory, Filter):
        told["poles"] = [float(pole) for pole in memory]
    return {"dynamics": "poles", **told, "contraction_factor": tasks.contraction(memory)}


def reading_names(embedding: xr.Dataset) -> list[str]:
    """What every column of a state estimates."""
    diffusion, linear = embedding.sizes["mode"], embedding.sizes["component"]
    return [f"diffusion coordinate {k + 1}" for k in range(diffusion)] + [
        f"principal component {k + 1}" for k in range(linear)
    ]


def in_deviations(embedding: xr.Dataset, plain: Floats) -> Floats:
    """Coordinates in units of their deviation over the embedded frames."""
    return (plain - embedding["reading_mean"].values) / embedding["reading_deviation"].values


def starts_of(labelled: xr.DataArray | xr.Dataset) -> Booleans:
    """Where observers start anew, among frames or embedded ones: at every segment, but for short pauses.

    Fewer than ``BRIDGED`` missing frames are a short pause, if it is known how long it was.

    Examples
    --------
    >>> labels = {"time": ("frame", [0.0, 1.0, 4.0, 20.0]), "segment": ("frame", [0, 0, 1, 2])}
    >>> starts_of(xr.DataArray(np.zeros(4), dims="frame", coords=labels, attrs={"frame_period": 1.0}))
    array([ True, False, False,  True])
    """
    starts = restarts(segment_of(labelled))
    if "time" not in labelled.coords or len(starts) < 2:
        return starts
    times, attrs = labelled["time"].values.astype(np.float64), labelled.attrs
    steps = np.diff(times)
    period = float(attrs.get("frame_period", attrs.get("frames_frame_period", np.median(steps))))
    short = (steps > 0) & (steps < (BRIDGED + 1) * period)
    unknown = np.isin(times[1:], np.atleast_1d(labelled["time"].attrs.get("unknown_pauses", [])))
    starts[1:] &= unknown | ~short
    return starts


def mixture_of(embedding: xr.Dataset, name: str = "bank") -> Mixture:
    """The mixture that an embedding has learnt."""
    return Mixture(*(embedding[f"{name}_{part}"].values for part in ("mean", "deviation", "weights")))


def scan_bank(
    embedding: xr.Dataset, readings: Readings, lengths: tuple[int, ...], carry: Any, name: str = "bank"
) -> tuple[list[Delayed], Delayed]:
    """Hand the bank from chunk to chunk; states of every chunk, and the last row of the bank.

    Parameters
    ----------
    embedding
        With what :func:`learn_bank` added.
    readings
        Coordinates of all frames.
    lengths
        Frames of every chunk.
    carry
        Bank before the first frame, maybe lazy.
    name
        Which mixture: ``"bank"``, or ``"bank_back"`` for frames in reverse order.
    """
    memory, mixture = memory_of(embedding, name), mixture_of(embedding, name)
    state, parts, first = dask.delayed(carry), [], 0
    for length in lengths:
        own = slice(first, first + length)
        states, state = task(_block, readings.values[own], readings.anew[own], state, memory, mixture, outputs=2)
        parts.append(states)
        first += length
    return parts, state


def _block(values: Floats, anew: Booleans, carry: Floats, memory: Memory, mixture: Mixture) -> tuple[Floats, Floats]:
    """One chunk."""
    bank, carry = tasks.scan(values, anew, carry, memory)
    return mixture.states(bank), carry
