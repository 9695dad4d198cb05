"""The state read from coordinates: contracting observers, mixed by what foretells the frames to come."""

from __future__ import annotations

from collections.abc import Sequence
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

from ..embedding.read import Columns, known_columns, side_by_side
from ..frames.labels import segments_of
from ..frames.variables import annotate
from ..graph.compute import one_blas_thread, task
from ..graph.spans import Integers, Span, spread
from .dynamics import AT_BOUND, Ahead, choose
from .starts import LEARNT_FROM, LEARNT_RUN, Starts, apart, begun

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
# Parts of the filter of learnt transitions, as an embedding holds them.
_PARTS = {"transition": ("bank", "bank_1"), "drive": ("bank", "reading"), "start": ("bank", "reading")}
# What else is learnt with a bank, and what is said of it.
_LEARNT = ("reading_mean", "reading_deviation", "transitions", "state_error", "mean_error", "new_error")
_TOLD = ("dynamics", "poles", "dynamics_foretold", AT_BOUND)


class Readings(NamedTuple):
    """Coordinates of frames, where observers start anew, and whether they run over them from the last to the first."""

    values: Columns
    starts: Starts
    backwards: bool = False

    def back(self) -> Readings:
        """The same frames in reverse order."""
        return Readings(self.values, self.starts.reversed(), backwards=True)

    def spans(self, lengths: Sequence[int]) -> list[Span]:
        """Frames of every chunk, in the order in which the observers come to them."""
        stops = np.cumsum(lengths).tolist()
        spans = list(zip([0, *stops], stops, strict=False))
        return spans[::-1] if self.backwards else spans


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
    O(N k (k + m)) time for k = 7 m columns of the bank. Of more than a million frames 16 runs of 65,536 are looked at,
    evenly spread: weights by the hundred are known well enough from those.

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
    known = known_columns(embedding)
    spans = spread(known.n, LEARNT_RUN, LEARNT_FROM)
    plain = known.here(spans)
    mean, deviation = plain.mean(axis=0), deviations(plain)
    ahead = Ahead((plain - mean) / deviation, *_stretches(embedding, spans))
    del plain
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


def _stretches(embedding: xr.Dataset, spans: list[Span]) -> tuple[Integers, Booleans]:
    """Segments of the frames of some spans, of which no two share one, and where observers start anew among them."""
    starts = begun(embedding)
    cut = [starts.cut(span).first_of(anew=True).mask() for span in spans]
    return apart(segments_of(embedding), spans), np.concatenate(cut)


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
    mean, deviation = _units_of(embedding)
    return (plain - mean) / deviation


def _units_of(embedding: xr.Dataset) -> tuple[Floats, Floats]:
    """Mean and deviation of the coordinates."""
    return embedding["reading_mean"].values, embedding["reading_deviation"].values


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
        Which mixture: ``"bank"``, or ``"bank_back"`` for frames in reverse order, whose states are those of the last
        chunk first.
    """
    memory, mixture = memory_of(embedding, name), mixture_of(embedding, name)
    state, parts, first, units = dask.delayed(carry), [], 0, _units_of(embedding)
    for span in readings.spans(lengths):
        stop = first + span[1] - span[0]
        own, starts = readings.values.rows(span), readings.starts.cut((first, stop))
        states, state = task(_block, own, units, starts, readings.backwards, state, memory, mixture, outputs=2)
        parts.append(states)
        first = stop
    return parts, state


def _block(
    parts: list[Floats],
    units: tuple[Floats, Floats],
    starts: Starts,
    backwards: bool,
    carry: Floats,
    memory: Memory,
    mixture: Mixture,
) -> tuple[Floats, Floats]:
    """One chunk."""
    values = (side_by_side(parts) - units[0]) / units[1]
    bank, carry = tasks.scan(values[::-1] if backwards else values, starts.mask(), carry, memory)
    return mixture.states(bank), carry
