"""The pictures of docs/defaults.md: what three simulated recordings are read as, and every truth against its rivals.

The first is simulated here; the second draws what ``answers.py --json`` has written, when it is given.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from yardstick import judge, report, simulations
from yardstick.case import Case

import manifold_observer.pipeline as mo

DOCS = Path(__file__).parents[2] / "docs"
WAYS = {"defaults": {}, "method as printed, eight modes": {"preset": "paper", "n_modes": 8}}
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "0.6"


class Shown(NamedTuple):
    """A truth, what to call it, its axis, and how many seconds of it are shown from where."""

    case: Case
    truth: str
    title: str
    axis: str
    seconds: tuple[float, float]


def shown() -> list[Shown]:
    """Three recordings that ask for different things: counts, a phase that rotates, units from 1e-3 to 1e3."""
    return [
        Shown(simulations.field(), "x", "60 place cells", "x (field widths)", (0.0, 120.0)),
        Shown(simulations.heart(), "cos", "heartbeat, 15 leads", "cosine of phase", (0.0, 6.0)),
        Shown(simulations.bench(), "drift", "test bench, 8 sensors", "drift", (0.0, 1200.0)),
    ]


def readings(case: Case, name: str) -> dict[str, tuple[NDArray[Any], float]]:
    """What both ways read of a truth, every fifth by what was learnt from the others, and the score of that."""
    truth = case.truths[name]
    found = {}
    for way, options in WAYS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            state = mo.observe(mo.embed(case.frames, **options), case.frames)["state"].values
        folds = judge.held_out(truth)
        read = judge.reading(state, truth, folds)
        whole = np.full(len(truth.values), np.nan)
        for learn, held in folds:
            whole[held] = truth.values[learn].mean()
        judged = np.concatenate([np.flatnonzero(held) for _, held in folds])
        whole[judged] += read.read[:, 0]
        found[way] = whole, judge.scored(read, truth)
    return found


def draw_readings(path: Path, rows: Sequence[Shown]) -> None:
    """A row a recording, a column a way."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - for those who want the picture

    figure = Figure(figsize=(9, 6), layout="constrained")
    panels = figure.subplots(len(rows), len(WAYS), sharey="row", squeeze=False)
    for row, (case, name, title, axis, (first, last)) in zip(panels, rows, strict=True):
        truth, time = case.truths[name].values, case.frames["time"].values
        some = (time >= first) & (time < last)
        for axes, (read, score) in zip(row, readings(case, name).values(), strict=True):
            axes.plot(time[some], truth[some], color=GREY, linewidth=3, label="what it was")
            axes.plot(time[some], read[some], color=BLUE, linewidth=1, label="read from the state, held out")
            axes.set_title(f"{title}: r = {score:.2f}", loc="left", fontsize=9)
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_xlabel("time (s)", fontsize=8)
        row[0].set_ylabel(axis, fontsize=9)
    for axes, way in zip(panels[0], WAYS, strict=True):
        axes.annotate(way, (0, 1.2), xycoords="axes fraction", fontsize=11, weight="bold")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper right", fontsize=8, ncols=2)
    figure.savefig(path, dpi=110)


def draw_truths(path: Path, results: list[report.Row], way: str = "default") -> None:
    """Every truth: by how much the state is read better than the best of diffusion maps and smoothed PCA."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - for those who want the picture

    known = [(line, report.interval(line, way, "behind alike")) for line in report.lines(results)]
    rows = sorted(((-found[0], -found[2], -found[1], line) for line, found in known if found), key=lambda row: row[0])
    names = [f"{line.case} {line.truth}".replace("_", " ") for *_, line in rows]
    by, low, high = np.array([row[:3] for row in rows]).T
    figure = Figure(figsize=(8, 9), layout="constrained")
    axes, place = figure.subplots(), np.arange(len(rows))
    colours = [ORANGE if value < -0.02 else BLUE for value in by]
    axes.axvspan(-0.02, 0, color="0.9", linewidth=0)
    axes.axvline(0, color="0.4", linewidth=0.8)
    axes.hlines(place, low, high, colors=colours, linewidth=1.5, alpha=0.6)
    axes.scatter(by, place, c=colours, s=18, zorder=3)
    axes.set_yticks(place, names, fontsize=7)
    axes.set_ylim(-1, len(rows))
    axes.set_xlabel("default less the best of diffusion maps and of PCA smoothed alike, with 95 % intervals")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DOCS, help="folder for defaults.png and defaults_truths.png")
    parser.add_argument("--json", type=Path, help="what answers.py has written")
    given = parser.parse_args()
    if given.json:
        draw_truths(given.out / "defaults_truths.png", json.loads(given.json.read_text())["recordings"])
    draw_readings(given.out / "defaults.png", shown())
