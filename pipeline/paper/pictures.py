"""How pictures look: one style, colours that the colour-blind can tell apart, axes with units."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..plot.style import STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_CAPTION, _CAPTION_LETTERS = "caption", 160
WIDTH, HEIGHT = 12.8, 7.2
"""Inches of a slide, 16:9."""
_ABOVE, _BELOW, _LEGEND_ROW = 0.09, 0.085, 0.035
"""Parts of the height that belong to the headline, to the caption and to a row of the legend."""
_STYLE = STYLE | {
    "font.size": 12,
    "axes.titlesize": 12,
    "legend.fontsize": 11,
    "svg.hashsalt": "manifold-observer",
    "pdf.fonttype": 42,
}
_DPI = 150
_UNDATED: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


class Rendered(NamedTuple):
    """One picture as it is written: by ending, with its words."""

    headline: str
    caption: str
    content: dict[str, bytes]


def new_figure(headline: str, caption: str, width: float = WIDTH, height: float = HEIGHT) -> Figure:
    """An empty figure with its headline and caption; nothing global is touched, and no display is needed.

    Raises
    ------
    ImportError
        The extra "paper" is missing.
    """
    matplotlib, wrapped = _matplotlib(), "\n".join(textwrap.wrap(caption, _CAPTION_LETTERS))
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        _make_room(figure, _BELOW)
        figure.suptitle(headline, fontsize=16, x=0.015, y=0.975, ha="left", va="top")
        figure.text(0.015, 0.015, wrapped, fontsize=10.5, color="0.35", va="bottom", gid=_CAPTION)
    return figure


def rendered(figure: Figure, endings: Sequence[str] = ("png", "svg", "pdf")) -> Rendered:
    """A figure in some formats, the same bytes each time, and emptied."""
    caption = next((text.get_text().replace("\n", " ") for text in figure.texts if text.get_gid() == _CAPTION), "")
    headline, content = figure.get_suptitle(), {}
    with _matplotlib().rc_context(_STYLE):
        for ending in endings:
            held = io.BytesIO()
            figure.savefig(held, format=ending, dpi=_DPI, metadata=_UNDATED[ending])
            content[ending] = held.getvalue()
            figure.set_layout_engine("none")  # all are laid out as the first one was
    figure.clear()
    return Rendered(headline, caption, content)


def grid(figure: Figure, n_rows: int, n_columns: int, **options: Any) -> Any:
    """Axes (rows, columns) in the style, always two-dimensional."""
    with _matplotlib().rc_context(_STYLE):
        return figure.subplots(n_rows, n_columns, squeeze=False, **options)


def label(axes: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Title and labels with units."""
    axes.set_title(title, loc="left", fontsize=12)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def legend_below(figure: Figure, axes: Any, columns: int) -> None:
    """The legend of some axes, for all of them, below."""
    handles, labels = axes.get_legend_handles_labels()
    legend_of(figure, handles, labels, columns)


def legend_of(figure: Figure, handles: Sequence[Any], labels: Sequence[str], columns: int) -> None:
    """One legend for all axes, below them and above the caption."""
    figure.legend(
        handles, labels, ncols=columns, frameon=False, loc="lower center", bbox_to_anchor=(0.5, _BELOW - 0.01)
    )
    _make_room(figure, _BELOW + _LEGEND_ROW * math.ceil(len(labels) / columns))


def _make_room(figure: Figure, below: float) -> None:
    """Keep the axes above what stands below them: the caption, or the caption and a legend."""
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0.01, below, 0.98, 1 - _ABOVE - below))


def name_lines(axes: Axes, at: float, ends: Sequence[tuple[float, str, str, bool]], size: float = 10.5) -> None:
    """Names of lines at their ends, in their colours: (height, name, colour, whether it is bold), none above another.

    The limits of the axes are final: names are as far apart as their type is high.
    """
    low, high = axes.get_ylim()
    pixels = axes.get_window_extent().height
    least = 1.25 * size / 72 * axes.figure.dpi / pixels * (high - low)
    order = sorted(ends)
    for height, (_, name, colour, bold) in zip(apart([end[0] for end in order], least), order, strict=True):
        weight = "bold" if bold else "normal"
        axes.text(at, height, name, color=colour, fontsize=size, va="center", weight=weight, clip_on=False)


def apart(heights: Sequence[float], least: float) -> list[float]:
    """Rising heights moved as little as it takes for them to be that far apart.

    Examples
    --------
    >>> apart([0.0, 0.1, 5.0], 1.0)
    [-0.45, 0.55, 5.0]
    """
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _span(groups[-2], least)[1] + least > _span(groups[-1], least)[0]:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [round(_span(group, least)[0] + k * least, 9) for group in groups for k in range(len(group))]


def _span(group: Sequence[float], least: float) -> tuple[float, float]:
    """Lowest and highest of some heights once they are apart about their mean."""
    middle, half = sum(group) / len(group), least * (len(group) - 1) / 2
    return middle - half, middle + half


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
