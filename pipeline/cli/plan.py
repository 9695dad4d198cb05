"""The command ``plan``: what a run will cost."""

from __future__ import annotations

import json
from typing import Any

import click

from ..clusters.config import ClusterConfig
from ..engine.config import EmbedConfig
from ..jobs.config import FeatureConfig, OpenConfig, RunConfig
from ..stores.address import Place
from .computing import chosen, computing, session
from .config_file import config_file
from .options import Sectioned, settings_of, taken
from .reading import Location


@settings_of(FeatureConfig, OpenConfig, EmbedConfig)
@config_file
@computing
@click.command("plan", cls=Sectioned)
@click.argument("paths", nargs=-1, required=True, type=Location(), metavar="RECORDING...")
def plan_command(paths: tuple[Place, ...], cluster: ClusterConfig, as_json: bool, **options: Any) -> None:
    """Predict method, memory and time of a run.

    The options are those of run. A few frames are timed on the cluster; nothing is written.
    """
    from ..jobs.run import count_frames, plan_run  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    config = RunConfig(taken(FeatureConfig, options), taken(OpenConfig, options), taken(EmbedConfig, options))
    cluster = chosen(cluster, lambda: count_frames(paths, config))
    with session(cluster):
        found = plan_run(paths, config)
    click.echo(json.dumps(found.as_dict()) if as_json else str(found))
