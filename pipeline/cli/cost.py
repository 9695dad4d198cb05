"""What a run will cost, said before it begins to whoever is watching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..clusters.config import ClusterConfig
from ..graph.durations import duration
from ..stores.address import Place
from .computing import is_watched_by_people
from .saying import is_verbose, notice

if TYPE_CHECKING:
    from ..embedding.plan import Plan
    from ..jobs.config import RunConfig
    from ..jobs.progress import Stages

# Frames that take seconds, about as long as it takes to time some of them.
_FEW = 6_000


def foretell(
    recordings: Sequence[Place], config: RunConfig, cluster: ClusterConfig, count: Callable[[], int], stages: Stages
) -> None:
    """Say how many frames there are, where they are computed, and what that will take."""
    if not is_watched_by_people():
        return
    n_frames = count()
    if n_frames <= _FEW and not is_verbose():
        notice(f"{n_frames:,} frames to compute {_where(cluster, 'workers')}: a few seconds")
        return
    from ..jobs.run import plan_run  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    with stages("plan"):
        plan = plan_run(recordings, config)
    notice(in_a_line(plan, cluster))
    if is_verbose():
        notice(str(plan))


def in_a_line(plan: Plan, cluster: ClusterConfig) -> str:
    """A plan in a line.

    Parameters
    ----------
    plan
        As :func:`plan_run` gives it.
    cluster
        Where it is computed.
    """
    from ..graph.limits import gib  # noqa: PLC0415

    here = f"{gib(plan.peak_caller_bytes)} of memory here"
    each = "" if cluster.kind == "none" else f" and {gib(plan.peak_worker_bytes)} in each worker"
    workers = "1 worker" if plan.n_workers == 1 else f"{plan.n_workers} workers"
    what = f"{plan.n_frames:,} frames to compute {_where(cluster, workers)}"
    return f"{what}: about {duration(plan.seconds)}, at most {here}{each}"


def _where(cluster: ClusterConfig, workers: str) -> str:
    """Where it is computed."""
    if cluster.kind == "none":
        return "in this process"
    return f"by {workers} of this machine" if cluster.kind == "local" else f"by {workers} on {cluster.kind}"
