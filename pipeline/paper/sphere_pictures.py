"""Pictures of the point on the sphere: where it goes, how it is read over time, and over all its places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.datasets.simulators.sphere import on_sphere

from ..plot.style import COLOURS
from .pictures import grid, label, legend_below, legend_of, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
SYMBOLS = {"elevation": r"elevation $\theta_1$ / rad", "azimuth": r"azimuth $\theta_2$ / rad"}
NAMES = {
    "observer": "observer",
    "diffusion_maps": "diffusion maps",
    "nystrom": "Nyström",
    "one-sided": "one-sided",
    "shuffled": "the same frames in random order",
}
_FRAME_MINUTES = 6.0 / 60
_FIRST, _SHOWN = 50, 50
_FEW, _BINS = 3, 10
# Goes through white at 0; its ends are told apart by the colour-blind.
_DIVERGING = "PuOr_r"


# ---------------------------------------------------------------------------------------------------- set-up


def draw_set_up(joined: xr.Dataset) -> dict[str, Figure]:
    """Where the point is on the sphere, with sensors and the potential's minimum, beside its elevation over time."""
    n = joined.sizes["frame"]
    figure = new_figure(
        "The set-up: a point wanders over a sphere, seen by three counting sensors",
        f"Shaded: how often each place is visited, n = {n} frames at each of two drift rates c. The pull to the "
        f"minimum is stronger at the larger c. Right: the elevation over {joined.sizes['time']} samples, and its mean.",
    )
    panels = figure.add_gridspec(2, 3, width_ratios=(1, 1, 0.95))
    for column, rate in enumerate(joined["drift_rate"].values):
        axes: Any = figure.add_subplot(panels[:, column], projection="3d")
        _draw_density(axes, joined.isel(path=column)["frame_angle"].values, joined.attrs)
        axes.set_title(f"c = {rate} 1/s", loc="left", fontsize=12, y=0.97)
        if column == 0:
            legend_below(figure, axes, 2)
        _draw_elevation(figure.add_subplot(panels[column, 2]), joined, column)
    return {"paths": figure}


def _draw_density(axes: Any, angles: Floats, attrs: dict[str, Any]) -> None:
    """The sphere, darker where the point is more often; three sensors, the minimum."""
    from matplotlib import colormaps  # noqa: PLC0415

    azimuth, elevation = np.linspace(-np.pi, np.pi, 61), np.linspace(0, np.pi, 31)
    wrapped = (angles[:, 1] + np.pi) % (2 * np.pi) - np.pi
    counts, _, _ = np.histogram2d(angles[:, 0] % np.pi, wrapped, bins=(elevation, azimuth))
    per_area = counts / np.sin((elevation[1:] + elevation[:-1]) / 2)[:, None]
    shade = np.sqrt(per_area / np.quantile(per_area, 0.995)).clip(0, 1)
    corners = on_sphere(np.stack(np.meshgrid(elevation, azimuth, indexing="ij"), axis=-1).reshape(-1, 2))
    x, y, z = corners.T.reshape(3, len(elevation), len(azimuth))
    axes.computed_zorder = False
    colours = colormaps["Blues"](0.08 + 0.87 * shade)
    axes.plot_surface(x, y, z, facecolors=colours, rstride=1, cstride=1, shade=False, rasterized=True, zorder=1)
    axes.scatter(
        *(float(attrs["sensor_distance"]) * np.eye(3)), color=COLOURS[1], marker="^", s=110, label="sensors",
        depthshade=False, edgecolor="white", zorder=3,
    )  # fmt: skip
    minimum = 1.02 * on_sphere(np.atleast_2d(attrs["mean"]))
    style = {"color": COLOURS[6], "marker": "X", "s": 110, "edgecolor": "white", "zorder": 3}
    axes.scatter(*minimum.T, label="minimum of the potential", depthshade=False, **style)
    _plain_box(axes)


def _plain_box(axes: Any) -> None:
    """The same view for every sphere, without a box that hides it."""
    axes.set_box_aspect((1, 1, 1), zoom=1.62)
    axes.view_init(elev=22, azim=32)
    axes.set_axis_off()


def _draw_elevation(axes: Axes, joined: xr.Dataset, path: int) -> None:
    """The elevation over the first samples."""
    own = joined.isel(path=path)
    seconds = np.arange(joined.sizes["time"]) * float(joined.attrs["dt"])
    axes.plot(seconds, own["sample"][:, 0], color=COLOURS[0], lw=1.4)
    axes.axhline(float(np.ravel(joined.attrs["mean"])[0]), color="0.5", lw=1, ls="--")
    every = joined["sample"][..., 0]
    axes.set_ylim(float(every.min()) - 0.05, float(every.max()) + 0.05)
    axes.spines[["top", "right"]].set_visible(False)
    label(axes, f"c = {float(own['drift_rate'])} 1/s", "time / s" if path else "", SYMBOLS["elevation"])


# ------------------------------------------------------------------------------------------- read over time


