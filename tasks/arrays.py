"""The array types of this folder's signatures, and how arrays lie in memory."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def first_not_finite(frames: Array) -> int | None:
    """Number of the first row that holds NaN or infinity; None where all are finite.

    Examples
    --------
    >>> first_not_finite(np.array([[1.0], [np.nan], [np.inf]]))
    1
    """
    finite = np.isfinite(frames).all(axis=1)
    return None if finite.all() else int(np.argmin(finite))


def deviations(values: Floats) -> Floats:
    """Standard deviation of every column (n, m), 1 where it is constant: what columns are divided by.

    Examples
    --------
    >>> deviations(np.array([[0.0, 5.0], [4.0, 5.0]]))
    array([2., 1.])
    """
    found: Floats = values.std(axis=0)
    return np.where(found > 0, found, 1.0)


def standardised(values: Floats) -> Floats:
    """Columns (n, m) less their means, in units of their deviations.

    Examples
    --------
    >>> standardised(np.array([[0.0], [4.0]])).ravel()
    array([-1.,  1.])
    """
    return (values - values.mean(axis=0)) / deviations(values)


def aligned(value: Any) -> Any:
    """The same value with every array aligned to its numbers, as NumPy makes them.

    Arrays that came over a network may lie at any byte. NumPy adds those up through a buffer, in another
    order: the last digits would depend on which worker a block was sent to.

    Parameters
    ----------
    value
        An array, lists and tuples (named ones too) of such values, or anything else, which is left alone.

    Returns
    -------
    The value itself where nothing was out of line.

    Examples
    --------
    >>> shifted = np.frombuffer(bytes(9), np.uint8)[1:].view(np.float64)
    >>> shifted.flags.aligned, aligned([shifted])[0].flags.aligned
    (False, True)
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy(order="K")
    if not isinstance(value, list | tuple):
        return value
    parts = [aligned(part) for part in value]
    if all(part is own for part, own in zip(parts, value, strict=True)):
        return value
    return like(value, parts)


def digest(*values: Array) -> bytes:
    """SHA-256 of the numbers of some arrays, with their shapes and types.

    Examples
    --------
    >>> rows = np.arange(6.0).reshape(3, 2)
    >>> digest(rows) == digest(rows.copy()), digest(rows) == digest(rows[::-1])
    (True, False)
    """
    found = hashlib.sha256()
    for value in values:
        found.update(f"{value.dtype.str}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).data)
    return found.digest()


def like(value: Any, parts: list[Any]) -> Any:
    """Parts as a list or tuple of the same type; named tuples take them one by one.

    Examples
    --------
    >>> like((1, 2), [3, 4])
    (3, 4)
    """
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
