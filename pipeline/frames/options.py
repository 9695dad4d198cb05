"""Checks that the options of several stages share, and how options become attributes."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def as_attributes(values: dict[str, Any]) -> dict[str, int | float | str]:
    """Values as attributes hold them: NumPy's numbers become Python's, None becomes "none"."""
    return {
        name: "none" if value is None else value.item() if hasattr(value, "item") else value
        for name, value in values.items()
    }


def is_whole(value: object, least: int) -> bool:
    """Whether a value is a whole number of at least ``least``."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_choice(what: str, name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise where a value is none of the choices."""
    if value not in choices:
        raise ValueError(f"{what}: {name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
