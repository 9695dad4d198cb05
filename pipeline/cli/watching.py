"""Options by which others watch a command: logs, metrics, a report; and the events of its beginning and end."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .outcome import outcome
from .saying import hushed, notice

if TYPE_CHECKING:
    from ..watch.counts import Counts

_PLACE = click.Path(path_type=Path)
WATCH_OPTIONS = (
    click.Option(
        ["--log-format"],
        type=click.Choice(["text", "json"]),
        help="Write a line for every event to standard error, with time, level, recording, stage, units done and "
        "seconds; in place of the progress bar.",
    ),
    click.Option(
        ["--log-file"], type=_PLACE, help="Add those lines to a file; standard error is then as without them."
    ),
    click.Option(
        ["--metrics-file"],
        type=_PLACE,
        metavar="FILE.prom",
        help="Keep a file of metrics for node_exporter's textfile collector; counters go on from the last run's.",
    ),
    click.Option(
        ["--metrics"],
        is_flag=True,
        help="Show the same metrics among those of the Dask scheduler, at /metrics of its dashboard.",
    ),
    click.Option(
        ["--performance-report"],
        type=_PLACE,
        metavar="FILE.html",
        help="Write Dask's report on tasks, workers and memory at the end.",
    ),
)
_ASKED = tuple(str(option.name) for option in WATCH_OPTIONS)
_KEY, _COUNTS = "manifold_observer.watched", "manifold_observer.counts"
# Where a context keeps a warning that the command shall give once its log is open.
TO_SAY = "manifold_observer.to_say"


class Told(click.exceptions.Exit):
    """The end of a command whose log has said why already."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(code)
        self.sentence = sentence


class Watched(NamedTuple):
    """How a command is watched."""

    log_format: str | None = None
    log_file: Path | None = None
    metrics_file: Path | None = None
    metrics: bool = False
    performance_report: Path | None = None
    name: str = ""
    """What the command is about."""

    @property
    def on_stderr(self) -> bool:
        """Whether standard error is the log's."""
        return self.log_format is not None and self.log_file is None

    @property
    def on_cluster(self) -> bool:
        """Whether something is asked of a Dask cluster."""
        return self.metrics or self.performance_report is not None


def watching(
    name: Callable[[dict[str, Any]], str],
    *,
    single: bool = True,
    settings: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    advice: Callable[[str], str] = str,
) -> Callable[[click.Command], click.Command]:
    """Decorator: give a command the options by which it is watched.

    Parameters
    ----------
    name
        What the command is about, from its options: the name of a recording, or of a corpus.
    single
        Whether it is about one recording; a corpus tells of each of its recordings itself.
    settings
        The same options from a file, by the command's other options; the command line takes precedence.
    advice
        How sentences that name keywords of Python are put for those who read the log.
    """

    def decorate(command: click.Command) -> click.Command:
        command.params += WATCH_OPTIONS
        read = settings or (lambda _: {})
        command.callback = _watched(command.callback or (lambda: None), name, single, read, advice)
        return command

    return decorate


def _watched(
    callback: Callable[..., Any],
    name: Callable[[dict[str, Any]], str],
    single: bool,
    settings: Callable[[dict[str, Any]], dict[str, Any]],
    advice: Callable[[str], str],
) -> Callable[..., Any]:
    """The same command, watched as it is asked for."""

    @functools.wraps(callback)
    def command(**options: Any) -> Any:
        given = {option: options.pop(option) for option in _ASKED}
        found = settings(options) | {option: value for option, value in given.items() if value}
        own = Watched(**found, name=name(options))
        if own == Watched(name=own.name):
            _say()
            return callback(**options)
        with ExitStack() as stack:
            counts = _open(own, stack, advice)
            click.get_current_context().meta.update({_KEY: own, _COUNTS: counts})
            return _told(functools.partial(callback, **options), own, single, counts)

    return command


