r"""The kernel projected on what a few landmarks span: small errors from few landmarks, and eigenpairs in m numbers.

Throughout: C (n, m) holds the affinities of all frames to m landmarks, *witnesses* are the landmarks and some frames
more, among which the whole kernel is known. The kernel is taken to be

.. math:: K \approx C X C^\top, \qquad X = C_w^{+} K_w C_w^{+\top}

with the rows of the witnesses (Wang and Zhang 2013). Unlike the inverse of the landmarks' own kernel, X is stable
where the kernel is not positive, as with local covariances. A *basis* B = C V has columns that are orthonormal over
the witnesses; in it the kernel is B H B^T. Row sums, which the landmarks' own would only sample, come from all frames.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import linalg

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.engine import kernel
from manifold_observer.tasks.engine.landmarks import add_up
from manifold_observer.tasks.engine.protocols import Block

Strips = Sequence[Array]
"""Affinities (n, .) of a block's frames to several groups of frames, side by side."""

ROWS = 1024
"""Rows of a strip that are worked on together."""
# Squared share of the largest direction of the landmarks below which the others are rounding.
_DEPENDENT = 1e-10
# An eigenvalue below this share of the largest is noise, and dividing by it spreads it.
_SMALLEST = 1e-3
# Standard errors between an estimate and its bound.
_ERRORS = 3.0


class Core(NamedTuple):
    """What makes a kernel of strips: ``mixing`` V (m, r), ``middle`` H (r, r)."""

    mixing: Floats
    middle: Floats


class Rows(NamedTuple):
    r"""What gives sums over the rows of the kernel: q = C u, and :math:`\sum_j K_{ij} q_j^{-a}` = C v.

    ``degrees`` u (m,), ``weighted`` v (m,), which is u where ``alpha`` a is 0.
    """

    degrees: Floats
    weighted: Floats
    alpha: float


class Weights(NamedTuple):
    """What the strips are multiplied with: ``modes`` w (m, k), for psi = C w / C v."""

    modes: Floats
    rows: Rows


class Carried(NamedTuple):
    """What one span gives: coordinates (n, k), row sums (n,), and its share of sampled rows of the kernel.

    ``moved`` (r, k + 2) are the rows of K [q^-a psi, q^-a, 1].
    """

    coordinates: Floats
    degrees: Floats
    moved: Floats


def nested(n: int, m: int) -> Integers:
    """The first m of a sequence of all n frames, each beginning of which is spread evenly in time.

    Examples
    --------
    >>> nested(8, 4), nested(8, 8)
    (array([3, 7, 5, 1]), array([3, 7, 5, 1, 4, 0, 6, 2]))
    """
    count = 1 << max(m - 1, 1).bit_length()
    while True:
        order = np.arange(count)
        place, bit = np.zeros(count), 0.5
        while order.any():
            place += bit * (order & 1)
            order, bit = order >> 1, bit / 2
        frames = np.floor(((place + 0.4) % 1.0) * n).astype(np.int64)
        chosen = frames[np.sort(np.unique(frames, return_index=True)[1])]
        if len(chosen) >= min(m, n):
            return chosen[: min(m, n)]
        count *= 2


def grown(known: Floats | None, blocks: Sequence[Block], epsilon: float) -> Floats:
    """The kernel among the frames of some blocks, where it is known among those of all but the last."""
    last = blocks[-1]
    corner = kernel.kernel_tile(last, last, epsilon, on_diagonal=True).astype(np.float64)
    if known is None:
        return corner
    across = np.concatenate([kernel.kernel_tile(block, last, epsilon) for block in blocks[:-1]]).astype(np.float64)
    return np.block([[known, across], [across.T, corner]])


def core(witnessed: Floats, m: int) -> Core:
    r"""What makes the kernel from strips to the first m of the witnesses.

    Parameters
    ----------
    witnessed
        The kernel among the witnesses, shape (w, w), w >= m.
    m
        Landmarks.

    Returns
    -------
    The core; directions that the landmarks hardly span are left out.

    Notes
    -----
    O(w m^2) time.

    Examples
    --------
    >>> matrix = np.exp(-np.square(np.arange(6.0)[:, None] - np.arange(6.0)) / 8)
    >>> found, strip = core(matrix, 6), matrix
    >>> bool(np.allclose(strip @ found.mixing @ found.middle @ found.mixing.T @ strip.T, matrix))
    True
    """
    strip = witnessed[:, :m]
    values, vectors = linalg.eigh(strip.T @ strip)
    kept = values > _DEPENDENT * values[-1]
    mixing = vectors[:, kept] / np.sqrt(values[kept])
    basis = strip @ mixing
    middle = basis.T @ witnessed @ basis
    return Core(mixing, (middle + middle.T) / 2)


def row_weights(known: Core, column_sums: Floats) -> Floats:
    """Weights (m,) by which strips give row sums of the kernel, from the column sums of all strips."""
    return np.asarray(known.mixing @ (known.middle @ (known.mixing.T @ column_sums)))


