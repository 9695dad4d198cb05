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
from ..graph.loading import loading
from .config_file import CLUSTER_OPTIONS
from .options import settings_among, settings_of
from .saying import AS_JSON, above, is_aloud, is_quiet, is_verbose, notice
from .watching import watched_cluster, watched_here

if TYPE_CHECKING:
    from ..jobs.progress import Stages

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
        config = cluster_given(options)
        for own in settings_among(click.get_current_context().command, ClusterConfig):
            options.pop(str(own.name))
        return function(cluster=config, **options)

    return called


def cluster_given(options: dict[str, Any], base: ClusterConfig | None = None) -> ClusterConfig:
    """The cluster of a file with what the command line says; of one of another kind, nothing of the file counts.

    Parameters
    ----------
    options
        Values of the options of the command that runs.
    base
        The cluster of the file; by default that of the file that ``--config`` names.

    Raises
    ------
    click.UsageError
        Settings that this kind of cluster does not have, or cannot have.
    """
    try:
        before = _cluster_of_config(options) if base is None else base
        given = _settings_from(ParameterSource.COMMANDLINE, options)
        kind = given.get("kind", before.kind)
        config = replace(before if kind == before.kind else ClusterConfig(kind), **given)
        config.check_applies()
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return config


def _cluster_of_config(options: dict[str, Any]) -> ClusterConfig:
    """The cluster that the file of ``--config`` names, else the one of the command."""
    context = click.get_current_context()
    usual = next(own.default for own in settings_among(context.command, ClusterConfig) if own.name == "cluster")
    named = (context.default_map or {}).get("cluster", usual)  # also where the command line names another
    config = ClusterConfig(**_settings_from(ParameterSource.DEFAULT_MAP, options) | {"kind": named})
    keywords = context.meta.get(CLUSTER_OPTIONS)
    return config if keywords is None or config.family != "class" else config.with_keywords(keywords)


def _settings_from(source: ParameterSource, options: dict[str, Any]) -> dict[str, Any]:
    """Settings of the cluster that come from a file, or from the command line."""
    context = click.get_current_context()
    return {
        str(getattr(own, "keyword", own.name)): options[str(own.name)]
        for own in settings_among(context.command, ClusterConfig)
        if context.get_parameter_source(str(own.name)) == source
    }


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
    """Run a block on a cluster, or in this process, timed, with a bar for the stage that runs on a terminal."""
    with timed(bar=bar) as stages, ExitStack() as stack:
        with stages("cluster"):
            stack.enter_context(connected(cluster))
        yield stages


@contextmanager
def timed(*, bar: bool = True, brief: bool = False) -> Iterator[Stages]:
    """Time a block, with a bar for the stage that runs on a terminal; elsewhere a line a stage for who asks for it.

    Parameters
    ----------
    bar
        Whether anything is shown.
    brief
        Whether stages leave no line when they end, as where the same ones come again and again.
    """
    from ..jobs.bars import Bars, Lines  # noqa: PLC0415
    from ..jobs.progress import Stages  # noqa: PLC0415

    lines = Lines(sys.stderr, brief=brief)
    if not bar or not is_aloud() or is_quiet() or not (lines.live or is_verbose()):
        stages = Stages()
        with stages("total"):
            yield stages
        return
    stages = Stages(Bars(lines), live=lines.live)
    with above(lines.clear), stages("total"), stages.bar():
        yield stages


def is_watched_by_people() -> bool:
    """Whether somebody sees what a command says before it has its answer: on a terminal, or who asks for it."""
    return is_verbose() or (is_aloud() and not is_quiet() and sys.stderr.isatty())


@contextmanager
def connected(cluster: ClusterConfig) -> Iterator[None]:
    """Compute on a cluster for the length of a block, or in this process."""
    import dask  # noqa: PLC0415

    from ..graph.client import in_threads  # noqa: PLC0415

    if cluster.kind == "none":
        own = {"manifold-observer.memory": cluster.memory} if cluster.memory is not None else {}
        with dask.config.set(own), in_threads(), watched_cluster():
            yield
        return
    with loading():
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
