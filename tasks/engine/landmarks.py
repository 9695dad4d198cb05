r"""Embedding through landmarks: a few frames stand for all, every frame meets only them.

Throughout: m *landmarks* are chosen frames, a *strip* G (n, m) holds the affinities of a block's frames to
them; the *sample* is a few frames more, whose whole rows of the kernel are summed on the way to judge
what came out. ``density`` is q^-a of the landmarks, ones for alpha = 0.

Two routes. *Nystrom*: diffusion maps of the landmarks, carried to all frames by
:math:`\psi(i) = \tfrac1\mu \sum_j W_{ij} \psi_j`. *Diffusion*: eigenvectors of
:math:`D^{-1} G G^\top`, frames linked through the landmarks (Shen and Wu 2022, "Roseland").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import linalg

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.engine import kernel
from manifold_observer.tasks.engine.diffusion import coordinates, symmetric_scaling
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.protocols import Block
from manifold_observer.tasks.engine.slab import Slab, narrow
from manifold_observer.tasks.engine.treesum import in_pairs

FRAMES_TOGETHER = 1024
"""Frames of a span that are worked on together."""


class Anchors(NamedTuple):
    """The landmarks' block and scale, and what carries their coordinates to other frames.

    ``weights`` (m, k): for the Nystrom route density * psi / mu, for the diffusion route the vectors of
    the landmarks; ``density`` (m,); ``degrees`` (m,) only for the diffusion route, column sums of all strips.
    """

    block: Block
    scale: kernel.Scale
    density: Floats
    weights: Floats
    degrees: Floats | None


class Maps(NamedTuple):
    """Diffusion maps of the landmarks: eigenvalues (k,), coordinates (m, k), row sums (m,)."""

    eigenvalues: Floats
    coordinates: Floats
    degrees: Floats


class Placed(NamedTuple):
    """Coordinates (n, k) of some frames, and their mean affinity (n,) to a landmark."""

    coordinates: Floats
    affinity: Floats


class Summed(NamedTuple):
    """What all frames together say of their coordinates, added up span by span.

    ``lift`` (p, k), ``squares`` (k,), and for the sample ``rows`` (r, k) of K q^-a psi and ``row_sums`` (r,) of
    K q^-a; ``sampled`` (s, k), coordinates of those frames of the sample that the spans hold; ``largest`` (k,), the
    entry of largest magnitude of each coordinate; ``alone``, how many frames no landmark reaches, and ``first_alone``,
    the first of them, or -1.
    """

    lift: Floats
    squares: Floats
    rows: Floats
    row_sums: Floats
    sampled: Floats
    largest: Floats
    alone: int
    first_alone: int


def uniform(n: int, m: int) -> Integers:
    """Landmarks evenly spread in time, the middles of m equal stretches.

    Examples
    --------
    >>> uniform(10, 2)
    array([2, 7])
    """
    return (np.arange(m) * n + n // 2) // m


def spread_points(frames: Floats, m: int, seed: int, farthest: bool = False) -> Integers:
    """Landmarks spread over the features: k-means++ (drawn by squared distance) or farthest points.

    Parameters
    ----------
    frames
        Candidates, shape (c, p), c >= m.
    m
        Landmarks wanted.
    seed
        Of the draws; the first landmark of both is drawn.
    farthest
        Always take the candidate that is farthest from all landmarks so far.

    Returns
    -------
    Ascending numbers of the chosen candidates, shape (m,).

    Notes
    -----
    O(c m p) time. Features are scaled to unit variance first.

    Examples
    --------
    >>> spread_points(np.array([[0.0], [0.1], [5.0]]), 2, seed=0, farthest=True)[-1]
    np.int64(2)
    """
    rng = np.random.default_rng(seed)
    deviation = frames.std(axis=0)
    scaled = frames / np.where(deviation > 0, deviation, 1.0)
    chosen = [int(rng.integers(len(frames)))]
    nearest = np.full(len(frames), np.inf)
    while len(chosen) < m:
        nearest = np.minimum(nearest, np.square(scaled - scaled[chosen[-1]]).sum(axis=1))
        nearest[chosen] = 0.0
        chosen.append(_next_point(rng, nearest, chosen, farthest))
    return np.sort(np.array(chosen))


def landmark_maps(block: Block, scale: kernel.Scale, alpha: float, n_modes: int) -> Maps:
    """Diffusion maps of the landmarks among themselves.

    Parameters
    ----------
    block
        The landmarks.
    scale
        Scale of the kernel.
    alpha
        Density normalisation.
    n_modes
        Coordinates wanted, beside the trivial one.

    Returns
    -------
    Eigenvalues descending, coordinates with unit mean square over the landmarks, row sums.

    Notes
    -----
    O(m^3) time, 3 m^2 numbers of float64.
    """
    affinities = kernel.kernel_tile(block, block, scale.epsilon, on_diagonal=True).astype(np.float64)
    degrees = affinities.sum(axis=1)
    weighted = None if alpha == 0 else affinities @ degrees**-alpha
    scaling = symmetric_scaling(degrees, alpha, weighted)
    size = len(degrees)
    values, vectors = linalg.eigh(
        scaling[:, None] * affinities * scaling, subset_by_index=(max(size - 1 - n_modes, 0), size - 1)
    )
    order = slice(-2, None, -1)
    return Maps(values[order], coordinates(vectors[:, order], scaling, alpha, degrees), degrees)


def nystrom_anchors(block: Block, scale: kernel.Scale, maps: Maps, alpha: float) -> Anchors:
    """What carries the landmarks' diffusion maps to other frames; only eigenvalues well above 0 can be."""
    density = maps.degrees**-alpha
    return Anchors(block, scale, density, density[:, None] * maps.coordinates / maps.eigenvalues, None)