def draw_time(first: xr.Dataset, angle: str = "elevation") -> Figure:
    """Truth and readings over five minutes, the observer's with its error as a band."""
    readings, truth = first["reading"].sel(component=angle), first["truth"].sel(component=angle)
    r, error = first["correlation"].sel(component=angle), ((readings - truth) ** 2).mean("frame") ** 0.5
    figure = new_figure(
        f"Five minutes of the {angle}, read by the observer and by diffusion maps",
        f"One recording of n = {first.sizes['frame']} frames, read held out on five blocks; shown are frames "
        f"{_FIRST + 1} to {_FIRST + _SHOWN}. The band is ± the observer's root mean square error over the "
        "whole recording.",
    )
    axes = grid(figure, 1, 1)[0, 0]
    shown = slice(_FIRST, _FIRST + _SHOWN)
    minutes = np.arange(first.sizes["frame"])[shown] * _FRAME_MINUTES
    own, wide = readings.sel(estimate="observer")[shown], float(error.sel(estimate="observer"))
    axes.fill_between(minutes, own - wide, own + wide, color=COLOURS[0], alpha=0.15, lw=0)
    for name, colour, width in (("diffusion_maps", COLOURS[1], 1.4), ("observer", COLOURS[0], 3.0)):
        text = f"{NAMES[name]}: r = {float(r.sel(estimate=name)):.2f}, error {float(error.sel(estimate=name)):.2f} rad"
        axes.plot(minutes, readings.sel(estimate=name)[shown], color=colour, lw=width, label=text)
    axes.plot(minutes, truth[shown], color=COLOURS[6], lw=2.0, ls=(0, (4, 1.5)), label="truth")
    axes.set_xlim(minutes[0], minutes[-1])
    label(axes, "", "time / min", SYMBOLS[angle])
    legend_below(figure, axes, 3)
    return figure


# ----------------------------------------------------------------------------------------- over all places


def draw_scatter(first: xr.Dataset, names: Sequence[str], headline: str) -> Figure:
    """Means of the best coordinate over both angles, one row an angle; on the right how much it spreads about them."""
    n = first.sizes["frame"]
    figure = new_figure(
        headline,
        f"One recording, n = {n} frames. Colour: mean of the coordinate that goes best with the angle, in its own "
        f"deviations, in bins of {_FEW} frames or more; r of all frames. Right: how far single frames are from the "
        "mean of their bin; lower is better.",
    )
    angles = first["component"].values
    rows = grid(figure, len(angles), len(names) + 1, width_ratios=[1] * len(names) + [1.05])
    mesh: Any = None
    for row, angle in zip(rows, angles, strict=True):
        is_last = angle == angles[-1]
        for number, (panel, name) in enumerate(zip(row, names, strict=False)):
            values, mode = _best(first, name, str(angle))
            mesh = _draw_bins(panel, first, values)
            r = np.corrcoef(values, first["truth"].sel(component=angle))[0, 1]
            label(panel, f"{NAMES[name]}\ncoordinate {mode + 1}, r = {r:.2f}")
            _outer_labels(panel, is_last, number == 0)
        _draw_spread(row[-1], first, names, str(angle))
        label(row[-1], f"spread, {angle}", SYMBOLS[str(angle)], "deviation within a bin / all")
    figure.colorbar(mesh, ax=list(rows[:, :-1].ravel()), label="mean of the coordinate / its deviation", aspect=40)
    handles, texts = rows[0, -1].get_legend_handles_labels()
    legend_of(figure, handles, texts, len(names))
    return figure


def _outer_labels(panel: Axes, is_last: bool, is_first: bool) -> None:
    """Labels where the grid ends."""
    panel.set_xlabel(SYMBOLS["elevation"] if is_last else "")
    panel.set_ylabel(SYMBOLS["azimuth"] if is_first else "")


def _best(first: xr.Dataset, name: str, angle: str) -> tuple[Floats, int]:
    """The coordinate that goes best with an angle, in deviations and rising with it, and its number."""
    truth = first["truth"].sel(component=angle).values
    every = first["coordinate"].sel(estimate=name).transpose("frame", "mode").values
    r = np.array([np.corrcoef(column, truth)[0, 1] for column in every.T])
    mode = int(np.abs(r).argmax())
    values = every[:, mode] * np.sign(r[mode])
    return (values - values.mean()) / values.std(), mode


def _draw_bins(panel: Axes, first: xr.Dataset, values: Floats) -> Any:
    """Mean of some values in hexagons over both angles."""
    elevation, azimuth = (first["truth"].sel(component=angle).values for angle in ("elevation", "azimuth"))
    size = max(round(np.sqrt(len(values)) / 3), 4)
    style: dict[str, Any] = {"cmap": _DIVERGING, "vmin": -2, "vmax": 2, "linewidths": 0.2}
    return panel.hexbin(elevation, azimuth, C=values, gridsize=size, mincnt=_FEW, **style)


def _draw_spread(panel: Axes, first: xr.Dataset, names: Sequence[str], angle: str) -> None:
    """Deviation of the coordinate within bins of the true angle, equally many frames in each."""
    truth = first["truth"].sel(component=angle).values
    parts = np.array_split(np.argsort(truth), _BINS)
    middles = [truth[part].mean() for part in parts]
    for number, name in enumerate(names):
        values, _ = _best(first, name, angle)
        spread = [values[part].std() for part in parts]
        panel.plot(middles, spread, color=COLOURS[number], lw=2.6 if number == 0 else 1.4, label=NAMES[name])
    panel.set_ylim(0, None)
