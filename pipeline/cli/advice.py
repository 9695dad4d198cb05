"""Advice of errors, which names keywords of Python, as the options of the command that met them."""

from __future__ import annotations

import ast
import re

import click

from ..frames.name_lists import joined_names

_BARE = re.compile(r"[\w./:+-]+(?:,[\w./:+-]+)*")
_WORD = re.compile(r"\w")
_VALUE = r"'[^']*'|\"[^\"]*\"|\[(?:'[^']*'|\"[^\"]*\"|[^\]'\"])*\]|-?\d[\w.+-]*(?<![.])|True|False|None|"
_OF_OPENING = re.compile(
    r"(?:open_recording|recording|csv|npy|audio|edf|wfdb|mat|nwb|arrow|brainvision|mne|xdf|spikes|cbin|labels)\b"
)
# What heads the options of opening in the help.
_OPENING = "How recordings are opened"
_IN_PYTHON = re.compile(
    r" ?\(open_recording\)|, or use recording\.\w+\([^)]*\)(?: and recording\.\w+\([^)]*\))*"
    r"|, or leave the segment out with frames\.\w+\([^)]*\)"
)


def in_options(text: str, command: click.Command | None) -> str:
    """Keywords with their values as options of a command; those that it does not have stay as they are.

    Parameters
    ----------
    text
        What an error says.
    command
        The command that met it; None leaves the text alone.

    Examples
    --------
    >>> run = click.Command("run", params=[click.Option(["--time-unit"]), click.Option(["--labels"])])
    >>> in_options("Give time_unit='ms', or labels=['a', 'b c'].", run)
    "Give --time-unit ms, or --labels 'a,b c'."
    """
    who = _OPENING if _OF_OPENING.match(text) else text.partition(":")[0]
    known = {} if command is None else _spellings(command, who)
    names = "|".join(sorted(known, key=len, reverse=True))
    if not names:
        return text
    pattern = re.compile(rf"(?<![\w.-])({names})=({_VALUE})(?![\w(])")
    # What stands before is the constraint.
    must, got, advice = text.rpartition("; got ")
    spelt = pattern.sub(lambda found: _option(known[found[1]], found[2]), advice)
    return must + got + (_IN_PYTHON.sub("", spelt) if spelt != advice else spelt)


def as_option(command: click.Command, keyword: str, value: object) -> str:
    """A keyword of Python and its value as an option of a command, as a shell takes it.

    Examples
    --------
    >>> run = click.Command("run", params=[click.Option(["--labels"])])
    >>> as_option(run, "labels", ["a", "b c"])
    "--labels 'a,b c'"
    """
    spelt = _spellings(command, _OPENING).get(keyword, (f"--{keyword.replace('_', '-')}", None))
    return _option(spelt, repr(value) if isinstance(value, list | tuple) else str(value))


def _spellings(command: click.Command, who: str) -> dict[str, tuple[str, str | None]]:
    """Options of a command by the keywords of Python: how each is spelt, and how where it is False.

    Some keywords are those of several stages: ``rates`` is one of opening, and one of the observer. ``who`` says what
    an error is about: a section of the options, or the name of a function.
    """
    known: dict[str, tuple[str, str | None]] = {}
    options = [option for option in command.params if isinstance(option, click.Option) and option.expose_value]
    for option in sorted(options, key=lambda option: _rank(option, who)):
        spelt = option.opts[0], (option.secondary_opts[0] if option.secondary_opts else None)
        known.setdefault(getattr(option, "keyword", str(option.name)), spelt)
    return known


def _rank(option: click.Option, who: str) -> tuple[bool, bool]:
    """Which of two options of one keyword an error means: that of who speaks, else the one that is spelt like it."""
    own = getattr(option, "section", "") == who or option.opts[0].startswith(f"--{who}-")
    return not own, getattr(option, "keyword", option.name) != option.name


def _option(spelt: tuple[str, str | None], text: str) -> str:
    """One option with its value."""
    if text in ("True", "False"):
        return spelt[0] if text == "True" else spelt[1] or f"without {spelt[0]}"
    if not text:
        return spelt[0]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    given = joined_names(value) if isinstance(value, list | tuple) else str(value)
    return f"{spelt[0]} {given if _BARE.fullmatch(given) and _WORD.search(given) else _quoted(given)}"


def _quoted(text: str) -> str:
    """A value as a shell takes it."""
    return "'" + text.replace("'", "'\\''") + "'"
