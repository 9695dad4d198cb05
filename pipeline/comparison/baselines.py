"""Estimates that the observer is compared with, from the same embedding and frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.comparison import baselines as tasks
from manifold_observer.tasks.engine.conditioning import Conditioning, conditioned
from manifold_observer.tasks.observers import observer

from ..frames.alike import frames_like
from ..frames.conditioning import conditioning_of
from ..frames.given import takes_frames
from ..frames.labels import MAKE_FRAMES, frame_labels, segment_of
from ..frames.segments import restarts
from ..graph.compute import compute, task
from ..observers.projections import are_embedded, frame_blocks, projections

Floats = NDArray[np.float64]
# Widest features of which all principal components are sought (the scatter matrix is held here).
_MAX_FEATURES = 8192


@takes_frames
def baselines(
    embedding: xr.Dataset, frames: xr.DataArray, gamma: float = 0.85, *, widths: Sequence[int] = (2, 3, 5)
) -> dict[str, xr.DataArray]:
    r"""Diffusion maps, causal moving averages, PCA, and PCA smoothed like the observer; this computes.

    Parameters
    ----------
    embedding
        As :func:`embed` made it.
    frames
        The embedded frames, or new ones (which have no diffusion maps), dims ``(frame, feature)``.
    gamma
        Of the observer with which the PCA is equally smoothed.
    widths
        Frames of the moving averages of :math:`\alpha^{\dagger}(z - \bar z)`.

    Returns
    -------
    By name (``diffusion_maps``, ``moving_average_2``, ..., ``pca``, ``smoothed_pca``) arrays with dims
    ``(frame, mode)``, as many modes each as the embedding has.

    Notes
    -----
    Two passes over the frames; memory O(N modes + features^2).

    Examples
    --------
    >>> toy = xr.Dataset({
    ...     "lift": (("feature", "mode"), [[1.0]]), "feature_mean": ("feature", [0.0]),
    ...     "rate": ("mode", [1.0]), "coordinate": (("frame", "mode"), [[1.0], [-1.0]]),
    ... })
    >>> frames = xr.DataArray([[1.0], [-1.0]], dims=("frame", "feature"))
    >>> baselines(toy, frames, widths=[2])["moving_average_2"].values.ravel()
    array([1., 0.])
    """
    mean, n_modes = embedding["feature_mean"].values, embedding.sizes["mode"]
    inverse = np.linalg.pinv(embedding["lift"].values)
    frames = frames_like("baselines: frames", embedding, frames, MAKE_FRAMES)
    starts = restarts(segment_of(frames))
    how = conditioning_of(embedding)
    axes = tasks.principal_axes(_scatter(frames, mean, how), n_modes)
    inputs, components = projections(frames, mean, inverse, axes.T, conditioning=how)
    poles = observer.poles(embedding["rate"].values[: components.shape[1]], gamma)
    same = observer.contracting(np.eye(len(poles)), poles, 1.0)
    drives = observer.project(components, np.zeros(len(poles)), same.drive)
    smoothed, _ = observer.scan(drives, starts, components[starts], np.zeros(len(poles)), poles)
    embedded = are_embedded(embedding, frames)
    estimates = {
        **({"diffusion_maps": embedding["coordinate"].values} if embedded else {}),
        **{f"moving_average_{width}": observer.moving_average(inputs, starts, width) for width in widths},
        "pca": components,
        "smoothed_pca": smoothed,
    }
    coords = frame_labels(frames)
    return {name: xr.DataArray(v, dims=("frame", "mode"), coords=coords) for name, v in estimates.items()}


def _scatter(frames: xr.DataArray, mean: Floats, how: Conditioning | None) -> Floats:
    """Scatter matrix of all frames."""
    if frames.sizes["feature"] > _MAX_FEATURES:
        raise ValueError(
            f"baselines: features must be at most {_MAX_FEATURES} for PCA; got {frames.sizes['feature']}. "
            "Take shorter frames, or fewer channels."
        )
    total: Floats = sum(compute([task(_scatter_task, block, mean, how) for block in frame_blocks(frames)]))
    return total


def _scatter_task(frames: NDArray[Any], mean: Floats, how: Conditioning | None) -> Floats:
    """One block's share of the scatter matrix."""
    return tasks.scatter(conditioned(np.asarray(frames, np.float64), how), mean)
