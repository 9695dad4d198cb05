"""Names that have changed: the old one works for one more version, and warns."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from .warn import warn

P = ParamSpec("P")
R = TypeVar("R")


def renamed(function: Callable[P, R], old: str) -> Callable[P, R]:
    """A function under its old name: it warns the caller, and does the same.

    Parameters
    ----------
    function
        The function under its new name.
    old
        The name that it had.

    Examples
    --------
    >>> import warnings
    >>> def area(side):
    ...     return side**2
    >>> surface = renamed(area, "surface")
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     surface(3)
    9
    >>> print(seen[0].category.__name__, seen[0].message)
    DeprecationWarning surface is now called area; the old name will be removed in the next version.
    """
    new = function.__name__

    @wraps(function)
    def old_name(*args: P.args, **options: P.kwargs) -> R:
        warn(f"{old} is now called {new}; the old name will be removed in the next version.", DeprecationWarning)
        return function(*args, **options)

    old_name.__name__ = old_name.__qualname__ = old
    old_name.__doc__ = f"Deprecated name of :func:`{new}`.\n\n{function.__doc__ or ''}"
    return old_name
