"""The signs and the order that make new coordinates like earlier ones, on frames that both of them have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats, Integers, standardised

# A place of its own is worth this much correlation to a coordinate: what resembles nothing stays where it is.
_STAY = 0.05


class Alignment(NamedTuple):
    """Which new coordinate comes at every place (m,), its sign, and its correlation with the earlier one there."""

    order: Integers
    signs: Floats
    correlations: Floats

    def apply(self, values: Floats) -> Floats:
        """Coordinates (n, m) in their new order and signs."""
        return values[:, self.order] * self.signs


def alignment(earlier: Floats, new: Floats) -> Alignment:
    """Match new coordinates with earlier ones, each with at most one.

    Parameters
    ----------
    earlier, new
        Coordinates of the same frames, shapes (n, k) and (n, m).

    Returns
    -------
    Order, signs and correlations of the m new ones; those without a partner come last, with correlation NaN.

    Examples
    --------
    >>> turn = np.linspace(0, 6, 50)
    >>> waves = np.column_stack([np.cos(turn), np.sin(turn)])
    >>> found = alignment(waves, np.column_stack([-waves[:, 1], waves[:, 0]]))
    >>> found.order, found.signs, found.correlations.round(6)
    (array([1, 0]), array([ 1., -1.]), array([1., 1.]))
    """
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import

    n, m = new.shape
    correlation = standardised(earlier).T @ standardised(new) / n
    worth = np.abs(correlation)
    worth += _STAY * np.eye(*worth.shape)

    places, chosen = linear_sum_assignment(-worth)
    rest = np.setdiff1d(np.arange(m), chosen)
    matched = correlation[places, chosen]
    signs = np.where(matched < 0, -1.0, 1.0)
    # Places of earlier coordinates that have no partner any more are closed up.
    return Alignment(
        np.concatenate([chosen, rest]),
        np.concatenate([signs, np.ones(len(rest))]),
        np.concatenate([np.abs(matched), np.full(len(rest), np.nan)]),
    )


def explained(earlier: Floats, new: Floats) -> float:
    """Share of the variance of earlier coordinates that is linear in new ones, whatever their order and turn.

    Examples
    --------
    >>> turn = np.linspace(0, 6, 50)
    >>> waves = np.column_stack([np.cos(turn), np.sin(turn)])
    >>> round(explained(waves, waves @ [[0.6, 0.8], [-0.8, 0.6]]), 6)
    1.0
    """
    wanted, inputs = standardised(earlier), np.column_stack([np.ones(len(new)), standardised(new)])
    left = wanted - inputs @ np.linalg.lstsq(inputs, wanted, rcond=None)[0]
    return float(1 - np.square(left).sum() / max(np.square(wanted).sum(), 1e-300))
