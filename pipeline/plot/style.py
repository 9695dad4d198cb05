"""How pictures look: labels and units from attributes, long names wrapped, axes that are made where none are given."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

_WIDTH = 34
# Okabe and Ito 2008, with grey in place of yellow, which is too light for lines, and one more.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F", "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "p")
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "image.cmap": "viridis",
}


def matplotlib() -> Any:
    """Matplotlib, or the sentence that says how to get it.

    Raises
    ------
    ImportError
        It is not installed.
    """
    try:
        import matplotlib as found  # noqa: PLC0415
    except ImportError:
        raise ImportError(
            "plot: pictures need matplotlib; it was not found. Install it with pip install matplotlib."
        ) from None
    return found


@contextmanager
def styled() -> Iterator[None]:
    """The style, for what is made within.

    Matplotlib's own context puts all settings back, also the one by which a notebook shows figures, which the first
    picture sets: later ones would not be shown.
    """
    settings = matplotlib().rcParams
    before = {name: settings[name] for name in STYLE}
    settings.update(STYLE)
    try:
        yield
    finally:
        settings.update(before)


def axes_of(ax: Any, n: int = 1, height: float = 3.2, **options: Any) -> list[Any]:
    """The axes that were given, or ``n`` below each other on a new figure."""
    if ax is not None:
        given = list(np.ravel(np.asarray(ax, object)))
        if len(given) != n:
            raise ValueError(f"plot: ax must hold {n} axes for as many panels; got {len(given)}. Give one for each.")
        return given
    matplotlib()
    from matplotlib import pyplot  # noqa: PLC0415

    with styled():
        figure = pyplot.figure(figsize=(8.0, min(height * n, 12.0)), layout="constrained")
        return list(figure.subplots(n, 1, squeeze=False, sharex=n > 1, **options)[:, 0])


def named(values: xr.DataArray, what: str = "") -> str:
    """Name and unit of some values, from their attributes, over several lines where it is long.

    Examples
    --------
    >>> import xarray as xr
    >>> named(xr.DataArray([1.0], name="speed", attrs={"units": "m/s"}))
    'speed (m/s)'
    """
    name = str(what or values.attrs.get("long_name") or values.name or "")
    units = str(values.attrs.get("units", ""))
    told = plain(name) + (f" ({plain(units)})" if units not in ("", "1", "unknown") else "")
    return "\n".join(textwrap.wrap(told, _WIDTH)) or told


def plain(text: str) -> str:
    r"""Text as it stands: Matplotlib would read formulas between dollars.

    Examples
    --------
    >>> print(plain("5 $ or $x^2$"))
    5 \$ or \$x^2\$
    """
    return text.replace("$", r"\$")


def time_axis(axes: Axes, labelled: xr.DataArray | xr.Dataset, time: NDArray[Any]) -> None:
    """Label the axis of time; date-times get a formatter that is short."""
    if time.dtype.kind == "M":
        dated(axes.xaxis)
        axes.set_xlabel("time")
    elif "time" in labelled.coords and time.dtype.kind == "f":
        axes.set_xlabel(f"time ({plain(str(labelled['time'].attrs.get('units', 's')))})")
    else:
        axes.set_xlabel("frame")


def dated(axis: Any) -> None:
    """Let an axis tell date-times, as short as they can be told."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415

    locator = AutoDateLocator()
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))
