"""What frames say beyond what was predicted of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from .colours import OTHER
from .series import series
from .style import COLOURS, axes_of, named, time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def residuals(innovation: xr.Dataset, *, ax: Any = None, most: int = 20_000) -> Axes:
    """Draw the size of the innovations over time, their recent level, and where a refit is due; this computes.

    Parameters
    ----------
    innovation
        What :func:`innovations` gave.
    ax
        Axes to draw on; made by default.
    most
        Points of a line, about.

    Returns
    -------
    The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> toy = xr.Dataset({"innovation_size": ("frame", [1.0, 2.0]), "innovation_level": ("frame", [1.0, 1.5])})
    >>> len(residuals(toy).lines)
    3
    """
    if "innovation_size" not in innovation:
        raise ValueError("plot: residuals needs 'innovation_size'; got none. Give what mo.innovations gave.")
    (axes,) = axes_of(ax)
    line = series(innovation["innovation_size"], most)
    axes.plot(line.time, line.values[:, 0], color=OTHER, linewidth=0.6, label="size")
    if "innovation_level" in innovation:
        level = series(innovation["innovation_level"], most)
        axes.plot(level.time, level.values[:, 0], color=COLOURS[0], linewidth=1.6, label="recent level")
        axes.axhline(1.0, color="#000000", linewidth=0.8, linestyle=":", label="level of the embedded frames")
    if "refit_due" in innovation:
        due = np.asarray(innovation["refit_due"].values, bool)
        _mark(axes, innovation["refit_due"], due)
    axes.set_ylabel(named(innovation["innovation_size"], "size of the innovation"))
    time_axis(axes, innovation, line.time)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4)
    found: Axes = axes
    return found


def _mark(axes: Any, labelled: xr.DataArray, due: Any) -> None:
    """A ground under the frames where a refit is due."""
    from manifold_observer.tasks.plot.lines import runs  # noqa: PLC0415

    from .series import times_of  # noqa: PLC0415

    time = times_of(labelled)
    first = True
    for begin, end in zip(*runs(due.astype(np.int64)), strict=True):
        if due[begin]:
            label = "refit due" if first else None
            axes.axvspan(time[begin], time[end - 1], color=COLOURS[1], alpha=0.15, linewidth=0, label=label)
            first = False
