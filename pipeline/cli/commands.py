"""The command ``manifold-observer``."""

from __future__ import annotations

import json
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..files.ordinary import check_ordinary
from ..graph.ending import Ending, Interrupted
from ..jobs.progress import Stages, works_bar

if TYPE_CHECKING:
    from ..graph.compute import Progress
    from ..jobs.run import RunConfig
    from ..jobs.stream import Step

_Command = Callable[..., Any]


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 an error, 2 wrong options; ended by Ctrl-C 130, SIGTERM 143, SIGHUP 129 "
    "(128 and the signal's number).",
)
@click.version_option(version("manifold-observer"), prog_name="manifold-observer")
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Estimate the hidden state behind long recordings."""
    context.obj = {"debug": debug}


def main(words: Sequence[str] | None = None, name: str = "manifold-observer") -> None:
    """Run the command; every error ends in one sentence and a non-zero exit code.

    Parameters
    ----------
    words
        Arguments; None takes those of the process.
    name
        What the command is called, for its help.
    """
    words = sys.argv[1:] if words is None else words
    try:
        _invoke(words, name)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as asked:
        _fail(_with_notes("interrupted", asked), asked.code if isinstance(asked, Interrupted) else 130)
    except Exception as error:
        if "--debug" in words:
            raise
        known = isinstance(error, ValueError | OSError | RuntimeError | TypeError | ImportError | EOFError)
        text = " ".join(str(error).split()) or type(error).__name__
        _fail(_with_notes(text if known else f"{type(error).__name__}: {text} (--debug shows where)", error), 1)


def _invoke(words: Sequence[str], name: str) -> None:
    """Run the command. Click's own main takes every EOFError, such as a file that was cut, for an interrupt."""
    if "_MANIFOLD_OBSERVER_COMPLETE" in os.environ:  # a shell asks for completions
        cli.main(standalone_mode=False)
        return
    with cli.make_context(name, list(words)) as context:
        cli.invoke(context)


def _with_notes(text: str, error: BaseException | None) -> str:
    """An error and what was noted on its way, such as from where the same command resumes."""
    notes = getattr(error, "__notes__", [])
    return " ".join([f"{text.rstrip('.')}.", *notes]) if notes else text


def _fail(sentence: str, code: int) -> None:
    """Say it on standard error and leave."""
    click.echo(f"Error: {sentence}", err=True)
    sys.exit(code)


