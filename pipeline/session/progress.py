"""A bar a stage with the time that remains, in notebooks and terminals, for whatever computes within a block."""

from __future__ import annotations

import html
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from ..graph.compute import watched
from ..jobs.events import Event, listen
from ..jobs.progress import USUAL_PASSES

# Seconds between two drawings, and stages that are too short to be left on a terminal.
_PAUSE, _SHORT = 0.2, 0.5
_WIDTH = 24


@dataclass
class StageBar:
    """How far one stage is.

    Examples
    --------
    >>> bar = StageBar("eigensolve", begun=0.0, now=2.0, done=1, total=4)
    >>> print(bar)
    eigensolve   ██████                    1 of 4     about 6 s left
    """

    name: str
    begun: float
    now: float
    done: float = 0.0
    total: float = 1.0

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total else 1.0

    @property
    def ended(self) -> bool:
        """Whether all of it is done."""
        return self.done >= self.total

    @property
    def remaining(self) -> str:
        """The time that is left at this pace, or that it took."""
        taken = self.now - self.begun
        if self.ended:
            return f"took {_duration(taken)}"
        return f"about {_duration(taken * (1 - self.share) / self.share)} left" if self.share else "begun"

    @property
    def counts(self) -> str:
        """Parts that are done, of how many."""
        return f"{self.done:.0f} of {self.total:.0f}"

    def __str__(self) -> str:
        """One line of text."""
        filled = "█" * round(_WIDTH * self.share)
        return f"{self.name:<12} {filled:<{_WIDTH}}  {self.counts:<10} {self.remaining}"


@dataclass
class Bars:
    """The stages of a block, in the order in which they began; several threads may report."""

    draw: Callable[[list[StageBar]], None]
    clock: Callable[[], float] = time.monotonic
    stages: dict[str, StageBar] = field(default_factory=dict)
    drawn: float = float("-inf")
    lock: Any = field(default_factory=threading.RLock)

    def report(self, stage: str, done: int, total: int) -> None:
        """Take what a stage says of itself."""
        with self.lock:
            now = self.clock()
            name, done_now = ("eigensolve", None) if stage == "pass" else (stage, float(done))
            bar = self.stages.get(name)
            if bar is None or (done_now == 0 and bar.ended):  # once more
                self.stages.pop(name, None)
                bar = self.stages.setdefault(name, StageBar(name, now, now, 0.0, max(total, 1)))
            bar.now = now
            if done_now is None:  # panels within a pass
                bar.total = max(bar.total, USUAL_PASSES) if bar.done == 0 else bar.total
                bar.done = int(bar.done) + min(done / max(total, 1), 0.999)
            else:
                bar.done, bar.total = done_now, max(total, 1)
            if bar.ended or now - self.drawn >= _PAUSE:
                self.drawn = now
                self.draw(list(self.stages.values()))

    def hear(self, event: Event) -> None:
        """Take what a run says of its stages; those that only tell how long they took are left out."""
        if event.kind == "stage" and not event.seconds:
            self.report(event.stage, event.done, event.total)

    def end(self) -> None:
        """Draw what there is."""
        with self.lock:
            self.draw(list(self.stages.values()))


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
    bars = Bars(_notebook() if file is None and _in_notebook() else _Lines(file or sys.stderr))
    with listen(bars.hear), watched(bars.report):
        try:
            yield
        finally:
            bars.end()


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


class _Lines:
    """Draws on a terminal, or writes a line as a stage ends."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._ended = file, set[tuple[str, float]]()
        self._live = hasattr(file, "isatty") and file.isatty()

    def __call__(self, stages: list[StageBar]) -> None:
        if self._live:
            self._file.write("\r\x1b[K")
        for bar in stages:
            if bar.ended and (bar.name, bar.begun) not in self._ended:
                self._ended.add((bar.name, bar.begun))
                if not self._live or bar.now - bar.begun >= _SHORT:
                    self._file.write(f"{bar}\n")
        running = [bar for bar in stages if not bar.ended]
        if self._live and running:
            self._file.write(str(running[-1])[:100])
        self._file.flush()


def _duration(seconds: float) -> str:
    """Time for people."""
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds < 5 else f"{seconds:.0f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
