"""Where a function of one number is least between two bounds, by Brent's method.

Digit for digit what ``scipy.optimize.minimize_scalar`` finds by its method "bounded"; importing that takes an eighth of
a second, more than all searches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

_GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))
_DIGITS = math.sqrt(2.2e-16)
_TOLERANCE = 1e-5
_MOST = 500


class _Point(NamedTuple):
    x: float
    value: float


def least_between(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function is least: a parabola through the best three points leads there, else a golden section.

    Parameters
    ----------
    function
        With one minimum between the bounds.
    low, high
        The bounds.

    Returns
    -------
    The place, to about 1e-5.

    Examples
    --------
    >>> round(least_between(lambda x: (x - 2) ** 2, 0.0, 5.0), 5)
    2.0
    """
    x = low + _GOLDEN * (high - low)
    best = second = third = _Point(x, function(x))
    move = before = 0.0
    for _ in range(_MOST - 1):
        near = _DIGITS * abs(best.x) + _TOLERANCE / 3.0
        if abs(best.x - 0.5 * (low + high)) <= 2.0 * near - 0.5 * (high - low):
            break
        move, before = _move((best, second, third), low, high, near, (move, before))
        x = best.x + max(abs(move), near) * (1 if move >= 0 else -1)
        new = _Point(x, function(x))
        if new.value <= best.value:
            low, high = (best.x, high) if x >= best.x else (low, best.x)
            best, second, third = new, best, second
            continue
        low, high = (x, high) if x < best.x else (low, x)
        if new.value <= second.value or second.x == best.x:
            second, third = new, second
        elif new.value <= third.value or third.x in (best.x, second.x):
            third = new
    return best.x


def _move(
    points: tuple[_Point, _Point, _Point], low: float, high: float, near: float, moves: tuple[float, float]
) -> tuple[float, float]:
    """The next move from the best point, and what the one after it is measured by."""
    (best, second, third), (move, before), middle = points, moves, 0.5 * (low + high)
    if abs(before) > near:
        right = (best.x - second.x) * (best.value - third.value)
        left = (best.x - third.x) * (best.value - second.value)
        over, under = (best.x - third.x) * left - (best.x - second.x) * right, 2.0 * (left - right)
        over, under = -over if under > 0 else over, abs(under)
        inside = under * (low - best.x) < over < under * (high - best.x)
        if inside and abs(over) < abs(0.5 * under * before):
            x = best.x + over / under
            if x - low < 2.0 * near or high - x < 2.0 * near:
                return near if middle >= best.x else -near, move
            return over / under, move
    before = (low if best.x >= middle else high) - best.x
    return _GOLDEN * before, before
