"""What the observer is compared with: principal components of the frames.

Throughout: ``frames`` (n, p) is one block; sums over blocks are added up outside.
"""

from __future__ import annotations

import numpy as np

from manifold_observer.tasks.arrays import Floats
from manifold_observer.tasks.engine.diffusion import signs


def scatter(frames: Floats, mean: Floats) -> Floats:
    """One block's share of the scatter matrix of all frames, shape (p, p)."""
    centred = frames - mean
    return centred.T @ centred


def principal_axes(scatter: Floats, n_components: int) -> Floats:
    """Directions of largest variance, one a column, the entry of largest magnitude positive.

    Examples
    --------
    >>> principal_axes(np.diag([1.0, 9.0]), 1).ravel()
    array([0., 1.])
    """
    _, vectors = np.linalg.eigh(scatter)
    axes = vectors[:, ::-1][:, :n_components]
    return axes * signs(axes)
