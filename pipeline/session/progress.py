"""A bar a stage with the time that remains, in notebooks and terminals, for whatever computes within a block."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from ..jobs.bars import Bars, Lines, StageBar, shown


@contextmanager
def progress(file: TextIO | None = None) -> Iterator[None]:
    """Show a bar for every stage that computes within the block, with the time that remains.

    In a notebook the bars stand below the cell, one below the other, and stay there when it has ended. On a terminal
    the stage that runs has the last line; elsewhere, as in a log, a line is written as each stage ends. Threads and
    Clients report alike. An interrupt leaves the session usable, and the bars as far as they came.

    Parameters
    ----------
    file
        Where to write; the standard error by default, and the cell's output in a notebook.

    Examples
    --------
    >>> import io
    >>> import manifold_observer.pipeline as mo
    >>> walk = np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0)
    >>> said = io.StringIO()
    >>> with progress(said):
    ...     embedding = mo.embed(xr.DataArray(walk, dims=("frame", "feature")))
    >>> "eigensolve" in said.getvalue()
    True
    """
    if file is not None and not hasattr(file, "write"):
        raise TypeError(f"progress: file must be open for writing, such as sys.stdout; got {file!r}. Leave it out.")
    lines = None if file is None and _in_notebook() else Lines(file or sys.stderr)
    with shown(Bars(lines or _notebook()), live=lines is not None and lines.live):
        yield


def _in_notebook() -> bool:
    """Whether this is a cell of a notebook, whose output can be replaced."""
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _notebook() -> Callable[[list[StageBar]], None]:
    """Draw below the cell; HTML, since widgets are lost where a notebook is stored or turned into a page."""
    from IPython.display import HTML, display  # noqa: PLC0415 - only there where somebody runs a notebook

    handle = display(HTML(""), display_id=True)
    return lambda stages: handle.update(_Shown(as_html(stages), "\n".join(map(str, stages))))


class _Shown:
    """The same bars for those that show HTML and those that show text."""

    def __init__(self, page: str, text: str) -> None:
        self._page, self._text = page, text

    def _repr_html_(self) -> str:
        return self._page

    def __repr__(self) -> str:
        return self._text


def as_html(stages: list[StageBar]) -> str:
    """Bars as a table; colours are those of the page.

    Examples
    --------
    >>> "<td>took 3.0 s</td>" in as_html([StageBar("lift", 0.0, 3.0, 1, 1)])
    True
    """
    rows = "".join(
        f"<tr><td>{html.escape(bar.name)}</td><td><progress max='1' value='{bar.share:.3f}' "
        f"style='width:14em'></progress></td><td>{bar.counts}</td><td>{bar.remaining}</td></tr>"
        for bar in stages
    )
    return f"<table style='font-variant-numeric:tabular-nums'>{rows}</table>"
