"""References that are generated: of the public names from their docstrings, of the commands from their help."""

import re
from collections.abc import Iterator
from inspect import isclass, ismodule

import click

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.cli.commands import cli

_TOCTREE = "\n```{{toctree}}\n:hidden:\n\n{}\n```\n"
# Those of our own; what scikit-learn adds to every estimator is described there.
_MEMBERS = """   :members:
   :inherited-members: tuple, object, BaseEstimator, TransformerMixin
   :exclude-members: set_output, get_metadata_routing, set_fit_request, set_transform_request, set_score_request
"""


def api_pages(table: str) -> dict[str, str]:
    """Pages of all public names, and the table of them with links.

    Parameters
    ----------
    table
        Text of docs/api.md.

    Returns
    -------
    Names and texts of the pages.
    """
    names = sorted(mo.__all__)
    linked = re.sub(r"`(\w+)`", lambda found: _linked(found[1]) if found[1] in names else found[0], table)
    pages = {f"docs/api/{name}.md": _api_page(name) for name in names}
    return pages | {"docs/api.md": linked + _TOCTREE.format("\n".join(f"api/{name}" for name in names))}


def _linked(name: str) -> str:
    """A public name as a link to its page."""
    return f"[`{name}`](api/{name}.md)"


def _api_page(name: str) -> str:
    """The page of one name, made by autodoc of its docstring."""
    found, title = getattr(mo, name), name
    kind = "automodule" if ismodule(found) else "autoclass" if isclass(found) else "autofunction"
    members = "" if kind == "autofunction" else _MEMBERS
    name = found.__name__ if ismodule(found) else name
    directives = f".. currentmodule:: manifold_observer.pipeline\n\n.. {kind}:: {name}\n{members}"
    return f"# {title}\n\n```{{eval-rst}}\n{directives}```\n"


def command_reference() -> str:
    """A section of Markdown for every command, as its ``--help`` says it."""
    return "".join(f"\n## {name}\n\n{_section(name, command)}" for name, command in _commands(cli, "manifold-observer"))


def _commands(group: click.Group, prefix: str) -> Iterator[tuple[str, click.Command]]:
    """All commands with what they are called in full, those of groups included."""
    for name, command in group.commands.items():
        if command.hidden or command.deprecated:
            continue
        yield f"{prefix} {name}", command
        if isinstance(command, click.Group):
            yield from _commands(command, f"{prefix} {name}")


def _section(name: str, command: click.Command) -> str:
    """The help of a command, in lines that a page can hold."""
    context = click.Context(command, info_name=name, max_content_width=78, terminal_width=78)
    return f"```text\n{click.unstyle(command.get_help(context)).rstrip()}\n```\n"
