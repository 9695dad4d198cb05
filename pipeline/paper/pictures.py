"""How pictures look: one style, colours that the colour-blind can tell apart, axes with units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..plot.style import STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, inches; nothing global is touched, and no display is needed.

    Raises
    ------
    ImportError
        The extra "paper" is missing.
    """
    matplotlib = _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
    return figure


def grid(figure: Figure, n_rows: int, n_columns: int, **options: Any) -> Any:
    """Axes (rows, columns) in the style, always two-dimensional."""
    with _matplotlib().rc_context(STYLE):
        return figure.subplots(n_rows, n_columns, squeeze=False, **options)


def label(axes: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Title and labels with units."""
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def legend_below(figure: Figure, axes: Any, columns: int) -> None:
    """The legend of some axes, for all of them, below."""
    handles, labels = axes.get_legend_handles_labels()
    legend_of(figure, handles, labels, columns)


def legend_of(figure: Figure, handles: Sequence[Any], labels: Sequence[str], columns: int) -> None:
    """One legend for all axes, below them."""
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


def require_matplotlib() -> None:
    """Refuse before hours of work what could not be drawn after them.

    Raises
    ------
    ImportError
        The extra "paper" is missing.
    """
    _matplotlib()


def _matplotlib() -> Any:
    """Matplotlib, or the sentence that says how to get it."""
    try:
        import matplotlib  # noqa: PLC0415
    except ImportError:
        raise ImportError(
            "pictures need matplotlib, for which the extra 'paper' is missing. Install it with: pip install matplotlib."
        ) from None
    return matplotlib
