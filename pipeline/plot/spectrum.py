"""Eigenvalues and their residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from .colours import OTHER
from .style import COLOURS, axes_of, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def spectrum(embedding: xr.Dataset, *, ax: Any = None) -> Axes:
    """Draw the eigenvalues with their largest gap; those that are not kept in grey; residuals as error bars.

    Parameters
    ----------
    embedding
        What :func:`embed` gave.
    ax
        Axes to draw on; made by default.

    Returns
    -------
    The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> toy = xr.Dataset({"eigenvalue": ("mode", [0.9, 0.5]), "residual": ("mode", [1e-9, 1e-9])})
    >>> spectrum(toy).get_xlabel()
    'number of the eigenvalue'
    """
    if "eigenvalue" not in embedding:
        raise ValueError("plot: spectrum needs an embedding with 'eigenvalue'; got none. Give what mo.embed gave.")
    kept = np.asarray(embedding["eigenvalue"].values, float)
    values = np.asarray(embedding["spectrum"].values, float) if "spectrum" in embedding else kept
    values = values if len(values) >= len(kept) else kept
    number = np.arange(1, len(values) + 1)
    (axes,) = axes_of(ax)
    if len(values) > len(kept):
        axes.plot(number, values, "o", color=OTHER, label="looked at")
    error = embedding["residual"].values if "residual" in embedding else None
    axes.errorbar(number[: len(kept)], kept, yerr=error, fmt="o", color=COLOURS[0], capsize=3, label="kept")
    if len(values) > 1:
        k = int(np.argmax(-np.diff(values)))
        axes.annotate(
            f"gap {values[k] - values[k + 1]:.2g}",
            (k + 1.5, (values[k] + values[k + 1]) / 2),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color=COLOURS[1],
        )
        axes.vlines(k + 1.5, values[k + 1], values[k], color=COLOURS[1])
    axes.set_xlabel("number of the eigenvalue")
    axes.set_ylabel(named(embedding["eigenvalue"], "eigenvalue"))
    axes.set_ylim(bottom=min(0.0, values.min()))
    axes.xaxis.get_major_locator().set_params(integer=True)
    if len(values) > len(kept):
        axes.legend()
    found: Axes = axes
    return found
