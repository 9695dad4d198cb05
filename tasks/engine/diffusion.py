r"""From row sums and eigenvectors to diffusion coordinates.

Throughout: K is the kernel, q its row sums (*degrees*), a = *alpha*;
``W = D^-1 K / (q_i^a q_j^a)`` is the Markov matrix, :math:`S = D^{1/2} W D^{-1/2}` its symmetric
conjugate; a mode's *eigenvalue* is :math:`\mu`, its *coordinate* :math:`\psi = D^{-1/2} v`.
"""

from __future__ import annotations

import numpy as np

from manifold_observer.tasks.arrays import Floats, Integers

SMALLEST_EIGENVALUE = 1e-10
"""An eigenvalue at or below it is rounding, and has no logarithm worth having."""


def symmetric_scaling(degrees: Floats, alpha: float, density_degrees: Floats | None = None) -> Floats:
    r"""The s for which :math:`S = \mathrm{diag}(s)\, K\, \mathrm{diag}(s)`.

    Parameters
    ----------
    degrees
        Row sums q of K, shape (n,).
    alpha
        Density normalisation: 0 graph Laplacian, 1/2 Fokker-Planck, 1 Laplace-Beltrami.
    density_degrees
        Row sums of :math:`K q^{-a}`, that is K applied to ``degrees ** -alpha``; only for alpha != 0.

    Returns
    -------
    Shape (n,).

    Examples
    --------
    >>> symmetric_scaling(np.array([4.0, 1.0]), 0.0)
    array([0.5, 1. ])
    """
    if alpha == 0:
        return 1 / np.sqrt(degrees)
    if density_degrees is None:
        raise ValueError("symmetric_scaling: alpha other than 0 needs density_degrees")
    weight = degrees**-alpha
    return weight / np.sqrt(weight * density_degrees)


def coordinates(vectors: Floats, scaling: Floats, alpha: float, degrees: Floats) -> Floats:
    r"""Diffusion coordinates :math:`\psi = D^{-1/2} v` with unit mean square and a fixed sign.

    The entry of largest magnitude of every coordinate is positive (the first of equals).

    Parameters
    ----------
    vectors
        Eigenvectors v of S, shape (n, m).
    scaling
        As :func:`symmetric_scaling` gave it, shape (n,).
    alpha
        Density normalisation.
    degrees
        Row sums of K, shape (n,).

    Returns
    -------
    Shape (n, m), without unit.

    Examples
    --------
    >>> coordinates(np.array([[-2.0], [1.0]]), np.ones(2), 0.0, np.ones(2)).round(3).ravel()
    array([ 1.265, -0.632])
    """
    psi = vectors * (scaling * degrees**alpha)[:, None]
    psi = psi / np.sqrt(np.mean(np.square(psi), axis=0))
    return psi * signs(psi)


def signs(columns: Floats) -> Floats:
    """Per column, the sign of its entry of largest magnitude."""
    largest = np.argmax(np.abs(columns), axis=0)
    return np.where(columns[largest, np.arange(columns.shape[1])] < 0, -1.0, 1.0)


def step_rates(eigenvalues: Floats) -> Floats:
    r"""Decay :math:`\lambda = -\log \mu` of every mode over one frame, at least 0.

    Examples
    --------
    >>> step_rates(np.exp([-0.5, -2.0]))
    array([0.5, 2. ])
    """
    return np.maximum(-np.log(eigenvalues), 0.0)


def generator_rates(step: Floats, epsilon: float, alpha: float, burst_duration: float) -> Floats:
    r"""Decay rates of the hidden diffusion, in inverse seconds.

    .. math:: \lambda = \frac{-\log \mu}{\varepsilon\,\delta t}\ (\alpha = 0), \qquad
              \lambda = \frac{-2 \log \mu}{\varepsilon\,\delta t}\ (\alpha = \tfrac12)

    The distance divides by a covariance measured over :math:`\delta t`, so that its unit is
    :math:`\delta t`. At alpha = 0 the kernel sees twice the potential, which makes up for the factor 2.

    Parameters
    ----------
    step
        Rates over one frame, shape (m,).
    epsilon
        Scale of the kernel.
    alpha
        0 or 1/2; the operator of other values has other rates.
    burst_duration
        Seconds over which the local covariances were measured.

    Returns
    -------
    Shape (m,), 1/s.

    Examples
    --------
    >>> generator_rates(np.array([0.02]), 2.0, 0.0, 0.01)
    array([1.])
    """
    if alpha not in (0, 0.5):
        raise ValueError(f"generator rates are known for alpha 0 and 0.5, got {alpha}")
    return (2.0 if alpha else 1.0) * step / (epsilon * burst_duration)


def spectral_gap(eigenvalues: Floats) -> int:
    r"""Number of modes before the largest gap :math:`\mu_\ell - \mu_{\ell+1}`.

    Parameters
    ----------
    eigenvalues
        Of the modes 1, 2, ... in descending order, the trivial one left out.

    Returns
    -------
    At least 1; only eigenvalues above 1e-10 count, and the smaller of equals is taken.

    Examples
    --------
    >>> spectral_gap(np.array([0.9, 0.8, 0.3, 0.25]))
    2
    """
    positive = eigenvalues[eigenvalues > SMALLEST_EIGENVALUE]
    return int(np.argmax(-np.diff(positive))) + 1 if len(positive) > 1 else 1


def lift_sum(frames: Floats, mean: Floats, psi: Floats) -> Floats:
    r"""One block's share of :math:`\alpha_{j\ell} = \operatorname{mean}_i (z_j(i) - \bar z_j) \psi_\ell(i)`.

    Parameters
    ----------
    frames
        Block, shape (n, p).
    mean
        Mean of all frames, shape (p,).
    psi
        Coordinates of the block's frames, shape (n, m).

    Returns
    -------
    Sum over the block, shape (p, m), in feature units.
    """
    return (frames - mean).T @ psi


def isolated(degrees: Floats, limit: float = 1e-6) -> Integers:
    """Frames whose affinity to all others together is below ``limit``."""
    return np.flatnonzero(degrees - 1 < limit)
