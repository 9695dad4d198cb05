"""The commands ``corpus``: many recordings on a schedule."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..clusters.config import ClusterConfig
from ..graph.durations import duration, size
from ..jobs.config import RunConfig
from ..jobs.resuming import RESUMES
from .advice import in_options
from .computing import asks_for_workers, cluster_given, connected
from .config_file import config_file
from .corpus_file import CorpusFile, corpus_text, read_corpus, watch_settings
from .options import settings_of, taken
from .outcome import CLUSTER_CODES
from .saying import AS_JSON, answer, notice
from .teaching import TaughtGroup
from .watching import standing, watching

if TYPE_CHECKING:
    from ..corpus.clean import Leftover
    from ..corpus.status import CorpusStatus
    from ..jobs.events import Event

_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="CORPUS.toml")
EXAMPLES = (
    "manifold-observer corpus init nights.toml --inputs 'in/*.wav' --output out --frame 23ms",
    "manifold-observer corpus check nights.toml",
    "manifold-observer corpus run nights.toml",
)
# As many short recordings as take less time than a cluster takes to start.
_FEW = 2


@click.group("corpus", cls=TaughtGroup, examples=EXAMPLES)
def corpus_group() -> None:
    """Process many recordings on a schedule: what is new or has changed, several at once.

    Exit codes: 0 all recordings have results, 3 some failed; others as for all commands.
    """


@settings_of(RunConfig)
@config_file
@corpus_group.command(
    "init",
    examples=["manifold-observer corpus init nights.toml --inputs 'in/*.wav' --output out --frame 23ms"],
    params=[AS_JSON],
)
@_FILE
@click.option("--inputs", multiple=True, required=True, metavar="PATTERN", help="Recordings, such as 'in/*.npy'.")
@click.option("--output", required=True, metavar="FOLDER", help="Folder for the results.")
def init_command(file: Path, inputs: tuple[str, ...], output: str, as_json: bool, **options: Any) -> None:
    """Write CORPUS.toml, with the settings of run that are given."""
    text = corpus_text(inputs, output, taken(RunConfig, options))
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError:
        raise click.ClickException(f"{file} must not exist. Choose another name, or edit it.") from None
    line = f"written to {file}; 'manifold-observer corpus check {shlex.quote(str(file))}' says what it will do"
    answer(as_json, {"out": str(file)}, lambda: line, lambda: line)


def _advised(sentence: str) -> str:
    """A sentence that names keywords of Python, with the settings of [run] instead."""
    return in_options(sentence, init_command)


_watched = watching(lambda options: options["file"].stem, single=False, settings=watch_settings, advice=_advised)


@corpus_group.command(
    "check",
    examples=["manifold-observer corpus check nights.toml"],
    codes=(3,),
    params=[AS_JSON],
)
@_FILE
@click.pass_context
def check_command(context: click.Context, file: Path, as_json: bool) -> None:
    """Say what a run would do, from headers: what is due, what cannot be read, hours and disk space.

    Exits with 3 where recordings cannot be read.
    """
    from ..corpus.check import check_corpus  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    read = read_corpus(file)
    found = check_corpus(read.config, n_workers=read.cluster.workers)
    advised = {name: _advised(sentence) for name, sentence in found.unreadable.items()}
    found = replace(found, unreadable=advised)
    answer(as_json, found.as_dict(), lambda: str(found), lambda: str(found).splitlines()[0])
    context.exit(found.exit_code)


@_watched
@settings_of(ClusterConfig)
@corpus_group.command(
    "run",
    examples=["manifold-observer corpus run nights.toml", "manifold-observer corpus run nights.toml --refit"],
    codes=(3, *CLUSTER_CODES),
    params=[AS_JSON],
)
@_FILE
@click.option("--refit", is_flag=True, help="Fit the one map of [map] again, and read all recordings by it.")
@click.pass_context
def run_command(context: click.Context, /, file: Path, refit: bool, as_json: bool, **cluster: Any) -> None:
    """Compute what is new or has changed.

    The same command again does nothing. Recordings that failed are tried again when they or the settings change, or by
    'corpus retry'. The options of the cluster come before what CORPUS.toml says of it.
    """
    read = _read(file, cluster)
    if refit and read.config.shared is None:
        raise click.UsageError(f"--refit needs one map for all recordings; {file} has no section [map]. Add one.")
    _run(context, read, as_json, refit=refit)


@_watched
@settings_of(ClusterConfig)
@corpus_group.command(
    "retry",
    examples=["manifold-observer corpus retry nights.toml", "manifold-observer corpus retry nights.toml monday"],
    codes=(3, *CLUSTER_CODES),
    params=[AS_JSON],
)
@_FILE
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.pass_context
def retry_command(context: click.Context, /, file: Path, names: tuple[str, ...], as_json: bool, **cluster: Any) -> None:
    """Try recordings again that failed: those named, or all."""
    from ..corpus.status import corpus_status  # noqa: PLC0415

    read = _read(file, cluster)
    failed = [one["name"] for one in corpus_status(read.config).recordings if one["outcome"] == "failed"]
    strange = sorted(set(names) - set(failed))
    if strange:
        raise click.ClickException(
            f"corpus retry: names must be those of recordings that failed; got {', '.join(strange)}."
        )
    _run(context, read, as_json, retry=list(names or failed))


@corpus_group.command(
    "status",
    examples=["manifold-observer corpus status nights.toml"],
    params=[AS_JSON],
)
@_FILE
def status_command(file: Path, as_json: bool) -> None:
    """Say how every recording stands, also while a run works on them."""
    from ..corpus.status import corpus_status  # noqa: PLC0415

    found = corpus_status(read_corpus(file).config)
    answer(as_json, found.as_dict(), lambda: _text(found), lambda: _counts(found))


@corpus_group.command(
    "clean",
    examples=["manifold-observer corpus clean nights.toml --dry-run"],
    params=[AS_JSON],
)
@_FILE
@click.option("--dry-run", is_flag=True, help="Only list what would go.")
def clean_command(file: Path, dry_run: bool, as_json: bool) -> None:
    """Remove what is not needed: work folders of dead runs, results whose recordings are gone or out of retention.

    Retention is set by keep and keep-days in [corpus]. Only what this corpus has written is removed.
    """
    from ..corpus.clean import clean_corpus  # noqa: PLC0415

    found = clean_corpus(read_corpus(file).config, dry_run=dry_run)
    listed = [one._asdict() | {"path": str(one.path)} for one in found]
    lines = [_leftover(one, dry_run) for one in found]
    went = sum(not one.stays for one in found)
    line = f"{went} {'would go' if dry_run else 'removed'}"
    text = "\n".join(lines) or "nothing to remove"
    answer(as_json, {"dry_run": dry_run, "leftovers": listed}, lambda: text, lambda: line)


def _leftover(one: Leftover, dry_run: bool) -> str:
    """What becomes of something that is not needed."""
    word = f"stays ({one.stays})" if one.stays else "would go" if dry_run else "removed"
    return f"{word}: {one.path}, {size(one.n_bytes)}: {one.why}"


def _read(file: Path, cluster: dict[str, Any]) -> CorpusFile:
    """The file of a corpus, and where the options want it computed."""
    read = read_corpus(file)
    return read._replace(cluster=cluster_given(cluster, read.cluster))


def _run(
    context: click.Context, read: CorpusFile, as_json: bool, retry: list[str] | None = None, refit: bool = False
) -> None:
    """Compute, say what failed, and leave with the code that says so."""
    from ..corpus.run import run_corpus  # noqa: PLC0415
    from ..jobs.events import listen  # noqa: PLC0415

    def connect(n_due: int) -> AbstractContextManager[None]:
        few = read.cluster.kind == "auto" and n_due <= _FEW and not asks_for_workers(read.cluster)
        return connected(replace(read.cluster, kind="none") if few else read.cluster)

    with listen(_tell), _kept():
        found = run_corpus(read.config, retry=retry, refit=refit, connect=connect)
    standing(found.counts)
    answer(as_json, found.as_dict(), lambda: _summary(found), lambda: _counts(found))
    context.exit(found.exit_code)


@contextmanager
def _kept() -> Iterator[None]:
    """Have what ends a run say how many recordings are done, which the same command does not compute again."""
    from ..jobs.events import listen  # noqa: PLC0415

    far = [0, 0]

    def count(event: Event) -> None:
        if event.kind in ("finished", "failed", "skipped") and event.total:
            far[:] = event.done, event.total

    with listen(count):
        try:
            yield
        except (KeyboardInterrupt, ConnectionError) as error:
            error.add_note(f"{RESUMES} after {far[0]} of {far[1]} recordings.") if far[1] else None
            raise


def _tell(event: Event) -> None:
    """One line for what becomes of a recording."""
    place = f"[{event.done}/{event.total}] " if event.total else ""
    if event.kind == "finished":
        notice(f"{place}{event.recording}: {event.n_frames} frames, {duration(event.seconds)}")
    elif event.kind == "failed":
        notice(f"{place}{event.recording} failed: {_advised(event.sentence)}")
    elif event.kind == "retried":
        notice(f"{event.recording}: again in {duration(event.seconds)}, for {_advised(event.sentence)}")
    elif event.kind == "warned" and event.total:  # of the corpus; others are told where they are raised
        notice(f"Warning: {event.sentence}")


def _text(found: CorpusStatus) -> str:
    """The status for people: a line for every recording that is not simply done."""
    lines = [_line(one) for one in found.recordings]
    return "\n".join([*lines, _summary(found)])


def _line(one: dict[str, Any]) -> str:
    """One recording."""
    if one["stands"] == "failed":
        return f"{one['name']}: failed: {_advised(one['sentence'])}"
    if one["stands"] == "done":
        return f"{one['name']}: done, {one['facts'].get('n_frames', 0)} frames, {duration(one['seconds'])}"
    return f"{one['name']}: {one['stands']}"


def _departs(one: dict[str, Any]) -> str:
    """How a recording departs from those before it."""
    words = ", ".join(f"{name.replace('_', ' ')} {value:.1f}" for name, value in one["departs"].items())
    return f"{one['name']} departs from the recordings before it (1 is the limit of chance): {words}"


def _counts(found: CorpusStatus) -> str:
    """How many recordings stand how."""
    return ", ".join(f"{number} {name}" for name, number in sorted(found.counts.items())) or "no recording"


def _summary(found: CorpusStatus) -> str:
    """All recordings in a line, and what else there is to know."""
    lines = [_counts(found)]
    lines += [f"no recording matches {pattern}" for pattern in found.unmatched]
    if found.counts.get("failed"):
        lines.append("failed recordings are tried again when they or the settings change, or by 'corpus retry'")
    lines += [_departs(one) for one in found.recordings if one["departs"]]
    if found.gone:
        lines.append(f"kept {len(found.gone)} results whose recordings are gone: {', '.join(found.gone[:5])}")
    if found.shared is not None:
        lines += _about_map(found.shared)
    if found.running is not None:
        lines += _running(found.running)
    return "\n".join(lines)


def _running(run: dict[str, Any]) -> list[str]:
    """The run that works on the corpus, or that was killed."""
    who = f"process {run['pid']} on {run['host']} since {run['since']}"
    if run["lives"] is False:
        return [f"a run was killed ({who}); the next one continues"]
    far = f", {run['done']} of {run['total']}" if "total" in run else ""
    lines = [f"a run works on it: {who}{far}"]
    for name, one in run.get("computing", {}).items():
        stage = f", {one['stage']} {one['done']} of {one['total']}" if "stage" in one else ""
        lines.append(f"{name}: for {duration(one['seconds'])}{stage}")
    return lines


def _about_map(found: dict[str, Any]) -> list[str]:
    """The one map, what lies outside of it, and drift."""
    lines = [f"map: version {found['version']}, fitted on {found['recordings']} recordings: {found['path']}"]
    if found["alignment"]:
        lines.append(f"map: correlations with the one before {', '.join(f'{r:.2f}' for r in found['alignment'])}")
    lines += [f"map: fitted without {path}: {_advised(why)}" for path, why in found["refused"].items()]
    if found["refit_due"]:
        shares = [f"{name} ({found['outside'][name]:.0%})" for name in found["refit_due"][:5]]
        more = ", ..." if len(found["refit_due"]) > 5 else ""
        lines.append(
            f"map: a refit is due for what lies outside: {', '.join(shares)}{more}; 'corpus run --refit' makes it"
        )
    return [*lines, found["drift"]]
