"""Where a command computes, and how it reports: its options, and the session that they ask for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..clusters.config import ClusterConfig
from .config_file import CLUSTER_OPTIONS
from .options import settings_among, settings_of, taken
from .warned import notice
from .watching import watched_cluster, watched_here

if TYPE_CHECKING:
    from ..jobs.progress import Stages

AS_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object on standard output.")
_OVERWRITE = click.Option(["--overwrite"], is_flag=True, help="Replace an earlier result.")


def computing(command: click.Command) -> click.Command:
    """Give a command the options that say where it computes and how it reports.

    Its function gets them as one :class:`ClusterConfig`, called ``cluster``.
    """
    settings_of(ClusterConfig)(command)
    command.params.append(AS_JSON)
    command.callback = _with_cluster(command.callback)
    return command


def writing(command: click.Command) -> click.Command:
    """Give a command those options, and ``--overwrite``."""
    command.params.append(_OVERWRITE)
    return computing(command)


def _with_cluster(function: Any) -> Callable[..., Any]:
    """A command's function that is given its cluster in one piece."""

    @wraps(function)
    def called(**options: Any) -> Any:
        try:
            config = taken(ClusterConfig, _of_this_kind(options))
            keywords = click.get_current_context().meta.get(CLUSTER_OPTIONS)
            config = config if keywords is None or config.family != "class" else config.with_keywords(keywords)
            config.check_applies()
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        return function(cluster=config, **options)

    return called


def _of_this_kind(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a command; those of a file are for the cluster that it names, and not for another one."""
    context = click.get_current_context()
    named = (context.default_map or {}).get("cluster")
    if named not in (None, options["cluster"]):
        for own in settings_among(context.command, ClusterConfig):
            if context.get_parameter_source(str(own.name)) == ParameterSource.DEFAULT_MAP:
                options[str(own.name)] = own.default
    return options


def given_over(base: ClusterConfig, options: dict[str, Any]) -> ClusterConfig:
    """The cluster of a file with what the command line says; of one of another kind, nothing of the file counts."""
    context = click.get_current_context()
    given = {
        str(getattr(own, "keyword", own.name)): options[str(own.name)]
        for own in settings_among(context.command, ClusterConfig)
        if context.get_parameter_source(str(own.name)) == ParameterSource.COMMANDLINE
    }
    kind = given.get("kind", base.kind)
    try:
        config = replace(base if kind == base.kind else ClusterConfig(kind), **given)
        config.check_applies()
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return config


def paying(n_frames: int) -> str:
    """The cluster that pays: none as long as the kernel is small enough for this process.

    Examples
    --------
    >>> paying(1_000), paying(100_000)
    ('none', 'local')
    """
    from ..engine.memory import LOCAL_BYTES, tile_bytes  # noqa: PLC0415 - Dask starts slowly; --help need not wait

    return "none" if tile_bytes(n_frames, 4) <= LOCAL_BYTES else "local"


def chosen(cluster: ClusterConfig, n_frames: Callable[[], int]) -> ClusterConfig:
    """The cluster; where the choice was left open, workers that are asked for, else whatever pays.

    Examples
    --------
    >>> chosen(ClusterConfig(memory=2**32), lambda: 1_000) == ClusterConfig("none", memory=2**32)
    True
    >>> chosen(ClusterConfig(workers=2), lambda: 1_000) == ClusterConfig("local", workers=2)
    True
    """
    if cluster.kind != "auto":
        return cluster
    return replace(cluster, kind="local" if asks_for_workers(cluster) else paying(n_frames()))


def asks_for_workers(cluster: ClusterConfig) -> bool:
    """Whether the command is asked for something that only a cluster has: workers, a dashboard, their metrics."""
    return cluster.workers is not None or cluster.dashboard or watched_here().on_cluster


@contextmanager
def session(cluster: ClusterConfig, *, bar: bool = True) -> Iterator[Stages]:
    """Run a block on a cluster, or in this process, timed, with a progress bar where there is a terminal."""
    from ..jobs.progress import Stages  # noqa: PLC0415

    stages = Stages(sys.stderr if bar and not watched_here().on_stderr else None)
    with stages("total"), stages.bar(), ExitStack() as stack:
        with stages("cluster"):
            stack.enter_context(connected(cluster))
        yield stages


@contextmanager
def connected(cluster: ClusterConfig) -> Iterator[None]:
    """Compute on a cluster for the length of a block, or in this process."""
    import dask  # noqa: PLC0415

    from ..graph.compute import in_threads  # noqa: PLC0415

    if cluster.kind == "none":
        own = {"manifold-observer.memory": cluster.memory} if cluster.memory is not None else {}
        with dask.config.set(own), in_threads(), watched_cluster():
            yield
        return
    from ..clusters.cluster import connect  # noqa: PLC0415

    where = replace(cluster, kind="local") if cluster.kind == "auto" else cluster
    with connect(where, tell=_tell) as client, watched_cluster(client):
        yield


def _tell(line: str) -> None:
    """Say on standard error, or in the log that is there, what is waited for."""
    from ..jobs.events import Event, emit  # noqa: PLC0415

    if watched_here().on_stderr:
        emit(Event("warned", sentence=line))
    else:
        notice(line)
