"""Several estimates of the same frames beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import xarray as xr

from .series import in_columns, series
from .states import values_of
from .style import COLOURS, axes_of, plain, time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def compare(
    estimates: Mapping[str, xr.DataArray | xr.Dataset], *, mode: int = 0, ax: Any = None, most: int = 20_000
) -> list[Axes]:
    """Draw one mode of several estimates over the same time, each in its own deviations; this computes.

    Parameters
    ----------
    estimates
        By name, such as what :func:`baselines` gave and a state: arrays with dims ``(frame, mode)``. The first is drawn
        in colour, the others in grey.
    mode
        Place of the mode, from 0.
    ax
        Axes to draw on, one for each; made by default.
    most
        Points of a line, about.

    Returns
    -------
    One axes for each estimate, on the same scale.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> wave = xr.DataArray(np.sin(np.arange(100.0))[:, None], dims=("frame", "mode"))
    >>> len(compare({"observer": wave, "PCA": 2 * wave}))
    2
    """
    if not estimates:
        raise ValueError("plot: compare needs at least one estimate; got none. Give a dictionary of them.")
    axes = axes_of(ax, len(estimates), 1.5)
    for k, (own, (name, given)) in enumerate(zip(axes, estimates.items(), strict=True)):
        values = in_columns(values_of(given))[:, mode]
        mean, spread = float(values.mean()), float(values.std())
        line = series((values - mean) / (spread or 1.0), most)
        own.plot(
            line.time, line.values[:, 0], color=COLOURS[0] if k == 0 else "#6F6F6F", linewidth=1.1 if k == 0 else 0.8
        )
        own.set_title(plain(name), loc="left")
        own.set_ylabel("deviations")
        time_axis(own, values, line.time)
    low = min(own.get_ylim()[0] for own in axes)
    high = max(own.get_ylim()[1] for own in axes)
    for own in axes:
        own.set_ylim(low, high)
        own.label_outer()
    return axes
