"""The command ``tune``: which settings suit recordings, as a file for ``run --config``."""

from __future__ import annotations

import json
from typing import Any

import click

from ..engine.config import EmbedConfig
from ..jobs.config import FeatureConfig, OpenConfig, RunConfig
from ..stores.address import Place
from .config_file import config_file
from .naming import named_after
from .options import Sectioned, settings_of, taken
from .reading import Location


@settings_of(FeatureConfig, OpenConfig, EmbedConfig)
@config_file
@click.command("tune", cls=Sectioned)
@click.argument("paths", nargs=-1, required=True, type=Location(), metavar="RECORDING... [OUT.toml]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def tune_command(paths: tuple[Place, ...], as_json: bool, **options: Any) -> None:
    """Find settings that suit recordings, without any label.

    Tries windows and scales on a sample of the frames, in this process, and takes those whose coordinates foretell most
    of the features a few frames later. OUT.toml is written for run --config, which repeats them; by default it is
    called after the first recording, and lies in the current folder.
    """
    from ..jobs.tuning import tune_run  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    recordings, out = _split(paths)
    config = RunConfig(taken(FeatureConfig, options), taken(OpenConfig, options), taken(EmbedConfig, options))
    found, text = tune_run(recordings, config, out)
    if as_json:
        said = {name: {"foretold": one.share, "by_chance": one.by_chance} for name, one in found.said.items()}
        click.echo(json.dumps({"out": str(out), "chosen": found.name, "candidates": said}))
    else:
        click.echo(f"{found}\nwritten to {out}:\n{text.rstrip()}")


def _split(paths: tuple[Place, ...]) -> tuple[tuple[Place, ...], Place]:
    """The recordings, and the file to write, which alone ends in .toml."""
    if paths[-1].suffix != ".toml":
        return paths, named_after(paths[0], ".toml")
    if len(paths) == 1:
        raise click.UsageError("Name at least one recording before the file to write.")
    return paths[:-1], paths[-1]
