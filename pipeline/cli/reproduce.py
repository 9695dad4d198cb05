"""The command ``reproduce``: the paper's experiments."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..clusters.config import ClusterConfig
from .computing import computing, connected

if TYPE_CHECKING:
    from ..graph.compute import Progress


_NAMES = ("set-up", "sphere", "drift", "extension", "circle", "music", "printed-sphere", "printed-circle", "theory")


@computing
@click.command("reproduce")
@click.argument("name", type=click.Choice([*_NAMES, "all"]))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--quick", is_flag=True, help="Only a few realisations, to check that everything works.")
def reproduce_command(name: str, out: Path, quick: bool, cluster: ClusterConfig, as_json: bool) -> None:
    """Run the experiments of the paper.

    Numbers, pictures and a table of claims (section V) are written to the folder OUT. After an interruption, the same
    command resumes.
    """
    from ..paper.experiment import claims_table, reproduce  # noqa: PLC0415 - slow to import; --help need not wait
    from ..paper.experiments import EXPERIMENTS  # noqa: PLC0415
    from ..paper.pictures import require_matplotlib  # noqa: PLC0415

    require_matplotlib()
    chosen = EXPERIMENTS if name == "all" else {name: EXPERIMENTS[name]}
    with _works() as progress, connected(cluster):
        claims = reproduce(chosen, out, quick=quick, progress=progress)
    rows = {experiment: [asdict(claim) for claim in own] for experiment, own in claims.items()}
    click.echo(
        json.dumps({"out": str(out), "claims": rows}) if as_json else f"{claims_table(claims)}\nwritten to {out}"
    )


@contextmanager
def _works() -> Iterator[Progress]:
    """A bar over units of work; an interruption, or the loss of the cluster, is noted with what has been kept."""
    from ..jobs.progress import works_bar  # noqa: PLC0415

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
