"""How far a run is, and how long its stages took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from .bars import Bars, shown
from .events import Event, emit

STAGES = {
    "tune": "settings that are tried",
    "references": "frames by which new ones are placed",
    "extend": "new frames, placed",
    "simulate": "the recording of a demonstration",
    "sample": "recordings from which the sample of a map is drawn",
    "features": "frames that are stored",
    "frames": "passes over the frames: their values and moments",
    "sums": "row sums of the kernel over landmarks",
    "links": "frames that are linked through landmarks",
    "landmarks": "frames against landmarks",
    "near": "landmarks that lie near each other",
    "blocks": "blocks of frames, joined for many workers",
    "covariances": "local covariances",
    "distances": "sampled distances, for the scale",
    "scale": "local scales",
    "kernel": "tiles of the kernel",
    "eigensolve": "passes over the kernel",
    "lift": "features as the coordinates give them",
    "projections": "frames in the lift",
    "embedding": "the embedding, stored",
    "observer": "states",
    "smoother": "states from all frames",
    "scores": "scores of a demonstration",
    "verify": "arrays whose checksums are read",
    "report": "parts of the page",
    "works": "units of an experiment",
}
"""What is counted in each stage; names are those of logs and metrics."""


class Stages:
    """Seconds of each stage, and a bar for the one that runs.

    ``with stages("observe"): ...`` times a stage; :meth:`report` takes the progress within.

    Examples
    --------
    >>> stages = Stages()
    >>> with stages("observe"):
    ...     stages.report("observer", 1, 2)
    >>> list(stages.seconds)
    ['observe']
    """

    def __init__(self, bars: Bars | None = None, *, live: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self.far: dict[str, tuple[int, int]] = {}
        """Parts that each stage has done, of how many, as it said last."""
        self._bars, self._live = bars, live

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time one stage."""
        before = time.perf_counter()
        try:
            with nullcontext() if self._bars is None else self._bars.phase("working" if name == "total" else name):
                yield
        finally:
            taken = time.perf_counter() - before
            self.seconds[name] = round(self.seconds.get(name, 0.0) + taken, 3)
            emit(Event("stage", stage=name, done=1, total=1, seconds=taken))

    @contextmanager
    def bar(self) -> Iterator[None]:
        """Show the bars while the block runs, if there are some."""
        with nullcontext() if self._bars is None else shown(self._bars, live=self._live):
            yield

    def report(self, stage: str, done: int, total: int) -> None:
        """Tell whoever listens, the bars among them; a ``"pass"`` over the kernel is a part of the eigensolve."""
        self.far[stage] = done, total
        emit(Event("stage", stage=stage, done=done, total=total))
