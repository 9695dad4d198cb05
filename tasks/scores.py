"""How well estimates tell a known truth: read-outs, in the sample and on held-out blocks.

Throughout: ``estimate`` (n, m) is what was computed, ``truth`` (n, k) what is known; a read-out is a
linear regression (for numbers) or a vote of nearest neighbours (for classes); a *fold* is a
contiguous block of frames, so that neighbours in time are held out together.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from manifold_observer.tasks.arrays import Array, Booleans, Floats, Integers


def fit_linear(estimate: Floats, truth: Floats) -> Floats:
    """Least-squares read-out with intercept, shape (m + 1, k)."""
    return np.linalg.lstsq(_with_ones(estimate), truth, rcond=None)[0].astype(np.float64, copy=False)


def apply_linear(weights: Floats, estimate: Floats) -> Floats:
    """What a read-out of :func:`fit_linear` says, shape (n, k)."""
    return _with_ones(estimate) @ weights


def folds(n: int, n_folds: int) -> list[tuple[Booleans, Booleans]]:
    """(learn, held out) masks of contiguous blocks.

    Examples
    --------
    >>> [held_out.astype(int).tolist() for _, held_out in folds(4, 2)]
    [[1, 1, 0, 0], [0, 0, 1, 1]]
    """
    if n_folds < 2:
        raise ValueError(f"folds: there must be at least 2, to learn from one and read another; got {n_folds}")
    number = np.arange(n) * n_folds // n
    return [(number != fold, number == fold) for fold in range(n_folds)]


def linear_readout(estimate: Floats, truth: Floats, n_folds: int = 0) -> Floats:
    """Truth as linear regression reads it from the estimate.

    Parameters
    ----------
    estimate
        Shape (n, m).
    truth
        Shape (n, k).
    n_folds
        0 fits and reads on the same frames, as the paper does; 2 or more: every contiguous block is
        read with weights that were fitted on the others.

    Returns
    -------
    Shape (n, k), in the unit of the truth.

    Examples
    --------
    >>> linear_readout(np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]])).ravel().round(9)
    array([1., 3., 5.])
    """
    if n_folds == 0:
        return apply_linear(fit_linear(estimate, truth), estimate)
    reading = np.empty(truth.shape)
    for learn, held_out in folds(len(truth), n_folds):
        reading[held_out] = apply_linear(fit_linear(estimate[learn], truth[learn]), estimate[held_out])
    return reading


def correlation(reading: Floats, truth: Floats) -> Floats:
    """Pearson correlation of every column, shape (k,); 0 where one of the two is constant.

    Examples
    --------
    >>> correlation(np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [4.0], [6.0]])).round(9)
    array([1.])
    """
    a, b = reading - reading.mean(axis=0), truth - truth.mean(axis=0)
    power = np.sqrt(np.sum(a * a, axis=0) * np.sum(b * b, axis=0))
    return np.divide(np.sum(a * b, axis=0), power, out=np.zeros(power.shape), where=power > 0)


def nrmse_db(reading: Floats, truth: Floats) -> Floats:
    r"""Error :math:`20 \log_{10} (\mathrm{rms}(\text{error}) / \mathrm{std}(\text{truth}))`, shape (k,), dB.

    0 dB is as good as the mean; lower is better; minus infinity is exact. A constant truth has NaN.

    Examples
    --------
    >>> nrmse_db(np.array([[0.9], [-0.9]]), np.array([[1.0], [-1.0]])).round(6)
    array([-20.])
    """
    error = np.sqrt(np.mean(np.square(truth - reading), axis=0))
    deviation = truth.std(axis=0)
    with np.errstate(divide="ignore"):
        return 20 * np.log10(np.divide(error, deviation, out=np.full(error.shape, np.nan), where=deviation > 0))


def neighbour_readout(estimate: Floats, labels: Integers, n_folds: int = 5, n_neighbours: int = 5) -> Integers:
    """Class of every frame as its nearest neighbours among the other folds vote.

    Parameters
    ----------
    estimate
        Shape (n, m); each column is scaled to unit variance first.
    labels
        Class of every frame, shape (n,).
    n_folds
        Contiguous blocks; a frame's own block has no vote.
    n_neighbours
        Votes a frame; the smaller class number wins a tie.

    Returns
    -------
    Shape (n,).

    Examples
    --------
    >>> neighbour_readout(np.array([[0.0], [9.0], [0.1], [9.1]]), np.array([0, 1, 0, 1]), 2, 1)
    array([0, 1, 0, 1])
    """
    deviation = estimate.std(axis=0)
    scaled = estimate / np.where(deviation > 0, deviation, 1.0)
    reading = np.empty_like(labels)
    for learn, held_out in folds(len(labels), n_folds):
        k = min(n_neighbours, int(learn.sum()))
        _, nearest = KDTree(scaled[learn]).query(scaled[held_out], k=[*range(1, k + 1)])
        reading[held_out] = _majority(labels[learn][nearest])
    return reading


def balanced_accuracy(reading: Array, labels: Array) -> float:
    """Mean over the classes of the share of their frames that was read right.

    Examples
    --------
    >>> balanced_accuracy(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]))
    0.75
    """
    return float(np.mean([np.mean(reading[labels == label] == label) for label in np.unique(labels)]))


def _majority(votes: Integers) -> Integers:
    """Most frequent label of every row, the smallest of equals."""
    classes = np.unique(votes)
    counts = (votes[:, :, None] == classes).sum(axis=1)
    return classes[np.argmax(counts, axis=1)]


def _with_ones(estimate: Floats) -> Floats:
    """Estimate with an intercept column in front."""
    return np.column_stack([np.ones(len(estimate)), estimate])
