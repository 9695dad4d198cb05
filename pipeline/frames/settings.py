"""Fields of options: a default, what it may be, and its spelling on the command line, written once.

Throughout: a *setting* is a field of a frozen dataclass of options. The string below it is its help, in Python and
on the command line; its annotation says how text is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, field, fields
from numbers import Real
from typing import Any

from .options import check_choice, is_whole


def setting(
    default: Any,
    *,
    choices: Sequence[str] | Callable[[], Sequence[str]] = (),
    least: int | None = None,
    unit: str = "",
    option: str = "",
    metavar: str = "",
) -> Any:
    """A field with what the checks and the command line must know of it; a plain default does where that is nothing.

    Parameters
    ----------
    default
        Its default.
    choices
        Names that it may have, or what gives them when they are first needed. A field that is text has one of them; one
        that may be a number as well, either.
    least
        Smallest whole number.
    unit
        Of that number, for messages.
    option
        Spelling on the command line; ``--its-name`` by default.
    metavar
        What stands for its value in the help.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Walk:
    ...     steps: int = setting(10, least=1)
    ...     gait: str = setting("trot", choices=("trot", "canter"))
    ...     def __post_init__(self):
    ...         check_settings("walk", self)
    >>> Walk(steps=0)
    Traceback (most recent call last):
    ValueError: walk: steps must be at least 1; got 0.
    """
    known = {"choices": choices, "least": least, "unit": unit, "option": option, "metavar": metavar}
    return field(default=default, metadata=known)


def choices_of(kind: Field[Any]) -> tuple[str, ...]:
    """Names that a field may have; none where it has no choices."""
    choices = kind.metadata.get("choices", ())
    return tuple(choices() if callable(choices) else choices)


def parts_of(kind: Field[Any]) -> frozenset[str]:
    """What the value of a field may be, by the parts of its annotation."""
    annotation = kind.type.__name__ if isinstance(kind.type, type) else str(kind.type)
    return frozenset(part.strip().partition("[")[0] for part in annotation.split("|"))


def check_settings(what: str, options: Any) -> None:
    """Refuse names that are no choices, and whole numbers that are too small.

    Parameters
    ----------
    what
        Who refuses, for the message.
    options
        A dataclass of settings.
    """
    for kind in fields(options):
        value, parts = getattr(options, kind.name), parts_of(kind)
        least, choices = kind.metadata.get("least"), choices_of(kind)
        if value is None and "None" in parts:
            continue
        if choices and parts <= {"str", "None"}:
            check_choice(what, kind.name, value, choices)
        named = isinstance(value, str) and value in choices
        if least is not None and not named and not is_whole(value, least):
            unit = kind.metadata["unit"]
            others = [repr(name) for name in choices] + ["None"] * ("None" in parts)
            otherwise = "".join(f", or {other}" for other in others)
            raise ValueError(
                f"{what}: {kind.name} must be at least {least}{unit and ' ' + unit}{otherwise}; got {value!r}."
            )


def option_name(kind: Field[Any]) -> str:
    """Name of a setting beside those of all other stages, as on the command line but with underscores.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Walk:
    ...     n_steps: int = setting(10, option="--steps -s")
    >>> option_name(fields(Walk)[0])
    'steps'
    """
    spelled = str(kind.metadata.get("option", "")) or f"--{kind.name}"
    return spelled.split()[0].partition("/")[0].removeprefix("--").replace("-", "_")


def flat(parts: Iterable[Any]) -> dict[str, Any]:
    """All settings of several dataclasses that have a value, by their names on the command line."""
    found = {option_name(kind): getattr(part, kind.name) for part in parts for kind in fields(part)}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in found.items() if value is not None
    }


def among_attributes(kind: type[Any], attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Settings of a dataclass that are among attributes, as :func:`as_attributes` wrote them, for its constructor.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Walk:
    ...     steps: int | None = 10
    ...     gait: str = "trot"
    >>> Walk(**among_attributes(Walk, {"steps": "none", "version": "1"}))
    Walk(steps=None, gait='trot')
    """
    return {own.name: _read(own, attrs[own.name]) for own in fields(kind) if own.name in attrs}


def _read(kind: Field[Any], value: Any) -> Any:
    """One attribute: files give NumPy's numbers, and have no None."""
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, str) and plain == "none" and "None" in parts_of(kind):
        return None
    return bool(plain) if parts_of(kind) == {"bool"} else plain


def plain_numbers(what: str, values: Iterable[Any]) -> tuple[float, ...]:
    """Numbers of a list or an array as a tuple: options are compared, hashed and stored as JSON.

    Examples
    --------
    >>> plain_numbers("walk: steps", [1, 2.5])
    (1, 2.5)
    """
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    if not isinstance(plain, list) or not all(isinstance(value, Real) for value in plain):
        raise ValueError(f"{what} must be a row of numbers; got {values!r}.")
    return tuple(plain)
