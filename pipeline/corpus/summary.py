"""What one recording says in the coordinates of a map, in a few numbers: what drift over recordings is told by."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.arrays import Array, Floats, standardised
from manifold_observer.tasks.engine import foretelling
from manifold_observer.tasks.engine.moments import Axes

from ..embedding.read import along_axes
from ..embedding.references import axes_of
from ..engine.cuts import run_numbers, sample_spans
from ..frames.labels import segment_of
from ..graph.compute import compute, task
from ..graph.slabs import ROWS_BYTES, rows_of
from ..graph.spans import blocks

# Frames whose coordinates are asked what they foretell, in runs, as the embedding itself was.
_FORETOLD, _RUN = 2048, 512


def summary_of(embedding: xr.Dataset, frames: xr.DataArray, coordinates: Floats, state: xr.DataArray) -> xr.Dataset:
    """Means over a recording, and how much of its features its coordinates foretell; this computes.

    Parameters
    ----------
    embedding
        The map's.
    frames
        Dims ``(frame, feature)``, with the features of the map.
    coordinates
        As they were read, shape (n, m).
    state
        As it was observed, dims ``(frame, mode)``.

    Returns
    -------
    ``state_mean(mode)`` in deviations of the map's coordinates, ``feature_shift(feature)`` in deviations of the map's
    features, and the attribute ``foretold``.
    """
    shift = _feature_shift(embedding, frames)
    labels = {str(name): values for name, values in frames.coords.items() if values.dims == ("feature",)}
    found = xr.Dataset(
        {"state_mean": ("mode", np.asarray(state.values).mean(axis=0)), "feature_shift": ("feature", shift)},
        coords={**labels, "reads": ("mode", state["reads"].values)},
    )
    return found.assign_attrs(foretold=_foretold(embedding, frames, coordinates))


def began(frames: xr.DataArray) -> dict[str, Any]:
    """When a recording began, for results to be put in order: date and seconds, as far as its clock tells them."""
    if "time" not in frames.coords or not frames.sizes["frame"]:
        return {}
    start = frames["time"].attrs.get("start_time")
    return ({"began_from": str(start)} if start else {}) | {"began_after": float(frames["time"].values[0])}


def _feature_shift(embedding: xr.Dataset, frames: xr.DataArray) -> Floats:
    """Means of the conditioned features, from those of the map, in deviations of the map."""
    data = frames.transpose("frame", "feature").data
    n, p = data.shape
    axes, spans = axes_of(embedding), blocks(n, max(1, ROWS_BYTES // (8 * p)))
    mean = sum(compute([task(_sum, axes, rows_of(data, span)) for span in spans])) / n
    variance = np.asarray(embedding["feature_variance"].values)
    return np.asarray((mean - embedding["feature_mean"].values) / np.sqrt(np.where(variance > 0, variance, 1.0)))


def _sum(axes: Axes, frames: Array) -> NDArray[np.float64]:
    """Of the conditioned features of one block."""
    return np.asarray(axes.condition(np.asarray(frames, np.float64)).sum(axis=0))


def _foretold(embedding: xr.Dataset, frames: xr.DataArray, coordinates: Floats) -> float:
    """Share of the leading features a few frames later that coordinates foretell, on some runs of frames."""
    segment = segment_of(frames)
    spans = sample_spans(len(segment), _RUN, _FORETOLD)
    some = np.concatenate([np.arange(*span) for span in spans])
    turned = along_axes(embedding, frames.isel(frame=some))
    return foretelling.foretold(standardised(coordinates[some]), turned, run_numbers(segment, spans)).share
