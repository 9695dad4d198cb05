"""The state read from coordinates: a bank of contracting observers, mixed by what predicts the next frame."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.observers import bank as tasks
from manifold_observer.tasks.observers.bank import Mixture

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
    mean, deviation = plain.mean(axis=0), plain.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    values, segment = (plain - mean) / deviation, segment_of(embedding)
    anew = starts_of(segment, _times(embedding))
    forwards = _mixture(values, segment, anew)
    ends = starts_of(segment[::-1], _reversed(_times(embedding)))
    backwards = _mixture(values[::-1], segment[::-1], ends)
    learnt: dict[str, Any] = {"reading_mean": ("reading", mean), "reading_deviation": ("reading", deviation)}
    for name, mixture in (("bank", forwards), ("bank_back", backwards)):
        learnt |= {
            f"{name}_mean": ("bank", mixture.mean),
            f"{name}_deviation": ("bank", mixture.deviation),
            f"{name}_weights": (("bank", "reading"), mixture.weights),
        }
    return annotate(embedding.assign(learnt).assign_attrs(poles=list(tasks.POLES)))


def known_coordinates(embedding: xr.Dataset) -> Floats:
    """Diffusion coordinates of the embedded frames, beside their leading principal components, (n, m)."""
    return np.hstack([embedding[name].values for name in ("coordinate", "principal")])


def reading_names(embedding: xr.Dataset) -> list[str]:
    """What every column of a state estimates."""
    diffusion, linear = embedding.sizes["mode"], embedding.sizes["component"]
    return [f"diffusion coordinate {k + 1}" for k in range(diffusion)] + [
        f"principal component {k + 1}" for k in range(linear)
    ]


def in_deviations(embedding: xr.Dataset, plain: Floats) -> Floats:
    """Coordinates in units of their deviation over the embedded frames."""
    return (plain - embedding["reading_mean"].values) / embedding["reading_deviation"].values


def starts_of(segment: NDArray[np.int64], times: Floats | None) -> Booleans:
    """Where observers start anew: at every segment that begins after a gap of ``BRIDGED`` frames or more.

    Examples
    --------
    >>> starts_of(np.array([0, 0, 1, 2]), np.array([0.0, 1.0, 4.0, 20.0]))
    array([ True, False, False,  True])
    """
    starts = restarts(segment)
    if times is None or len(times) < 2:
        return starts
    steps = np.abs(np.diff(times))
    period = float(np.median(steps))
    starts[1:] &= ~((steps > 0) & (steps < (BRIDGED + 1) * period))
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
    sums = tasks.nothing(len(carry), m)
    followed = np.append(segment[1:] == segment[:-1], False)
    later = np.concatenate([values[1:], values[-1:]])
    for first in range(0, n, _CHUNK):
        own = slice(first, first + _CHUNK)
        bank, carry = tasks.scan(values[own], anew[own], carry, poles)
        sums = tasks.add(sums, bank, later[own], followed[own])
    return tasks.learn(sums)


def _times(embedding: xr.Dataset) -> Floats | None:
    """Times of the embedded frames, where they are known."""
    return embedding["time"].values if "time" in embedding.coords else None


def _reversed(times: Floats | None) -> Floats | None:
    """The last first."""
    return None if times is None else times[::-1]
