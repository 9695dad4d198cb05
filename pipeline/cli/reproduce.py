"""The command ``reproduce``: the paper's experiments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..clusters.config import ClusterConfig
from ..jobs.resuming import RESUMES
from .computing import computing, connected, timed
from .outcome import CLUSTER_CODES
from .saying import answer
from .teaching import Taught

if TYPE_CHECKING:
    from ..graph.progress import Progress


_NAMES = ("set-up", "sphere", "drift", "extension", "circle", "music", "printed-sphere", "printed-circle", "theory")
EXAMPLES = ("manifold-observer reproduce sphere paper --quick", "manifold-observer reproduce all paper")


@computing
@click.command("reproduce", cls=Taught, examples=EXAMPLES, codes=CLUSTER_CODES)
@click.argument("name", type=click.Choice([*_NAMES, "all"]), metavar="NAME")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--quick", is_flag=True, help="Only a few realisations, to check that everything works.")
def reproduce_command(name: str, out: Path, quick: bool, cluster: ClusterConfig, as_json: bool) -> None:
    """Run the experiments of the paper.

    NAME is set-up, sphere, drift, extension, circle, music, printed-sphere, printed-circle, theory, or all. Numbers,
    pictures and a table of claims (section V) are written to the folder OUT. After an interruption, the same
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
    written = f"written to {out}"
    answer(as_json, {"out": str(out), "claims": rows}, lambda: f"{claims_table(claims)}\n{written}", lambda: written)


@contextmanager
def _works() -> Iterator[Progress]:
    """A bar over units of work; an interruption, or the loss of the cluster, is noted with what has been kept."""
    with timed() as stages:
        try:
            yield stages.report
        except (KeyboardInterrupt, ConnectionError) as error:
            done, total = stages.far.get("works", (0, 0))
            if done:
                error.add_note(f"{RESUMES} after {done} of {total} units.")
            raise
