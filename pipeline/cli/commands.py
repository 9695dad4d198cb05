"""The command ``manifold-observer``: its commands in one group, and how every error ends."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version

import click

from ..jobs.resuming import resumes
from .completion import completion_command
from .continuation import continue_command, renamed
from .corpus import corpus_group
from .demo import demo_group
from .doctor import doctor_command
from .info import info_command
from .look import look_command
from .outcome import outcome
from .plan import plan_command
from .report import report_command
from .reproduce import reproduce_command
from .run import run_command
from .saying import dumped, printable, usual_loudness
from .teaching import TaughtGroup
from .tune import tune_command
from .warned import in_words
from .watching import Told

EXAMPLES = (
    "manifold-observer look emg.txt  # what is in it, and the command to type next",
    "manifold-observer run song.wav --frame 23ms --report  # the state in song.zarr, and a page to look at",
    "manifold-observer demo sphere  # a simulation, scored against the truth",
)


@click.group(
    cls=TaughtGroup,
    examples=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 error, 2 wrong usage, 3 partial (some recordings of a corpus failed), 4 the "
    "cluster cannot be used or was lost. Ended by a signal: Ctrl-C 130, SIGTERM 143, SIGHUP 129 (128 plus its number).",
)
@click.version_option(version("manifold-observer"), prog_name="manifold-observer")
@click.option("--debug", is_flag=True, help="Show the full traceback of an error.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Estimate the hidden state behind long recordings."""
    context.obj = {"debug": debug}


for _command in (
    look_command,
    run_command,
    report_command,
    info_command,
    tune_command,
    plan_command,
    continue_command,
    corpus_group,
    demo_group,
    reproduce_command,
    doctor_command,
    completion_command,
):
    cli.add_command(_command)
cli.add_command(renamed(continue_command, "extend"))


def main(words: Sequence[str] | None = None, name: str = "manifold-observer") -> None:
    """Run the command; every error ends in one sentence and a non-zero exit code.

    Parameters
    ----------
    words
        Arguments; None takes those of the process.
    name
        What the command is called, for its help.
    """
    words = sys.argv[1:] if words is None else words
    try:
        _invoke(words, name)
    except click.exceptions.Exit as done:
        if isinstance(done, Told):
            _say_as_json(words, done.sentence, done.exit_code)
        sys.exit(done.exit_code)
    except click.ClickException as error:
        _say_as_json(words, error.format_message(), error.exit_code)
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort, Exception) as error:
        if "--debug" in words and isinstance(error, Exception) and not isinstance(error, click.Abort):
            raise
        sentence, code = outcome(error, _command_of(words))
        if resumes(error):
            sentence = f"{sentence} Type it again: {name} {shlex.join(words)}"
        _say_as_json(words, sentence, code)
        _fail(sentence, code)


def _invoke(words: Sequence[str], name: str) -> None:
    """Run the command. Click's own main takes every EOFError, such as a file that was cut, for an interrupt."""
    if "_MANIFOLD_OBSERVER_COMPLETE" in os.environ:  # a shell asks for completions
        cli.main(standalone_mode=False)
        return
    with usual_loudness(), cli.make_context(name, list(words)) as context, in_words(_command_of(words)):
        cli.invoke(context)


def _command_of(words: Sequence[str]) -> click.Command | None:
    """The command that some words name."""
    return next((cli.commands[word] for word in words if word in cli.commands), None)


def _say_as_json(words: Sequence[str], sentence: str, code: int) -> None:
    """An error for who asked for JSON: one object on standard output, beside the sentence on standard error."""
    if "--json" in words:
        click.echo(dumped({"error": sentence, "exit_code": code}))


def _fail(sentence: str, code: int) -> None:
    """Say it on standard error and leave."""
    click.echo(printable(f"Error: {sentence}"), err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
