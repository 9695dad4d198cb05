"""All frames times small matrices, brought here: one pass, O(frames x rows of the matrices) memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.engine.conditioning import Conditioning, conditioned
from manifold_observer.tasks.observers import observer

from ..embedding.read import by_time, embedded_numbers
from ..graph.compute import Progress, compute, silent, task
from ..graph.slabs import ROWS_BYTES, rows_of
from ..graph.spans import blocks

Floats = NDArray[np.float64]


def projections(
    frames: xr.DataArray,
    mean: Floats,
    *matrices: Floats,
    conditioning: Conditioning | None = None,
    progress: Progress = silent,
) -> list[Floats]:
    """Centred frames times each matrix, all blocks together; this computes.

    Parameters
    ----------
    frames
        Dims ``(frame, feature)``.
    mean
        Subtracted first, shape (p,).
    matrices
        Shape (k, p) each.
    conditioning
        What features go through first.
    progress
        Where to report.

    Returns
    -------
    One array (n, k) a matrix.

    Examples
    --------
    >>> projections(xr.DataArray([[1.0], [3.0]], dims=("frame", "feature")), np.ones(1), 2 * np.eye(1))
    [array([[0.],
           [4.]])]
    """
    tasks = [task(_project, block, mean, matrices, conditioning) for block in frame_blocks(frames)]
    parts = compute(tasks, "projections", progress)
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def frame_blocks(frames: xr.DataArray) -> list[Any]:
    """All frames as delayed blocks of a few megabytes."""
    data = frames.data if frames.chunks else frames.chunk().data
    n, p = data.shape
    return [rows_of(data, span) for span in blocks(n, max(1, ROWS_BYTES // (8 * p)))]


def _project(
    frames: NDArray[Any], mean: Floats, matrices: tuple[Floats, ...], conditioning: Conditioning | None
) -> list[Floats]:
    """One block times each matrix."""
    values = conditioned(np.asarray(frames, np.float64), conditioning)
    return [observer.project(values, mean, matrix) for matrix in matrices]


def are_embedded(embedding: xr.Dataset, frames: xr.DataArray) -> bool:
    """Whether frames are all the embedded ones in their order, as far as times and kept values tell.

    Examples
    --------
    >>> known = xr.DataArray([[5.0], [6.0]], dims=("frame", "feature"), coords={"time": ("frame", [0.0, 1.0])})
    >>> embedding = known.to_dataset(name="reference")
    >>> are_embedded(embedding, known), are_embedded(embedding, known.assign_coords(time=known.time + 60))
    (True, False)
    """
    wanted = np.arange(frames.sizes["frame"])
    if len(wanted) != embedding.sizes["frame"]:
        return False
    if ("time" in embedding.coords) != ("time" in frames.coords):
        return True
    found = embedded_numbers(embedding, frames) if "reference" in embedding else by_time(embedding, frames)
    return bool(np.array_equal(found, wanted))
