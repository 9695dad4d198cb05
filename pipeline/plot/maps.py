"""States against each other, in two and three dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from .colours import Colouring, colouring, shown_classes
from .series import in_columns, rows_of, sampled_rows
from .states import mode_label, values_of
from .style import MARKERS, axes_of, dated, matplotlib, plain, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DOTS = 20_000
_CELLS = 256


def map2d(
    state: xr.DataArray | xr.Dataset,
    *,
    modes: tuple[int, int] = (0, 1),
    color: Any = None,
    ax: Any = None,
    density: bool = False,
) -> Axes:
    """Draw two states against each other, one dot a frame; this computes.

    Parameters
    ----------
    state
        What :func:`observe`, :func:`smooth` or :func:`embed` gave, or an array with dims ``(frame, mode)``.
    modes
        Places of the two, from 0.
    color
        None for time, the name of a coordinate along ``frame``, or an array along ``frame``: text or numbers.
    ax
        Axes to draw on; made by default.
    density
        Count all frames in cells instead. Dots are 20,000 frames at most, spread over time.

    Returns
    -------
    The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> waves = xr.DataArray(np.sin(np.arange(100.0)[:, None] / [3, 5]), dims=("frame", "mode"), name="state")
    >>> map2d(waves).get_xlabel()
    'state 1'
    """
    columns = in_columns(values_of(state))
    (axes,) = axes_of(ax, 1, 5.2)
    _check(columns, modes)
    if density:
        _dense(axes, columns, modes)
    else:
        _dots(axes, columns, modes, color)
    axes.set_xlabel(mode_label(columns, modes[0]))
    axes.set_ylabel(mode_label(columns, modes[1]))
    found: Axes = axes
    return found


def map3d(
    state: xr.DataArray | xr.Dataset, *, modes: tuple[int, int, int] = (0, 1, 2), color: Any = None, ax: Any = None
) -> Axes:
    """Draw three states against each other; this computes.

    Parameters
    ----------
    state
        As for :func:`map2d`.
    modes
        Places of the three, from 0.
    color
        As for :func:`map2d`.
    ax
        Axes in three dimensions to draw on; made by default.

    Returns
    -------
    The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> waves = xr.DataArray(np.sin(np.arange(100.0)[:, None] / [3, 5, 7]), dims=("frame", "mode"), name="state")
    >>> map3d(waves).get_zlabel()
    'state 3'
    """
    columns = in_columns(values_of(state))
    _check(columns, modes)
    axes = axes_of(ax, 1)[0] if ax is not None else _solid()
    _dots(axes, columns, modes, color)
    axes.set_xlabel(mode_label(columns, modes[0], short=True))
    axes.set_ylabel(mode_label(columns, modes[1], short=True))
    axes.set_zlabel(mode_label(columns, modes[2], short=True))
    axes.locator_params(nbins=4)
    found: Axes = axes
    return found


def _solid() -> Any:
    """New axes in three dimensions."""
    matplotlib()
    from matplotlib import pyplot  # noqa: PLC0415

    with styled():
        return pyplot.figure(figsize=(7.2, 5.8), layout="constrained").add_subplot(projection="3d")


def _check(columns: xr.DataArray, modes: tuple[int, ...]) -> None:
    """Refuse modes that are not there."""
    if not all(0 <= k < columns.shape[1] for k in modes):
        raise ValueError(f"plot: modes must lie in 0 .. {columns.shape[1] - 1}; got {modes}. Choose with modes=.")


def _dots(axes: Any, columns: xr.DataArray, modes: tuple[int, ...], color: Any) -> None:
    """One dot a frame, coloured."""
    at = sampled_rows(columns.shape[0], _MOST_DOTS)
    rows, by = rows_of(columns[:, list(modes)], at), colouring(columns, color, at)
    style = {"s": 6 if len(at) < 5_000 else 2, "linewidths": 0, "alpha": 0.75}
    if by.classes is None:
        _shaded(axes, rows, by, style)
        return
    codes = np.asarray(by.values)
    shown = shown_classes(by)
    known = [code for _, code, _ in shown if code >= 0]
    for k, (name, code, colour) in reversed(list(enumerate(shown))):
        own = codes == code if code >= 0 else ~np.isin(codes, known)
        axes.scatter(
            *rows[own].T, color=colour, label=plain(name), marker=MARKERS[k % len(MARKERS)], zorder=-k, **style
        )
    handles, names = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1], names[::-1], title=plain(by.name), loc="center left", bbox_to_anchor=(1.02, 0.5), markerscale=2.5
    )


def _shaded(axes: Any, rows: Any, by: Colouring, style: dict[str, Any]) -> None:
    """Dots in the colours of numbers or times, with a bar that tells them."""
    has_dates = by.values.dtype.kind == "M"
    values = by.values.astype("datetime64[ns]").astype(np.int64) / 8.64e13 if has_dates else by.values.astype(float)
    dots = axes.scatter(*rows.T, c=values, cmap="viridis", **style)
    bar = axes.figure.colorbar(dots, ax=axes, shrink=0.8, pad=0.12 if rows.shape[1] == 3 else 0.03)
    bar.set_label(plain(by.name) + (f" ({plain(by.units)})" if by.units and not has_dates else ""))
    bar.solids.set_alpha(1)
    if has_dates:
        dated(bar.ax.yaxis)


def _dense(axes: Any, columns: xr.DataArray, modes: tuple[int, ...]) -> None:
    """How many frames lie in each cell, all of them."""
    from manifold_observer.tasks.plot.clouds import counts  # noqa: PLC0415

    picked = columns[:, list(modes)]
    low, high = picked.min("frame").values, picked.max("frame").values
    edges = [np.linspace(low[k], high[k] if high[k] > low[k] else low[k] + 1, _CELLS + 1) for k in range(2)]
    total, rows = np.zeros((_CELLS, _CELLS), np.int64), 2**21
    for begin in range(0, picked.shape[0], rows):
        total += counts(np.asarray(picked[begin : begin + rows].values, np.float64), *edges)
    from matplotlib.colors import LogNorm  # noqa: PLC0415

    shown = np.where(total > 0, total, np.nan).T
    mesh = axes.pcolormesh(*edges, shown, cmap="viridis", norm=LogNorm(1, max(2, int(total.max()))), rasterized=True)
    axes.figure.colorbar(mesh, ax=axes, shrink=0.8, pad=0.03).set_label("frames")
