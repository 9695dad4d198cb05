"""The command ``demo``: simulate with known truth, run, and score."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from ..clusters.config import ClusterConfig
from ..paper.settings import SIMULATIONS
from ..stores.address import Place
from .computing import chosen, session, writing
from .naming import opening
from .options import Sectioned, settings_of, taken
from .reading import Location


@click.group("demo")
def demo_group() -> None:
    """Simulate, run, and score against the truth."""


def _command(name: str, kind: type[Any]) -> click.Command:
    """The command of one demonstration."""

    def callback(
        out: Place | None,
        cluster: ClusterConfig,
        overwrite: bool,
        as_json: bool,
        **options: Any,
    ) -> None:
        from ..paper.demo import demonstrate  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

        asked = taken(kind, options)
        with session(chosen(cluster, lambda: asked.about_frames)) as stages:
            result = demonstrate(name, out, asdict(asked), stages, overwrite=overwrite)
        click.echo(json.dumps(result) if as_json else _text(result, out))

    command = Sectioned(name, callback=callback, help=_description(kind))
    command.params.append(click.Argument(["out"], required=False, type=Location()))
    return settings_of(kind)(writing(command))


def _description(kind: type[Any]) -> str:
    """What is simulated, as the documentation of its settings has it."""
    text = (kind.__doc__ or "").partition(": ")[2]
    return text[:1].upper() + text[1:]


def _text(result: dict[str, Any], out: Place | None) -> str:
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
        lines.append(f"written to {out}; open it with {opening(str(out))}")
    return "\n".join(lines)


for _name, _kind in SIMULATIONS.items():
    demo_group.add_command(_command(_name, _kind))
