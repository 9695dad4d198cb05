"""The picture of docs/defaults.md: where an animal was, read from its place cells by the defaults and as printed."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from yardstick import simulations
from yardstick.case import Case

import manifold_observer.pipeline as mo

WAYS = {"defaults": {}, "method as printed": {"preset": "paper", "n_modes": 8}}


def held_out(state: NDArray[Any], truth: NDArray[Any], folds: int = 5) -> NDArray[Any]:
    """Linear reading of every fifth of the recording, fitted on the others."""
    inputs = np.column_stack([np.ones(len(state)), state])
    block = np.arange(len(state)) * folds // len(state)
    read = np.empty(len(state))
    for fold in range(folds):
        weights = np.linalg.lstsq(inputs[block != fold], truth[block != fold], rcond=None)[0]
        read[block == fold] = inputs[block == fold] @ weights
    return read


def readings(case: Case, name: str) -> dict[str, NDArray[Any]]:
    """What both ways read of a truth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            way: held_out(
                mo.observe(mo.embed(case.frames, **options), case.frames)["state"].values, case.truths[name].values
            )
            for way, options in WAYS.items()
        }


def draw(path: Path, seconds: float) -> None:
    """One panel a way."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - for those who want the picture

    case = simulations.field()
    truth, time = case.truths["x"].values, case.frames["time"].values
    shown = time < seconds
    figure = Figure(figsize=(8, 4), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    for axes, (way, read) in zip(panels, readings(case, "x").items(), strict=True):
        axes.plot(time[shown], truth[shown], color="0.6", linewidth=3, label="where it was")
        axes.plot(time[shown], read[shown], color="#0072b2", linewidth=1, label="read from 60 cells, held out")
        axes.set_title(f"{way}: r = {np.corrcoef(read, truth)[0, 1]:.2f}", loc="left", fontsize=10)
        axes.set_ylabel("x")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", fontsize=8, ncols=2)
    panels[-1].set_xlabel("time (s)")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "docs" / "defaults.png")
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    draw(given.out, given.seconds)
