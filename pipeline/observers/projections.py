"""All frames times small matrices, brought here: one pass, O(frames x rows of the matrices) memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.engine.conditioning import Conditioning, conditioned
from manifold_observer.tasks.observers import observer

from ..embedding.known import are_all_embedded, by_time, embedded_numbers
from ..graph.compute import compute, task
from ..graph.progress import Progress, silent
from ..graph.slabs import ROWS_BYTES, rows_of
from ..graph.spans import Span, blocks

Floats = NDArray[np.float64]


def projections(
    frames: xr.DataArray,
    mean: Floats,
    *matrices: Floats,
    conditioning: Conditioning | None = None,
    progress: Progress = silent,
    spans: Sequence[Span] | None = None,
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
    spans
        Frames that are wanted; all of them by default.

    Returns
    -------
    One array (n, k) a matrix.

    Examples
    --------
    >>> projections(xr.DataArray([[1.0], [3.0]], dims=("frame", "feature")), np.ones(1), 2 * np.eye(1))
    [array([[0.],
           [4.]])]
    """
    tasks = [task(_project, block, mean, matrices, conditioning) for block in frame_blocks(frames, spans)]
    parts = compute(tasks, "projections", progress)
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def frame_blocks(frames: xr.DataArray, spans: Sequence[Span] | None = None) -> list[Any]:
    """Frames, all of them or those of some spans, as delayed blocks of a few megabytes."""
    data = frames.data if frames.chunks else frames.chunk().data
    n, p = data.shape
    rows = max(1, ROWS_BYTES // (8 * p))
    cut = [(start + a, start + b) for start, stop in spans or [(0, n)] for a, b in blocks(stop - start, rows)]
    return [rows_of(data, span) for span in cut]


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
    if frames.sizes["frame"] != embedding.sizes["frame"]:
        return False
    if ("time" in embedding.coords) != ("time" in frames.coords) or are_all_embedded(embedding, frames):
        return True
    wanted = np.arange(frames.sizes["frame"])
    found = embedded_numbers(embedding, frames) if "reference" in embedding else by_time(embedding, frames)
    return bool(np.array_equal(found, wanted))
