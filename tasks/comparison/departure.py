r"""Whether something of one recording departs from what it was in the recordings before.

Nights of one subject differ by chance. A night is judged by the spread among the nights before it, and the more
strictly the fewer these are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Array = NDArray[np.float64]

# Chance that a recording like those before it is flagged for one quantity.
_LEVEL = 5e-4
_LEAST, _MOST = 5, 30
# A spread below this share of the values themselves is rounding.
_ROUNDING = 1e-9


def departures(values: Array, least: int = _LEAST, most: int = _MOST) -> Array:
    r"""How far each row departs from the rows before it, in units of what chance allows.

    .. math:: r_i = \frac{1}{t_{n-1}} \sqrt{\frac1p \sum_j \frac{(x_{ij} - \bar x_j)^2}{s_j^2 (1 + 1/n)}}

    with mean and standard deviation over the last ``most`` rows before that did not depart themselves, and the
    quantile of Student's t that n such rows exceed by chance once in 2,000. If all columns move together, r is above 1
    exactly so often; if they move on their own, more seldom.

    Parameters
    ----------
    values
        Rows in their order, shape (recordings, numbers). NaN for what is not known.
    least
        Rows before it that a row needs in order to be judged.
    most
        Rows before it that it is compared with.

    Returns
    -------
    Departures, shape (recordings,); above 1 is more than chance. NaN where too little is known.

    Examples
    --------
    >>> nights = np.array([[1.0], [1.1], [0.9], [1.05], [0.95], [1.0], [3.0]])
    >>> departures(nights).round(1)
    array([nan, nan, nan, nan, nan, 0. , 3.3])
    """
    found = np.full(len(values), np.nan)
    usual: list[int] = []
    for row, value in enumerate(values):
        if not np.isfinite(value).all():
            continue
        if len(usual) >= least:
            found[row] = _departure(value, values[usual[-most:]])
        if not found[row] > 1:
            usual.append(row)
    return found


def _departure(value: Array, before: Array) -> float:
    """One row beside those before it."""
    n = len(before)
    mean, spread = before.mean(axis=0), before.std(axis=0, ddof=1)
    floor = _ROUNDING * (np.abs(mean) + np.abs(value)) + np.finfo(float).tiny
    z = (value - mean) / (np.maximum(spread, floor) * np.sqrt(1 + 1 / n))
    return float(np.sqrt(np.mean(z**2)) / stdtrit(n - 1, 1 - _LEVEL / 2))
