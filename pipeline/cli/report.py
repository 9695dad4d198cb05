"""The command ``report``: a result as one page."""

from __future__ import annotations

from pathlib import Path

import click

from ..graph.durations import size
from ..stores.address import Place
from .computing import timed
from .outcome import SIGNALS
from .reading import Location
from .saying import AS_JSON, answer
from .teaching import Taught
from .warned import said

EXAMPLES = (
    "manifold-observer report night.zarr night.html",
    "manifold-observer report night.zarr night.html --labels stages.csv",
)


@click.command("report", cls=Taught, examples=EXAMPLES, codes=SIGNALS, params=[AS_JSON])
@click.argument("result", type=Location(), metavar="OUT.zarr")
@click.argument("page", type=click.Path(path_type=Path), metavar="REPORT.html")
@click.option("--labels", metavar="FILE", help="A file of labels, which colour the maps and stand below the signal.")
@click.option("--label-column", metavar="NAME", help="Column that holds the labels, for files with several.")
@click.option(
    "--recording",
    "recordings",
    multiple=True,
    type=Location(),
    metavar="FILE",
    help="Where the recording is now, if it has moved; once for each of several, in their order.",
)
def report_command(
    result: Place,
    page: Path,
    labels: str | None,
    label_column: str | None,
    recordings: tuple[Place, ...],
    as_json: bool,
) -> None:
    """Show a result on one page, in a file that needs no network.

    OUT.zarr is what run wrote. The page has the recording, its states over time and as maps, what they are compared
    with, the spectrum, how settings were chosen and the command that repeats it. Drag to zoom, double-click to see all.
    """
    from ..graph.client import in_threads  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it
    from ..reports.write import report  # noqa: PLC0415

    with timed(), in_threads():
        written = report(result, page, labels=labels, label_column=label_column, recordings=recordings or None)
    length = written.stat().st_size
    line = f"written to {written} ({size(length)}); open it in any browser"
    answer(as_json, {"out": str(written), "bytes": length, "warnings": said()}, lambda: line, lambda: line)
