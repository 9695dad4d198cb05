"""How far a run is, and how long its stages took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click

# Rough shares of the stages of a run; the bar needs their order of magnitude only.
_SHARES = {
    "simulate": 8,
    "features": 10,
    "frames": 4,
    "covariances": 25,
    "distances": 20,
    "scale": 3,
    "kernel": 15,
    "eigensolve": 25,
    "lift": 3,
    "embedding": 2,
    "observer": 5,
    "scores": 5,
}
# Passes of an eigensolve, until the first one tells how fast the residual falls.
_USUAL_PASSES = 5
_UNITS = 1000


class Stages:
    """Seconds of each stage, and a progress bar with the remaining time on a terminal.

    ``with stages("observe"): ...`` times a stage; :meth:`report` takes the progress within.

    Examples
    --------
    >>> stages = Stages()
    >>> with stages("observe"):
    ...     stages.report("observer", 1, 2)
    >>> list(stages.seconds)
    ['observe']
    """

    def __init__(self, terminal: TextIO | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._terminal = terminal if terminal is not None and terminal.isatty() else None
        self._bar: Any = None
        self._within: dict[str, float] = {}
        self._passes = (0, _USUAL_PASSES)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time one stage."""
        before = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - before, 3)

    @contextmanager
    def bar(self) -> Iterator[None]:
        """Show the bar while the block runs, where there is a terminal."""
        if self._terminal is None:
            yield
            return
        with click.progressbar(length=_UNITS, label="starting", file=self._terminal, show_eta=True) as bar:
            self._bar = bar
            try:
                yield
                bar.label = f"{'done':<12}"
                bar.update(_UNITS - bar.pos)
                bar.render_progress()
            finally:
                self._bar = None

    def report(self, stage: str, done: int, total: int) -> None:
        """Move the bar; a stage that was skipped counts as done when a later one begins.

        A ``"pass"`` over the kernel is a part of the eigensolve, and some panels are a part of the pass.
        """
        if stage == "eigensolve":
            self._passes = (done, total)
        share = done / max(total, 1)
        if stage == "pass":
            passes, expected = self._passes
            stage, share = "eigensolve", (passes + share) / max(expected, passes + 1)
        self._move(stage, share)

    def _move(self, stage: str, within: float) -> None:
        """Show that so much of a stage is done."""
        bar = self._bar
        if bar is None or stage not in _SHARES:
            return
        self._within[stage] = max(self._within.get(stage, 0.0), within)
        order = list(_SHARES)
        before = sum(_SHARES[name] for name in order[: order.index(stage)])
        share = before + _SHARES[stage] * min(self._within[stage], 1.0)
        position = int(_UNITS * share / sum(_SHARES.values()))
        bar.label = f"{stage:<12}"
        bar.update(max(position - bar.pos, 0))


@contextmanager
def works_bar(terminal: TextIO) -> Iterator[Callable[[str, int, int], None]]:
    """Give a progress that shows a bar over equal units of work, with the time remaining, on a terminal.

    Units that were done before are left out of the time.

    Examples
    --------
    >>> import io
    >>> with works_bar(io.StringIO()) as progress:  # no terminal, nothing is shown
    ...     progress("works", 1, 2)
    """
    if not terminal.isatty():
        yield lambda *_: None
        return
    with click.progressbar(length=1, label="units", file=terminal, show_eta=True, show_pos=True) as bar:

        def progress(_: str, done: int, total: int) -> None:
            if bar.pos == 0 and bar.length == 1:
                bar.length, bar.pos = total, done  # the clock starts here
            else:
                bar.update(done - bar.pos)
            bar.render_progress()

        yield progress
