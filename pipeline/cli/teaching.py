"""Commands that teach: their help has examples first, options by what they are about, and exit codes."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import click

from .outcome import CODES
from .saying import LOUDNESS

_NAME = "manifold-observer"


class _Teaching(click.Command):
    """What the help of commands and of groups has in common."""

    examples: Sequence[str]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Options of the command, then those of all commands."""
        own = super().get_params(ctx)
        helping = [option for option in own[-1:] if "--help" in option.opts]
        return [*own[: len(own) - len(helping)], *LOUDNESS, *helping]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what it does, examples, and what else there is to know."""
        first, rest = _parted(self)
        _write(formatter, first)
        write_examples(ctx, formatter, self.examples)
        _write(formatter, rest)


class Taught(_Teaching):
    """A command that can be told to say less or more, and whose help has examples and exit codes.

    Parameters
    ----------
    *words
        As for a command of click.
    examples
        Lines that can be typed; what follows two spaces and ``#`` says what for.
    codes
        Exit codes beside 0, 1 and 2.
    """

    def __init__(self, *words: Any, examples: Sequence[str] = (), codes: Sequence[int] = (), **options: Any) -> None:
        super().__init__(*words, **options)
        self.examples, self.codes = tuple(examples), (0, 1, 2, *codes)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command itself, then the settings, section by section."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        for section, records in sections.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), CODES[code]) for code in self.codes])


class TaughtGroup(_Teaching, click.Group):
    """A group of such commands, in the order in which one comes to need them."""

    command_class = Taught

    def __init__(self, *words: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*words, **options)
        self.examples = tuple(examples)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names as they were added."""
        return list(self.commands)


def write_examples(ctx: click.Context, formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """Write examples under a heading, by the name that the command was called by."""
    if not examples:
        return
    called = str(ctx.find_root().info_name)
    name = called if called.endswith(_NAME) else _NAME
    with formatter.section("Examples"):
        for line in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{line.replace(_NAME, name, 1)}\n")


def _parted(command: click.Command) -> tuple[str, str]:
    """The first paragraph of a command's help, and the others."""
    first, _, rest = inspect.cleandoc(command.help or "").partition("\n\n")
    return first, rest


def _write(formatter: click.HelpFormatter, text: str) -> None:
    """Write paragraphs."""
    if text:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)
