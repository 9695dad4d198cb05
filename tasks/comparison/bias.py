"""How far numbers from many realisations are from the truth.

Throughout: ``values`` (r, m) are m numbers found in each of r realisations, and ``truth`` (m,) is what they should be,
never 0 and in the same units.
"""

from __future__ import annotations

import numpy as np

from manifold_observer.tasks.arrays import Floats


def relative_bias(values: Floats, truth: Floats) -> Floats:
    r"""Error of the mean over the realisations, relative to the truth.

    .. math:: \frac{1}{r} \sum_k \frac{v_{k\ell}}{t_\ell} - 1

    Parameters
    ----------
    values
        Shape (r, m).
    truth
        Shape (m,).

    Returns
    -------
    Shape (m,), without unit; above 0 where the magnitude is too large.

    Examples
    --------
    >>> relative_bias(np.array([[1.0, 3.0], [2.0, 3.0]]), np.array([1.0, 4.0]))
    array([ 0.5 , -0.25])
    """
    return values.mean(axis=0) / truth - 1


def worst_error(values: Floats, truth: Floats) -> Floats:
    r"""Largest relative error of every realisation.

    .. math:: \max_\ell \left| \frac{v_{k\ell}}{t_\ell} - 1 \right|

    Parameters
    ----------
    values
        Shape (r, m).
    truth
        Shape (m,).

    Returns
    -------
    Shape (r,), without unit.

    Examples
    --------
    >>> worst_error(np.array([[1.0, 3.0], [2.0, 3.0]]), np.array([1.0, 4.0]))
    array([0.25, 1.  ])
    """
    return np.abs(values / truth - 1).max(axis=1)
