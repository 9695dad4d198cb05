r"""Local metric of a new frame before its surroundings have been seen: what the references near it lend.

The frames after a new one are not there yet, and those before it see only half of its surroundings. But the local
metric is a property of the place on the manifold, and references near that place have measured it from both sides.
Their precisions are averaged with the weights :math:`e^{-d_j / \varepsilon}`, d the distance by the reference's own
precision alone. Throughout: m new frames, n references, *packed* (n, q) are upper triangles of precisions,
q = p (p + 1) / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats
from manifold_observer.tasks.engine.extension import apart
from manifold_observer.tasks.engine.protocols import Block


class Lent(NamedTuple):
    """From one block of references: smallest distance (m,), weights relative to it (m,), weighted sums (m, q)."""

    least: Floats
    weight: Floats
    packed: Floats


def pack(precisions: Floats) -> Floats:
    """Upper triangles (n, q) of symmetric matrices (n, p, p).

    Examples
    --------
    >>> pack(np.array([[[1.0, 2.0], [2.0, 3.0]]]))
    array([[1., 2., 3.]])
    """
    row, column = np.triu_indices(precisions.shape[1])
    return precisions[:, row, column]


def unpack(packed: Floats, n_features: int) -> Floats:
    """Symmetric matrices (n, p, p) from their upper triangles.

    Examples
    --------
    >>> unpack(np.array([[1.0, 2.0, 3.0]]), 2)
    array([[[1., 2.],
            [2., 3.]]])
    """
    row, column = np.triu_indices(n_features)
    whole = np.empty((len(packed), n_features, n_features))
    whole[:, row, column] = packed
    whole[:, column, row] = packed
    return whole


def lend(points: Block, reference: Block, packed: Floats, epsilon: float) -> Lent:
    """What one block of references lends to new frames.

    Parameters
    ----------
    points
        New frames without covariances.
    reference
        Block of n references.
    packed
        Their precisions, shape (n, q).
    epsilon
        Scale of the kernel.

    Returns
    -------
    Sums over the block; a later block may be nearer, so that weights are relative to the nearest of this one.
    """
    far = apart(points, reference, one_sided=True).astype(np.float64)
    least = far.min(axis=1)
    nearest = np.where(np.isfinite(least), least, 0.0)
    weights = np.exp((nearest[:, None] - far) / epsilon)
    return Lent(least, weights.sum(axis=1), weights @ packed)


def borrowed(parts: Sequence[Lent], epsilon: float, n_features: int) -> Floats:
    """Precisions (m, p, p) from what all blocks lend; 0 where no reference is within reach of the numbers.

    Examples
    --------
    >>> near, far = Lent(np.array([1.0]), np.array([1.0]), np.array([[2.0]])), Lent(*np.full((3, 1), 1e9)[:, None])
    >>> borrowed([near, far._replace(packed=np.array([[5.0]]))], 1.0, 1)
    array([[[2.]]])
    """
    least = np.stack([np.ravel(part.least) for part in parts])
    nearest = least.min(axis=0)
    weights = np.where(
        np.isfinite(least), np.exp((np.where(np.isfinite(nearest), nearest, 0.0) - least) / epsilon), 0.0
    )
    total = sum(weight * np.ravel(part.weight) for weight, part in zip(weights, parts, strict=True))
    packed = sum(weight[:, None] * part.packed for weight, part in zip(weights, parts, strict=True))
    return unpack(packed / np.where(total > 0, total, 1.0)[:, None], n_features)
