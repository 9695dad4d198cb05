"""The command ``completion``: a script that lets a shell complete commands, options, choices and files."""

from __future__ import annotations

import click

from .teaching import Taught

EXAMPLES = (
    'eval "$(manifold-observer completion bash)"  # in ~/.bashrc',
    'eval "$(manifold-observer completion zsh)"  # in ~/.zshrc',
    "manifold-observer completion fish > ~/.config/fish/completions/manifold-observer.fish",
)


@click.command("completion", cls=Taught, examples=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print a script that completes this command in a shell.

    Called as 'dask manifold-observer completion', it completes dask with this command in it.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - for those who ask for it

    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root()
    name = str(root.info_name).split()[0] if str(root.info_name).startswith("dask ") else "manifold-observer"
    variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
    # What click's templates leave open; click's own filling asks bash for its version, which may not be there.
    words = {"complete_func": f"_{name.replace('-', '_')}_completion", "complete_var": variable, "prog_name": name}
    click.echo(found(root.command, {}, name, variable).source_template % words)
