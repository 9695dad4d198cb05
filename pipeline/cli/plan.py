"""The command ``plan``: what a run will cost."""

from __future__ import annotations

from typing import Any

import click

from ..clusters.config import ClusterConfig
from ..engine.config import EmbedConfig
from ..jobs.config import FeatureConfig, OpenConfig, RunConfig
from ..stores.address import Place
from .computing import chosen, computing, session
from .config_file import config_file
from .cost import in_a_line
from .options import settings_of, taken
from .outcome import CLUSTER_CODES
from .reading import Location
from .saying import answer
from .teaching import Taught

EXAMPLES = (
    "manifold-observer plan night.wav --frame 23ms",
    "manifold-observer plan night.wav --frame 23ms --workers 8 --memory 64GiB",
)


@settings_of(FeatureConfig, OpenConfig, EmbedConfig)
@config_file
@computing
@click.command("plan", cls=Taught, examples=EXAMPLES, codes=CLUSTER_CODES)
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
    answer(as_json, found.as_dict(), lambda: str(found), lambda: in_a_line(found, cluster))
