"""Estimates beside each other against a known truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.comparison import scores as tasks
from manifold_observer.tasks.comparison import streamed

from ..frames.given import takes_frames
from ..frames.segments import batches
from ..frames.variables import annotate
from ..graph.limits import LAZY_FRAMES
from .baselines import baselines

Estimate = xr.DataArray | xr.Dataset
_FOLDS = 5


@takes_frames
def scores(
    estimates: Mapping[str, Estimate],
    truth: xr.DataArray,
    *,
    n_folds: int = _FOLDS,
    embedding: xr.Dataset | None = None,
    frames: xr.DataArray | None = None,
    gamma: float = 0.85,
) -> xr.Dataset:
    """How well each estimate tells the truth, after a linear regression, as in the paper.

    In the sample the regression is fitted and read on the same frames; held out, every contiguous
    block of frames is read with weights fitted on the others, which flatters less.

    Parameters
    ----------
    estimates
        By name, dims ``(frame, mode)``; a result of ``observe`` or ``embed`` stands for its state or
        coordinates.
    truth
        Dims ``(frame, component)`` or ``(frame,)``, in any unit. Frames with NaN are left out.
    n_folds
        Blocks held out in turn.
    embedding, frames
        What the estimates were made from. Then ``smoothed_pca`` (the principal components of the frames, smoothed as
        the observer of this ``gamma`` smooths) is scored beside them, and computed, so that nobody is fooled by plain
        smoothing. Without them, bring your own.
    gamma
        Of the observer that the components are smoothed like.

    Returns
    -------
    ``correlation`` and ``nrmse_db`` (error over the truth's deviation, dB), both also ``_held_out``; dims
    ``(estimate, component)``.

    Raises
    ------
    ValueError
        An estimate has another number of frames than the truth, or holds NaN.

    Examples
    --------
    >>> truth = xr.DataArray(np.arange(10.0), dims="frame")
    >>> estimate = xr.DataArray(-2 * np.arange(10.0)[:, None], dims=("frame", "mode"))
    >>> float(scores({"mine": estimate}, truth).correlation.round(6).item())
    1.0
    """
    estimates = _with_smoothed_pca(_named("scores", estimates), embedding, frames, gamma)
    known = _truth("scores: truth", truth)
    known = (known if known.ndim > 1 else known.expand_dims("component")).transpose("frame", "component")
    there = np.concatenate([np.isfinite(batch).all(axis=1) for batch in batches(known)])
    _check_folds("scores", int(there.sum()), n_folds)
    if len(there) > LAZY_FRAMES:
        rows = [_streamed(name, estimate, known, there, n_folds) for name, estimate in estimates.items()]
    else:
        values = known.values[there].astype(np.float64)
        chosen = {name: _values(name, estimate, len(there))[there] for name, estimate in estimates.items()}
        rows = [_score(estimate, values, n_folds) for estimate in chosen.values()]
    coords = {"estimate": list(estimates)}
    if "component" in known.coords:
        coords["component"] = list(known["component"].values)
    names = ("correlation", "nrmse_db", "correlation_held_out", "nrmse_db_held_out")
    table = {
        name: (("estimate", "component"), np.array(column))
        for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    return annotate(xr.Dataset(table, coords=coords, attrs={"n_folds": n_folds, "n_frames": int(there.sum())}))


def class_scores(
    estimates: Mapping[str, Estimate],
    labels: xr.DataArray,
    *,
    n_folds: int = _FOLDS,
    n_neighbours: int = 5,
) -> xr.Dataset:
    """How well nearest neighbours read classes (notes, instruments, sleep stages) from each estimate.

    Every contiguous block of frames is read by the votes of the nearest frames of the other blocks.

    Parameters
    ----------
    estimates
        By name, dims ``(frame, mode)``; a result of ``observe`` or ``embed`` stands for its state or
        coordinates.
    labels
        Whole numbers or words, dims ``(frame,)``, such as the ``label`` of :func:`label_frames`; negative numbers and
        empty words (silence, unknown) are left out.
    n_folds
        Blocks held out in turn.
    n_neighbours
        Votes a frame.

    Returns
    -------
    ``balanced_accuracy(estimate)``: mean over the classes of the share of their frames that was read right.

    Raises
    ------
    TypeError
        The labels are neither whole numbers nor words.
    ValueError
        An estimate has another number of frames than the labels, or holds NaN.

    Examples
    --------
    >>> labels = xr.DataArray([0, 1] * 10, dims="frame")
    >>> estimate = xr.DataArray(labels.values[:, None] * 1.0, dims=("frame", "mode"))
    >>> float(class_scores({"mine": estimate}, labels).balanced_accuracy.item())
    1.0
    """
    estimates, numbers = _named("class_scores", estimates), _classes(labels)
    there = numbers >= 0
    _check_folds("class_scores", int(there.sum()), n_folds)
    known = numbers[there].astype(np.int64)
    accuracy = []
    for name, estimate in estimates.items():
        values = _values(name, estimate, len(there))[there]
        reading = tasks.neighbour_readout(values, known, n_folds, n_neighbours)
        accuracy.append(tasks.balanced_accuracy(reading, known))
    table = xr.Dataset({"balanced_accuracy": ("estimate", accuracy)}, coords={"estimate": list(estimates)})
    return table.assign_attrs(n_folds=n_folds, n_neighbours=n_neighbours, n_frames=int(there.sum()))


def _named(who: str, estimates: Any) -> Mapping[str, Estimate]:
    """Estimates by name; a single one has the name of what it holds."""
    if isinstance(estimates, xr.DataArray | xr.Dataset):
        return {str(estimates.name or "estimate") if isinstance(estimates, xr.DataArray) else "estimate": estimates}
    if isinstance(estimates, Mapping):
        return estimates
    raise TypeError(
        f"{who}: estimates must be a dict of results or arrays by name; got a {type(estimates).__name__}. Write "
        "{'observer': state}, for instance."
    )


def _truth(what: str, truth: Any) -> xr.DataArray:
    """A known truth of every frame, with its dims; plain arrays get them."""
    if not isinstance(truth, xr.DataArray):
        if not (hasattr(truth, "shape") and hasattr(truth, "dtype")) or len(truth.shape) not in (1, 2):
            raise TypeError(
                f"{what} must be an array with a value or a row for every frame; got a {type(truth).__name__}. "
                "Write xr.DataArray(values, dims='frame')."
            )
        return xr.DataArray(np.asarray(truth), dims=("frame", "component")[: len(truth.shape)])
    if set(truth.dims) not in ({"frame"}, {"frame", "component"}):
        raise ValueError(
            f"{what} must have dims (frame,) or (frame, component); got {truth.dims}. Give the estimates first, "
            "then the truth, renamed with truth.rename(...)."
        )
    return truth


def _classes(labels: Any) -> NDArray[np.int64]:
    """Classes of all frames as numbers, -1 where there is none."""
    values = np.asarray(_truth("class_scores: labels", labels).values)
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values.ravel()):
        values = values.astype(str)
    if values.ndim != 1 or values.dtype.kind not in "iubU":
        raise TypeError(
            f"class_scores: labels must be whole numbers; got dtype {values.dtype} of shape {values.shape}. Give one "
            "number or word a frame, as with labels.astype(int) or labels.astype(str)."
        )
    if values.dtype.kind != "U":
        return values.astype(np.int64)
    numbers = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return np.where(values == "", -1, numbers)


def _with_smoothed_pca(
    estimates: Mapping[str, Estimate], embedding: xr.Dataset | None, frames: xr.DataArray | None, gamma: float
) -> Mapping[str, Estimate]:
    """The estimates, and equally smoothed principal components where they can be made."""
    if (embedding is None) != (frames is None):
        raise ValueError("scores: embedding and frames must be given together; got one of them.")
    if embedding is None or frames is None or "smoothed_pca" in estimates:
        return estimates
    return {**estimates, "smoothed_pca": baselines(embedding, frames, gamma, widths=())["smoothed_pca"]}


def _check_folds(name: str, n_known: int, n_folds: int) -> None:
    """Every fold needs a frame, and others to learn from."""
    if not 2 <= n_folds <= n_known:
        raise ValueError(
            f"{name}: n_folds must lie between 2 and the number of frames with a known truth, {n_known}; got {n_folds}."
        )


def _values(name: str, estimate: Estimate, n_frames: int) -> NDArray[np.float64]:
    """Numbers of an estimate, checked against the truth."""
    values = _columns(name, estimate, n_frames).values
    _check_finite(name, values)
    return values


def _columns(name: str, estimate: Estimate, n_frames: int) -> xr.DataArray:
    """An estimate as rows of frames, as many as the truth has."""
    if isinstance(estimate, xr.Dataset):
        estimate = estimate["state"] if "state" in estimate else estimate["coordinate"]
    if estimate.ndim == 1:
        estimate = estimate.expand_dims("mode")
    columns = estimate.transpose("frame", ...)
    if len(columns) != n_frames:
        raise ValueError(f"scores: {name} must have the {n_frames} frames of the truth; got {len(columns)}.")
    return columns


def _check_finite(name: str, values: NDArray[np.float64]) -> None:
    """Refuse NaN and infinity."""
    if not np.isfinite(values).all():
        raise ValueError(f"scores: {name} must be finite; it holds NaN or infinity.")


def _streamed(
    name: str, estimate: Estimate, truth: xr.DataArray, there: NDArray[np.bool_], n_folds: int
) -> list[NDArray[np.float64]]:
    """The same as :func:`_score` for many frames, of which some are held at a time."""
    columns, n = _columns(name, estimate, len(there)), int(there.sum())
    known = streamed.nothing(n_folds, columns.shape[1], truth.shape[1])
    first = done = 0
    rough: list[NDArray[np.float64]] = []
    for rows, told in zip(batches(columns), batches(truth), strict=True):
        own = there[first : first + len(rows)]
        first += len(rows)
        _check_finite(name, rows)
        some = [part[own].astype(np.float64) for part in (rows, told)]
        if not len(some[0]):
            continue
        rough = rough or [part.mean(axis=0) for part in some]
        fold = (done + np.arange(len(some[0]))) * n_folds // n
        known = streamed.add(known, some[0] - rough[0], some[1] - rough[1], fold)
        done += len(some[0])
    return [score for held_out in (False, True) for score in streamed.scores(known, held_out=held_out)]


def _score(estimate: NDArray[np.float64], truth: NDArray[np.float64], n_folds: int) -> list[NDArray[np.float64]]:
    """Correlation and error in the sample, then on held-out blocks."""
    readings = [tasks.linear_readout(estimate, truth, folds) for folds in (0, n_folds)]
    return [
        score for reading in readings for score in (tasks.correlation(reading, truth), tasks.nrmse_db(reading, truth))
    ]
