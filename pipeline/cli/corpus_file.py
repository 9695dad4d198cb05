"""The TOML file of a corpus: read into its settings, and written with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import click

from ..corpus.config import CorpusConfig
from ..corpus.map_config import MapConfig
from ..jobs.config import RunConfig
from .config_file import read_toml, texts_of
from .options import settings_of, taken
from .reading import ByteCount, Whole

_COMPUTING = ("cluster", "workers", "memory")
# A section that another part of the program reads.
_OTHERS = ("cluster",)


class CorpusFile(NamedTuple):
    """What a corpus file says: the corpus, where it computes, and the sections that others read."""

    config: CorpusConfig
    cluster: str
    workers: int | None
    memory: int | None
    sections: dict[str, Any]


@settings_of(RunConfig)
@click.command("[run]")
def _run_section(**options: Any) -> RunConfig:
    """Read the settings of a run."""
    return taken(RunConfig, options)


@settings_of(MapConfig)
@click.command("[map]")
def _map_section(**options: Any) -> MapConfig:
    """Read the settings of a map."""
    return taken(MapConfig, options)


@click.command("[corpus]")
@click.option("--at-once", type=Whole(1))
@click.option("--retries", type=Whole(0))
@click.option("--backoff", type=float)
@click.option("--takeover", type=float)
@click.option("--keep", type=Whole(1))
@click.option("--keep-days", type=float)
@click.option("--names")
@click.option("--new-version")
@click.option("--output")
@click.option("--cluster", default="auto")
@click.option("--workers", type=Whole(1))
@click.option("--memory", type=ByteCount())
def _corpus_section(**options: Any) -> dict[str, Any]:
    """Read the settings of a corpus."""
    return {name: value for name, value in options.items() if value is not None}


def read_corpus(path: Path) -> CorpusFile:
    """Read the TOML file of a corpus.

    Raises
    ------
    click.BadParameter
        It is no TOML, or has settings that do not exist, or values that cannot be.
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
    corpus = {name: run.pop(name) for name in _COMPUTING if name in run} | corpus
    own = _read(path, _corpus_section, corpus)
    config = CorpusConfig(
        inputs=inputs,
        run=_read(path, _run_section, run),
        shared=_read(path, _map_section, sections["map"]) if "map" in sections else None,
        folder=str(path.absolute().parent),
        **{name: value for name, value in own.items() if name not in _COMPUTING},
    )
    others = {name: sections[name] for name in _OTHERS if name in sections}
    return CorpusFile(config, own["cluster"], own.get("workers"), own.get("memory"), others)


def _check_sections(path: Path, sections: dict[str, Any]) -> None:
    """Refuse sections that do not exist, and a file without recordings."""
    unknown = sorted(set(sections) - {"corpus", "run", "map", *_OTHERS})
    if unknown:
        raise click.BadParameter(
            f"{path} has unknown sections: {', '.join(unknown)}. Known are [corpus], [run] and [map]."
        )
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


def corpus_text(inputs: Iterable[str], output: str, run: RunConfig) -> str:
    """The text of a corpus file: what is set, and in comments what else may be."""
    import json  # noqa: PLC0415

    from .options import documented  # noqa: PLC0415

    texts = documented(CorpusConfig)
    lines = ["# A corpus for 'manifold-observer corpus run'. Relative paths start at this file.", "[corpus]"]
    lines += [f"inputs = {json.dumps(list(inputs))}", f"output = {json.dumps(output)}", ""]
    for member in fields(CorpusConfig):
        if member.name in ("inputs", "output", "run", "folder", "shared"):
            continue
        usual = "" if member.default is None else json.dumps(member.default)
        lines += [f"# {texts.get(member.name, '')}", f"# {member.name.replace('_', '-')} = {usual}".rstrip()]
    lines += ['# Where to compute: "auto", "local", "none", or the address of a scheduler.', '# cluster = "auto"', ""]
    lines += ["# One map for all recordings, so that their states share coordinates: take the mark off the next line."]
    lines += ["# [map]", ""]
    lines += ["# Settings of 'manifold-observer run', which lists them all with --help.", "[run]"]
    return "\n".join(lines) + "\n" + run.to_toml()
