"""Checks that the options of several stages share, and how options become attributes."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def as_attributes(values: dict[str, Any]) -> dict[str, int | float | str]:
    """Values as attributes hold them: NumPy's numbers become Python's, None "none", True and False 1 and 0.

    Examples
    --------
    >>> as_attributes({"rank": None, "causal": False})
    {'rank': 'none', 'causal': 0}
    """
    return {name: _as_attribute(value) for name, value in values.items()}


def _as_attribute(value: Any) -> Any:
    """One value; NetCDF has no booleans."""
    if value is None:
        return "none"
    plain = value.item() if hasattr(value, "item") else value
    return int(plain) if isinstance(plain, bool) else plain


def is_whole(value: object, least: int) -> bool:
    """Whether a value is a whole number of at least ``least``."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_choice(what: str, name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise where a value is none of the choices."""
    if value not in choices:
        raise ValueError(f"{what}: {name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
