"""States over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from .colours import OTHER, colouring, shown_classes
from .series import in_columns, series, times_of
from .style import COLOURS, axes_of, named, plain, time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAND = 1.96


def states(state: xr.DataArray | xr.Dataset, *, color: Any = None, ax: Any = None, most: int = 20_000) -> list[Axes]:
    """Draw every state over time, with its 95 % band where ``state_std`` is there; this computes.

    Lines are not drawn across gaps. Above ``most`` points a line goes through the least and the largest value of every
    few frames.

    Parameters
    ----------
    state
        What :func:`observe` or :func:`smooth` gave, or an array with dims ``(frame, mode)`` or ``(frame,)``.
    color
        Labels that are shown below the lines: the name of a coordinate along ``frame``, or an array.
    ax
        Axes to draw on, one for each mode; made by default.
    most
        Points of a line, about.

    Returns
    -------
    One axes for each mode.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> wave = xr.DataArray(np.sin(np.arange(100.0))[:, None], dims=("frame", "mode"), name="state")
    >>> len(states(wave))
    1
    """
    values = values_of(state)
    columns = in_columns(values)
    axes = axes_of(ax, columns.shape[1], 1.9 if columns.shape[1] > 1 else 3.2)
    line = series(values, most)
    low, high = _band(state, most)
    for k, own in enumerate(axes):
        own.plot(line.time, line.values[:, k], color=COLOURS[0], linewidth=0.9)
        if low is not None and high is not None:
            own.fill_between(line.time, low[:, k], high[:, k], color=COLOURS[0], alpha=0.2, linewidth=0)
        own.set_ylabel(mode_label(columns, k))
        if color is not None:
            _labelled(own, columns, color)
    if color is not None:
        middle = axes[len(axes) // 2]
        middle.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title=plain(colouring(columns, color).name))
    time_axis(axes[-1], columns, line.time)
    return axes


def values_of(state: xr.DataArray | xr.Dataset) -> xr.DataArray:
    """The array of a result."""
    if isinstance(state, xr.Dataset):
        name = next((one for one in ("state", "coordinate") if one in state), None)
        if name is None:
            raise ValueError(f"plot: the dataset must hold 'state' or 'coordinate'; got {', '.join(map(str, state))}.")
        return state[name]
    return state


def _band(state: xr.DataArray | xr.Dataset, most: int) -> tuple[Any, Any]:
    """Bounds of the band, if there is one."""
    if not isinstance(state, xr.Dataset) or "state_std" not in state:
        return None, None
    width = _BAND * state["state_std"]
    return series(state["state"] - width, most).values, series(state["state"] + width, most).values


def mode_label(columns: xr.DataArray, k: int, *, short: bool = False) -> str:
    """Which column a panel shows."""
    if columns.shape[1] == 1 and columns.dims[1] == "column":
        return named(columns)
    number = columns.coords[columns.dims[1]].values[k] if columns.dims[1] in columns.coords else k + 1
    reads = f"\n{plain(str(columns['reads'].values[k]))}" if "reads" in columns.coords and not short else ""
    return named(columns, f"{columns.name or columns.dims[1]} {number}") + reads


def _labelled(axes: Any, columns: xr.DataArray, color: Any) -> None:
    """A strip of labels along the foot of a panel."""
    from manifold_observer.tasks.plot import lines  # noqa: PLC0415

    found = colouring(columns, color)
    if found.classes is None:
        raise ValueError("plot: states takes labels as color; got numbers. Draw those with states(color_array).")
    codes = np.where(np.asarray(found.values) < len(COLOURS), found.values, -1)
    time, (begin, end) = np.asarray(times_of(columns)), lines.runs(codes)
    for name, code, colour in shown_classes(found):
        spans = [(time[a], time[b - 1] - time[a]) for a, b in zip(begin, end, strict=True) if codes[a] == code]
        bars = [(one, width or np.diff(time[:2])[0]) for one, width in spans] if len(time) > 1 else spans
        axes.broken_barh(
            [(_number(a), _number(a + w) - _number(a)) for a, w in bars],
            (0.0, 0.04),
            transform=axes.get_xaxis_transform(),
            color=colour or OTHER,
            label=plain(name),
        )


def _number(time: Any) -> float:
    """A time as Matplotlib counts it."""
    if isinstance(time, np.datetime64):
        from matplotlib.dates import date2num  # noqa: PLC0415

        return float(date2num(time))
    return float(time)
