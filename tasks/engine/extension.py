r"""Coordinates of new frames, from one block of them and one block of frames whose coordinates are known.

Throughout: m *new* frames meet n *references*, which are embedded frames; K (m, n) are their affinities; q are the
references' row sums in the embedding and a is *alpha*; ``columns`` (n, k + 1) are :math:`q^{-a} \psi` and
:math:`q^{-a}` of the references. *Shares* (m, k + 2) are what one block of references adds to the weighted sum of
psi (k columns), to the sum of the weights, and to the row sum of K.

Two schemes. *Nystrom*: d is the symmetric distance, the weights are :math:`K_{ij} q_j^{-a}`. *One-sided*: d is the
distance by the reference's covariance alone, and the weights take half a step of the kernel, :math:`K_{ij}^2 q_j^{-a}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Array, Booleans, Floats, Integers
from manifold_observer.tasks.engine import kernel
from manifold_observer.tasks.engine.landmarks import add_up
from manifold_observer.tasks.engine.protocols import Block

# Embedded frames of which this share reaches less of the others are as lonely as a new frame that is far.
_FAR_SHARE = 1e-3


class Reference(NamedTuple):
    """A block of n references, their columns (n, k + 1), and their local scales (n,) where there are."""

    block: Block
    columns: Floats
    scales: Floats | None


class Extended(NamedTuple):
    """Coordinates (m, k), row sums (m,) and whether a frame is far (m,)."""

    coordinates: Floats
    kernel_sums: Floats
    far: Booleans


def reference_columns(psi: Floats, degrees: Floats, alpha: float) -> Floats:
    """What the affinities to the references are multiplied with: psi weighted by q^-a, and q^-a.

    Examples
    --------
    >>> reference_columns(np.array([[3.0]]), np.array([4.0]), 0.5)
    array([[1.5, 0.5]])
    """
    weights = (degrees**-alpha)[:, None]
    return np.concatenate([weights * psi, weights], axis=1)


def far_below(degrees: Floats, references: Integers) -> float:
    r"""Row sum below which a new frame is far: the 0.1 % quantile of the embedded frames' own.

    Parameters
    ----------
    degrees
        Row sums of all N embedded frames; where only m are references, N / m times their sums over these.
    references
        Numbers of the references, shape (m,).

    Returns
    -------
    A row sum in the unit of ``degrees``. A reference's affinity to itself, which a new frame has not, is taken off.

    Examples
    --------
    >>> far_below(np.array([2.0, 2.0, 2.0]), np.array([0, 1, 2]))
    1.0
    """
    n = len(degrees)
    return far_of([least(degrees, references, n / len(references), n)], n)


def least(degrees: Floats, references: Integers, own: float, n: int) -> Floats:
    """The smallest row sums of some of n frames, as many of them as :func:`far_of` may ask for, ascending.

    Parameters
    ----------
    degrees
        Row sums of these frames.
    references
        Which of them are references.
    own
        A reference's affinity to itself, which is taken off.
    n
        Frames in all.
    """
    sums = np.array(degrees, np.float64)
    sums[references] -= own
    most = int(_FAR_SHARE * (n - 1)) + 2
    return np.sort(np.partition(sums, most - 1)[:most] if most < len(sums) else sums)


def far_of(parts: Sequence[Floats], n: int) -> float:
    """The 0.1 % quantile of n row sums, given the smallest of all parts of them.

    Examples
    --------
    >>> far_of([np.array([2.0, 3.0]), np.array([1.0])], 3)
    1.002
    """
    place = _FAR_SHARE * (n - 1)
    sums = np.sort(np.concatenate(parts))
    low, high = (float(sums[min(int(place) + k, n - 1)]) for k in (0, 1))
    return low + (high - low) * (place - int(place))


def nearest(new: Block, reference: Reference, k: int, one_sided: bool) -> Floats:
    """The k smallest distances of every new frame to this block, shape (m, <= k), in no order."""
    distances = apart(new, reference.block, one_sided)
    if k < distances.shape[1]:
        distances = np.partition(distances, k - 1, axis=1)[:, :k]
    return distances.astype(np.float64)


def own_scales(parts: Sequence[Floats], k: int, factor: float, least: float) -> Floats:
    """Local scales of new frames: ``factor`` times the distance to the k-th nearest reference.

    Parameters
    ----------
    parts
        What :func:`nearest` found in every block of references.
    k
        Which neighbour, at most the number of references.
    factor
        Factor on the distance.
    least
        Smallest scale: a frame that equals k references has the distance 0.

    Returns
    -------
    Shape (m,), in the unit of the distances, above 0.

    Examples
    --------
    >>> own_scales([np.array([[5.0]]), np.array([[1.0, 3.0]])], k=2, factor=2.0, least=0.1)
    array([6.])
    """
    joined = np.concatenate(parts, axis=1)
    return np.maximum(factor * np.partition(joined, k - 1, axis=1)[:, k - 1], least)


def shares(new: Block, reference: Reference, epsilon: float, own: Floats | None, one_sided: bool) -> Floats:
    r"""What one block of references adds to the sums of new frames.

    Parameters
    ----------
    new
        Block of m new frames; for the one-sided scheme without covariances of their own.
    reference
        Block of n references.
    epsilon
        Scale of the kernel, where the references have none of their own.
    own
        Local scales of the new frames, shape (m,), where the references have them.
    one_sided
        Which scheme.

    Returns
    -------
    Shape (m, k + 2): sums over the block of :math:`w_{ij} \psi_j`, :math:`w_{ij}` and :math:`K_{ij}`. What is too
    far for this precision counts as infinitely far.

    Notes
    -----
    The tile in double precision beside that of the distances, which take it twice.

    Examples
    --------
    A new frame at distance log 2 from one reference, by both covariances:

    >>> from manifold_observer.tasks.engine.factor import factor_block
    >>> block = factor_block(np.array([[0.0]]), np.ones((1, 1, 1)))
    >>> new = factor_block(np.array([[np.sqrt(np.log(2.0))]]), np.ones((1, 1, 1)))
    >>> shares(new, Reference(block, np.array([[3.0, 1.0]]), None), 1.0, None, one_sided=False)
    array([[1.5, 0.5, 0.5]])
    """
    return shares_at(apart(new, reference.block, one_sided), reference, epsilon, own, one_sided)


def shares_at(distances: Array, reference: Reference, epsilon: float, own: Floats | None, one_sided: bool) -> Floats:
    """The same from the distances (m, n) of :func:`apart`, which are overwritten.

    Examples
    --------
    >>> shares_at(np.array([[np.log(2.0)]]), Reference(None, np.array([[3.0, 1.0]]), None), 1.0, None, False)
    array([[1.5, 0.5, 0.5]])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if own is None or reference.scales is None:
            tile = kernel.kernel_from_distances(distances, epsilon, out=distances)
        else:
            tile = kernel.kernel_local(distances, own, reference.scales)
    affinities = tile.astype(np.float64, copy=False)
    affinities[np.isnan(affinities)] = 0  # too far to tell how far
    row_sums = affinities.sum(axis=1, keepdims=True)
    if one_sided:
        np.square(affinities, out=affinities)
    return np.concatenate([affinities @ reference.columns, row_sums], axis=1)


