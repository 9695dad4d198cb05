"""The command ``continue``: a stored result over new recordings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ..clusters.config import ClusterConfig
from ..jobs.events import Event, emit
from ..stores.address import Place
from .computing import chosen, computing, session
from .outcome import CLUSTER_CODES
from .reading import FrameLength, Location, Seconds
from .saying import answer, notice
from .teaching import Taught
from .warned import said
from .watching import TO_SAY, result_name, watching

if TYPE_CHECKING:
    from ..jobs.stream import Step


EXAMPLES = (
    "manifold-observer continue night.zarr night2.wav more",
    "manifold-observer continue night.zarr 'new/*.wav' more --follow --idle 3600",
)


@watching(lambda options: result_name(options["paths"][-1]))
@computing
@click.command("continue", cls=Taught, examples=EXAMPLES, codes=CLUSTER_CODES)
@click.argument("paths", nargs=-1, required=True, type=Location(), metavar="RESULT NEW... OUT")
@click.option("--follow", is_flag=True, help="Keep looking for new data until Ctrl-C, or for --idle seconds.")
@click.option("--interval", type=Seconds(), default=1.0, show_default=True, help="Seconds between two looks.")
@click.option("--idle", type=Seconds(), help="Stop after so many seconds without a new whole frame; never by default.")
@click.option(
    "--hold-back",
    type=FrameLength(),
    default=0,
    show_default=True,
    help="Newest samples (or duration) to leave for a later call: as many as the writer adds at once, if it enlarges a "
    "Zarr array before it fills it.",
)
@click.option("--clip", is_flag=True, help="Count samples outside the histogram's edges in the end bins.")
def continue_command(
    paths: tuple[Place, ...], follow: bool, cluster: ClusterConfig, as_json: bool, **options: Any
) -> None:
    """Continue a result with new recordings.

    Takes up RESULT with the recordings NEW... where the last call stopped, and adds a part to the folder OUT. NEW...
    are consecutive files of one recording. Name all of them in every call, the oldest first; a quoted pattern such as
    'new/*.wav' also covers files yet to come. Frames may span two files. If NEW is the recording that RESULT was made
    from and it has grown, only its new samples are used.
    """
    from ..jobs.stream import continue_run  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    if len(paths) < 3:
        raise click.UsageError("Name the result, at least one new recording, and the output last.")
    cluster = chosen(cluster, lambda: 0)  # what is new since the last call, of which there are to be many
    result, new, out = paths[0], paths[1:-1], paths[-1]
    if follow:
        _follow(result, new, out, cluster, as_json, options)
        return
    own = {name: options[name] for name in ("hold_back", "clip")}
    before = time.perf_counter()
    with session(cluster) as stages:
        step = continue_run(result, new, out, stages=stages, **own)
        _emit(step, time.perf_counter() - before)
    _tell(step, as_json, stages.seconds["total"])


def renamed(command: click.Command, old: str) -> click.Command:
    """The same command under its old name: it warns, and is not listed."""

    def callback(**options: Any) -> None:
        new = command.name
        sentence = f"{old} is now called {new}; the old name will be removed in the next version."
        click.get_current_context().meta[TO_SAY] = sentence  # within the command, whose log has it then
        if command.callback is not None:
            command.callback(**options)

    return Taught(old, params=command.params, callback=callback, help=f"Now {command.name}.", hidden=True)


def _follow(
    result: Place, new: Sequence[Place], out: Place, cluster: ClusterConfig, as_json: bool, options: Any
) -> None:
    """Print every part as it is written, until an interrupt, SIGTERM, or the end of patience."""
    from ..graph.ending import Ending  # noqa: PLC0415
    from ..jobs.stream import follow  # noqa: PLC0415

    def tell(sentence: str) -> None:
        emit(Event("warned", sentence=sentence))
        notice(sentence)

    with ExitStack() as stack:
        stack.enter_context(session(cluster, bar=False))
        ending = stack.enter_context(Ending())
        before = time.perf_counter()
        for step in follow(result, new, out, wait=ending.wait, notice=tell, **options):
            seconds = round(time.perf_counter() - before, 3)
            _emit(step, seconds)
            _tell(step, as_json, seconds)
            before = time.perf_counter()


def _emit(step: Step, seconds: float) -> None:
    """Tell who watches what a call added."""
    kind = "skipped" if step.part is None else "finished"
    emit(Event(kind, done=1, total=1, seconds=seconds, n_frames=step.added))


def _tell(step: Step, as_json: bool, seconds: float) -> None:
    """Say what a call added."""
    part = None if step.part is None else str(step.part)
    found = {"part": part, "added": step.added, "total": step.total, "seconds": seconds, "warnings": said()}
    line = f"{step.added} frames added, {step.total} in all, written to {part}"
    if part is None:
        line = f"no new whole frame; {step.total} frames in all"
    answer(as_json, found, lambda: line, lambda: line)