def diffusion_maps(links: Floats, n_modes: int) -> tuple[Floats, Floats]:
    r"""Eigenvalues and landmark vectors of the diffusion route.

    Parameters
    ----------
    links
        :math:`\sum_i g_i g_i^\top / d_i` over all frames, shape (m, m).
    n_modes
        Coordinates wanted, beside the trivial one.

    Returns
    -------
    eigenvalues
        Of one step, that is the square roots of those of two steps, descending, shape (k,).
    vectors
        Shape (m, k).
    """
    size = len(links)
    values, vectors = linalg.eigh(links, subset_by_index=(max(size - 1 - n_modes, 0), size - 1))
    order = slice(-2, None, -1)
    return np.sqrt(np.maximum(values[order], 0.0)), vectors[:, order]


def column_sums(slab: Slab, distance: Distance, anchors: Anchors) -> Floats:
    """One span's share of the column sums of all strips, shape (m,)."""
    total = np.zeros(len(anchors.density))
    for _, strip in _strips(slab, distance, anchors):
        total += strip.sum(axis=0, dtype=np.float64)
    return total


def link_sums(slab: Slab, distance: Distance, anchors: Anchors) -> Floats:
    r"""One span's share of :math:`\sum_i g_i g_i^\top / d_i`, shape (m, m), for the diffusion route."""
    total = np.zeros((len(anchors.density), len(anchors.density)))
    for _, strip in _strips(slab, distance, anchors):
        row_degrees = strip @ (anchors.degrees if anchors.degrees is not None else np.ones(strip.shape[1]))
        scaled = strip / np.sqrt(_reached(row_degrees))[:, None]
        total += (scaled.T @ scaled).astype(np.float64)
    return total


def carry_over(
    slab: Slab, distance: Distance, anchors: Anchors, sample: Block, alpha: float, first: int, sampled: Integers
) -> tuple[Placed, Summed]:
    r"""Coordinates of one span's frames, and the sums that judge and finish them.

    .. math:: \psi(i) = \frac{\sum_j G_{ij} w_j}{\sum_j G_{ij} q_j^{-a}}

    with the weights w of the route; for the diffusion route the denominator is :math:`d_i = G_i \cdot c`.

    Parameters
    ----------
    slab
        Centred frames with halo.
    distance
        As the landmarks have it.
    anchors
        The landmarks.
    sample
        Block of the sampled frames.
    alpha
        Density normalisation of the sample's rows; the frames' row sums are estimated by their mean
        affinity to a landmark.
    first
        Number of the span's first frame.
    sampled
        Which of the span's frames are sampled, counted from its first.

    Returns
    -------
    Coordinates not yet scaled to unit mean square, and sums over the span. A frame that no landmark
    reaches (its affinities are all 0 in this precision) has coordinates 0.

    Notes
    -----
    O(n (m + r)) distances. Memory: 1024 frames' block and strips at a time.
    """
    placed, summed = [], []
    denominator = anchors.density if anchors.degrees is None else anchors.degrees
    for (block, frames), strip in _strips(slab, distance, anchors):
        psi = (strip @ anchors.weights) / _reached(strip @ denominator)[:, None]
        affinity = strip.mean(axis=1, dtype=np.float64)
        rows = kernel.kernel_tile(sample, block, anchors.scale.epsilon).astype(np.float64)
        weight = _reached(affinity) ** -alpha
        moved, row_sums = rows @ (weight[:, None] * psi), rows @ weight
        placed.append(Placed(psi, affinity))
        squares = np.square(psi).sum(axis=0)
        summed.append(Summed(frames.T @ psi, squares, moved, row_sums, psi[:0], _largest(psi), 0, -1))
    found, total = placed_together(placed), summed_together(summed)
    alone = np.flatnonzero(found.affinity == 0)
    first_alone = first + int(alone[0]) if len(alone) else -1
    return found, total._replace(sampled=found.coordinates[sampled], alone=len(alone), first_alone=first_alone)


