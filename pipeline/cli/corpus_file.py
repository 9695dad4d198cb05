"""The TOML file of a corpus: read into its settings, and written with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import click

from ..clusters.config import ClusterConfig
from ..corpus.config import CorpusConfig
from ..corpus.map_config import MapConfig
from ..jobs.config import RunConfig
from .config_file import read_toml, texts_of
from .options import Config, settings_of, taken
from .watching import WATCH_OPTIONS

_COMPUTING = ("cluster", "workers", "memory")
# Of CorpusConfig: a list of patterns, sections of their own, and where the file is.
_NO_OPTIONS = ("inputs", "run", "shared", "folder")
_SECTIONS = ("corpus", "run", "cluster", "map", "watch")


class CorpusFile(NamedTuple):
    """What a corpus file says: the corpus, and where it computes."""

    config: CorpusConfig
    cluster: ClusterConfig


def _section(name: str, kind: type[Any], leaving: Collection[str] = ()) -> click.Command:
    """A section as a command, whose options are its settings; made when it is read, for every command imports this."""
    return settings_of(kind, leaving=leaving)(click.Command(f"[{name}]", callback=lambda **values: values))


def read_corpus(path: Path) -> CorpusFile:
    """Read the TOML file of a corpus.

    Raises
    ------
    click.BadParameter
        It is not TOML, or has settings that do not exist, or values that cannot be.
    """
    sections = read_toml(path, "CORPUS.toml")
    _check_sections(path, sections)
    corpus, run = dict(sections["corpus"]), dict(sections.get("run", {}))
    inputs = corpus.pop("inputs", None)
    if not isinstance(inputs, list) or not inputs or not all(isinstance(one, str) for one in inputs):
        raise click.BadParameter(
            f'{path}: inputs in [corpus] must be a list of patterns, such as ["in/*.npy"]; got {inputs!r}.'
        )
    # Where to compute may stand among the settings of a run, as in the file of run --config.
    where = {name: part.pop(name) for part in (run, corpus) for name in _COMPUTING if name in part}
    own = _read(path, _section("corpus", CorpusConfig, _NO_OPTIONS), corpus)
    config = CorpusConfig(
        inputs=inputs,
        run=_config(path, "run", RunConfig, run),
        shared=_config(path, "map", MapConfig, sections["map"]) if "map" in sections else None,
        folder=str(path.absolute().parent),
        **own,
    )
    return CorpusFile(config, _cluster(path, where | sections.get("cluster", {})))


def watch_settings(options: dict[str, Any]) -> dict[str, Any]:
    """How a corpus is watched, by the section [watch] of its file; paths there start at the file."""
    path = options["file"]
    sections = read_toml(path, "CORPUS.toml")
    _check_sections(path, sections)
    section = click.Command("[watch]", params=list(WATCH_OPTIONS), callback=lambda **values: values)
    values: dict[str, Any] = _read(path, section, sections.get("watch", {}))
    return {name: path.parent / value if isinstance(value, Path) else value for name, value in values.items()}


def _cluster(path: Path, table: dict[str, Any]) -> ClusterConfig:
    """Where to compute: whichever way is faster, where nothing is said."""
    kind = table.pop("cluster", "auto")
    try:
        config = ClusterConfig.of_table({"kind": kind} | table)
        config.check_applies()
    except ValueError as error:
        raise click.BadParameter(f"{path}: {error}") from None
    return config


def _check_sections(path: Path, sections: dict[str, Any]) -> None:
    """Refuse sections that do not exist, and a file without recordings."""
    unknown = sorted(set(sections) - set(_SECTIONS))
    if unknown:
        known = ", ".join(f"[{name}]" for name in _SECTIONS)
        raise click.BadParameter(f"{path} has unknown sections: {', '.join(unknown)}. Known are {known}.")
    wrong = [name for name, value in sections.items() if not isinstance(value, dict)]
    if wrong or "corpus" not in sections:
        raise click.BadParameter(
            f"{path} must have a section [corpus] with inputs and output. 'manifold-observer corpus init' writes one."
        )


def _read(path: Path, section: click.Command, values: dict[str, Any]) -> Any:
    """Values of a section, read as the options of the command line are."""
    texts = texts_of(path, section.params, values, f" in {section.name}")
    try:
        with section.make_context(str(section.name), [], default_map=texts) as context:
            return section.invoke(context)
    except click.BadParameter as error:
        raise click.BadParameter(f"{path}, {section.name}: {error.format_message()}") from None


def _config(path: Path, name: str, kind: type[Config], values: dict[str, Any]) -> Config:
    """The settings of a section that has those of a dataclass."""
    return taken(kind, _read(path, _section(name, kind), values))


def corpus_text(inputs: Iterable[str], output: str, run: RunConfig) -> str:
    """The text of a corpus file: what is set, and in comments what else may be."""
    import json  # noqa: PLC0415

    from .options import documented  # noqa: PLC0415

    texts = documented(CorpusConfig)
    lines = ["# A corpus for 'manifold-observer corpus run'. Relative paths start at this file.", "[corpus]"]
    lines += [f"inputs = {json.dumps(list(inputs))}", f"output = {json.dumps(output)}", ""]
    for member in fields(CorpusConfig):
        if member.name in (*_NO_OPTIONS, "output"):
            continue
        usual = "" if member.default is None else json.dumps(member.default)
        lines += [f"# {texts.get(member.name, '')}", f"# {member.name.replace('_', '-')} = {usual}".rstrip()]
    lines += [
        "",
        "# Where to compute: whichever of this process and this machine's cores is faster, or as --cluster says.",
    ]
    lines += ["# [cluster]", '# kind = "slurm"', ""]
    lines += ["# One map for all recordings, so that their states share coordinates: take the mark off the next line."]
    lines += ["# [map]", ""]
    lines += ["# Settings of 'manifold-observer run', which lists them all with --help.", "[run]"]
    return "\n".join(lines) + "\n" + run.to_toml()