def finish(parts: Sequence[Floats], divisors: Floats, factor: float, below: float) -> Extended:
    r"""Coordinates of new frames from their shares of all blocks, added up in their order.

    Parameters
    ----------
    parts
        What :func:`shares` gave for every block of references, each (m, k + 2).
    divisors
        What every mode is divided by, shape (k,): :math:`\mu`, or its root for half a step.
    factor
        Embedded frames a reference, by which row sums are scaled.
    below
        Row sum below which a frame is far.

    Returns
    -------
    Coordinates, row sums and far frames. A frame that reaches no reference has coordinates 0 and is far.

    Examples
    --------
    >>> finish([np.array([[1.5, 0.5, 0.5]]), np.zeros((1, 3))], np.array([0.5]), 1.0, 0.1).coordinates
    array([[6.]])
    """
    total = add_up(parts)
    weights, sums = total[:, -2], factor * total[:, -1]
    reached = weights > 0
    psi = total[:, :-2] / np.where(reached, weights, 1.0)[:, None] / divisors
    return Extended(psi, sums, (sums < below) | ~reached)


def apart(new: Block, reference: Block, one_sided: bool) -> Array:
    """Distances (m, n); new frames of the one-sided scheme are points, which gives half of it."""
    with np.errstate(over="ignore", invalid="ignore"):
        distances = kernel.unclipped_distances(new, reference)
        distances[np.isneginf(distances)] = np.inf  # terms of either sign ran over, which is no rounding below 0
        np.maximum(distances, 0, out=distances)
        return np.multiply(distances, distances.dtype.type(2), out=distances) if one_sided else distances
