"""The state read from coordinates: a bank of contracting observers, mixed by what predicts the next frame."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.arrays import deviations
from manifold_observer.tasks.observers import bank as tasks
from manifold_observer.tasks.observers.bank import Mixture

from ..embedding.read import known_coordinates
from ..frames.labels import segment_of
from ..frames.segments import restarts
from ..frames.variables import annotate
from ..graph.compute import task

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
BRIDGED = 5
"""Gaps of fewer frames than this do not make a filter start anew: a logger that skips a second forgets nothing."""
# Frames whose bank is held at a time while a mixture is learnt.
_CHUNK = 2**16


class Readings(NamedTuple):
    """Coordinates of frames (n, m) in units of their deviation, and where observers start anew (n,)."""

    values: Floats
    anew: Booleans


def learn_bank(embedding: xr.Dataset) -> xr.Dataset:
    """Learn from the embedded frames how a bank of observers is mixed into a state; this computes.

    Parameters
    ----------
    embedding
        As :func:`embed` made it, with ``principal`` components.

    Returns
    -------
    The embedding with the means and deviations of its coordinates and of the bank, and the weights of the mixture,
    forwards and (for :func:`smooth`) backwards. One that has them comes back as it is.

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
        return embedding
    plain = known_coordinates(embedding)
    mean, deviation = plain.mean(axis=0), deviations(plain)
    values, segment = (plain - mean) / deviation, segment_of(embedding)
    anew = starts_of(embedding)
    forwards = _mixture(values, segment, anew)
    backwards = _mixture(values[::-1], segment[::-1], ends_of(anew))
    learnt: dict[str, Any] = {"reading_mean": ("reading", mean), "reading_deviation": ("reading", deviation)}
    for name, mixture in (("bank", forwards), ("bank_back", backwards)):
        learnt |= {
            f"{name}_mean": ("bank", mixture.mean),
            f"{name}_deviation": ("bank", mixture.deviation),
            f"{name}_weights": (("bank", "reading"), mixture.weights),
        }
    return annotate(embedding.assign(learnt).assign_attrs(poles=list(tasks.POLES)))


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


def ends_of(starts: Booleans) -> Booleans:
    """Where observers start anew that run over the same frames in reverse order.

    Examples
    --------
    >>> ends_of(np.array([True, False, True]))
    array([ True,  True, False])
    """
    return np.concatenate([[True], starts[:0:-1]])


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
    poles, mixture = np.asarray(embedding.attrs["poles"], np.float64), mixture_of(embedding, name)
    state, parts, first = dask.delayed(carry), [], 0
    for length in lengths:
        own = slice(first, first + length)
        states, state = task(_block, readings.values[own], readings.anew[own], state, poles, mixture, outputs=2)
        parts.append(states)
        first += length
    return parts, state


def _block(values: Floats, anew: Booleans, carry: Floats, poles: Floats, mixture: Mixture) -> tuple[Floats, Floats]:
    """One chunk."""
    bank, carry = tasks.scan(values, anew, carry, poles)
    return mixture.states(bank), carry


def _mixture(values: Floats, segment: NDArray[np.int64], anew: Booleans) -> Mixture:
    """Learn from frames in their order."""
    poles = np.array(tasks.POLES)
    n, m = values.shape
    carry = np.zeros(m * len(poles))
    sums = [tasks.nothing(len(carry), m) for _ in tasks.AHEAD]
    ahead = [np.minimum(np.arange(n) + h, n - 1) for h in tasks.AHEAD]
    followed = [(segment[then] == segment) & (np.arange(n) + h < n) for h, then in zip(tasks.AHEAD, ahead, strict=True)]
    for first in range(0, n, _CHUNK):
        own = slice(first, first + _CHUNK)
        bank, carry = tasks.scan(values[own], anew[own], carry, poles)
        sums = [
            tasks.add(known, bank, values[then[own]], where[own])
            for known, then, where in zip(sums, ahead, followed, strict=True)
        ]
    return tasks.foretell(sums)
