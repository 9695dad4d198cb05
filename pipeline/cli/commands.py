"""The command ``manifold-observer``: its commands in one group, and how every error ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

import click

from .continuation import continue_command, renamed
from .corpus import corpus_group
from .demo import demo_group
from .look import look_command
from .outcome import outcome
from .plan import plan_command
from .report import report_command
from .reproduce import reproduce_command
from .run import run_command
from .tune import tune_command
from .warned import in_words


@click.group(
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
    continue_command,
    plan_command,
    tune_command,
    report_command,
    corpus_group,
    demo_group,
    reproduce_command,
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
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort, Exception) as error:
        if "--debug" in words and isinstance(error, Exception) and not isinstance(error, click.Abort):
            raise
        _fail(*outcome(error, _command_of(words)))


def _invoke(words: Sequence[str], name: str) -> None:
    """Run the command. Click's own main takes every EOFError, such as a file that was cut, for an interrupt."""
    if "_MANIFOLD_OBSERVER_COMPLETE" in os.environ:  # a shell asks for completions
        cli.main(standalone_mode=False)
        return
    with cli.make_context(name, list(words)) as context, in_words(_command_of(words)):
        cli.invoke(context)


def _command_of(words: Sequence[str]) -> click.Command | None:
    """The command that some words name."""
    return next((cli.commands[word] for word in words if word in cli.commands), None)


def _fail(sentence: str, code: int) -> None:
    """Say it on standard error and leave."""
    click.echo(f"Error: {sentence}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
