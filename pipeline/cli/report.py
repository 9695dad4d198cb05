"""The command ``report``: a result as one page."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..stores.address import Place
from .reading import Location
from .warned import said


@click.command("report")
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def report_command(
    result: Place,
    page: Path,
    labels: str | None,
    label_column: str | None,
    recordings: tuple[Place, ...],
    as_json: bool,
) -> None:
    r"""Show a result on one page, in a file that needs no network.

    OUT.zarr is what run wrote. The page has the recording, its states over time and as maps, what they are compared
    with, the spectrum, how settings were chosen and the command that repeats it. Drag to zoom, double-click to see all.

    \b
    Example:
      manifold-observer report night.zarr night.html --labels stages.csv
    """
    from ..graph.compute import in_threads  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it
    from ..reports.write import report  # noqa: PLC0415

    with in_threads():
        written = report(result, page, labels=labels, label_column=label_column, recordings=recordings or None)
    if as_json:
        click.echo(json.dumps({"out": str(written), "bytes": written.stat().st_size, "warnings": said()}))
    else:
        click.echo(f"written to {written} ({written.stat().st_size / 1e6:.1f} MB); open it in any browser")
