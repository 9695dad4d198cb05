"""The command ``run``: the main job over recordings."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

import click

from ..clusters.config import ClusterConfig
from ..engine.config import USUAL_AXES
from ..graph.durations import duration
from ..graph.loading import loading
from ..jobs.config import CHOSEN, PROMISED, RunConfig
from ..stores.address import Place
from .computing import chosen, session, writing
from .config_file import config_file
from .cost import foretell
from .naming import opening, result_and_recordings
from .options import settings_of, taken
from .outcome import CLUSTER_CODES
from .reading import Location
from .saying import answer, notice
from .teaching import Taught
from .warned import said
from .watching import result_name, watching

EXAMPLES = (
    "manifold-observer run song.wav --frame 23ms --report",
    "manifold-observer run emg.txt --features log_rms --frame 100ms --labels class --time-unit ms",
    "manifold-observer run monday.nc tuesday.nc week.zarr --config week.toml",
)


@watching(lambda options: result_name(result_and_recordings(options["paths"])[1]))
@settings_of(RunConfig)
@config_file
@writing
@click.command("run", cls=Taught, examples=EXAMPLES, codes=CLUSTER_CODES)
@click.argument("paths", nargs=-1, required=True, type=Location(), metavar="RECORDING... [OUT]")
@click.option("--skip-existing", is_flag=True, help="Do nothing where OUT is a result of the same already.")
@click.option(
    "--report",
    "page",
    is_flag=False,
    flag_value="",
    metavar="[PAGE.html]",
    help="Also write a page that shows the result, beside OUT's name in the current folder where none is named.",
)
def run_command(
    paths: tuple[Place, ...],
    cluster: ClusterConfig,
    overwrite: bool,
    as_json: bool,
    skip_existing: bool,
    page: str | None,
    **options: Any,
) -> None:
    """Estimate the hidden state of recordings.

    Several RECORDING... become segments of one, with gaps between them; OUT then has to be named. OUT is a Zarr folder
    with the groups /frames, /embedding and /state, and /smoothed with --smooth; by default it is called after the
    recording and lies in the current folder. After a kill or Ctrl-C, the same command resumes from the last pass.
    """
    with loading():
        from ..graph.client import in_threads  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it
        from ..jobs.events import Event, emit, listen  # noqa: PLC0415
        from ..jobs.run import check, frames_in, run  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    recordings, out = result_and_recordings(paths)
    config, report = taken(RunConfig, options), _page(page, out)
    if skip_existing and _is_done(recordings, out, config, overwrite, as_json):
        emit(Event("skipped", done=1, total=1))
        return
    opened = check(recordings, out, config, overwrite=overwrite)
    count = cache(lambda: frames_in(opened, config))
    cluster = chosen(cluster, count)
    before = time.perf_counter()
    with session(cluster) as stages, listen(_aloud):
        foretell(recordings, config, cluster, count, stages)
        tree = run(recordings, out, config, overwrite=overwrite, stages=stages)
        n_frames, seconds = tree["frames"].sizes["frame"], time.perf_counter() - before
        emit(Event("finished", done=1, total=1, seconds=seconds, n_frames=n_frames))
    with in_threads():
        found = _found(tree, out, config, stages.seconds)
        if report is not None:
            found["report"] = str(_reported(tree, out, report, stages.seconds))
    answer(as_json, found | {"warnings": said()}, lambda: _text(found), lambda: f"written to {out}")


def _found(tree: Any, out: Place, config: RunConfig, seconds: dict[str, float]) -> dict[str, Any]:
    """What a run found, and what is kept of its cost."""
    from ..jobs.label_scores import label_scores  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it
    from ..jobs.records import keep_record  # noqa: PLC0415

    embedding = tree["embedding"].to_dataset()
    keep_record(out, {"seconds": seconds, "warnings": said()})
    found = {
        "out": str(out),
        "skipped": False,
        "n_frames": tree["frames"].sizes["frame"],
        "n_modes": embedding.sizes["mode"],
        "eigenvalues": [round(float(mu), 6) for mu in embedding["eigenvalue"].values],
        "residuals": [float(residual) for residual in embedding["residual"].values],
        "chosen": {name: embedding.attrs[name] for name in CHOSEN if name in embedding.attrs},
        "opened": tree.attrs.get("opened", []),
        "seconds": seconds,
        "settings": config.flat(),
    }
    if "residual_reached" in embedding.attrs:
        found["promised"] = {name: embedding.attrs[name] for name in PROMISED if name in embedding.attrs}
    scored = label_scores(tree)
    return found | ({"labels": scored} if scored else {})


def _page(page: str | None, out: Place) -> Path | None:
    """Where the report goes, which is looked at before anything is computed."""
    if page is None:
        return None
    from ..reports.places import check_report  # noqa: PLC0415 - for those who ask for it

    path = Path(page or f"{out.stem}.html")
    if path.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"--report takes the name of a page that ends in .html; got {page}. Put --report last.")
    check_report(path)
    return path


def _reported(tree: Any, out: Place, page: Path, seconds: dict[str, float]) -> Path:
    """Write the report of a result that is there."""
    from ..reports.write import report  # noqa: PLC0415 - for those who ask for it

    tree.name = Path(str(out)).name
    return report(tree, page, record={"seconds": seconds, "warnings": said()})


def _is_done(recordings: tuple[Place, ...], out: Place, config: RunConfig, overwrite: bool, as_json: bool) -> bool:
    """Say so where there is nothing to do; another result is refused, unless it is to be replaced."""
    from ..jobs.existing import made_already  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    try:
        done = made_already(recordings, out, config)
    except ValueError:
        if not overwrite:
            raise
        return False
    if done:
        line = f"done already: {out} is a result of the same recordings and settings"
        answer(as_json, {"out": str(out), "skipped": True}, lambda: line, lambda: line)
    return done


def _text(summary: dict[str, Any]) -> str:
    """What a run says to a person."""
    mu = ", ".join(f"{value:.4f}" for value in summary["eigenvalues"])
    opened = "".join(f"opened {note}\n" for note in summary["opened"])
    return (
        f"{opened}{summary['n_frames']:,} frames, {_modes(summary['n_modes'])}, eigenvalues {mu}\n"
        f"{_chosen(summary['chosen'])}"
        f"{_labels(summary.get('labels'))}"
        f"largest residual {max(summary['residuals']):.1e}{_promised(summary.get('promised'))}, "
        f"{duration(summary['seconds']['total'])}\n"
        f"written to {summary['out']}; open it with {opening(summary['out'])}"
        f"{_page_text(summary)}"
    )


def _modes(number: int) -> str:
    """A number of modes."""
    return "1 mode" if number == 1 else f"{number} modes"


def _aloud(event: Any) -> None:
    """Say what a run expects of itself."""
    if event.kind == "told":
        notice(event.sentence)


def _promised(promised: dict[str, Any] | None) -> str:
    """Where the residual is from, and what was expected, where one was asked for."""
    if promised is None:
        return ""
    most = f", at most {promised['residual_at_most']:.1e}" if "residual_at_most" in promised else ""
    return (
        f" ({promised['residual_from']}{most}; {promised['n_landmarks']} landmarks and {promised['passes']} exact "
        f"passes, {promised['expected_landmarks']} and {promised['expected_passes']} were expected)"
    )


def _page_text(summary: dict[str, Any]) -> str:
    """Where the report is."""
    return f"\nreport in {summary['report']}; open it in any browser" if "report" in summary else ""


def _labels(scored: dict[str, Any] | None) -> str:
    """What the labels say, where there are some."""
    from ..jobs.label_scores import in_words  # noqa: PLC0415

    return "".join(f"{in_words(name, one)}\n" for name, one in (scored or {}).items())


def _chosen(chosen: dict[str, Any]) -> str:
    """What the run chose by itself, and what its coordinates are worth."""
    lines = f"features: {chosen['condition_why']}\n"
    if "shrinkage_target" in chosen:
        towards = {"identity": "a multiple of the identity", "pooled": "their mean"}[chosen["shrinkage_target"]]
        lines += f"covariances: shrunk by {chosen['shrinkage_intensity']:.0%} towards {towards}\n"
        if chosen.get("axes", 0) > USUAL_AXES:
            lines += f"axes: {chosen['axes']} principal axes\n"
        lines += (
            f"foretold: {chosen['foretold']:.1%} of the features a few frames later; in random order at most "
            f"{chosen['foretold_by_chance']:.1%}\n"
        )
    return lines
