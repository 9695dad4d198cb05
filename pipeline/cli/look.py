"""The command ``look``: what is in a file, what opening it asks, and the command that comes next."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING, Any

import click

from ..frames.opening import OpenConfig
from ..stores.address import Place
from .advice import as_option
from .look_text import text_of
from .options import Sectioned, settings_of, taken
from .outcome import outcome
from .reading import Location
from .run import run_command

if TYPE_CHECKING:
    from ..look.looking import Look


@settings_of(OpenConfig)
@click.command("look", cls=Sectioned)
@click.argument("paths", nargs=-1, required=True, type=Location(), metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
@click.pass_context
def look_command(context: click.Context, /, paths: tuple[Place, ...], as_json: bool, **options: Any) -> None:
    """Look at recordings: what is in them, what opening them asks, and which command comes next.

    Headers and at most a few megabytes of each FILE are read, however long it is; nothing is written. Options of
    opening that are known already may be given, and stand in the command that is suggested.
    """
    config = taken(OpenConfig, options)
    found = [_looked(context, path, config.options()) for path in paths]
    if as_json:
        click.echo(json.dumps({"files": found}))
    failed = [one for one in found if one["error"] is not None]
    if not as_json:
        click.echo("\n\n".join(text_of(one) for one in found if one["error"] is None))
    for one in failed:
        click.echo(f"Error: {one['error']}", err=True)
    context.exit(1 if failed else 0)


def _looked(context: click.Context, path: Place, given: dict[str, Any]) -> dict[str, Any]:
    """One file, for machines; what could not be opened has its sentence."""
    from ..look.looking import look  # noqa: PLC0415 - xarray starts slowly; --help need not wait for it

    try:
        found = look(path, given)
    except (OSError, ValueError, ImportError) as error:
        return _failed(str(path), outcome(error, run_command).sentence)
    if found.glance is None or found.suggestion is None:
        return _failed(str(path), _spelt(found.questions[-1].sentence))
    return _as_dict(found, path, given)


def _failed(path: str, sentence: str) -> dict[str, Any]:
    """A file that was not opened."""
    return {"file": path, "error": sentence}


def _as_dict(found: Look, path: Place, given: dict[str, Any]) -> dict[str, Any]:
    """What a look found."""
    assert found.glance is not None
    assert found.suggestion is not None
    words = _words(found, given)
    quoted = shlex.quote(f"./{path}" if str(path).startswith("-") else str(path))
    return {
        "file": str(path),
        "error": None,
        "kind": _kind(path),
        "bytes": found.n_bytes,
        **found.glance.as_dict(),
        "questions": [_question(one, found.options) for one in found.questions],
        "warnings": [_spelt(sentence) for sentence in found.warnings],
        "features": found.suggestion.features,
        "frame": found.suggestion.frame,
        "why": found.suggestion.why,
        "next": f"manifold-observer run {quoted} {words}",
        "tune": f"manifold-observer tune {quoted} {words}",
    }


def _words(found: Look, given: dict[str, Any]) -> str:
    """Options of the command that comes next."""
    assert found.suggestion is not None
    words = [f"--features {found.suggestion.features}"]
    if found.suggestion.frame is not None:
        words.append(f"--frame {found.suggestion.frame}")
    words += [as_option(run_command, name, value) for name, value in (given | found.options).items()]
    return " ".join(words)


def _question(one: Any, taken_options: dict[str, Any]) -> dict[str, Any]:
    """A question, with its answers as options."""
    return {
        "question": _spelt(one.sentence),
        "taken": None if one.keyword is None else as_option(run_command, one.keyword, one.value),
        "answers": [as_option(run_command, name, value) for name, value in one.ways],
    }


def _spelt(sentence: str) -> str:
    """A sentence with options of the command."""
    return outcome(ValueError(sentence), run_command).sentence


def _kind(path: Place) -> str:
    """What the file is, by its first bytes."""
    from manifold_observer.datasets.readers.sniff import TEXT, describe  # noqa: PLC0415

    if not isinstance(path, os.PathLike):
        return "at an address"
    words = describe(path)
    return "a text table" if words == TEXT else words