def _open(own: Watched, stack: ExitStack, advice: Callable[[str], str]) -> Counts | None:
    """Begin logs and metrics; what they count, where a file of them is asked for."""
    from ..watch.lines import logged  # noqa: PLC0415 - for those who ask for it
    from ..watch.metrics import counted_in  # noqa: PLC0415
    from ..watch.report import check_report  # noqa: PLC0415

    if own.on_cluster and click.get_current_context().params.get("cluster") == "none":
        raise click.UsageError(
            "--performance-report and --metrics tell of a Dask cluster; name one by --cluster, or take --metrics-file."
        )
    if own.performance_report is not None:
        check_report(own.performance_report)
    if own.log_format is not None or own.log_file is not None:
        stack.enter_context(logged(own.log_file, own.log_format or "text", advice))
    if own.on_stderr:
        stack.enter_context(hushed())
    return None if own.metrics_file is None else stack.enter_context(counted_in(own.metrics_file))


def _told(callback: Callable[[], Any], own: Watched, single: bool, counts: Counts | None) -> Any:
    """Run a command, and tell how it begins and ends."""
    from ..jobs.events import Event, about, emit  # noqa: PLC0415

    before = time.perf_counter()
    code = 0
    with about(own.name if single else ""):
        try:
            if single:
                emit(Event("started", total=1))
            _say()
            return callback()
        except BaseException as error:
            code = code_of(error)
            if code and not isinstance(error, click.exceptions.Exit | SystemExit):
                sentence = outcome(error, click.get_current_context().command).sentence
                emit(Event("failed", sentence=sentence, seconds=time.perf_counter() - before))
                if own.on_stderr and not _debugged():
                    raise Told(sentence, code) from None
            raise
        finally:
            if counts is not None:
                counts.ended(code)


def _say() -> None:
    """Give the warning that waits for the log, if there is one."""
    sentence = click.get_current_context().meta.get(TO_SAY)
    if sentence is not None:
        from ..jobs.events import Event, emit  # noqa: PLC0415

        emit(Event("warned", sentence=sentence))
        notice(f"Warning: {sentence}")


def code_of(error: BaseException) -> int:
    """The exit code of a command that ends with an error.

    Examples
    --------
    >>> code_of(click.exceptions.Exit(3)), code_of(ValueError()), code_of(KeyboardInterrupt())
    (3, 1, 130)
    """
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    return outcome(error).code


def _debugged() -> bool:
    """Whether the full traceback is asked for."""
    return bool((click.get_current_context().find_root().obj or {}).get("debug"))


def result_name(out: Any) -> str:
    """What a recording is called in logs and metrics: as its result is.

    Examples
    --------
    >>> result_name("results/night.zarr"), result_name("s3://results/night.zarr")
    ('night', 'night')
    """
    return PurePosixPath(str(out)).stem


def standing(recordings: dict[str, int]) -> None:
    """Tell the metrics of the running command how the recordings of its corpus stand.

    Parameters
    ----------
    recordings
        How many are done, have failed, and so on.
    """
    counts = click.get_current_context().meta.get(_COUNTS)
    if counts is not None:
        counts.stand(recordings)


def watched_here() -> Watched:
    """How the command that runs is watched."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.meta.get(_KEY)
    return found if isinstance(found, Watched) else Watched()


@contextmanager
def watched_cluster(client: Any = None) -> Iterator[None]:
    """Watch what the cluster of the running command does within the block, as it was asked for.

    Parameters
    ----------
    client
        Its client; None where there is no cluster.
    """
    own = watched_here()
    if not own.on_cluster:
        yield
        return
    if client is None:  # it was not asked for, but little is computed faster here
        notice("Warning: this computes without a Dask cluster, of which --performance-report and --metrics would tell.")
        yield
        return
    from ..watch.report import reported  # noqa: PLC0415

    with ExitStack() as stack:
        if own.metrics:
            stack.enter_context(_at_scheduler(client, own.name))
        if own.performance_report is not None:
            path = click.get_current_context().command_path
            stack.enter_context(reported(client, own.performance_report, f"{path} ... {own.name}"))
        yield


@contextmanager
def _at_scheduler(client: Any, name: str) -> Iterator[None]:
    """Count at the scheduler."""
    from ..watch.metrics import counted_at  # noqa: PLC0415

    with counted_at(client, name) as counts:
        try:
            yield
        except BaseException as error:
            counts.ended(code_of(error))
            raise
        counts.ended(3 if counts.failed else 0)
