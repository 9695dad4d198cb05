"""The command ``completion``: a script that lets a shell complete commands, options, choices and files."""

from __future__ import annotations

import click

_NAME = "manifold-observer"
_VARIABLE = "_MANIFOLD_OBSERVER_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    r"""Print a script that completes this command in a shell.

    \b
    Examples:
      eval "$(manifold-observer completion bash)"                  # in ~/.bashrc
      eval "$(manifold-observer completion zsh)"                   # in ~/.zshrc
      manifold-observer completion fish > ~/.config/fish/completions/manifold-observer.fish
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - for those who ask for it

    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, _NAME, _VARIABLE).source_template % _words())


def _words() -> dict[str, str]:
    """What click's templates leave open; click's own filling asks bash for its version, which may not be there."""
    return {"complete_func": "_manifold_observer_completion", "complete_var": _VARIABLE, "prog_name": _NAME}
