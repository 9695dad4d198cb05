r"""Linear read-outs of long estimates, from sums that are added up piece by piece.

Throughout: Z holds a constant, an estimate and a truth side by side, both less a rough mean; of every fold
:math:`Z^\top Z` is kept. Regressions, and how far they are from the truth, follow from those sums alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats, Integers

# Less than this share of the whole is rounding.
_LEAST = 1e-13


class Products(NamedTuple):
    """Products of Z with itself in every fold, shape (folds, 1 + m + k, 1 + m + k), and columns m of the estimate."""

    sums: Floats
    width: int


def nothing(n_folds: int, m: int, k: int) -> Products:
    """Sums over no frame."""
    return Products(np.zeros((n_folds, 1 + m + k, 1 + m + k)), m)


def add(known: Products, estimate: Floats, truth: Floats, fold: Integers) -> Products:
    """Sums with some more frames: estimate (n, m) and truth (n, k) less their rough means, fold of each (n,)."""
    rows = np.hstack([np.ones((len(truth), 1)), estimate, truth])
    sums = known.sums.copy()
    for number in np.unique(fold):
        own = rows[fold == number]
        sums[number] += own.T @ own
    return known._replace(sums=sums)


def scores(known: Products, *, held_out: bool) -> tuple[Floats, Floats]:
    """Correlation and error (dB) of a linear read-out, each (k,), as of the same read-out frame by frame.

    Examples
    --------
    >>> x = np.arange(8.0)[:, None] - 3.5
    >>> known = add(nothing(2, 1, 1), x, 2 * x + 1, np.arange(8) // 4)
    >>> scores(known, held_out=True)[0].round(9)
    array([1.])
    """
    total = known.sums.sum(axis=0)
    size = 1 + known.width
    # Of all frames read with their weights: sums of readings, of their squares, and of their products with the truth.
    reads = np.zeros((3, total.shape[0] - size))
    for own in known.sums if held_out else [total]:
        reads += _of_readings(own, _weights(total - own if held_out else total, size), size)
    n, truth, squares = total[0, 0], total[0, size:], np.diag(total)[size:]
    mean, power, cross = reads
    moved = power - mean**2 / n
    moved = np.where(moved > _LEAST * power, moved, 0.0)
    variances = np.maximum(moved * (squares - truth**2 / n), 0)
    covariance = cross - mean * truth / n
    correlation = np.divide(covariance, np.sqrt(variances), out=np.zeros(len(mean)), where=variances > 0)
    error = np.maximum(power - 2 * cross + squares, 0)
    spread = squares - truth**2 / n
    with np.errstate(divide="ignore"):
        return correlation, 10 * np.log10(np.divide(error, spread, out=np.full(len(mean), np.nan), where=spread > 0))


def _weights(sums: Floats, size: int) -> Floats:
    """Least squares of the truth on a constant and the estimate, shape (1 + m, k)."""
    scale = np.sqrt(np.diag(sums)[:size])
    scale = np.where(scale > 0, scale, 1.0)
    inverse = np.linalg.pinv(sums[:size, :size] / np.outer(scale, scale), rcond=_LEAST, hermitian=True)
    return np.asarray((inverse @ (sums[:size, size:] / scale[:, None])) / scale[:, None])


def _of_readings(sums: Floats, weights: Floats, size: int) -> Floats:
    """Sums of what weights read of some frames, of its squares, and of its products with the truth, (3, k)."""
    gram, cross = sums[:size, :size], sums[:size, size:]
    squares = np.einsum("ik,ij,jk->k", weights, gram, weights)
    return np.stack([gram[0] @ weights, squares, (weights * cross).sum(axis=0)])
