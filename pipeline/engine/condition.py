"""Which conditioning features get: by their kind, or by what their values show."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.engine import conditioning as tasks
from manifold_observer.tasks.engine.conditioning import Conditioning
from manifold_observer.tasks.engine.moments import Axes, Moments

from ..graph.compute import compute, task
from ..graph.progress import Progress
from ..graph.slabs import rows_of
from ..graph.warn import warn
from .blocks import Table, check_moments
from .cuts import sample_spans
from .diagnosis import check_values

# Frames whose values give the floor of a logarithm and limits, in runs; the share of the positive ones below the floor.
_SAMPLED, _SAMPLED_RUN, _FLOOR_SHARE = 16_384, 256, 0.01
# Variance of a sensor that its leading axes must keep.
_KEPT = 0.1
_ROOTED = {
    "histogram": "the cells of a histogram vary more where they are fuller",
    "stft": "magnitudes vary more where they are larger",
}


class Choice(NamedTuple):
    """The frames with their conditioning, if any, and why it was taken."""

    rows: Table
    why: str


def choose_conditioning(rows: Table, condition: str, progress: Progress) -> Choice:
    """How features are conditioned; it computes a pass over the frames where their values must be looked at.

    Parameters
    ----------
    rows
        Plain frames.
    condition
        What was asked for: ``"auto"``, ``"none"``, ``"root"``, ``"log"`` or ``"standard"``.
    progress
        Where to report.

    Returns
    -------
    The frames with their conditioning, nearer where they had to be read for it, and a sentence.
    """
    named = {"root": "square root, as asked for", "log": "logarithm, as asked for"}
    if condition in named:
        floor = _floor(rows) if condition == "log" else 0.0
        return _elementwise(rows, condition, floor, named[condition])
    if condition == "none" or rows.covariance is not None:
        return Choice(rows, "features are taken as they are")
    return _by_kind(rows, rows.kind if condition == "auto" else "sensors", progress)


def is_scaled(rows: Table) -> bool:
    """Whether frames are divided by what a pass over them gave, in which their values were looked at already.

    Parameters
    ----------
    rows
        As :func:`choose_conditioning` gave them.
    """
    return rows.conditioning is not None and rows.conditioning.transform == "none"


def _by_kind(rows: Table, kind: str, progress: Progress) -> Choice:
    """By the kind of features, and by their values where it says nothing."""
    if kind in _ROOTED:
        return _elementwise(rows, "root", 0.0, f"square root: {_ROOTED[kind]}")
    if kind == "log_rms":
        return Choice(rows, "features are taken as they are: they are logarithms already")
    rows, total = check_moments(rows, progress, looked=kind != "sensors")
    check_values(rows, total)
    variance = total.squares / total.n
    if total.look is not None and tasks.are_counts(total.look, total.mean, variance):
        return _elementwise(rows, "root", 0.0, "square root: counts vary more where they are larger")
    return _divided(*_limited(rows, total, progress))


def _divided(rows: Table, total: Moments) -> Choice:
    """Sensors in units of their deviation."""
    variance = total.squares / total.n
    deviation = np.sqrt(np.where(variance > 1e-28 * np.square(total.mean), variance, 1.0))
    limits, told = None if rows.conditioning is None else rows.conditioning.limits, ""
    if limits is not None:
        n = int(np.isfinite(limits[0]).sum())
        sensors = "1 sensor" if n == 1 else f"{n} sensors"
        told = f"; outliers of {sensors} are limited to twice the range of all but 1% of the frames"
    rows = rows._replace(conditioning=Conditioning("none", 0.0, deviation, limits))
    return Choice(rows, f"every sensor is divided by its standard deviation{told}")


def _limited(rows: Table, total: Moments, progress: Progress) -> tuple[Table, Moments]:
    """Sensors without outliers that would set their deviations; one more pass over the frames where there are some."""
    seen = total.values
    if seen is None or not (far := tasks.may_outlie(seen.reach, seen.spread)).any():
        return rows, total
    limits = _sampled(rows, _plain, tasks.limits_of)
    beyond = far & ((seen.least < limits[0]) | (seen.greatest > limits[1]))
    if not beyond.any():
        return rows, total
    limits = np.where(beyond, limits, np.array([[-np.inf], [np.inf]]))
    rows = rows._replace(conditioning=Conditioning("none", 0.0, np.ones(rows.n_features), limits))
    return check_moments(rows, progress)


def _elementwise(rows: Table, transform: str, floor: float, why: str) -> Choice:
    """A transform of every number, whatever its feature."""
    return Choice(rows._replace(conditioning=Conditioning(transform, floor, np.ones(rows.n_features))), why)


def warn_cut(rows: Table, axes: Axes, total: Moments) -> None:
    """Name the sensors of which the leading axes keep next to nothing.

    Parameters
    ----------
    rows
        Only standardised sensors are worth a word: of wide spectra most bins are left out on purpose.
    axes
        The leading axes.
    total
        Moments of the conditioned features.
    """
    standardised = rows.conditioning is not None and rows.conditioning.transform == "none"
    if not standardised or axes.basis is None or total.scatter is None:
        return
    variance, scatter = total.squares / total.n, total.scatter / total.n
    kept = np.square(axes.basis) @ np.einsum("pr,pq,qr->r", axes.basis, scatter, axes.basis)
    cut = np.flatnonzero((variance > 0) & (kept < _KEPT * variance))
    if len(cut):
        named = ", ".join(str(k if rows.names is None else rows.names[k]) for k in cut[:5])
        warn(
            f"embed: {len(cut)} of {len(variance)} features have less than a tenth of their variance along the "
            f"{axes.width} leading axes, and hardly count: {named}{', ...' * (len(cut) > 5)}. Give a larger "
            "max_axes=, or leave others out."
        )


def _floor(rows: Table) -> float:
    """One per cent of the positive values of a sample lie below it."""
    positive = _sampled(rows, _positive, np.asarray)
    if not len(positive):
        raise ValueError(
            "embed: features must hold numbers above 0 for their logarithm; got none. Give condition='none'."
        )
    return float(np.quantile(positive, _FLOOR_SHARE))


def _sampled(rows: Table, what: Callable[[Array], Floats], found: Callable[[Floats], Floats]) -> Floats:
    """What is found in something of every block of a sample of the plain frames, one after the other; it computes."""
    spans = sample_spans(rows.n_frames, _SAMPLED_RUN, _SAMPLED)
    return found(np.concatenate(compute([task(what, rows_of(rows.data, span)) for span in spans])))


def _plain(frames: Array) -> Floats:
    """Numbers of one block."""
    return np.asarray(frames, np.float64)


def _positive(frames: Array) -> Floats:
    """Positive values of one block."""
    values = np.asarray(frames, np.float64).ravel()
    return values[values > 0]
