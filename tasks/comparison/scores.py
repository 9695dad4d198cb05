"""How well estimates tell a known truth: read-outs, in the sample and on held-out blocks.

Throughout: ``estimate`` (n, m) is what was computed, ``truth`` (n, k) what is known; a read-out is a
linear regression (for numbers) or a vote of nearest neighbours (for classes); a *fold* is a
contiguous block of frames, so that neighbours in time are held out together.
"""

from __future__ import annotations

import numpy as np

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
    from scipy.spatial import KDTree  # noqa: PLC0415 - slow to import

    scaled = _scaled(estimate)
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


def silhouette(estimate: Floats, labels: Integers, block: int = 1024) -> Floats:
    r"""How much nearer every frame is to its own class than to the nearest other one [1]_.

    .. math:: s_i = (b_i - a_i) / \max(a_i, b_i)

    with a the mean distance to the other frames of its class, and b the least mean distance to another class.

    Parameters
    ----------
    estimate
        Shape (n, m); each column is scaled to unit variance first.
    labels
        Class of every frame, shape (n,), two classes or more.
    block
        Frames whose distances are held at a time.

    Returns
    -------
    Shape (n,), between -1 (in the midst of another class) and 1 (alone with its own); 0 where a class is one frame.

    Notes
    -----
    O(n^2 m) time, O(n block) memory.

    References
    ----------
    .. [1] P. J. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster analysis",
       J. Comput. Appl. Math. 20 (1987).

    Examples
    --------
    >>> silhouette(np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1])).round(2)
    array([0.78, 0.71, 0.71, 0.78])
    """
    from scipy.spatial.distance import cdist  # noqa: PLC0415 - slow to import

    classes, number = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"silhouette: there must be two classes or more; got {len(classes)}")
    scaled, member = _scaled(estimate), np.eye(len(classes))[number]
    size = member.sum(axis=0)
    total = np.concatenate(
        [cdist(scaled[start : start + block], scaled) @ member for start in range(0, len(labels), block)]
    )
    own = np.sum(total * member, axis=1) / np.maximum(size[number] - 1, 1)
    other = np.min(np.where(member > 0, np.inf, total / size), axis=1)
    larger = np.maximum(own, other)
    width = np.divide(other - own, larger, out=np.zeros(len(labels)), where=larger > 0)
    return np.where(size[number] > 1, width, 0.0)


def threshold_area(values: Floats, second: Booleans) -> float:
    """Area under the curve of all thresholds on one number that is to tell two classes; the side does not matter.

    Parameters
    ----------
    values
        Shape (n,).
    second
        Whether a frame is of the second class, shape (n,); both classes occur.

    Returns
    -------
    0.5 where no threshold tells anything, 1 where one tells the classes without error.

    Examples
    --------
    >>> threshold_area(np.array([3.0, 2.0, 1.0]), np.array([False, False, True]))
    1.0
    """
    from scipy.stats import rankdata  # noqa: PLC0415 - slow to import

    n_second, n_first = int(second.sum()), int((~second).sum())
    if not n_second or not n_first:
        raise ValueError("threshold_area: there must be two classes; got one")
    area = (rankdata(values)[second].sum() - n_second * (n_second + 1) / 2) / (n_second * n_first)
    return float(max(area, 1 - area))


def _scaled(estimate: Floats) -> Floats:
    """Every column with unit variance, constant ones as they are."""
    deviation = estimate.std(axis=0)
    return estimate / np.where(deviation > 0, deviation, 1.0)


def _majority(votes: Integers) -> Integers:
    """Most frequent label of every row, the smallest of equals."""
    classes = np.unique(votes)
    counts = (votes[:, :, None] == classes).sum(axis=1)
    return classes[np.argmax(counts, axis=1)]


def _with_ones(estimate: Floats) -> Floats:
    """Estimate with an intercept column in front."""
    return np.column_stack([np.ones(len(estimate)), estimate])
