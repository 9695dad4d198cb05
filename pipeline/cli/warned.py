"""Warnings as a command tells them: in words, once each, and to whoever asks for JSON."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ..jobs.events import Event, emit
from .advice import in_options

_SAID: list[str] = []
# Standard error may be a log's, which tells warnings itself; they come from other threads too.
_ALOUD = [True]


@contextmanager
def in_words(command: click.Command | None) -> Iterator[None]:
    """Show warnings as one line each on standard error, without the place in the code.

    Parameters
    ----------
    command
        Whose options their advice names.
    """
    before, told = warnings.showwarning, set[str]()
    _SAID.clear()

    def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, UserWarning | DeprecationWarning | FutureWarning):
            if _ALOUD[0]:
                before(message, category, *place, **more)
            else:
                emit(Event("warned", sentence=f"{category.__name__}: {message}"))
            return
        sentence = in_options(" ".join(str(message).split()), command)
        if sentence not in told:
            told.add(sentence)
            _SAID.append(sentence)
            emit(Event("warned", sentence=sentence))
            notice(f"Warning: {sentence}")

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def notice(sentence: str) -> None:
    """Say something on standard error, unless a log has it."""
    if _ALOUD[0]:
        click.echo(sentence, err=True)


@contextmanager
def hushed() -> Iterator[None]:
    """Say nothing on standard error for the length of a block: events are logged there."""
    _ALOUD[0] = False
    try:
        yield
    finally:
        _ALOUD[0] = True


def said() -> list[str]:
    """What the command that runs has warned of."""
    return list(_SAID)
