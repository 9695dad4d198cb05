"""The command ``demo``: simulate with known truth, run, score, and keep the recording, result and picture."""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..clusters.config import ClusterConfig
from ..graph.durations import duration
from ..graph.loading import loading
from ..paper.settings import SIMULATIONS
from .computing import chosen, computing, session
from .options import settings_of, taken
from .outcome import CLUSTER_CODES
from .saying import answer
from .teaching import Taught, TaughtGroup
from .warned import said


@click.group(
    "demo",
    cls=TaughtGroup,
    examples=("manifold-observer demo sphere", "manifold-observer demo melody songs --notes 40"),
)
def demo_group() -> None:
    """Simulate, run, and score against the truth.

    The recording, the result and a picture are kept in FOLDER, which must be new or empty; by default it is
    demo-NAME in the current folder, or the first of demo-NAME-2, demo-NAME-3, ... that is free.
    """


def _command(name: str, kind: type[Any]) -> click.Command:
    """The command of one demonstration."""

    def callback(folder: Path | None, cluster: ClusterConfig, as_json: bool, **options: Any) -> None:
        with loading():  # Dask starts slowly; --help need not wait for it
            from ..paper.keeping import demonstrate_in  # noqa: PLC0415

        asked, place = taken(kind, options), folder or _free(name)
        with session(chosen(cluster, lambda: asked.about_frames)) as stages:
            found = demonstrate_in(name, place, asdict(asked), stages)
        answer(as_json, found | {"warnings": said()}, lambda: _text(found), lambda: f"written to {place}")

    examples = (f"manifold-observer demo {name}", f"manifold-observer demo {name} trial --seed 2")
    command = Taught(name, callback=callback, help=_description(kind), examples=examples, codes=CLUSTER_CODES)
    command.params.append(click.Argument(["folder"], required=False, type=click.Path(path_type=Path)))
    return settings_of(kind)(computing(command))


def _free(name: str) -> Path:
    """A folder that does not exist yet: a temporary one where the current folder cannot be written to."""
    base, number = Path() if os.access(".", os.W_OK) else Path(tempfile.gettempdir()), 1
    place = base / f"demo-{name}"
    while place.exists() or place.is_symlink():
        number += 1
        place = base / f"demo-{name}-{number}"
    return place


def _description(kind: type[Any]) -> str:
    """What is simulated, as the documentation of its settings has it."""
    text = (kind.__doc__ or "").partition(": ")[2]
    return text[:1].upper() + text[1:]


def _text(found: dict[str, Any]) -> str:
    """Scores as a table, a sentence for each row, and what is kept."""
    lines = [*_table(found), "", *found["sentences"]]
    if "generator_rates" in found:
        rates = ", ".join(f"{rate:.3f}" for rate in found["generator_rates"])
        lines += ["", f"rates of the hidden diffusion: {rates} 1/s; the truth is 1, 2, 3, 4"]
    seconds = ", ".join(f"{name} {duration(value)}" for name, value in found["seconds"].items() if value >= 0.001)
    kept = [f"{name:<10} {path}" for name, path in found["kept"].items() if path is not None]
    if found["kept"]["picture"] is None:
        kept.append("no picture: pip install matplotlib, and repeat")
    return "\n".join(
        [*lines, "", f"time: {seconds}", "", "Kept:", *(f"  {line}" for line in kept), "", "Next:"]
        + [f"  {line}" for line in found["next"]]
    )


def _table(found: dict[str, Any]) -> list[str]:
    """Scores as a table."""
    components = found["components"]
    accuracies = [name for name in next(iter(found["scores"].values())) if name.endswith("_accuracy")]
    lines = [f"{found['n_frames']:,} frames; correlation with the truth (held-out blocks in brackets)", ""]
    lines.append(f"{'':<20}" + "".join(f"{name.replace('_', ' '):>22}" for name in components + accuracies))
    for estimate, row in found["scores"].items():
        pairs = zip(row["correlation"], row["correlation_held_out"], strict=True)
        cells = [f"{_number(inside)} ({_number(outside)})" for inside, outside in pairs]
        cells += [_number(row[name]) for name in accuracies]
        lines.append(f"{estimate.replace('_', ' '):<20}" + "".join(f"{cell:>22}" for cell in cells))
    return lines


def _number(value: float | None) -> str:
    """A score, which is nothing where the truth never changes."""
    return "-" if value is None else f"{value:.3f}"


for _name, _kind in SIMULATIONS.items():
    demo_group.add_command(_command(_name, _kind))
