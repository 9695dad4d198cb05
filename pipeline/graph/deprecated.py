"""Names and keywords that have changed: the old ones work for one more version, and warn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import wraps
from inspect import cleandoc
from typing import Any, ParamSpec, TypeVar

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
    old_name.__doc__ = f"Deprecated name of :func:`{new}`.\n\n{cleandoc(function.__doc__ or '')}"
    return old_name


def moved_into(group: str, kind: type[Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: keywords that have become fields of a dataclass still work, with a warning to the caller.

    Parameters
    ----------
    group
        Parameter that takes the dataclass now.
    kind
        The dataclass.

    Examples
    --------
    >>> import warnings
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Pace:
    ...     speed: int = 1
    >>> @moved_into("pace", Pace)
    ... def walk(steps, pace=None):
    ...     return steps * (pace or Pace()).speed
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     walk(3, speed=2)
    6
    >>> print(seen[0].message)
    walk: speed is now an option of Pace; write pace=Pace(speed=2). The old keyword will be removed in the next version.
    """
    names = [own.name for own in fields(kind)]

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def accepting(*args: P.args, **options: P.kwargs) -> R:
            old = {name: options.pop(name) for name in names if name in options}
            if old:
                _warn_moved(function.__name__, group, kind.__name__, old)
                given: Any = options.get(group)
                options[group] = kind(**old) if given is None else replace(given, **old)
            return function(*args, **options)

        return accepting

    return decorate


def _warn_moved(who: str, group: str, kind: str, old: dict[str, Any]) -> None:
    """Say what to write in place of old keywords."""
    written = ", ".join(f"{name}={value!r}" for name, value in old.items())
    are, ending = ("is now an option", "") if len(old) == 1 else ("are now options", "s")
    warn(
        f"{who}: {', '.join(old)} {are} of {kind}; write {group}={kind}({written}). The old keyword{ending} will be "
        "removed in the next version.",
        DeprecationWarning,
    )