def placed_together(parts: Sequence[Placed]) -> Placed:
    """What several spans give, one after the other."""
    return Placed(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def summed_together(parts: Iterable[Summed]) -> Summed:
    """What spans that follow each other add up to, or what every 2, 4, 8 ... of them have added up to already."""
    return in_pairs(parts, _added)


def _added(one: Summed, after: Summed) -> Summed:
    """What two neighbours add up to."""
    return Summed(
        lift=one.lift + after.lift,
        squares=one.squares + after.squares,
        rows=one.rows + after.rows,
        row_sums=one.row_sums + after.row_sums,
        sampled=np.concatenate([one.sampled, after.sampled]),
        largest=np.where(np.abs(after.largest) > np.abs(one.largest), after.largest, one.largest),
        alone=one.alone + after.alone,
        first_alone=after.first_alone if one.first_alone < 0 else one.first_alone,
    )


def _largest(psi: Floats) -> Floats:
    """Entries of largest magnitude, a column (k,); the first of equal ones."""
    return np.asarray(psi[np.abs(psi).argmax(axis=0), np.arange(psi.shape[1])])


def near_coordinates(block: Block, anchors: Anchors) -> tuple[Floats, Floats]:
    """Coordinates (n, k) of a block's frames by the Nystrom route, and mean affinity (n,) to a landmark."""
    strip = kernel.kernel_tile(block, anchors.block, anchors.scale.epsilon)
    psi = (strip @ anchors.weights) / _reached(strip @ anchors.density)[:, None]
    return psi, strip.mean(axis=1, dtype=np.float64)


class Judged(NamedTuple):
    """Eigenvalues (k,) seen by the exact rows of the sample, and relative residual norms (k,) over them."""

    eigenvalues: Floats
    residuals: Floats


def judge(rows: Floats, row_sums: Floats, psi: Floats) -> Judged:
    r"""Residuals of :math:`W \psi = \mu \psi` over the exact rows of a sample.

    Parameters
    ----------
    rows
        K psi over all frames (K q^-a psi where alpha is not 0), for the sampled frames, shape (r, k).
    row_sums
        K 1 (K q^-a), shape (r,).
    psi
        Coordinates of the sampled frames, shape (r, k).

    Returns
    -------
    The :math:`\mu` that fit these rows best, and the root mean square of what is left, relative to that of
    psi: an estimate of the residual over all frames, unbiased in its square.

    Examples
    --------
    >>> judge(np.array([[1.0], [-1.0]]), np.array([2.0, 2.0]), np.array([[1.0], [-1.0]])).eigenvalues
    array([0.5])
    """
    moved = rows / row_sums[:, None]
    power = np.square(psi).sum(axis=0)
    mu = (moved * psi).sum(axis=0) / power
    return Judged(mu, np.sqrt(np.square(moved - mu * psi).sum(axis=0) / power))


def add_up(parts: Iterable[Floats]) -> Floats:
    """Sum of arrays in their order, one at a time.

    Examples
    --------
    >>> add_up([np.array([1.0]), np.array([2.0])])
    array([3.])
    """
    each = iter(parts)
    total = next(each).copy()
    for part in each:
        total += part
    return total


def _strips(slab: Slab, distance: Distance, anchors: Anchors) -> Iterator[tuple[tuple[Block, Floats], Array]]:
    """Blocks of a few frames with those frames, and their strips, each gone when the next is made."""
    n = len(slab.rows)
    # One strip's memory for all: two at a time, and the holes that they leave, would be most of what a task takes.
    buffer = np.empty(min(FRAMES_TOGETHER, n) * len(anchors.density), distance.precision)
    for first in range(0, n, FRAMES_TOGETHER):
        some = narrow(slab, first, first + FRAMES_TOGETHER, distance.window)
        block = distance.block(some)
        strip = kernel.kernel_tile(block, anchors.block, anchors.scale.epsilon, out=buffer)
        yield (block, some.frames[some.rows]), strip


def _reached(sums: Array) -> Array:
    """Divisors: a frame that no landmark reaches has the sum 0, and so coordinates 0."""
    return np.where(sums > 0, sums, sums.dtype.type(1))


def _next_point(rng: np.random.Generator, nearest: Floats, chosen: Sequence[int], farthest: bool) -> int:
    """The next landmark; among candidates that all lie on landmarks, the first that is none."""
    total = nearest.sum()
    if total <= 0:
        return int(np.setdiff1d(np.arange(len(nearest)), chosen)[0])
    return int(np.argmax(nearest)) if farthest else int(rng.choice(len(nearest), p=nearest / total))
