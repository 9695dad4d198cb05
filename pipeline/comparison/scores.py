"""Estimates beside each other against a known truth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.comparison import scores as tasks

from ..frames.given import takes_frames
from ..frames.variables import annotate
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
    estimates = _with_smoothed_pca(estimates, embedding, frames, gamma)
    known = (truth if truth.ndim > 1 else truth.expand_dims("component")).transpose("frame", "component")
    there = np.isfinite(known.values).all(axis=1)
    _check_folds("scores", int(there.sum()), n_folds)
    values = known.values[there].astype(np.float64)
    rows = [_score(_values(name, estimate, len(there))[there], values, n_folds) for name, estimate in estimates.items()]
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
        Whole numbers, dims ``(frame,)``; negative ones (silence, unknown) are left out.
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
        The labels are no whole numbers.
    ValueError
        An estimate has another number of frames than the labels, or holds NaN.

    Examples
    --------
    >>> labels = xr.DataArray([0, 1] * 10, dims="frame")
    >>> estimate = xr.DataArray(labels.values[:, None] * 1.0, dims=("frame", "mode"))
    >>> float(class_scores({"mine": estimate}, labels).balanced_accuracy.item())
    1.0
    """
    if labels.dtype.kind not in "iu":
        raise TypeError(f"class_scores: labels must be whole numbers; got dtype {labels.dtype}.")
    there = labels.values >= 0
    _check_folds("class_scores", int(there.sum()), n_folds)
    known = labels.values[there].astype(np.int64)
    accuracy = []
    for name, estimate in estimates.items():
        values = _values(name, estimate, len(there))[there]
        reading = tasks.neighbour_readout(values, known, n_folds, n_neighbours)
        accuracy.append(tasks.balanced_accuracy(reading, known))
    table = xr.Dataset({"balanced_accuracy": ("estimate", accuracy)}, coords={"estimate": list(estimates)})
    return table.assign_attrs(n_folds=n_folds, n_neighbours=n_neighbours, n_frames=int(there.sum()))


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
    if isinstance(estimate, xr.Dataset):
        estimate = estimate["state"] if "state" in estimate else estimate["coordinate"]
    if estimate.ndim == 1:
        estimate = estimate.expand_dims("mode")
    values = estimate.transpose("frame", ...).values
    if len(values) != n_frames:
        raise ValueError(f"scores: {name} must have the {n_frames} frames of the truth; got {len(values)}.")
    if not np.isfinite(values).all():
        raise ValueError(f"scores: {name} must be finite; it holds NaN or infinity.")
    return values


def _score(estimate: NDArray[np.float64], truth: NDArray[np.float64], n_folds: int) -> list[NDArray[np.float64]]:
    """Correlation and error in the sample, then on held-out blocks."""
    readings = [tasks.linear_readout(estimate, truth, folds) for folds in (0, n_folds)]
    return [
        score for reading in readings for score in (tasks.correlation(reading, truth), tasks.nrmse_db(reading, truth))
    ]
