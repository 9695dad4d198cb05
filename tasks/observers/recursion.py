"""First-order recursions, by a triangular band that LAPACK solves.

``scipy.signal.lfilter`` does the same, but importing it takes a second of every process that starts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack


def recursion(drives: NDArray[Any], pole: Any, before: Any = 0.0) -> NDArray[Any]:
    r"""Solve :math:`y_i = \lambda y_{i-1} + x_i`, real or complex.

    Parameters
    ----------
    drives
        x, shape (n,), or (n, k) for k of them.
    pole
        :math:`\lambda`.
    before
        y before the first, a number or shape (k,).

    Returns
    -------
    y, shaped like ``drives``.

    Notes
    -----
    Every y is made from the one before it by the same operations, so that cuts change no bit: the state before a
    stretch is the first row of its system.

    Examples
    --------
    >>> recursion(np.array([1.0, 0.0, 0.0]), 0.5)
    array([1.  , 0.5 , 0.25])
    """
    columns = drives.reshape(len(drives), -1)
    kind = np.result_type(columns, pole, before, np.float64)
    rows = np.empty((len(columns) + 1, columns.shape[1]), kind, order="F")
    rows[0], rows[1:] = before, columns
    band = np.empty((2, len(rows)), kind, order="F")
    band[0], band[1] = 1, -pole
    solve = lapack.ztbtrs if kind == np.complex128 else lapack.dtbtrs
    found, _ = solve(band, rows, uplo="L", diag="U", overwrite_b=True)  # a unit diagonal is never singular
    return np.asarray(found[1:].reshape(drives.shape))
