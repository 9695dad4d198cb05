r"""Largest eigenpairs of a symmetric matrix that is known by its products only.

Block Lanczos with full reorthogonalisation: every *pass* multiplies the matrix S with one block of
vectors. Throughout: the *basis* V (n, k) is orthonormal, ``images`` = S V, a *Ritz pair* is an
eigenpair of :math:`V^\top S V` carried back by V. Keeping the images makes every residual exact, not
an estimate from a recurrence; they are the certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg

from manifold_observer.tasks.arrays import Booleans, Floats
from manifold_observer.tasks.engine.diffusion import symmetric_scaling
from manifold_observer.tasks.engine.vectors import Vectors

MatMat = Callable[[Floats], Floats]
# Squared share of a direction below which vectors do not span it, as far as their Gram matrix can tell.
_DEPENDENT = 1e-13


class Krylov(NamedTuple):
    """State between two passes.

    ``basis`` V (n, k), ``images`` S V (n, k), ``projected`` V^T S V (k, k), the number of passes made, and
    the width of the newest block.
    """

    basis: Vectors
    images: Vectors
    projected: Floats
    passes: int
    newest: int


class RitzPairs(NamedTuple):
    """Values (m,) descending, vectors (n, m), residual norms (m,)."""

    values: Floats
    vectors: Floats
    residuals: Floats


class NotConvergedError(RuntimeError):
    """The passes ran out before the residuals were small enough."""


def random_block(n: int, width: int, seed: int) -> Floats:
    """Seeded start vectors (n, width); the same for every chunking."""
    return np.random.default_rng(seed).standard_normal((n, width))


def empty(n: int) -> Krylov:
    """State before the first pass."""
    return Krylov(Vectors(n), Vectors(n), np.zeros((0, 0)), 0, 0)


def begin(block: Floats, images: Floats) -> Krylov:
    r"""State after the first pass.

    Parameters
    ----------
    block
        Vectors X, shape (n, b); need not be orthogonal.
    images
        S X, shape (n, b).

    Returns
    -------
    State with X orthonormalised, and its images by the same operations.

    Notes
    -----
    O(n b^2) time.

    Examples
    --------
    >>> np.asarray(begin(np.array([[2.0], [0.0]]), np.array([[6.0], [0.0]])).images).ravel()
    array([3., 0.])
    """
    for _ in range(2):  # twice is enough: the second time removes what rounding left
        mix = _orthonormal_mix(block)
        block, images = block @ mix, images @ mix
    return extend(empty(len(block)), block, images)


def extend(krylov: Krylov, block: Floats, images: Floats) -> Krylov:
    r"""Take one multiplied block into the basis.

    Parameters
    ----------
    krylov
        State so far.
    block
        Orthonormal vectors X orthogonal to the basis, as :func:`next_block` gives them, shape (n, b).
    images
        S X, shape (n, b).

    Returns
    -------
    State with one more pass.

    Notes
    -----
    O(n b k) time.
    """
    across, corner = krylov.basis.against(images), block.T @ images
    projected = np.block([[krylov.projected, across], [across.T, corner]])
    basis, known = krylov.basis.grown(block), krylov.images.grown(images)
    return Krylov(basis, known, projected, krylov.passes + 1, block.shape[1])


def next_block(krylov: Krylov) -> Floats:
    """Vectors of the next pass: what the newest images hold beyond the basis, orthonormal, (n, <= newest)."""
    stop = krylov.basis.shape[1]
    first = stop - krylov.newest
    return _outside(krylov, krylov.images.taken(first, stop), krylov.projected[:, first:])


def _outside(krylov: Krylov, block: Floats, within: Floats | None = None) -> Floats:
    """What a block holds beyond the basis, orthonormal; ``within`` is its part in the basis, where it is known."""
    for share in (within, None):
        projected = block - krylov.basis.mixed(krylov.basis.against(block) if share is None else share)
        block = projected[:, _is_new(projected, block)]
        block = block @ _orthonormal_mix(block)
    return block


def fresh_block(krylov: Krylov) -> Floats:
    """Random vectors outside the basis, orthonormal; none where the basis spans everything."""
    n, k = krylov.basis.shape
    block = random_block(n, min(krylov.newest or 1, n - k), seed=krylov.passes)
    return _outside(krylov, block)


def ritz_pairs(krylov: Krylov, n_pairs: int) -> RitzPairs:
    r"""The largest Ritz pairs with their true residuals :math:`\|S v - \theta v\|`.

    Parameters
    ----------
    krylov
        State after at least one pass.
    n_pairs
        How many, at most the size of the basis.

    Returns
    -------
    Descending by value; the vectors have unit norm.

    Examples
    --------
    >>> ritz_pairs(begin(np.eye(2), np.diag([1.0, 3.0])), 1).values
    array([3.])
    """
    size = len(krylov.projected)
    symmetric = (krylov.projected + krylov.projected.T) / 2
    values, mixes = linalg.eigh(symmetric, subset_by_index=(max(size - n_pairs, 0), size - 1))
    values, mixes = values[::-1], mixes[:, ::-1]
    vectors = krylov.basis.mixed(mixes)
    residuals = np.linalg.norm(krylov.images.mixed(mixes) - vectors * values, axis=0)
    return RitzPairs(values, vectors, residuals)


def largest_eigenpairs(
    matmat: MatMat,
    krylov: Krylov,
    n_pairs: int,
    *,
    tolerance: float,
    max_passes: int,
    on_pass: Callable[[Krylov, RitzPairs], None] | None = None,
    enough: bool = False,
) -> tuple[RitzPairs, Krylov]:
    """Block Lanczos from a given state until the residuals are small.

    Parameters
    ----------
    matmat
        Product of the matrix with vectors (n, b).
    krylov
        State to go on from; its block should be wider than any cluster of eigenvalues is large.
    n_pairs
        Wanted pairs.
    tolerance
        Largest residual norm of the wanted pairs, relative to the largest eigenvalue.
    max_passes
        Passes, those already made included.
    on_pass
        Called after every pass: a checkpoint, or progress.
    enough
        Return what ``max_passes`` gave, however large its residuals, instead of raising.

    Returns
    -------
    The pairs and the state.

    Raises
    ------
    NotConvergedError
        After ``max_passes``, unless they are ``enough``.

    Examples
    --------
    >>> matrix = np.diag(np.arange(50.0))
    >>> start = random_block(50, 8, seed=0)
    >>> pairs, _ = largest_eigenpairs(
    ...     lambda x: matrix @ x, begin(start, matrix @ start), 2, tolerance=1e-9, max_passes=20
    ... )
    >>> pairs.values.round(6)
    array([49., 48.])
    """
    while True:
        pairs = ritz_pairs(krylov, n_pairs)
        if on_pass is not None:
            on_pass(krylov, pairs)
        if _converged(pairs, n_pairs, tolerance) or (enough and krylov.passes >= max_passes):
            return pairs, krylov
        block = next_block(krylov)
        if block.shape[1] == 0:  # the basis spans an invariant subspace: look outside it
            block = fresh_block(krylov)
        if block.shape[1] == 0:
            return pairs, krylov
        if krylov.passes >= max_passes:
            raise NotConvergedError(
                f"{len(pairs.values)} of {n_pairs} pairs, the largest residual {pairs.residuals.max():.1e}, after "
                f"{krylov.passes} passes; it must be at most {tolerance:.1e} of the largest eigenvalue"
            )
        krylov = extend(krylov, block, matmat(block))


def _converged(pairs: RitzPairs, n_pairs: int, tolerance: float) -> bool:
    """Whether all wanted pairs are there and small enough."""
    scale = max(abs(pairs.values[0]), np.finfo(float).tiny)
    return len(pairs.values) >= n_pairs and bool(np.all(pairs.residuals <= tolerance * scale))


def _is_new(projected: Floats, vectors: Floats) -> Booleans:
    """Vectors of which projection left more than rounding."""
    return np.linalg.norm(projected, axis=0) > 1e-13 * np.linalg.norm(vectors, axis=0)


def _orthonormal_mix(vectors: Floats) -> Floats:
    """Combination that makes vectors (n, b) orthonormal, from their Gram matrix alone (Stathopoulos and Wu 2002).

    Directions that the vectors hardly span are left out: (b, <= b). One such step leaves the square
    root of the precision; two leave rounding.
    """
    norms = np.linalg.norm(vectors, axis=0)
    scaled = 1 / np.where(norms > 0, norms, 1.0)
    values, mixes = np.linalg.eigh((vectors.T @ vectors) * scaled[:, None] * scaled)
    kept = values > _DEPENDENT * max(values.max(initial=0.0), 1.0)
    return scaled[:, None] * mixes[:, kept] / np.sqrt(values[kept])


class Normalised:
    """The symmetric normalised kernel S, less its trivial pair, from products with K alone.

    ``scaling`` is the s of ``S = diag(s) K diag(s)``; the trivial eigenvector, known exactly, is projected
    out, so that what is left has the wanted eigenvalues at its top.
    """

    def __init__(self, degrees: Floats, alpha: float, density_degrees: Floats | None) -> None:
        self.scaling = symmetric_scaling(degrees, alpha, density_degrees)
        trivial = 1 / (self.scaling * degrees**alpha)
        self._trivial = (trivial / np.linalg.norm(trivial))[:, None]

    def apply(self, kernel: MatMat, x: Floats) -> Floats:
        """Product with vectors x (n, b), by one product with the kernel."""
        images = self.scaling[:, None] * kernel(self.scaling[:, None] * x)
        return self._deflate(images, x)

    def deflated(self, vectors: Floats) -> Floats:
        """Vectors less their trivial part, which those of a start may have; their residuals do not grow by it."""
        return self._deflate(vectors, vectors)

    def adopt(self, start: Floats, images: Floats) -> tuple[Floats, Floats]:
        """From vectors r and K r that were made before s was known: vectors r / s and their images."""
        x = start / self.scaling[:, None]
        return x, self._deflate(self.scaling[:, None] * images, x)

    def _deflate(self, images: Floats, x: Floats) -> Floats:
        return images - self._trivial @ (self._trivial.T @ x)


def first_pass(operator: Normalised, start: Floats, images: Floats) -> Krylov:
    """State after the pass that also gave the row sums: its other vectors are not wasted.

    Parameters
    ----------
    operator
        The normalised kernel.
    start
        Vectors r, shape (n, b).
    images
        K r, shape (n, b).

    Returns
    -------
    State with one pass made.
    """
    return begin(*operator.adopt(start, images))


def expected_passes(passes: int, residual: float, tolerance: float) -> int:
    """Passes in all, if the residual goes on to fall as fast as it has; for a progress bar.

    Examples
    --------
    >>> expected_passes(3, 1e-3, 1e-6)
    6
    """
    if residual <= tolerance:
        return passes
    if residual >= 0.1:
        return max(passes + 5, 8)
    return max(passes + 1, int(np.ceil(passes * np.log(tolerance) / np.log(residual))))
