"""What a command says: its answer on standard output, for people or as JSON, and notices on standard error."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

AS_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object on standard output.")
# -1 says less, 1 more; standard error may be a log's, which tells warnings itself. They come from other threads, too.
_LOUDNESS, _ALOUD = [0], [True]
# What empties the line of a bar before something is written there.
_CLEARING: list[Callable[[], None]] = []


def _louder(context: click.Context, option: click.Parameter, given: bool) -> None:
    """Take one of the options below."""
    if given:
        _LOUDNESS[0] = -1 if option.name == "quiet" else 1


LOUDNESS = tuple(
    click.Option(words, is_flag=True, expose_value=False, is_eager=True, callback=_louder, help=text)
    for words, text in (
        (["-q", "--quiet"], "Print only errors and one line of the answer: no bar, no warnings."),
        (["-v", "--verbose"], "Also print, on standard error, what is computed and how long each stage takes."),
    )
)


@contextmanager
def usual_loudness() -> Iterator[None]:
    """Begin a command as loud as it is by default, and leave the next one so."""
    _LOUDNESS[0] = 0
    try:
        yield
    finally:
        _LOUDNESS[0] = 0


def is_quiet() -> bool:
    """Whether the command says less."""
    return _LOUDNESS[0] < 0


def is_verbose() -> bool:
    """Whether it says more."""
    return _LOUDNESS[0] > 0


def answer(as_json: bool, found: dict[str, Any], text: Callable[[], str], line: Callable[[], str]) -> None:
    """Print what a command found.

    Parameters
    ----------
    as_json
        For machines.
    found
        What they are told.
    text
        What people are told.
    line
        What they are told who want one line.
    """
    if as_json:
        click.echo(dumped(found))
    else:
        said = line() if is_quiet() else text()
        if said:
            click.echo(printable(said))


def dumped(found: dict[str, Any]) -> str:
    """One JSON object, on one line of ASCII; numbers that JSON does not have are null.

    Examples
    --------
    >>> dumped({"rate": float("inf"), "modes": (0.5,)})
    '{"rate": null, "modes": [0.5]}'
    """
    return json.dumps(_plain(found), allow_nan=False)


def notice(sentence: str) -> None:
    """Say something on standard error, unless a log has it or nothing shall be said."""
    if _ALOUD[0] and not is_quiet():
        for clear in _CLEARING:
            clear()
        click.echo(printable(sentence), err=True)


@contextmanager
def above(clear: Callable[[], None]) -> Iterator[None]:
    """Have the line of a bar emptied before notices, for the length of a block."""
    _CLEARING.append(clear)
    try:
        yield
    finally:
        _CLEARING.remove(clear)


def is_aloud() -> bool:
    """Whether standard error is the command's, and not a log's."""
    return _ALOUD[0]


@contextmanager
def hushed() -> Iterator[None]:
    """Say nothing on standard error for the length of a block: events are logged there."""
    _ALOUD[0] = False
    try:
        yield
    finally:
        _ALOUD[0] = True


def printable(text: str) -> str:
    r"""Text that any terminal takes: bytes of file names that are not UTF-8, and control characters, are spelt.

    Examples
    --------
    >>> print(printable("caf" + chr(0xDCE9) + " " + chr(27) + "[31m"))
    caf\xe9 \x1b[31m
    """
    return "".join(
        character if character in "\n\t" or character.isprintable() else _spelt(character) for character in text
    )


def _spelt(character: str) -> str:
    """A character that cannot be printed."""
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that Python keeps in a name
        return f"\\x{number - 0xDC00:02x}"
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "tolist"):  # NumPy's
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
