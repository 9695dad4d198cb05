"""Pictures of the settings that the paper prints beside those of the other experiments."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..plot.style import COLOURS, MARKERS
from .pictures import grid, label, legend_below, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = {
    "observer": "observer, γ = 0.85",
    "moving_average_2": "average of 2",
    "moving_average_3": "average of 3",
    "moving_average_5": "average of 5",
    "diffusion_maps": "diffusion maps",
}


def draw_sphere(joined: xr.Dataset) -> Figure:
    """Correlations of every setting, one column an angle, one row a drift rate."""
    rates, angles = joined["drift_rate"].values, joined["component"].values
    figure = new_figure(
        "The sphere with the settings as printed, and with each of them changed",
        f"Correlation with the true angle, held out: means of n = {joined.sizes['realisation']} realisations ± one "
        "standard deviation. Columns are angles, rows drift rates.",
    )
    axes = grid(figure, len(rates), len(angles), sharex=True, sharey="row")
    places = np.arange(joined.sizes["case"])
    for row, rate in zip(axes, rates, strict=True):
        for panel, angle in zip(row, angles, strict=True):
            values = joined["correlation"].sel(drift_rate=rate, component=angle)
            for number, (key, text) in enumerate(_SHOWN.items()):
                own = values.sel(estimate=key)
                style = {"color": COLOURS[number], "marker": MARKERS[number], "ms": 7, "capsize": 3, "ls": "none"}
                shift = 0.12 * (number - 2)
                panel.errorbar(places + shift, own.mean("realisation"), own.std("realisation"), label=text, **style)
            label(panel, f"{angle}, c = {rate} 1/s", "", "correlation r, held out" if panel is row[0] else "")
            _name_cases(panel, joined["case"].values, ", ", "mean of the azimuth / rad")
    legend_below(figure, axes[0, 0], 5)
    return figure


def draw_circle(joined: xr.Dataset, truth: NDArray[np.float64]) -> Figure:
    """Decay rates of every way to see the angle, mean and standard deviation, with lines at the truth."""
    figure = new_figure(
        "Rates of the circle with the settings as printed, and with each of them changed",
        f"Means of n = {joined.sizes['realisation']} realisations ± one standard deviation; the true rates are dotted, "
        "in the colour of their mode.",
    )
    axes = grid(figure, 1, 1)[0, 0]
    places = np.arange(joined.sizes["case"])
    for number, (mode, true) in enumerate(zip(joined["mode"].values, truth, strict=True)):
        own = joined["rate"].sel(mode=mode)
        style = {"color": COLOURS[number], "marker": MARKERS[number], "ms": 7, "capsize": 3, "ls": "none"}
        shift = 0.13 * (number - 1.5)
        text = rf"$\lambda_{mode}$, its truth dotted"
        axes.errorbar(places + shift, own.mean("realisation"), own.std("realisation"), label=text, **style)
        axes.axhline(true, color=COLOURS[number], lw=1.4, ls=":", zorder=0)
    label(axes, "", "what is seen of the angle, and how distances are measured", r"decay rate $\lambda_\ell$ / (1/s)")
    _name_cases(axes, joined["case"].values, ", ", axes.get_xlabel())
    legend_below(figure, axes, 4)
    return figure


def _name_cases(axes: Any, cases: NDArray[Any], cut: str, what: str) -> None:
    """One tick a case, its parts below each other, and long ones over two lines."""
    names = ["\n".join(line for part in str(case).split(cut) for line in textwrap.wrap(part, 14)) for case in cases]
    axes.set_xticks(range(len(cases)), names, fontsize=9.5)
    axes.set_xlabel(what)