def modes(known: Core, links: Floats, rows: Rows, n_modes: int) -> tuple[Floats, Weights]:
    r"""Eigenvalues and weights of the Markov matrix, without the trivial pair.

    Parameters
    ----------
    known
        The core.
    links
        As :func:`link_sums` gives them over all frames, shape (m, m).
    rows
        What gives the sums over rows.
    n_modes
        Coordinates wanted; fewer come where the landmarks span fewer.

    Returns
    -------
    Eigenvalues descending, and the weights.

    Notes
    -----
    O(m^3) time. W is similar to D^-1/2 Q^-a K Q^-a D^-1/2, which has the eigenvalues of L^T H L with the Cholesky
    factor L of the basis' links.
    """
    inner = known.mixing.T @ links @ known.mixing
    root, size = _root(inner), len(inner)
    values, vectors = linalg.eigh(root.T @ known.middle @ root, subset_by_index=(max(size - 1 - n_modes, 0), size - 1))
    values, vectors = values[-2::-1], vectors[:, -2::-1]
    usable = values > _SMALLEST * values[:1]
    vectors = known.mixing @ (known.middle @ (root @ vectors[:, usable])) / values[usable]
    return values[usable], Weights(vectors, rows)


def _root(matrix: Floats) -> Floats:
    """A square root L, with L L^T the matrix, of which rounding may have left eigenvalues below 0."""
    try:
        return np.asarray(linalg.cholesky(matrix, lower=True))
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(matrix)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def strip(frames: Block, landmarks: Block, epsilon: float) -> Array:
    """Affinities (n, m) of some frames to the landmarks, a few frames at a time."""
    made = np.empty((frames.n_frames, landmarks.n_frames), frames.precision)
    for first in range(0, len(made), ROWS):
        some = slice(first, first + ROWS)
        made[some] = kernel.kernel_tile(frames.take(some), landmarks, epsilon)
    return made


def column_sums(blocks: Iterable[Strips]) -> Floats:
    """Column sums over some blocks of frames, shape (m,)."""
    return add_up(np.concatenate([part.sum(axis=0, dtype=np.float64) for part in strips]) for strips in blocks)


def weighted_sums(blocks: Iterable[Strips], degrees: Floats, alpha: float) -> Floats:
    """Column sums over some blocks of frames, each weighted by q^-a, shape (m,)."""
    pieces = itertools.chain.from_iterable(map(_pieces, blocks))
    return add_up(_degrees(some, degrees) ** -alpha @ some for some in pieces)


def link_sums(blocks: Iterable[Strips], rows: Rows) -> Floats:
    r"""Share of some blocks of frames in :math:`\sum_i c_i c_i^\top q_i^{-a} / (c_i \cdot v)`, shape (m, m)."""
    total = np.zeros((len(rows.degrees), len(rows.degrees)))
    for some in itertools.chain.from_iterable(map(_pieces, blocks)):
        degrees, sums = _sums(some, rows)
        # In single precision what is added up would be lost in the directions that the landmarks hardly span.
        scaled = some * np.sqrt(degrees**-rows.alpha / sums)[:, None]
        total += scaled.T @ scaled
    return total


def carry_over(blocks: Iterable[Strips], weights: Weights) -> Carried:
    """Coordinates and row sums of some blocks of frames, and their share in the sampled rows.

    Parameters
    ----------
    blocks
        Of each block the affinities to the sampled frames, and then those to the landmarks.
    weights
        As :func:`modes` gave them.

    Returns
    -------
    Coordinates not yet scaled.
    """
    parts = []
    for sampled, *strips in blocks:
        psi, degrees = (np.concatenate(column) for column in zip(*_coordinates(strips, weights), strict=True))
        weight = degrees**-weights.rows.alpha
        columns = np.column_stack([weight[:, None] * psi, weight, np.ones(len(psi))])
        parts.append(Carried(psi, degrees, sampled.T.astype(np.float64) @ columns))
    return together(parts)


def together(parts: Sequence[Carried]) -> Carried:
    """What several spans give: coordinates one after the other, sums added up in the order of the spans."""
    return Carried(
        np.concatenate([part.coordinates for part in parts]),
        np.concatenate([part.degrees for part in parts]),
        add_up(part.moved for part in parts),
    )


def _coordinates(strips: Strips, weights: Weights) -> Iterator[tuple[Floats, Floats]]:
    """Coordinates and row sums, a few frames at a time."""
    for some in _pieces(strips):
        degrees, sums = _sums(some, weights.rows)
        yield (some @ weights.modes) / sums[:, None], degrees


class Estimate(NamedTuple):
    """Residuals (k,) over some exact rows, and what they are below with near certainty (k,)."""

    residuals: Floats
    bounds: Floats


