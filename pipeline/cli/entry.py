"""Entry points: ``manifold-observer`` and ``dask manifold-observer``.

Neither imports the program before a command is run: signals are listened to first, and ``dask --help`` stays quick.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from ..graph.ending import Hearing
from ..graph.loading import leave_at_once, loading


def main() -> None:
    """Run the command, and end as soon as it has cleaned up where a signal asked for it."""
    _run(sys.argv[1:], "manifold-observer")


class _Dask(click.Command):
    """The command as ``dask`` lists it; all words after its name are left to the command itself."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take every word as it is."""
        ctx.args = args
        return args

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """What may come next, as the command itself completes it."""
        from click.shell_completion import ShellComplete  # noqa: PLC0415 - for those who ask for it

        from .commands import cli  # noqa: PLC0415

        return ShellComplete(cli, {}, "manifold-observer", "").get_completions(list(ctx.args), incomplete)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command."""
        _run(ctx.args, ctx.command_path)


dask_command = _Dask("manifold-observer", help="Estimate the hidden state behind long recordings.")


def _run(words: Sequence[str], name: str) -> None:
    """Import the command and run it, listening to signals all the while."""
    hearing = Hearing().listen()
    leave_at_once()
    with loading():
        from .commands import main as command  # noqa: PLC0415

    hearing.begin()
    try:
        command(words, name)
    except SystemExit as done:
        if hearing.heard is None:
            raise
        hearing.leave(done.code if isinstance(done.code, int) else 1)


if __name__ == "__main__":
    main()
