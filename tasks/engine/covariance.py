"""Local covariances of one block of frames, and their pseudo-inverses.

Throughout: ``frames`` (n, p) is a block of feature vectors; frame i's window holds the ``window``
frames from ``starts[i]`` on; a *precision* is the pseudo-inverse of a local covariance; a *factor*
U (p, r) has ``U U^T`` equal to it; *mixing* A (r, window) makes that factor from the window's
frames, ``U^T = A frames[window]``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats, Integers


class DegenerateCovarianceError(ValueError):
    """Some local covariances are zero or not finite, so that they have no inverse."""

    def __init__(self, frames: Integers) -> None:
        super().__init__(frames)
        self.frames = frames


class PseudoInverse(NamedTuple):
    """How a local covariance is inverted.

    ``rank``: eigenvalues kept at most (all when None). ``tolerance``: eigenvalues at or below this
    fraction of the largest are cut. ``smallest``: a largest eigenvalue at or below it counts as zero.
    ``regularization``: a ridge in squared feature units; with it the inverse is that of C + ridge I,
    and nothing is cut.
    """

    rank: int | None = None
    tolerance: float = 1e-3
    regularization: float = 0.0
    smallest: float = 0.0

    @property
    def within_window(self) -> bool:
        """Whether an inverse lies in what the frames of its window span, so that mixing alone makes its factors."""
        return not self.regularization

    def rank_of(self, most: int) -> int:
        """Largest rank of the inverse of a covariance of rank ``most`` or less, a ridge left out."""
        return min(self.rank or most, most)


def window_frames(frames: Floats, starts: Integers, window: int) -> Floats:
    """Frames of every window, less the window's mean.

    Parameters
    ----------
    frames
        Block with its halo, shape (n, p).
    starts
        First frame of each window within the block, shape (m,).
    window
        Frames in a window, w.

    Returns
    -------
    Shape (m, w, p).

    Examples
    --------
    >>> window_frames(np.array([[0.0], [2.0], [7.0]]), np.array([0, 1]), 2)[..., 0]
    array([[-1. ,  1. ],
           [-2.5,  2.5]])
    """
    gathered = frames[starts[:, None] + np.arange(window)]
    return gathered - gathered.mean(axis=1, keepdims=True)


def window_precisions(frames: Floats, starts: Integers, window: int, how: PseudoInverse) -> Floats:
    r"""Pseudo-inverse of the sample covariance of every window.

    .. math:: C_i = \tfrac{1}{w-1} W_i^\top W_i, \qquad C_i^{+} = \sum_{k\ \text{kept}} s_k^{-1} u_k u_k^\top

    with :math:`W_i` the centred frames of the window. The smaller of the matrices :math:`W W^\top`
    and :math:`W^\top W` is the one that is decomposed.

    Parameters
    ----------
    frames
        Block with its halo, shape (n, p).
    starts
        First frame of each window within the block, shape (m,).
    window
        Frames in a window.
    how
        Rank, tolerance and regularisation.

    Returns
    -------
    Shape (m, p, p), in inverse squared feature units.

    Raises
    ------
    DegenerateCovarianceError
        A window is constant or not finite, and ``how.regularization`` is 0.

    Notes
    -----
    O(m min(w, p)^3 + m p^2 w) time, O(m p (p + w)) memory.

    Examples
    --------
    >>> line = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    >>> window_precisions(line, np.array([0]), 3, PseudoInverse())
    array([[[1., 0.],
            [0., 0.]]])
    """
    centred = window_frames(frames, starts, window)
    if window >= frames.shape[1]:
        return precisions(np.swapaxes(centred, 1, 2) @ centred / (window - 1), how)
    directions = _gram_directions(centred, how)
    spanning = np.swapaxes(centred, 1, 2) @ directions
    spanned = spanning @ np.swapaxes(spanning, 1, 2)
    if not how.regularization:
        return spanned
    return np.eye(frames.shape[1]) / how.regularization - spanned


def window_mixing(frames: Floats, starts: Integers, window: int, how: PseudoInverse) -> tuple[Floats, Floats]:
    r"""How to make each factor from the frames of its window, without ever holding the factor.

    .. math:: U_i^\top = A_i W_i, \qquad C_i^{+} = W_i^\top A_i^\top A_i W_i + c_i I

    The rows of :math:`A_i` sum to zero, so that the window's mean need not be subtracted. With a
    ridge, :math:`c_i` is its inverse, and the first term is subtracted from it.

    Parameters
    ----------
    frames
        Block with its halo, shape (n, p).
    starts
        First frame of each window within the block, shape (m,).
    window
        Frames in a window, w.
    how
        Rank, tolerance and regularisation.

    Returns
    -------
    mixing
        A, shape (m, r, w) with r the largest rank in the block; rows beyond a frame's rank are 0.
    floor
        c, shape (m,), inverse squared feature units.

    Raises
    ------
    DegenerateCovarianceError
        As :func:`window_precisions`.

    Notes
    -----
    O(m w^2 (w + p)) time; O(m w (w + p)) memory, less the p when called in small blocks.

    Examples
    --------
    >>> line = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    >>> mixing, floor = window_mixing(line, np.array([0]), 3, PseudoInverse())
    >>> abs((mixing[0] @ line)).round(6), floor
    (array([[1., 0.]]), array([0.]))
    """
    mixing = np.swapaxes(_gram_directions(window_frames(frames, starts, window), how), 1, 2)
    # Small directions mix with the mean's, which the frames as they are still hold.
    mixing = mixing - mixing.mean(axis=2, keepdims=True)
    floor = 1 / how.regularization if how.regularization else 0.0
    return mixing, np.full(len(starts), floor)


def factors_from_mixing(frames: Floats, starts: Integers, mixing: Floats) -> Floats:
    """Factors U (m, p, r) that :func:`window_mixing` describes, for when they are wanted whole."""
    window = mixing.shape[2]
    gathered = frames[starts[:, None] + np.arange(window)]
    return np.swapaxes(mixing @ gathered, 1, 2)


def precisions(covariances: Floats, how: PseudoInverse) -> Floats:
    """Pseudo-inverse of every covariance of a block.

    Parameters
    ----------
    covariances
        Symmetric, shape (n, p, p), in squared feature units.
    how
        Rank, tolerance and regularisation.

    Returns
    -------
    Shape (n, p, p), in inverse squared feature units.

    Raises
    ------
    DegenerateCovarianceError
        A covariance is zero or not finite, and ``how.regularization`` is 0.

    Examples
    --------
    >>> precisions(np.diag([4.0, 1.0, 0.0])[None], PseudoInverse())[0]
    array([[0.25, 0.  , 0.  ],
           [0.  , 1.  , 0.  ],
           [0.  , 0.  , 0.  ]])
    """
    values, vectors = _eigh(covariances, how)
    return (vectors * _inverses(values, how)[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def factors(covariances: Floats, how: PseudoInverse) -> Floats:
    """Factors U (n, p, r) with ``U U^T`` the pseudo-inverse of every covariance of a block."""
    values, vectors = _eigh(covariances, how)
    inverses = _inverses(values, how)
    return _weighted(vectors, np.sqrt(inverses))


def degenerate(largest: Floats, smallest: float) -> Booleans:
    """Which largest eigenvalues are too small, or not finite."""
    return ~np.isfinite(largest) | (largest <= smallest)


def _eigh(matrices: Floats, how: PseudoInverse) -> tuple[Floats, Floats]:
    """Eigenpairs by ascending eigenvalue, refused where nothing could be inverted."""
    finite = np.isfinite(matrices).all(axis=(1, 2))
    if not finite.all():
        raise DegenerateCovarianceError(np.flatnonzero(~finite))
    values, vectors = np.linalg.eigh(matrices)
    bad = degenerate(values[:, -1], how.smallest)
    if bad.any() and not how.regularization:
        raise DegenerateCovarianceError(np.flatnonzero(bad))
    return values, vectors


def _kept(values: Floats, how: PseudoInverse) -> Booleans:
    """Which eigenvalues tolerance and rank leave."""
    kept = values > how.tolerance * values[:, -1:]
    if how.rank is not None:
        kept[:, : max(values.shape[1] - how.rank, 0)] = False
    return kept


def _inverses(values: Floats, how: PseudoInverse) -> Floats:
    """1/eigenvalue where it is kept, else 0; with a ridge, of their sum."""
    if how.regularization:
        return 1 / (np.maximum(values, 0.0) + how.regularization)
    kept = _kept(values, how)
    return np.where(kept, 1 / np.where(kept, values, 1.0), 0.0)


def _gram_directions(centred: Floats, how: PseudoInverse) -> Floats:
    r"""Combinations D (n, w, r) of a window's frames with ``W^T D D^T W`` its pseudo-inverse.

    An eigenvalue s of :math:`W W^\top / (w - 1)` with vector v is one of the covariance too, with the
    direction :math:`u = W^\top v / \sqrt{(w - 1) s}`, so that :math:`D = v / (s \sqrt{w - 1})`. With a ridge
    r it is what is missing from 1/r, :math:`(1/r - 1/(s + r))\, u u^\top`, and there is no division by s.
    """
    window = centred.shape[1]
    values, vectors = _eigh(centred @ np.swapaxes(centred, 1, 2) / (window - 1), how)
    if how.regularization:
        ridge = how.regularization
        weights = 1 / np.sqrt((window - 1) * ridge * (np.maximum(values, 0.0) + ridge))
    else:
        kept = _kept(values, how)
        weights = np.where(kept, 1 / (np.where(kept, values, 1.0) * np.sqrt(window - 1)), 0.0)
    return _weighted(vectors, weights)


def _weighted(vectors: Floats, weights: Floats) -> Floats:
    """Vectors (n, p, k) times their weights (n, k), without the first ones that weigh nothing anywhere: those cut."""
    used = np.flatnonzero(weights.any(axis=0))
    first = used[0] if len(used) else -1
    return vectors[:, :, first:] * weights[:, None, first:]
