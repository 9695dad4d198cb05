"""Commands in files that people copy: found there, and read by the parsers of the programs themselves."""

import ast
import re
import shlex
from itertools import pairwise

import click
import numpy as np
import yaml

from manifold_observer.pipeline.cli.commands import cli

_ENDS = {"&", "&&", "|", "||", ";", ">", ">>", "2>", "<"}
_SET = re.compile(r"\$\{(\w+)(:?[-?][^}]*)?\}|\$\((\w+)\)|\$(\w+)")


def commands_in(path):
    """Words of every call of ours, and of ``dask scheduler`` and ``dask worker``, in a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".yaml", ".yml"):
        lines = [line for document in yaml.safe_load_all(text) for line in _lines_of(document)]
    elif path.suffix == ".py":
        lines = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    elif path.suffix == ".md":
        lines = [line for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) for line in _joined(block)]
    else:
        lines = [line.removeprefix("ExecStart=") for line in _joined(text) if not line.lstrip().startswith("#")]
    return [words for line in lines if isinstance(line, str) for words in _calls(line)]


def _lines_of(value):
    """Every list of words in a document, and every text, as a line of a shell."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _lines_of(inner)
    elif isinstance(value, list) and all(isinstance(word, str) for word in value):
        yield shlex.join(value)
        yield from value
    elif isinstance(value, list):
        for inner in value:
            yield from _lines_of(inner)
    elif isinstance(value, str):
        yield value


def _joined(text):
    """Lines, with those that a backslash continues as one."""
    return text.replace("\\\n", " ").splitlines()


def _calls(line):
    """Calls on a line."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return
    words = [word for one in words for word in ([one[:-1], ";"] if one.endswith(";") else [one])]
    for number, word in enumerate(words):
        name = word.rpartition("/")[2]
        rest = words[number + 1 :]
        end = next((place for place, other in enumerate(rest) if other in _ENDS), len(rest))
        if name == "manifold-observer" and end and not word.startswith("-"):
            yield [name, *map(_filled, rest[:end])]
        if name == "dask" and rest[:1] in (["scheduler"], ["worker"]):
            yield [name, *map(_filled, rest[:end])]


def _filled(word):
    """A word with its variables replaced: by their default where they have one."""
    return _SET.sub(lambda found: (found[2] or "").removeprefix(":").removeprefix("-").partition("?")[0] or "x", word)


def parsed(words):
    """What click makes of the words of a call; it raises where the program would refuse them."""
    command, rest = _program(words), words[1:] if words[0] != "dask" else words[2:]
    # Files of settings are made by earlier commands of a page.
    rest = [word for before, word in pairwise(["", *rest]) if "--config" not in (before, word)]
    while isinstance(command, click.Group) and rest and rest[0] in command.commands:
        command, rest = command.commands[rest[0]], rest[1:]
    try:
        context = command.make_context(" ".join(words[:2]), list(rest))
    except click.exceptions.Exit:  # --help was shown
        return {}
    arguments = [parameter.name for parameter in command.params if isinstance(parameter, click.Argument)]
    for word in [word for name in arguments for word in np.atleast_1d(context.params[name] or ())]:
        if str(word).startswith("-"):  # which Dask hands on to preloads
            raise click.NoSuchOption(word, ctx=context)
    return context.params


def _program(words):
    if words[0] == "manifold-observer":
        return cli
    from distributed.cli import dask_scheduler, dask_worker  # noqa: PLC0415

    return {"scheduler": dask_scheduler, "worker": dask_worker}[words[1]].main