def estimate(carried: Carried, sample: Integers, eigenvalues: Floats, alpha: float) -> Estimate:
    r"""Norms of S v - mu v for unit vectors v, from the exact rows of a sample.

    Parameters
    ----------
    carried
        Coordinates and row sums of all frames, and the sampled rows.
    sample
        Numbers of the sampled frames, shape (r,).
    eigenvalues
        Shape (k,).
    alpha
        Density normalisation. Where it is not 0 the weights of all frames are those of the landmarks: by how much
        they are wrong in the sample is added.

    Returns
    -------
    :math:`\sqrt{\sum d_i (W \psi - \mu \psi)_i^2 / \sum d_i \psi_i^2}`, which is the norm where the sample is all
    frames, and the same three standard errors of its square higher.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0, 2.0], [-1.0, 2.0, 2.0]])
    >>> found = estimate(Carried(np.array([[1.0], [-1.0]]), np.full(2, 2.0), rows), np.arange(2), np.array([0.4]), 0.0)
    >>> found.residuals.round(3), found.bounds.round(3)
    (array([0.1]), array([0.1]))
    """
    return _estimate(carried.coordinates[sample], carried.degrees[sample], carried.moved, eigenvalues, alpha)


def _estimate(psi: Floats, found: Floats, moved: Floats, eigenvalues: Floats, alpha: float) -> Estimate:
    """The same from coordinates and row sums as they were found of some frames, and their exact rows."""
    moved, sums, degrees = np.split(moved, [-2, -1], axis=1)
    weight = degrees**-alpha * sums
    left, power = weight * np.square(moved / sums - eigenvalues * psi), weight * np.square(psi)
    total, count = power.sum(axis=0), len(psi)
    # Nothing is known of a mode that no frame of the sample has: all of it may be left.
    known, total = total > 0, np.where(total > 0, total, 1.0)
    share = np.where(known, left.sum(axis=0) / total, np.square(eigenvalues))
    scatter = np.square(left - share * power).sum(axis=0) * count / max(count - 1, 1)
    off = 2 * alpha * np.sqrt(np.mean(np.square(found[:, None] / degrees - 1))) * eigenvalues
    return Estimate(np.sqrt(share) + off, np.sqrt(share + _ERRORS * np.sqrt(scatter) / total) + off)


def spread_sample(n: int, count: int, seed: int) -> Integers:
    """One frame drawn from each of ``count`` equal stretches.

    Examples
    --------
    >>> spread_sample(5, 9, 0)
    array([0, 1, 2, 3, 4])
    """
    count = min(n, count)
    bounds = np.arange(count + 1) * n // count
    return np.random.default_rng(seed).integers(bounds[:-1], bounds[1:])


def foresee(witnessed: Floats, sizes: Iterable[int], n_modes: int, alpha: float) -> tuple[Floats, Floats]:
    """Residuals through ever more of the first frames of a kernel that is known whole, over its largest eigenvalue.

    Parameters
    ----------
    witnessed
        Kernel among some frames, shape (w, w).
    sizes
        Numbers of landmarks, each at most w / 2.
    n_modes
        Modes of which the largest residual counts.
    alpha
        Density normalisation.

    Returns
    -------
    residuals
        Shape (sizes,).
    eigenvalues
        The leading ones, from the most landmarks, shape (<= 24,); none, and no residuals, where the landmarks find no
        mode beside the trivial one.

    Notes
    -----
    O(w m^2) time.
    """
    found, values = [], np.zeros(0)
    for m in sizes:
        known, strips = core(witnessed[: 2 * m, : 2 * m], m), [witnessed[:, :m]]
        rows = rows_of(known, [strips], alpha)
        values, weights = modes(known, link_sums([strips], rows), rows, max(24, n_modes))
        if not len(values):
            return np.zeros(0), values
        carried = carry_over([[witnessed, *strips]], leading(weights, n_modes))
        others = slice(min(2 * m, len(witnessed) // 2), None)  # frames that the core does not know
        exact = carried.moved[others]
        judged = _estimate(carried.coordinates[others], carried.degrees[others], exact, values[:n_modes], alpha)
        found.append(float(judged.residuals.max() / values[0]))
    return np.array(found), values


def _pieces(strips: Strips) -> Iterator[Array]:
    """A few rows of strips that lie side by side."""
    for first in range(0, len(strips[0]), ROWS):
        parts = [part[first : first + ROWS] for part in strips]
        yield parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def rows_of(known: Core, blocks: Sequence[Strips], alpha: float) -> Rows:
    """What gives sums over rows, from the strips of all frames."""
    degrees = row_weights(known, column_sums(blocks))
    if not alpha:
        return Rows(degrees, degrees, alpha)
    return Rows(degrees, row_weights(known, weighted_sums(blocks, degrees, alpha)), alpha)


def leading(weights: Weights, n_modes: int) -> Weights:
    """Those of the first modes."""
    return weights._replace(modes=weights.modes[:, :n_modes])


def _degrees(some: Array, degrees: Floats) -> Floats:
    """Row sums of the kernel; a frame's affinity to itself is 1, and no row sum less."""
    return np.maximum(some @ degrees, 1.0)


def _sums(some: Array, rows: Rows) -> tuple[Floats, Floats]:
    """Row sums q of the kernel, and those that are weighted by q^-a, in which a frame counts itself."""
    degrees = _degrees(some, rows.degrees)
    if not rows.alpha:
        return degrees, degrees
    return degrees, np.maximum(some @ rows.weighted, degrees**-rows.alpha)
