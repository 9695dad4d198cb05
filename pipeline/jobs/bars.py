"""Bars of stages with the time that remains: what a terminal, a log and a notebook show of whatever computes."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from ..graph.durations import duration
from ..graph.progress import watched
from .events import Event, listen

USUAL_PASSES = 5
"""Passes that an eigensolve is taken to need, until the first one tells how fast the residual falls."""
# Seconds between two drawings, and stages that are too short to be left on a terminal.
_PAUSE, _SHORT = 0.2, 0.5
# Seconds after which a bar is drawn again although nothing was reported.
_TICK = 0.5
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
    reported: float | None = None
    """When the last part was done, if that was before now."""
    found: float = 0.0
    """Parts that were done before it began."""

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
            return f"took {duration(taken)}"
        if self.done <= self.found:
            return f"for {duration(taken)}" if taken >= 1 else "begun"
        at_report = (self.now if self.reported is None else self.reported) - self.begun
        left = at_report * (self.total - self.found) / (self.done - self.found) - taken
        # A part that takes longer than those before it takes at least as long again as it is late.
        return f"about {duration(max(left, -left, 0.1))} left"

    @property
    def counts(self) -> str:
        """Parts that are done, of how many."""
        return f"{int(self.done)} of {self.total:.0f}" if math.isfinite(self.total) else ""

    def __str__(self) -> str:
        """One line of text."""
        return self.line()

    def line(self, block: str = "█") -> str:
        """One line of text, whose bar is made of some character."""
        filled = block * round(_WIDTH * self.share)
        return f"{self.name:<12} {filled:<{_WIDTH}}  {self.counts:<10} {self.remaining}"


@dataclass
class Bars:
    """The stages of a block, in the order in which they began; several threads may report."""

    draw: Callable[[list[StageBar]], None]
    clock: Callable[[], float] = time.monotonic
    stages: dict[str, StageBar] = field(default_factory=dict)
    phases: list[StageBar] = field(default_factory=list)
    """What is under way, the last one innermost; shown while no stage of it counts anything."""
    drawn: float = float("-inf")
    lock: Any = field(default_factory=threading.RLock)

    def report(self, stage: str, done: int, total: int) -> None:
        """Take what a stage says of itself."""
        with self.lock:
            now = self.clock()
            name, done_now = ("eigensolve", None) if stage == "pass" else (stage, float(done))
            bar = self.stages.get(name)
            if bar is None or (bar.ended and done_now is not None and done_now < bar.done):  # once more
                self.stages.pop(name, None)
                bar = self.stages.setdefault(name, StageBar(name, now, now, found=done_now or 0.0))
            bar.now, bar.reported = now, now
            if done_now is None:  # panels within a pass
                bar.total = max(bar.total, USUAL_PASSES) if bar.done == 0 else bar.total
                bar.done = int(bar.done) + min(done / max(total, 1), 0.999)
            else:
                bar.done, bar.total = done_now, max(total, 1)
            if bar.ended or now - self.drawn >= _PAUSE:
                self._draw(now)

    def hear(self, event: Event) -> None:
        """Take what a run says of its stages; those that only tell how long they took are left out."""
        if event.kind == "stage" and not event.seconds:
            self.report(event.stage, event.done, event.total)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Show a name for the length of a block where nothing else is shown, such as while a cluster starts."""
        now = self.clock()
        own = StageBar(name, now, now, 0.0, math.inf)
        self.phases.append(own)
        try:
            yield
        finally:
            self.phases.remove(own)

    def tick(self) -> None:
        """Draw again, with the time that has passed since a stage last said something."""
        with self.lock:
            now = self.clock()
            if now - self.drawn >= _TICK:
                self._draw(now)

    def end(self) -> None:
        """Draw what there is; a line that is drawn on is left empty for what comes next, such as an error."""
        with self.lock:
            self.draw(list(self.stages.values()))
            if isinstance(self.draw, Lines):
                self.draw.clear()

    def _draw(self, now: float) -> None:
        """Draw at a moment."""
        self.drawn = now
        counting = list(self.stages.values())
        waiting = [] if any(not bar.ended for bar in counting) else self.phases[-1:]
        for bar in [bar for bar in counting + waiting if not bar.ended][-1:]:
            bar.now = now
        self.draw(counting + waiting)


class Lines:
    """Draws on a terminal, or writes a line as a stage ends."""

    def __init__(self, file: TextIO, *, brief: bool = False) -> None:
        self._file, self._ended = file, set[tuple[str, float]]()
        self._brief, self._on_line = brief, False
        self.live = is_terminal(file)
        self._block = _block(file)

    def __call__(self, stages: list[StageBar]) -> None:
        """Write the stages that have ended, and on a terminal the one that runs."""
        text = "\r\x1b[K" if self.live else ""
        for bar in stages:
            if bar.ended and (bar.name, bar.begun) not in self._ended:
                self._ended.add((bar.name, bar.begun))
                if self._is_worth(bar):
                    text += f"{bar.line(self._block)}\n"
        running = [bar for bar in stages if not bar.ended]
        self._on_line = self.live and bool(running)
        if self._on_line:
            text += running[-1].line(self._block)[: _columns(self._file) - 1]
        if text:
            self._file.write(text)
            self._file.flush()

    def clear(self) -> None:
        """Empty the line of the bar for what is written there next."""
        if self._on_line:
            self._on_line = False
            self._file.write("\r\x1b[K")
            self._file.flush()

    def _is_worth(self, bar: StageBar) -> bool:
        """Whether a stage that has ended has a line of its own."""
        return not self._brief and (not self.live or bar.now - bar.begun >= _SHORT)


@contextmanager
def shown(bars: Bars, *, live: bool = False) -> Iterator[None]:
    """Have bars follow whatever computes within a block.

    Parameters
    ----------
    bars
        What to show.
    live
        Whether they are drawn again as time passes.
    """
    ending = threading.Event()
    thread = threading.Thread(target=_ticking, args=(bars, ending), daemon=True, name="bars") if live else None
    with listen(bars.hear), watched(bars.report):
        if thread is not None:
            thread.start()
        try:
            yield
        finally:
            ending.set()
            if thread is not None:
                thread.join(_TICK)  # it would draw over what comes next
            bars.end()


def is_terminal(file: Any) -> bool:
    """Whether a line of a file can be drawn again.

    Examples
    --------
    >>> import io
    >>> is_terminal(io.StringIO())
    False
    """
    return bool(hasattr(file, "isatty") and file.isatty()) and os.environ.get("TERM") != "dumb"


def _ticking(bars: Bars, ending: threading.Event) -> None:
    """Draw now and then, until the end."""
    while not ending.wait(_TICK):
        with contextlib.suppress(OSError, ValueError):  # the terminal is gone
            bars.tick()


def _columns(file: TextIO) -> int:
    """Width of a terminal as it is now: windows are resized."""
    try:
        return os.get_terminal_size(file.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 100


def _block(file: TextIO) -> str:
    """What bars are made of, in the encoding of a file."""
    try:
        "█".encode(getattr(file, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return "#"
    return "█"
