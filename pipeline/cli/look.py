"""The command ``look``: what is in a file, what opening it asks, and the command that comes next."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..frames.opening import OpenConfig
from ..graph.loading import loading
from ..stores.address import Place
from .advice import as_option
from .look_text import text_of
from .options import settings_of, taken
from .outcome import outcome
from .reading import Location
from .run import run_command
from .saying import AS_JSON, answer, printable
from .teaching import Taught

if TYPE_CHECKING:
    from ..look.looking import Look


EXAMPLES = (
    "manifold-observer look song.wav",
    "manifold-observer look emg.txt --labels class --time-unit ms",
    "manifold-observer look *.edf --json",
)
# Entries of a folder that are read to name one of them.
_MOST = 1000
# Of these, files of which the first bytes are read.
_FEW = 50
_NEVER = ("an HTML page", "a directory", "a FIFO, a socket or a device")


@settings_of(OpenConfig)
@click.command("look", cls=Taught, examples=EXAMPLES, params=[AS_JSON])
@click.argument("paths", nargs=-1, required=True, type=Location(), metavar="FILE...")
@click.pass_context
def look_command(context: click.Context, /, paths: tuple[Place, ...], as_json: bool, **options: Any) -> None:
    """Look at recordings: what is in them, what opening them asks, and which command comes next.

    Headers and at most a few megabytes of each FILE are read, however long it is; nothing is written. Options of
    opening that are known already may be given, and stand in the command that is suggested.
    """
    config = taken(OpenConfig, options)
    found = [_looked(context, path, config.options()) for path in paths]
    opened = [one for one in found if one["error"] is None]
    failed = [one for one in found if one["error"] is not None]
    lines = "\n".join(one["next"] for one in opened)
    answer(as_json, {"files": found}, lambda: "\n\n".join(map(text_of, opened)), lambda: lines)
    for one in failed:
        click.echo(printable(f"Error: {one['error']}"), err=True)
    context.exit(1 if failed else 0)


def _looked(context: click.Context, path: Place, given: dict[str, Any]) -> dict[str, Any]:
    """One file, for machines; what could not be opened has its sentence."""
    with loading():  # xarray starts slowly; --help need not wait for it
        from ..look.looking import look  # noqa: PLC0415

    if (refused := _no_recording(path)) is not None:
        return _failed(str(path), refused)
    try:
        found = look(path, given)
    except (OSError, ValueError, ImportError) as error:
        return _failed(str(path), outcome(error, run_command).sentence)
    if found.glance is None or found.suggestion is None:
        return _failed(str(path), _spelt(found.questions[-1].sentence))
    return _as_dict(found, path, given)


def _no_recording(path: Place) -> str | None:
    """Why a place cannot be looked at, where another command or another name is meant."""
    if not isinstance(path, Path):
        return None
    if str(path) == "-" and not path.exists():
        return "look: a recording must be a file; got standard input, which cannot be read twice. Copy it into a file."
    if not path.is_dir() or any((path / name).exists() for name in (".zgroup", ".zarray", ".zmetadata")):
        return None
    from ..jobs.manifest import MARK, attributes  # noqa: PLC0415 - slow to import; --help need not wait for it

    if MARK in attributes(path) or any(MARK in attributes(one) for one in path.glob("000000.zarr")):
        there = shlex.quote(str(path))
        return f"look: {path} is a result, not a recording. 'manifold-observer info {there}' says what is in it."
    if (path / "zarr.json").exists():
        return None
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry, _ in zip(entries, range(_MOST), strict=False))
    such = f", such as {_likeliest(path, names)}" if names else "; this one is empty"
    return f"look: {path} is a folder, not a Zarr store. Name a recording in it{such}."


def _likeliest(folder: Path, names: list[str]) -> Path:
    """Of what is in a folder, the first that may be a recording, else the first of all."""
    from manifold_observer.datasets.readers.sniff import EMPTY, TEXT, UNKNOWN, describe  # noqa: PLC0415

    from ..jobs.manifest import MARK, attributes  # noqa: PLC0415 - slow to import; --help need not wait for it

    shown = [folder / name for name in names if not name.startswith(".")] or [folder / names[0]]
    kinds = {path: describe(path) for path in shown[:_FEW] if os.access(path, os.R_OK)}
    known = [path for path, kind in kinds.items() if kind not in (EMPTY, TEXT, UNKNOWN, *_NEVER)]
    known = [path for path in known if not path.is_dir() or MARK not in attributes(path)]
    texts = [path for path, kind in kinds.items() if kind == TEXT]
    return [*known, *texts, *shown][0]


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
        "next": f"manifold-observer run {quoted} {words} --report",
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
