"""First-order recursions of simulated paths, by a triangular band that LAPACK solves.

``scipy.signal.lfilter`` does the same, but importing it takes longer than a small simulation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack


def recursion(steps: NDArray[np.float64], decay: float, before: ArrayLike = 0.0) -> NDArray[np.float64]:
    """Make every value from the one before it: ``decay`` times that, and a step.

    Parameters
    ----------
    steps
        Along the first axis, shape (n, ...).
    decay
        What is left of a value one step later.
    before
        Value before the first, shaped like one step.

    Examples
    --------
    >>> recursion(np.array([1.0, 0.0, 0.0]), 0.5)
    array([1.  , 0.5 , 0.25])
    """
    rows = np.empty((len(steps) + 1, int(np.prod(steps.shape[1:], dtype=int))), order="F")
    rows[0], rows[1:] = np.broadcast_to(before, steps.shape[1:]).ravel(), steps.reshape(len(steps), -1)
    band = np.empty((2, len(rows)), order="F")
    band[0], band[1] = 1, -decay
    found, _ = lapack.dtbtrs(band, rows, uplo="L", diag="U", overwrite_b=True)  # a unit diagonal is never singular
    return np.asarray(found[1:]).reshape(steps.shape)
