"""The command ``tune``: which settings suit recordings, as a file for ``run --config``."""

from __future__ import annotations

import shlex
from typing import Any

import click

from ..engine.config import EmbedConfig
from ..jobs.config import FeatureConfig, OpenConfig, RunConfig
from ..stores.address import Place
from .computing import timed
from .config_file import config_file
from .naming import named_after
from .options import settings_of, taken
from .outcome import SIGNALS
from .reading import Location
from .saying import AS_JSON, answer
from .teaching import Taught
from .warned import said

EXAMPLES = (
    "manifold-observer tune song.wav --frame 23ms",
    "manifold-observer tune emg.txt emg.toml --features log_rms --frame 100ms --labels class --time-unit ms",
    "manifold-observer run emg.txt --config emg.toml  # with what it found",
)


@settings_of(FeatureConfig, OpenConfig, EmbedConfig)
@config_file
@click.command("tune", cls=Taught, examples=EXAMPLES, codes=SIGNALS, params=[AS_JSON])
@click.argument("paths", nargs=-1, required=True, type=Location(), metavar="RECORDING... [OUT.toml]")
def tune_command(paths: tuple[Place, ...], as_json: bool, **options: Any) -> None:
    """Find settings that suit recordings, without any label.

    Tries windows and scales on a sample of the frames, in this process, and takes those whose coordinates foretell most
    of the features a few frames later. OUT.toml is written for run --config, which repeats them; by default it is
    called after the first recording, and lies in the current folder.
    """
    from ..jobs.tuning import tune_run  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    recordings, out = _split(paths)
    config = RunConfig(taken(FeatureConfig, options), taken(OpenConfig, options), taken(EmbedConfig, options))
    with timed(brief=True) as stages:
        found, text = tune_run(recordings, config, out)
    tried = {name: {"foretold": one.share, "by_chance": one.by_chance} for name, one in found.said.items()}
    summary = {"out": str(out), "chosen": found.name, "candidates": tried, "seconds": stages.seconds["total"]}
    written = f"written to {out}"
    told = f"{found}\n{written}:\n{text.rstrip()}\n\nNext:\n  {_next(recordings, out)}"
    answer(as_json, summary | {"warnings": said()}, lambda: told, lambda: written)


def _next(recordings: tuple[Place, ...], out: Place) -> str:
    """The command that uses what was found; several recordings need a name for their result."""
    paths = [str(path) for path in recordings]
    named = [str(named_after(recordings[0], ".zarr"))] if len(paths) > 1 else []
    return shlex.join(["manifold-observer", "run", *paths, *named, "--config", str(out), "--report"])


def _split(paths: tuple[Place, ...]) -> tuple[tuple[Place, ...], Place]:
    """The recordings, and the file to write, which alone ends in .toml."""
    if paths[-1].suffix != ".toml":
        return paths, named_after(paths[0], ".toml")
    if len(paths) == 1:
        raise click.UsageError("Name at least one recording before the file to write.")
    return paths[:-1], paths[-1]
