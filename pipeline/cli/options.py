"""Options of the command line, made from the fields of the dataclasses that hold settings.

A field's annotation says how its text is read, its default is the option's, and the string below it is the help.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import click

from ..frames.settings import choices_of, option_name, parts_of
from .reading import ByteCount, FrameLength, Named, NamedWhole, Names, Row, Whole

Config = TypeVar("Config")


class Setting(click.Option):
    """An option that is a field of a dataclass; ``section`` heads it in the help, ``keyword`` is its name in Python."""

    section: str
    keyword: str


def settings_of(*kinds: type[Any], leaving: Collection[str] = ()) -> Callable[[click.Command], click.Command]:
    """Decorator: give a command an option for every field of dataclasses, and of those that they hold.

    Parameters
    ----------
    *kinds
        The dataclasses.
    leaving
        Fields that are no options.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Walk:
    ...     steps: int = 10
    >>> @settings_of(Walk)
    ... @click.command("walk")
    ... def walk(**options):
    ...     return options
    >>> walk.main(["--steps", "3"], standalone_mode=False)
    {'steps': 3}
    """

    def decorate(command: click.Command) -> click.Command:
        command.params += [
            _option(own, section, text) for kind in kinds for own, section, text in _settings(kind, leaving)
        ]
        return command

    return decorate


def settings_among(command: click.Command, kind: type[Any]) -> list[click.Option]:
    """Options of a command that are fields of a dataclass.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Walk:
    ...     steps: int = 10
    >>> command = click.Command("walk", params=[click.Option(["--steps"]), click.Option(["--json"])])
    >>> [option.name for option in settings_among(command, Walk)]
    ['steps']
    """
    names = {option_name(member) for member in fields(kind)}
    return [option for option in command.params if isinstance(option, click.Option) and option.name in names]


def taken(kind: type[Config], values: dict[str, Any]) -> Config:
    """Take the settings of a dataclass out of the values of all options.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Walk:
    ...     steps: int = 10
    >>> values = {"steps": 3, "json": True}
    >>> taken(Walk, values), values
    (Walk(steps=3), {'json': True})
    """
    own: dict[str, Any] = {}
    for member in fields(kind):  # type: ignore[arg-type]
        nested = _nested(member)
        own[member.name] = taken(nested, values) if nested else values.pop(option_name(member))
    return kind(**own)


@cache
def documented(kind: type[Any]) -> dict[str, str]:
    """The string below each field of a class, on one line; nothing where the source is not installed."""
    texts = {}
    tree = _parsed(kind.__module__)
    top = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__qualname__]
    within = ast.walk(tree) if not top else ()
    found = top or [node for node in within if isinstance(node, ast.ClassDef) and node.name == kind.__name__]
    for member, below in pairwise([member for whole in found[:1] for member in whole.body]):
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name) and isinstance(below, ast.Expr):
            texts[member.target.id] = " ".join(str(ast.literal_eval(below.value)).split())
    return texts


@cache
def _parsed(module: str) -> ast.Module:
    """A module as it is written; inspect.getsource would tokenize all of it for each of its classes."""
    path = getattr(sys.modules.get(module), "__file__", None)
    try:
        return ast.parse(Path(path).read_text(encoding="utf-8") if path else "")
    except (OSError, SyntaxError, ValueError):
        return ast.parse("")


def _settings(kind: type[Any], leaving: Collection[str] = ()) -> Iterator[tuple[Field[Any], str, str]]:
    """Fields of a dataclass and of those that it holds, its own before inherited ones, with their section and help."""
    for defined in [base for base in kind.__mro__ if is_dataclass(base)]:
        texts = documented(defined)
        section = (inspect.getdoc(defined) or "").partition("\n")[0].partition(":")[0].rstrip(".")
        for member in fields(defined):
            nested = _nested(member)
            if member.name in leaving:
                continue
            if nested:
                yield from _settings(nested)
            elif member.name in inspect.get_annotations(defined):  # inherited ones come with their own class
                yield member, section, texts.get(member.name, "")


def _nested(member: Field[Any]) -> type[Any] | None:
    """The dataclass that a field holds, if it does."""
    made = member.default_factory
    return made if made is not MISSING and isinstance(made, type) and is_dataclass(made) else None


@cache
def _option(member: Field[Any], section: str, text: str) -> Setting:
    """One field as an option."""
    spelled = str(member.metadata.get("option", "")) or f"--{member.name.replace('_', '-')}"
    flag = parts_of(member) == {"bool"}
    how: dict[str, Any] = {"is_flag": True} if flag else {}
    if not flag and "/" not in spelled:
        reader = _reader(member)
        metavar = member.metadata.get("metavar") or getattr(reader, "metavar", None)
        how = {"type": reader, "show_default": member.default is not None, "metavar": metavar}
    option = Setting([*spelled.split(), option_name(member)], default=member.default, help=text, **how)
    option.section, option.keyword = section, member.name
    return option


def _number(member: Field[Any]) -> click.ParamType[Any]:
    """How a whole number is read, by its unit and the least that it may be."""
    least = member.metadata.get("least")
    if member.metadata.get("unit") == "bytes":
        return ByteCount()
    return click.INT if least is None else Whole(least)


def _reader(member: Field[Any]) -> click.ParamType[Any]:
    """How the text of an option is read, by the annotation of its field."""
    parts, choices = parts_of(member) - {"None"}, choices_of(member)
    if {"Names", "Sequence"} & parts:
        return Names() if "Names" in parts else Row(choices)
    if {"float", "str"} <= parts and choices:
        return Named(choices)
    if {"int", "str"} <= parts:
        return NamedWhole(choices, member.metadata.get("least")) if choices else FrameLength()
    if "str" in parts:
        return click.Choice(choices) if choices else click.STRING
    if parts == {"int"}:
        return _number(member)
    if parts == {"float"}:
        return click.FLOAT
    raise TypeError(f"options: no option can be made of {member.name}, a {member.type}. Annotate it with plain types.")
