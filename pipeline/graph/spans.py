"""Spans of numbers: ``(start, stop)``, as slices have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int]

Integers = NDArray[np.int64]


def blocks(n: int, size: int) -> list[Span]:
    """Cut n into spans of ``size``, the last one shorter.

    Examples
    --------
    >>> blocks(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, n)) for start in range(0, n, size)]
