"""How far a run is, and how long its stages took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TextIO

import click

from .events import Event, emit


class Stage(NamedTuple):
    """A stage as it is reported, and how much of a run it takes."""

    name: str
    share: float
    """Rough seconds beside those of the others; the bar needs their order of magnitude only."""
    skips: frozenset[str] = frozenset()
    """Stages after it that a run with this one does not have."""


_EXACT = frozenset(("near", "covariances", "distances", "scale", "kernel", "eigensolve", "lift"))
_AFTER = frozenset(("projections", "embedding", "observer", "smoother", "scores"))
# In the order of a run. A stage that it does not have counts as done when a later one begins. New frames are placed in
# an embedding in the stages "frames", "covariances", "references" and "extend".
STAGES = (
    Stage("tune", 100),
    Stage(
        "references", 10, _EXACT | _AFTER | {"simulate", "sample", "features", "frames", "sums", "links", "landmarks"}
    ),
    Stage("extend", 30, _EXACT | _AFTER | {"simulate", "sample", "features", "frames", "sums", "links", "landmarks"}),
    Stage("simulate", 8),
    Stage("sample", 8),
    Stage("features", 10),
    Stage("frames", 4),
    Stage("sums", 30),
    Stage("links", 60),
    Stage("landmarks", 60, _EXACT),
    Stage("near", 8),
    Stage("covariances", 25),
    Stage("distances", 20),
    Stage("scale", 3),
    Stage("kernel", 15),
    Stage("eigensolve", 25),
    Stage("lift", 3),
    Stage("projections", 2),
    Stage("embedding", 2),
    Stage("observer", 5),
    Stage("smoother", 5),
    Stage("scores", 5),
)
_PLACES = {stage.name: place for place, stage in enumerate(STAGES)}
# Passes of an eigensolve, until the first one tells how fast the residual falls.
USUAL_PASSES = 5
"""Passes that an eigensolve is taken to need at first."""
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
        # Where each stage begins and ends on the bar, from 0 to 1.
        self._parts: dict[str, tuple[float, float]] = {}
        self._passes = (0, USUAL_PASSES)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time one stage."""
        before = time.perf_counter()
        try:
            yield
        finally:
            taken = time.perf_counter() - before
            self.seconds[name] = round(self.seconds.get(name, 0.0) + taken, 3)
            emit(Event("stage", stage=name, done=1, total=1, seconds=taken))

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
        """Move the bar.

        A ``"pass"`` over the kernel is a part of the eigensolve, and some panels are a part of the pass.
        """
        emit(Event("stage", stage=stage, done=done, total=total))
        if stage == "eigensolve":
            self._passes = (done, total)
        share = done / max(total, 1)
        if stage == "pass":
            passes, expected = self._passes
            stage, share = "eigensolve", (passes + share) / max(expected, passes + 1)
        elif done == 0 and self._within.get(stage, 0.0) >= 1:  # once more, such as a pass over the frames
            self._parts.pop(stage)
            self._within.pop(stage)
        self._move(stage, share)

    def _move(self, stage: str, within: float) -> None:
        """Show that so much of a stage is done."""
        bar = self._bar
        if bar is None or stage not in _PLACES:
            return
        begin, end = self._parts.setdefault(stage, self._part(STAGES[_PLACES[stage]]))
        self._within[stage] = min(max(self._within.get(stage, 0.0), within), 1.0)
        position = round(_UNITS * (begin + (end - begin) * self._within[stage]))
        bar.label = f"{stage:<12}"
        bar.update(max(position - bar.pos, 0))

    def _part(self, stage: Stage) -> tuple[float, float]:
        """Where a stage that begins now begins and ends: it shares what is left with those that may follow."""
        skipped = frozenset().union(stage.skips, *(STAGES[_PLACES[name]].skips for name in self._parts))
        follow = [
            later.share
            for later in STAGES[_PLACES[stage.name] + 1 :]
            if later.name not in self._parts and later.name not in skipped
        ]
        begin = self._bar.pos / _UNITS
        return begin, begin + (1 - begin) * stage.share / (stage.share + sum(follow))


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