def _load_config(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Take defaults from a TOML file; options on the command line outrank it."""
    if path is None:
        return
    try:
        check_ordinary(path, "--config")
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise click.BadParameter(f"{path} is no TOML: {error}.") from None
    known = {
        spelling.removeprefix("--"): parameter.name
        for parameter in context.command.params
        if parameter.expose_value and isinstance(parameter, click.Option)
        for spelling in parameter.opts
    }
    given = {name.replace("_", "-"): value for name, value in values.items()}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise click.BadParameter(f"{path} has unknown settings: {', '.join(unknown)}.")
    # As text, numbers are read as on the command line: 2.5 is no number of modes.
    texts = {known[name]: value if isinstance(value, bool) else str(value) for name, value in given.items()}
    context.default_map = {**(context.default_map or {}), **texts}


class _Bytes(click.ParamType[int]):
    """A number of bytes, with a unit or without."""

    name = "BYTES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number and its unit."""
        from dask.utils import parse_bytes  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

        try:
            count = int(parse_bytes(value))
        except ValueError:
            count = 0
        if count < 1:
            self.fail(f"{value!r} is no number of bytes, such as 4GiB or 500MB", param, ctx)
        return count


def _cluster(command: _Command) -> _Command:
    """Options that say where a command computes and how it reports."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output."),
        click.option(
            "--memory",
            type=_Bytes(),
            help="Most that the workers of the local cluster take together, such as 4GiB [default: what is free].",
        ),
        click.option("--workers", type=click.IntRange(1), help="Processes of the local cluster [default: one a core]."),
        click.option(
            "--cluster",
            default="local",
            show_default=True,
            metavar="auto|local|none|ADDRESS",
            help="Where to compute: on a cluster of this machine's cores, in this process (none), whichever of the two "
            "pays (auto), or at the address of a scheduler.",
        ),
    ):
        command = option(command)
    return command


def _where(command: _Command) -> _Command:
    """The same options for a command that writes."""
    return _cluster(click.option("--overwrite", is_flag=True, help="Replace an earlier result.")(command))


class _Epsilon(click.ParamType[str | float]):
    """A name of a scale, or a number."""

    name = "median|local|NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | float:
        """Read a number where it is one."""
        if value in ("median", "local") or isinstance(value, float):
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is none of median, local, or a number", param, ctx)


class _Frame(click.ParamType[str | int]):
    """Whole samples, or a duration with unit."""

    name = "SAMPLES|DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        """Read a whole number where it is one."""
        text = str(value)
        return int(text) if text.isdigit() else text


class _Seconds(click.FloatRange):
    """Seconds, at least 0."""

    name = "SECONDS"

    def __init__(self) -> None:
        super().__init__(min=0)


_JOB_OPTIONS = (
    click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        callback=_load_config,
        is_eager=True,
        expose_value=False,
        help="TOML file with these options.",
    ),
    click.option(
        "--features",
        type=click.Choice(["histogram", "stft", "log_rms", "identity"]),
        default="stft",
        show_default=True,
        help="What a frame is described by.",
    ),
    click.option("--frame", type=_Frame(), help="Length of a frame, such as 60 or 23ms."),
    click.option("--hop", type=_Frame(), help="From the start of a frame to the next [default: the frame's length]."),
    click.option("--bins", type=click.IntRange(1), help="Equal histogram bins [default: one a count]."),
    click.option("--floor", type=float, help="Smallest level for log_rms."),
    click.option("--sampling-rate", type=float, help="Samples a second, for files that do not say."),
    click.option("--variable", help="Variable of the file that is the recording."),
    click.option(
        "--channels-first/--channels-last",
        default=None,
        help="Whether .npy files are (channel, time) [default: refuse].",
    ),
    click.option("--decimal", help="Decimal mark of CSV tables [default: as it is found]."),
    click.option("--thousands", help="What groups digits by three in CSV tables [default: nothing]."),
    click.option("--engine", help="xarray engine, for files of other formats."),
    click.option("--n-modes", type=int, help="Coordinates [default: up to the spectral gap]."),
    click.option("--window", type=int, default=21, show_default=True, help="Frames of a local covariance."),
    click.option("--rank", type=int, help="Most eigenvalues of a local covariance to keep [default: all]."),
    click.option("--tolerance", type=float, default=1e-3, show_default=True, help="Least share of the largest kept."),
    click.option("--regularization", type=float, default=0.0, show_default=True, help="Ridge on local covariances."),
    click.option("--epsilon", type=_Epsilon(), default="median", show_default=True, help="Scale of the kernel."),
    click.option("--epsilon-factor", type=float, default=1.0, show_default=True, help="Factor on that scale."),
    click.option("--alpha", type=float, default=0.0, show_default=True, help="Density normalisation, 0 to 1."),
    click.option(
        "--method",
        type=click.Choice(["auto", "exact", "landmarks"]),
        default="auto",
        show_default=True,
        help="All pairs of frames, or every frame against landmarks.",
    ),
    click.option(
        "--home",
        type=click.Choice(["auto", "local", "resident", "recomputed", "disk"]),
        default="auto",
        show_default=True,
        help="Where the tiles of the kernel live.",
    ),
    click.option("--landmarks", type=int, default=2000, show_default=True, help="Number of landmarks."),
    click.option(
        "--refine", type=click.IntRange(0), default=0, show_default=True, help="Exact passes after the landmarks."
    ),
    click.option(
        "--precision",
        type=click.Choice(["auto", "float32", "float64"]),
        default="auto",
        show_default=True,
        help="Of the distances.",
    ),
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of start vectors and samples."),
)


def _job(command: _Command) -> _Command:
    """Options of a job: how to open, what features, how to embed."""
    for option in reversed(_JOB_OPTIONS):
        command = option(command)
    return command


_OBSERVER_OPTIONS = (
    click.option("--gamma", type=float, default=0.85, show_default=True, help="Weight of the measurement, 0 <= g < 1."),
    click.option(
        "--gain",
        type=click.Choice(["paper", "unit", "kalman", "dmk"]),
        default="paper",
        show_default=True,
        help="As printed, with the sign flipped; settling to the measurement; optimal for what the frames show; or "
        "optimal for the settings of the authors' follow-up. The last two do not need gamma.",
    ),
    click.option(
        "--rates",
        type=click.Choice(["step", "paper", "calibrated"]),
        help="Dynamics: a frame as a step of the Markov chain, as printed, or as the frames move "
        "[default: step; paper for dmk; calibrated for kalman].",
    ),
    click.option(
        "--step",
        type=click.Choice(["exact", "euler"]),
        default="exact",
        show_default=True,
        help="From one frame to the next: a zero-order hold, or Euler's rule.",
    ),
    click.option("--substeps", type=int, help="Euler steps a frame [default: enough to contract]."),
    click.option(
        "--initial",
        type=click.Choice(["steady", "paper"]),
        default="steady",
        show_default=True,
        help="State before a segment: what the gain settles to, or the first coordinates.",
    ),
    click.option("--smooth", is_flag=True, help="Also estimate every state from all frames, into /smoothed."),
)
_READING = ("channels_first", "decimal", "thousands", "engine")
_OBSERVE = ("gamma", "gain", "rates", "step", "substeps", "initial")


def _observer(command: _Command) -> _Command:
    """Options of the observer."""
    for option in reversed(_OBSERVER_OPTIONS):
        command = option(command)
    return command


def _config(options: dict[str, Any], observe: dict[str, Any], smooth: bool = False) -> RunConfig:
    """Options of the command line as settings of a run."""
    from ..jobs.run import RunConfig  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    reading = {name: value for name, value in _pop(options, *_READING).items() if value is not None}
    return RunConfig(
        options.pop("features"),
        feature_options=_pop(options, "frame", "hop", "bins", "floor"),
        open_options=_pop(options, "sampling_rate", "variable") | reading,
        observe_options=observe,
        embed_options=options,
        smooth=smooth,
    )


@cli.command("run")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORDING... OUT")
@_job
@_observer
@_where
def run_command(
    paths: tuple[Path, ...],
    cluster: str,
    workers: int | None,
    memory: int | None,
    overwrite: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the main job on RECORDING... and write OUT, a Zarr folder with /frames, /embedding, /state (and /smoothed).

    Several recordings become segments of one, with a gap between. A run that was killed goes on from the
    last pass over the kernel when the same command is given again.
    """
    from ..jobs.run import check, count_frames, run  # noqa: PLC0415

    if len(paths) < 2:
        raise click.UsageError("Name at least one recording, and the output last.")
    config = _config(options, _pop(options, *_OBSERVE), options.pop("smooth"))
    check(paths[:-1], paths[-1], config, overwrite=overwrite)
    if cluster == "auto":
        cluster = _paying(count_frames(paths[:-1], config))
    with _session(cluster, workers, memory) as stages:
        tree = run(paths[:-1], paths[-1], config, overwrite=overwrite, stages=stages)
    summary = {
        "out": str(paths[-1]),
        "n_frames": tree["frames"].sizes["frame"],
        "n_modes": tree["state"].sizes["mode"],
        "eigenvalues": [round(float(mu), 6) for mu in np.asarray(tree["embedding/eigenvalue"])],
        "residuals": [float(r) for r in np.asarray(tree["embedding/residual"])],
        "seconds": stages.seconds,
        "settings": config.flat(),
    }
    click.echo(json.dumps(summary) if as_json else _run_text(summary))


@cli.command("continue")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RESULT NEW... OUT")
@click.option("--follow", is_flag=True, help="Keep looking for new data, until Ctrl-C or --idle.")
@click.option("--interval", type=_Seconds(), default=1.0, show_default=True, help="Seconds between two looks.")
@click.option("--idle", type=_Seconds(), help="Stop after so many seconds without a new whole frame [default: never].")
@click.option(
    "--hold-back",
    type=_Frame(),
    default=0,
    show_default=True,
    help="Newest samples (or duration) to leave for later: what a writer adds at once to a Zarr array, if it makes "
    "room before it writes.",
)
@click.option("--clip", is_flag=True, help="Count samples outside the histogram's edges in its end bins.")
@click.option(
    "--cluster", default="none", show_default=True, metavar="none|local|ADDRESS", help="Where to compute; none: here."
)
@click.option("--workers", type=click.IntRange(1), help="Processes of --cluster local [default: one a core].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a part, each on a line.")
def continue_command(
    paths: tuple[Path, ...], follow: bool, cluster: str, workers: int | None, as_json: bool, **options: Any
) -> None:
    """Continue RESULT with the recordings NEW..., from where the last call stopped, and add a part to the folder OUT.

    NEW... are consecutive files of one recording. Name all of them in every call, the oldest first; a quoted pattern
    such as 'new/*.wav' also covers files yet to come. Frames may span two files. If NEW is the recording that RESULT
    was made from and it has grown, only its new samples are used.
    """
    from ..jobs.stream import continue_run  # noqa: PLC0415

    if len(paths) < 3:
        raise click.UsageError("Name the result, at least one new recording, and the output last.")
    if workers is not None and cluster != "local":
        raise click.UsageError("--workers goes with --cluster local.")
    result, new, out = paths[0], paths[1:-1], paths[-1]
    timing = _pop(options, "interval", "idle")
    if follow:
        _follow(result, new, out, cluster, workers, as_json, timing | options)
        return
    with _session(cluster, workers) as stages:
        step = continue_run(result, new, out, stages=stages, **options)
    _tell(step, as_json, stages.seconds["total"])


def _follow(
    result: Path, new: Sequence[Path], out: Path, cluster: str, workers: int | None, as_json: bool, options: Any
) -> None:
    """Print every part as it is written, until an interrupt, SIGTERM, or the end of patience."""
    from ..jobs.stream import follow  # noqa: PLC0415

    def notice(sentence: str) -> None:
        click.echo(sentence, err=True)

    with ExitStack() as stack:
        stack.enter_context(_session(cluster, workers, bar=False))
        ending = stack.enter_context(Ending())
        before = time.perf_counter()
        for step in follow(result, new, out, wait=ending.wait, notice=notice, **options):
            _tell(step, as_json, round(time.perf_counter() - before, 3))
            before = time.perf_counter()


def _tell(step: Step, as_json: bool, seconds: float) -> None:
    """Say what a call added."""
    part = None if step.part is None else str(step.part)
    if as_json:
        click.echo(json.dumps({"part": part, "added": step.added, "total": step.total, "seconds": seconds}))
    elif part is None:
        click.echo(f"no new whole frame; {step.total} frames in all")
    else:
        click.echo(f"{step.added} frames added, {step.total} in all, written to {part}")


def _renamed(command: click.Command, old: str) -> click.Command:
    """The same command under its old name: it warns, and is not listed."""

    def callback(**options: Any) -> Any:
        warning = f"Warning: {old} is now called {command.name}; the old name will be removed in the next version."
        click.echo(warning, err=True)
        return command.callback(**options) if command.callback else None

    return click.Command(old, params=command.params, callback=callback, help=f"Now {command.name}.", hidden=True)


cli.add_command(_renamed(continue_command, "extend"))


@cli.command("plan")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORDING...")
@_job
@_cluster
def plan_command(
    paths: tuple[Path, ...], cluster: str, workers: int | None, memory: int | None, as_json: bool, **options: Any
) -> None:
    """Say what embedding RECORDING... will cost, with the same options as run: way, memory, time.

    A few frames are timed on the cluster; nothing is written.
    """
    from ..jobs.run import count_frames, plan_run  # noqa: PLC0415

    config = _config(options, {})
    if cluster == "auto":
        cluster = _paying(count_frames(paths, config))
    with _session(cluster, workers, memory):
        found = plan_run(paths, config)
    click.echo(json.dumps(found.as_dict()) if as_json else str(found))


@cli.group("demo")
def demo_group() -> None:
    """Simulate a recording with known truth, run the main job on it, and print the scores."""


@demo_group.command("sphere")
@click.argument("out", required=False, type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the simulation.")
@click.option("--drift-rate", "-c", type=float, default=0.008, show_default=True, help="Drift rate c of the angles.")
@click.option("--noise", type=float, default=0.1, show_default=True, help="Rate of the sensors' dark counts.")
@click.option(
    "--samples",
    "n_samples",
    type=click.IntRange(1),
    default=240_000,
    show_default=True,
    help="Length of the recording; a frame has 60.",
)
@_where
def sphere_command(out: Path | None, **options: Any) -> None:
    """A point wanders over a sphere, seen by three counting sensors (section V-A of the paper)."""
    _demonstrate("sphere", out, options)


@demo_group.command("circle")
@click.argument("out", required=False, type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the simulation.")
@click.option(
    "--frames", "n_frames", type=click.IntRange(1), default=1_600, show_default=True, help="Length of the recording."
)
@_where
def circle_command(out: Path | None, **options: Any) -> None:
    """An angle with linear dynamics and bursts for covariances (section V-B): the rates are -1, -2, -3, -4."""
    _demonstrate("circle", out, options)


@demo_group.command("melody")
@click.argument("out", required=False, type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the simulation.")
@click.option("--notes", "n_notes", type=click.IntRange(1), default=80, show_default=True, help="Length of the piece.")
@click.option("--noise", type=float, default=0.0, show_default=True, help="Deviation of added white noise.")
@_where
def melody_command(out: Path | None, **options: Any) -> None:
    """Two synthetic instruments alternate on recurring notes."""
    _demonstrate("melody", out, options)


@cli.command("reproduce")
@click.argument("name", type=click.Choice(["set-up", "sphere", "drift", "extension", "circle", "music", "all"]))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--quick", is_flag=True, help="A few realisations only, to see whether everything works.")
@_cluster
def reproduce_command(
    name: str, out: Path, quick: bool, cluster: str, workers: int | None, memory: int | None, as_json: bool
) -> None:
    """Run the paper's experiments (section V), and write numbers, pictures and a table of claims to the folder OUT.

    A run that was interrupted goes on when the same command is given again.
    """
    from ..paper.experiment import claims_table, reproduce  # noqa: PLC0415
    from ..paper.experiments import EXPERIMENTS  # noqa: PLC0415
    from ..paper.pictures import require_matplotlib  # noqa: PLC0415

    require_matplotlib()
    chosen = EXPERIMENTS if name == "all" else {name: EXPERIMENTS[name]}
    with _works() as progress, _connected(cluster, workers, memory):
        claims = reproduce(chosen, out, quick=quick, progress=progress)
    rows = {experiment: [asdict(claim) for claim in own] for experiment, own in claims.items()}
    click.echo(
        json.dumps({"out": str(out), "claims": rows}) if as_json else f"{claims_table(claims)}\nwritten to {out}"
    )


def _demonstrate(name: str, out: Path | None, options: dict[str, Any]) -> None:
    """Run one demonstration and print its scores."""
    from ..paper.demo import demonstrate  # noqa: PLC0415

    where = _pop(options, "cluster", "workers", "memory", "overwrite", "as_json")
    cluster = "none" if where["cluster"] == "auto" else where["cluster"]  # a few thousand frames
    with _session(cluster, where["workers"], where["memory"]) as stages:
        result = demonstrate(name, out, options, stages, overwrite=where["overwrite"])
    click.echo(json.dumps(result) if where["as_json"] else _demo_text(result, out))


def _paying(n_frames: int) -> str:
    """The cluster that pays: none as long as the kernel is small enough to be brought to the caller."""
    from ..engine.memory import LOCAL_BYTES, tile_bytes  # noqa: PLC0415

    return "none" if tile_bytes(n_frames, 4) <= LOCAL_BYTES else "local"


@contextmanager
def _session(cluster: str, workers: int | None, memory: int | None = None, *, bar: bool = True) -> Iterator[Stages]:
    """Run a block on a cluster, or in this process, timed, with the bar where there is a terminal."""
    stages = Stages(sys.stderr if bar else None)
    with stages("total"), stages.bar(), ExitStack() as stack:
        with stages("cluster"):
            stack.enter_context(_connected(cluster, workers, memory))
        yield stages


@contextmanager
def _connected(cluster: str, workers: int | None, memory: int | None) -> Iterator[None]:
    """Compute on a cluster for the length of a block, or in this process."""
    import dask  # noqa: PLC0415 - it starts slowly; --help need not wait for it

    if cluster == "none":
        with dask.config.set({"manifold-observer.memory": memory} if memory is not None else {}):
            yield
        return
    from ..graph.cluster import connect  # noqa: PLC0415

    with connect("local" if cluster == "auto" else cluster, n_workers=workers, memory=memory):
        yield


@contextmanager
def _works() -> Iterator[Progress]:
    """A bar over units of work; an interruption, or the loss of the cluster, is noted with what has been kept."""
    kept = (0, 0)

    def progress(stage: str, done: int, total: int) -> None:
        nonlocal kept
        kept = done, total
        show(stage, done, total)

    try:
        with works_bar(sys.stderr) as show:
            yield progress
    except (KeyboardInterrupt, ConnectionError) as error:
        if kept[0]:
            error.add_note(f"The same command resumes after {kept[0]} of {kept[1]} units.")
        raise


def _pop(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Take some options out of all."""
    return {name: options.pop(name) for name in names}


def _run_text(summary: dict[str, Any]) -> str:
    """What a run says to a person."""
    mu = ", ".join(f"{value:.4f}" for value in summary["eigenvalues"])
    return (
        f"{summary['n_frames']} frames, {summary['n_modes']} modes, eigenvalues {mu}\n"
        f"largest residual {max(summary['residuals']):.1e}, {summary['seconds']['total']:.1f} s\n"
        f"written to {summary['out']}; open it with xr.open_datatree({summary['out']!r})"
    )


def _demo_text(result: dict[str, Any], out: Path | None) -> str:
    """Scores as a table."""
    components = result["components"]
    accuracies = [name for name in next(iter(result["scores"].values())) if name.endswith("_accuracy")]
    lines = [f"{result['n_frames']} frames; correlation with the truth (held-out blocks in brackets)", ""]
    lines.append(f"{'':<20}" + "".join(f"{name.replace('_', ' '):>22}" for name in components + accuracies))
    for estimate, row in result["scores"].items():
        pairs = zip(row["correlation"], row["correlation_held_out"], strict=True)
        cells = [f"{inside:.3f} ({outside:.3f})" for inside, outside in pairs]
        cells += [f"{row[name]:.3f}" for name in accuracies]
        lines.append(f"{estimate.replace('_', ' '):<20}" + "".join(f"{cell:>22}" for cell in cells))
    if "generator_rates" in result:
        lines += ["", f"rates of the hidden diffusion {result['generator_rates']} 1/s; the truth is 1, 2, 3, 4"]
    lines += ["", "seconds: " + ", ".join(f"{name} {value:.1f}" for name, value in result["seconds"].items())]
    if out is not None:
        lines.append(f"written to {out}; open it with xr.open_datatree({str(out)!r})")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
