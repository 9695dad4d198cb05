"""The picture of a demonstration: what is recorded, what is found, and the truth beside it.

xarray is left out: the process that draws imports this file, and has no other use for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..plot.style import COLOURS, STYLE, matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAMPLES = 1200
"""Samples of the recording that are shown."""
_FRAMES = 800
_GREY, _INK, _BLUE = "#bbbbbb", "#222222", COLOURS[0]


@dataclass(frozen=True)
class Shown:
    """What a picture shows."""

    name: str
    """Of the demonstration."""
    recorded: NDArray[Any]
    """The beginning of the recording, time first."""
    state: NDArray[np.float64]
    """Dims ``(frame, mode)``."""
    truth: NDArray[np.float64]
    """One number a frame, NaN where it is not known."""
    label: str
    """What the truth is."""


def draw(path: Path, shown: Shown) -> None:
    """Write the picture of a demonstration.

    Parameters
    ----------
    path
        PNG file to write.
    shown
        What is on it.
    """
    with matplotlib().rc_context(STYLE):
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415

        figure = Figure(figsize=(11, 3.3), dpi=120, facecolor="white", layout="constrained")
        left, middle, right = figure.subplots(1, 3, width_ratios=[1, 0.9, 1.5])
        state, known, label = shown.state, shown.truth, shown.label
        _recorded(left, shown.recorded)
        dots = middle.scatter(state[:, 0], state[:, 1], c=known, s=3, linewidths=0, rasterized=True)
        middle.set(title="what is found, without labels", xlabel="state, mode 1", ylabel="mode 2", xticks=[], yticks=[])
        figure.colorbar(dots, ax=middle, label=f"hidden {label}", ticks=[])
        _read(right, state, known, label)
        figure.suptitle(f"demonstration: {shown.name}", x=0.01, ha="left", fontsize=9, color="#666666")
        FigureCanvasAgg(figure).print_png(path)  # savefig would draw it twice


def _recorded(axes: Axes, recorded: NDArray[Any]) -> None:
    """The first channels, one above the other."""
    values = np.asarray(recorded, float).reshape(len(recorded), -1)[:, :4]
    step = 1.2 * float(np.ptp(values, axis=0).max() or 1.0)
    for channel, column in enumerate(values.T):
        axes.plot(column + step * channel, color=_INK, linewidth=0.5)
    axes.set(title="what is recorded", xlabel="sample", yticks=[])


def _read(axes: Axes, state: NDArray[np.float64], truth: NDArray[np.float64], label: str) -> None:
    """The truth, and what a linear reading of the state makes of it."""
    known = np.isfinite(truth)
    inputs = np.column_stack([np.ones(len(state)), state])
    guess = inputs @ np.linalg.lstsq(inputs[known], truth[known], rcond=None)[0]
    shown = slice(0, _FRAMES)
    axes.plot(truth[shown], color=_GREY, linewidth=3, label=f"hidden {label}")
    axes.plot(np.where(known, guess, np.nan)[shown], color=_BLUE, linewidth=1.2, label="read from the state")
    axes.set(title=f"the {label}, read linearly: r = {_correlation(guess[known], truth[known]):.2f}", xlabel="frame")
    axes.legend(loc="upper right", ncols=2)


def _correlation(found: NDArray[Any], truth: NDArray[Any]) -> float:
    """The correlation, which is 0 where something never changes."""
    return float(np.corrcoef(found, truth)[0, 1]) if np.std(found) * np.std(truth) else 0.0
