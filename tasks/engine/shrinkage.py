r"""Local covariances of a few frames, drawn towards a target so far as their own noise asks for.

A window of 21 frames says little of 20 features: most of what its covariance shows is noise, and the noisiest
directions weigh most in its inverse. Ledoit and Wolf's estimate draws it towards a target :math:`T`,

.. math:: P_i = [(1 - \rho) S_i + \rho T_i + r I]^{-1}

with one intensity :math:`\rho` for the recording, the median of what the windows ask for. Throughout: ``starts`` and
``widths`` (n,) say which frames of a block a window holds; S (n, p, p) are sample covariances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats, Integers

TARGETS = ("identity", "pooled")
# What the pooled target keeps of a multiple of the identity, so that it has an inverse.
_IDENTITY_SHARE = 0.1
_TINY = 1e-300


class Shrinkage(NamedTuple):
    r"""How local covariances are inverted: intensity, ridge, whole width of a window, mean covariance (p, p), target.

    The ``target`` is ``"pooled"``, or ``"identity"``: the multiple of it with the trace of the window's own covariance.
    A window of k frames that is not whole, at the start of a recording or in a short segment, borrows what it lacks
    from the mean: :math:`S = ((k - 1) S_k + (w - k) \bar S) / (w - 1)`.
    """

    intensity: float
    ridge: float
    width: int
    mean: Floats
    target: str


class Spread(NamedTuple):
    """What one block adds: sums of squares (p, p) and how many; (n,) each: squared norms, traces, spreads.

    The *spread* is Ledoit and Wolf's estimate of the squared error of a window's covariance.
    """

    total: Floats
    freedom: int
    squares: Floats
    traces: Floats
    spreads: Floats


def covariances(frames: Floats, starts: Integers, widths: Integers) -> Floats:
    """Sample covariances of windows that need not be equally long; those of a single frame are zero.

    Examples
    --------
    >>> covariances(np.array([[0.0], [2.0], [7.0]]), np.array([0, 0]), np.array([1, 2])).ravel()
    array([0., 2.])
    """
    return _moments(frames, starts, widths)[0]


def spread(frames: Floats, starts: Integers, widths: Integers) -> Spread:
    r"""Covariances of one block's windows, and how far their own noise may have moved each.

    .. math:: b_i = \frac1w \Bigl(\overline{\lVert x_k - \bar x \rVert^4} - \lVert S_i \rVert_F^2\Bigr)

    Parameters
    ----------
    frames
        Shape (h, p).
    starts, widths
        Windows, shape (n,) each.

    Returns
    -------
    Sums and numbers of every window.

    Notes
    -----
    O(n w p^2) time.
    """
    found, fourths = _moments(frames, starts, widths)
    squares = np.square(found).sum(axis=(1, 2))
    spreads = np.maximum(fourths - squares, 0) / widths
    freedom = widths - 1
    total = np.einsum("n,npq->pq", freedom.astype(np.float64), found)
    return Spread(total, int(freedom.sum()), squares, np.trace(found, axis1=1, axis2=2), spreads)


def apart(frames: Floats, starts: Integers, widths: Integers, target: Floats) -> Floats:
    """Squared distances of windows' covariances from a pooled target, shape (n,)."""
    return np.square(covariances(frames, starts, widths) - target).sum(axis=(1, 2))


def pooled(mean: Floats) -> Floats:
    """Target from the mean of all covariances: a tenth of it is a multiple of the identity."""
    n_features = len(mean)
    return (1 - _IDENTITY_SHARE) * mean + _IDENTITY_SHARE * np.trace(mean) / n_features * np.eye(n_features)


def intensities(parts: list[Spread], distances: list[Floats], n_features: int) -> dict[str, float]:
    """Intensity towards each target, from the windows of all blocks.

    Parameters
    ----------
    parts
        What every block adds.
    distances
        Squared distances of every block's covariances from the pooled target; empty where it is not wanted.
    n_features
        The number p.

    Returns
    -------
    By target; the pooled one only where there are distances.
    """
    errors = np.concatenate([one.spreads for one in parts])
    squares, traces = np.concatenate([one.squares for one in parts]), np.concatenate([one.traces for one in parts])
    found = {"identity": intensity(errors, from_identity(squares, traces, n_features))}
    return found | ({"pooled": intensity(errors, np.concatenate(distances))} if distances else {})


def intensity(spreads: Floats, distances: Floats) -> float:
    """Median over the windows of the weight that the target gets, between 0 and 1.

    Examples
    --------
    >>> intensity(np.array([1.0, 1.0, 9.0]), np.array([4.0, 2.0, 3.0]))
    0.5
    """
    return float(np.median(np.minimum(spreads / np.maximum(distances, _TINY), 1)))


def from_identity(squares: Floats, traces: Floats, n_features: int) -> Floats:
    """Squared distances of windows' covariances from their own multiples of the identity, shape (n,)."""
    return np.maximum(squares - np.square(traces) / n_features, 0)


def precisions(frames: Floats, starts: Integers, widths: Integers, how: Shrinkage) -> Floats:
    """Inverses of the shrunk covariances of windows.

    Parameters
    ----------
    frames
        Shape (h, p).
    starts, widths
        Windows, shape (n,) each.
    how
        Intensity, ridge and target.

    Returns
    -------
    Shape (n, p, p), in inverse squared units of the frames.

    Notes
    -----
    O(n (w p^2 + p^3)) time. A matrix is inverted by itself: the same bits wherever a frame stands in its block.

    Examples
    --------
    >>> line = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    >>> precisions(line, np.array([0]), np.array([3]), Shrinkage(0.5, 0.0, 3, np.eye(2), "identity")).round(3)
    array([[[1.333, 0.   ],
            [0.   , 4.   ]]])
    """
    found = covariances(frames, starts, widths)
    own = (np.minimum(widths, how.width) - 1) / max(how.width - 1, 1)
    young = own < 1
    found[young] = own[young, None, None] * found[young] + (1 - own[young, None, None]) * how.mean
    n_features = found.shape[1]
    eye = np.eye(n_features)
    if how.target == "identity":
        target = (np.trace(found, axis1=1, axis2=2) / n_features)[:, None, None] * eye
    else:
        target = pooled(how.mean)
    return np.linalg.inv((1 - how.intensity) * found + how.intensity * target + how.ridge * eye)


def _moments(frames: Floats, starts: Integers, widths: Integers) -> tuple[Floats, Floats]:
    """Covariances (n, p, p) and mean fourth powers of the distances from the mean (n,), width by width."""
    n_features = frames.shape[1]
    found, fourths = np.zeros((len(starts), n_features, n_features)), np.zeros(len(starts))
    for width in np.unique(widths):
        chosen = np.flatnonzero(widths == width)
        centred = frames[starts[chosen, None] + np.arange(width)]
        centred -= centred.mean(axis=1, keepdims=True)
        found[chosen] = np.swapaxes(centred, 1, 2) @ centred / max(width - 1, 1)
        fourths[chosen] = np.square(np.square(centred).sum(axis=2)).mean(axis=1)
    return found, fourths
