"""A result on one figure, for a slide."""

from __future__ import annotations

from typing import Any

import xarray as xr

from .colours import labels_along
from .maps import map2d, map3d
from .spectrum import spectrum
from .states import states
from .style import matplotlib, styled

_MOST_MODES = 4


def report_figure(result: xr.DataTree, *, color: Any = None) -> list[Any]:
    """Draw a result on one figure of 16:9: states over time, two maps and the spectrum; this computes.

    Parameters
    ----------
    result
        What :func:`run` or :func:`load` gave.
    color
        What the maps are coloured by, as for :func:`map2d`; the first labels that the frames carry by default, else
        time.

    Returns
    -------
    Axes: those of the states, the map in two dimensions, that in three (where there are three), the spectrum. Their
    ``figure`` is saved with ``axes[0].figure.savefig("result.pdf")``.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> waves = xr.DataArray(np.sin(np.arange(100.0)[:, None] / [3, 5, 7]), dims=("frame", "mode"))
    >>> embedding = xr.Dataset({"eigenvalue": ("mode", [0.9, 0.8, 0.1])})
    >>> toy = xr.DataTree.from_dict({"state": xr.Dataset({"state": waves}), "embedding": embedding})
    >>> len(report_figure(toy))
    6
    """
    matplotlib()
    from matplotlib import pyplot  # noqa: PLC0415

    state = result["state"].to_dataset()
    n_modes = min(_MOST_MODES, state.sizes["mode"])
    if color is None:
        color = next(iter(labels_along(state)), None)
    with styled():
        figure = pyplot.figure(figsize=(12.8, 7.2), layout="constrained")
        left, right = figure.add_gridspec(1, 2, width_ratios=[1.25, 1])
        above = list(left.subgridspec(n_modes, 1).subplots(sharex=True, squeeze=False)[:, 0])
        drawn = states(state.isel(mode=slice(n_modes)), ax=above)
        for one in drawn[:-1]:
            one.label_outer()
        return drawn + _maps(figure, right, state, color, result["embedding"].to_dataset())


def _maps(figure: Any, place: Any, state: xr.Dataset, color: Any, embedding: xr.Dataset) -> list[Any]:
    """The right half: the flat map above the one in three dimensions and the spectrum."""
    grid = place.subgridspec(2, 2, height_ratios=[1.25, 1], width_ratios=[1.3, 1])
    drawn: list[Any] = []
    if state.sizes["mode"] > 1:
        drawn.append(map2d(state, color=color, ax=figure.add_subplot(grid[0, :])))
    if state.sizes["mode"] > 2:
        drawn.append(_solid(state, color, figure.add_subplot(grid[1, 0], projection="3d")))
    return [*drawn, spectrum(embedding, ax=figure.add_subplot(grid[1, len(drawn) - 1 if len(drawn) == 2 else 0]))]


def _solid(state: xr.Dataset, color: Any, axes: Any) -> Any:
    """The map in three dimensions, whose colours are told beside the flat one."""
    before = set(axes.figure.axes)
    map3d(state, color=color, ax=axes)
    for bar in set(axes.figure.axes) - before:
        bar.remove()
    if axes.get_legend() is not None:
        axes.get_legend().remove()
    axes.set_box_aspect(None, zoom=0.78)
    axes.tick_params(labelsize=7, pad=0)
    return axes
