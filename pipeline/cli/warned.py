"""Warnings as a command tells them: in words, once each, and to whoever asks for JSON."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ..jobs.events import Event, emit
from .advice import in_options
from .saying import is_aloud, notice

_SAID: list[str] = []


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
            if is_aloud():
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


def said() -> list[str]:
    """What the command that runs has warned of."""
    return list(_SAID)
