"""How a command ends: the sentence and the exit code of whatever was raised."""

from __future__ import annotations

from typing import NamedTuple

import click

from ..graph.ending import Interrupted
from ..graph.errors import FORESEEN
from .advice import in_options

# What each exit code means; docs/watching.md has the same table.
CODES = {
    0: "success",
    1: "an input, a setting or the disk does not allow it, or another error",
    2: "wrong usage: an option, or a file of settings",
    3: "partial: some recordings of a corpus failed",
    4: "the cluster cannot be used, or was lost",
    129: "ended by SIGHUP",
    130: "interrupted by Ctrl-C (SIGINT)",
    143: "ended by SIGTERM",
}


# Of commands that may compute on a cluster, or that take long, beside 0, 1 and 2.
SIGNALS = (129, 130, 143)
CLUSTER_CODES = (4, *SIGNALS)


class Outcome(NamedTuple):
    """How a command ended."""

    sentence: str
    code: int


def outcome(error: BaseException, command: click.Command | None = None) -> Outcome:
    """What an error says to who called the command, and with which code the command ends.

    An error with an attribute ``exit_code`` chooses the code itself.

    Parameters
    ----------
    error
        What ended the command.
    command
        The command that met it, whose options the advice names.

    Examples
    --------
    >>> outcome(ValueError("run: frame must be at least 1; got 0."))
    Outcome(sentence='run: frame must be at least 1; got 0.', code=1)
    >>> outcome(KeyboardInterrupt())
    Outcome(sentence='interrupted', code=130)
    """
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Outcome(_with_notes("interrupted", error), error.code if isinstance(error, Interrupted) else 130)
    if isinstance(error, click.ClickException):
        return Outcome(error.format_message(), error.exit_code)
    text = in_options(" ".join(str(error).split()), command) or type(error).__name__
    if not isinstance(error, FORESEEN):
        text = f"{type(error).__name__}: {text} (--debug shows where)"
    return Outcome(_with_notes(text, error), getattr(error, "exit_code", 1))


def _with_notes(text: str, error: BaseException) -> str:
    """An error and what was noted on its way, such as from where the same command resumes."""
    notes = getattr(error, "__notes__", [])
    return " ".join([f"{text.rstrip('.')}.", *notes]) if notes else text
