"""Pictures of the drift experiment: scores over the drift rate, and what the observer weighs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from ..plot.style import COLOURS
from .pictures import grid, label, name_lines, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE, _GREEN, _BLACK, _GREY = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[6], "#8C8C8C"
_LAGS = 21


class _Line(NamedTuple):
    """How one estimate is drawn."""

    name: str
    colour: str
    width: float
    dashes: Any = "-"


# What the experiment is about is thick and in colour; all else is what it is compared with.
_LINES = {
    "observer": _Line("observer, γ = 0.85", _BLUE, 3.2),
    "kalman": _Line("Kalman filter", _ORANGE, 3.2),
    "smoother": _Line("smoother, uses the future", _GREEN, 2.0, (0, (5, 2))),
    "diffusion_maps": _Line("diffusion maps", _BLACK, 1.6),
    "smoothed_pca": _Line("smoothed PCA", _GREY, 1.2, (0, (4, 2))),
    "moving_average_5": _Line("average of 5", _GREY, 1.2),
    "moving_average_3": _Line("average of 3", _GREY, 1.2),
    "moving_average_2": _Line("average of 2", _GREY, 1.2),
    "tica": _Line("TICA", _GREY, 1.2, (0, (1, 1.5))),
}
# Room for names, in parts of the axis.
_FOR_NAMES = 0.52
_BANDS = ("observer", "kalman")


def draw(joined: xr.Dataset) -> dict[str, Figure]:
    """Correlation and error of all estimates, and impulse responses of the observer."""
    return {
        "correlation": _draw_score(joined, "correlation", "Correlation with the true angle", "correlation r"),
        "nrmse": _draw_score(joined, "nrmse_db", "Error of the reading of the angle", "nRMSE / dB"),
        "impulse": _draw_impulse(joined),
    }


def _draw_score(joined: xr.Dataset, name: str, headline: str, what: str) -> Figure:
    """Means over the realisations, both angles; bands where a deviation is not hidden by others."""
    n = joined.sizes["realisation"]
    figure = new_figure(
        f"{headline}, as the drift gets faster",
        f"Sphere: means of n = {n} realisations at each drift rate; bands are ± one standard deviation. Read held out "
        "on five blocks. Thick lines are the paper's observer and its Kalman gain; the dashed one uses the future; "
        "grey lines are what both are compared with.",
    )
    (row,) = grid(figure, 1, 2, sharey=True)
    shown = {key: line for key, line in _LINES.items() if key in joined["estimate"].values}
    for panel, angle in zip(row, joined["component"].values, strict=True):
        _draw_lines(panel, joined[name].sel(component=angle), shown)
        label(panel, str(angle), "drift rate c / (1/s)", what if panel is row[0] else "")
    _name_ends(figure, row, joined, name, shown)
    return figure


def _draw_lines(panel: Axes, values: xr.DataArray, shown: dict[str, _Line]) -> None:
    """Every estimate over the drift rate, with room for the names on the right."""
    rates = values["drift_rate"].values
    for key, line in reversed(shown.items()):
        own = values.sel(estimate=key)
        mean, deviation = own.mean("realisation"), own.std("realisation")
        panel.plot(rates, mean, color=line.colour, lw=line.width, ls=line.dashes, solid_capstyle="round")
        if key in _BANDS:
            panel.fill_between(rates, mean - deviation, mean + deviation, color=line.colour, alpha=0.15, lw=0)
    panel.set_xticks(rates[:: max(1, len(rates) // 4)])
    panel.set_xlim(rates[0], rates[-1] + _FOR_NAMES * (rates[-1] - rates[0]))
    panel.spines["bottom"].set_bounds(rates[0], rates[-1])
    panel.xaxis.label.set_x(0.5 / (1 + _FOR_NAMES))


def _name_ends(figure: Figure, row: Any, joined: xr.Dataset, name: str, shown: dict[str, _Line]) -> None:
    """Names of the lines where they end, once the panels have their places."""
    figure.draw_without_rendering()
    rates = joined["drift_rate"].values
    last = joined[name].isel(drift_rate=-1).mean("realisation")
    for panel, angle in zip(row, joined["component"].values, strict=True):
        ends = [
            (float(last.sel(estimate=key, component=angle)), line.name, line.colour, line.width > 3)
            for key, line in shown.items()
        ]
        name_lines(panel, rates[-1] + 0.02 * (rates[-1] - rates[0]), ends)


def _draw_impulse(joined: xr.Dataset) -> Figure:
    """Impulse response of the observer a mode, at the slowest and the fastest drift."""
    figure = new_figure(
        "How the observer weighs the past: a window for every mode, and none to choose",
        f"Impulse responses at γ = 0.85, poles averaged over n = {joined.sizes['realisation']} realisations; the "
        "legend has the length of the moving average that lets as much noise through.",
    )
    (row,) = grid(figure, 1, 2, sharey=True)
    lags = np.arange(_LAGS)
    for axes, place in zip(row, (0, -1), strict=True):
        own = joined.isel(drift_rate=place).mean("realisation")
        for number, mode in enumerate(own["mode"].values):
            pole, window = float(own["pole"].sel(mode=mode)), float(own["window"].sel(mode=mode))
            text = f"mode {mode}, as an average of {window:.1f} frames"
            axes.plot(lags, (1 - pole) * pole**lags, color=COLOURS[number], marker="o", ms=4, lw=2, label=text)
        axes.set_xticks(lags[::5])
        label(axes, f"c = {float(own['drift_rate'])} 1/s", "frames since the impulse", "weight")
        axes.legend(frameon=False)
    row[1].set_ylabel("")
    return figure
