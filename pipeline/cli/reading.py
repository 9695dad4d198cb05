"""How the text of options is read: names, numbers, lengths of frames, bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..frames.name_lists import split_names
from ..stores.address import Address, place

if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType  # older versions of click do not say of what


class Location(click.Path):
    """A path, or an address such as s3://bucket/key."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read an address where it is one."""
        found = place(value)
        return found if isinstance(found, Address) else super().convert(value, param, ctx)


class Whole(click.IntRange):
    """A whole number, at least so large."""

    name = "integer"


class Named(_Type):
    """A name, or a number."""

    def __init__(self, choices: Sequence[str]) -> None:
        self.choices = choices
        self.name = self.metavar = "|".join([*choices, "NUMBER"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | float:
        """Read a number where it is one."""
        if value in self.choices or isinstance(value, float):
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} must be {', '.join(self.choices)}, or a number", param, ctx)


class NamedWhole(_Type):
    """A name, or a whole number that is at least so large."""

    def __init__(self, choices: Sequence[str], least: int | None) -> None:
        self.choices, self.least = choices, least
        self.name = self.metavar = "|".join([*choices, "INTEGER"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        """Read a whole number where it is one."""
        if value in self.choices:
            return str(value)
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} must be {', '.join(self.choices)}, or a whole number", param, ctx)
        if self.least is not None and number < self.least:
            self.fail(f"{number} must be {', '.join(self.choices)}, or at least {self.least}", param, ctx)
        return number


class Row(_Type):
    """Numbers, with commas between; or a name."""

    def __init__(self, choices: Sequence[str]) -> None:
        self.choices = choices
        self.name = self.metavar = "|".join([*choices, "NUMBER,..."])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | tuple[float, ...]:
        """Read numbers where they are numbers."""
        if value in self.choices or isinstance(value, tuple):
            return value
        try:
            return tuple(float(number) for number in str(value).split(","))
        except ValueError:
            names = ", ".join(self.choices) + ", or " if self.choices else ""
            self.fail(f"{value!r} must be {names}numbers with commas between", param, ctx)


class Names(_Type):
    """Names, with commas between; one that holds a comma stands in double quotes."""

    name = "NAME,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Read the names."""
        if isinstance(value, tuple):
            return value
        return split_names(str(value))


class FrameLength(_Type):
    """Whole samples, or a duration with unit."""

    name = "SAMPLES|DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        """Read a whole number where it is one."""
        text = str(value)
        return int(text) if text.isdigit() else text


class Seconds(click.FloatRange):
    """Seconds, at least 0."""

    name = "SECONDS"

    def __init__(self) -> None:
        super().__init__(min=0)


class ByteCount(_Type):
    """A number of bytes, with a unit or without."""

    name = "BYTES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number and its unit."""
        from dask.utils import parse_bytes  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

        try:
            count = int(parse_bytes(value))
        except ValueError:
            count = 0
        if count < 1:
            self.fail(f"{value!r} must be a number of bytes, such as 4GiB or 500MB", param, ctx)
        return count
