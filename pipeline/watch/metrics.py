"""Where counts go: to a file for node_exporter, and to the metrics of a Dask scheduler."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from manifold_observer.tasks.atomic import replacing

from ..graph.warn import warn
from ..jobs.events import listen
from . import endpoint
from .counts import HEAD, Counts, as_text, from_text
from .logs import spelt
from .places import check_place

_EVERY_SECONDS = 15.0


@contextmanager
def counted_in(file: Path, every: float = _EVERY_SECONDS) -> Iterator[Counts]:
    """Keep a file of metrics up to date while the block runs, and write it a last time at the end.

    Counters go on from those that the file has, since Prometheus would not see that a nightly job began again at 0.

    Parameters
    ----------
    file
        For node_exporter's textfile collector, which reads ``*.prom``. Its name without the suffix is the label
        ``corpus``.
    every
        Seconds between two writes.

    Raises
    ------
    ValueError, OSError
        Something else is there, or the folder cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> from ..jobs.events import Event, emit
    >>> place = Path(tempfile.mkdtemp(), "nights.prom")
    >>> for night in ("night1", "night2"):
    ...     with counted_in(place) as counts:
    ...         emit(Event("finished", recording=night, n_frames=800))
    ...         counts.ended(0)
    >>> [line for line in place.read_text().splitlines() if line.startswith("manifold_observer_frames")]
    ['manifold_observer_frames_total{corpus="nights"} 1600']
    """
    if file.suffix != ".prom":
        raise ValueError(f"metrics-file: {file} must end in .prom, or node_exporter does not read it. Rename it.")
    check_place(file, "metrics-file", lambda head, tail: head.startswith(HEAD.encode()))
    counts = Counts(_before(file))
    _write(file, counts)  # what fails now fails before anything is computed
    with listen(counts), _every(every, lambda: _write(file, counts)):
        yield counts


def _before(file: Path) -> dict[tuple[str, str], float]:
    """What earlier commands counted."""
    if not file.exists():
        return {}
    return from_text(file.read_text(encoding="utf-8", errors="replace").splitlines())


def _write(file: Path, counts: Counts) -> None:
    """Put the numbers of this moment into the file, in one step; anybody may read it."""
    with replacing(file, durable=False) as out:
        out.write(as_text(counts.values(), str(spelt(file.stem))).encode())


@contextmanager
def _every(seconds: float, work: Callable[[], Any]) -> Iterator[None]:
    """Do something at intervals while the block runs, and once at its end; a failure is told once and costs nothing."""
    over, told = threading.Event(), [False]

    def once() -> None:
        try:
            work()
        except Exception as error:
            if not told[0]:
                told[0] = True
                warn(f"metrics: they could not be written ({error}); the job itself goes on.")

    def again() -> None:
        while not over.wait(seconds):
            once()

    thread = threading.Thread(target=again, name="metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(seconds)
        once()


@contextmanager
def counted_at(client: Any, corpus: str, every: float = _EVERY_SECONDS) -> Iterator[Counts]:
    """Show the counts of the block among the metrics of a Dask scheduler, at ``/metrics`` of its dashboard.

    They stay there when the block has ended, as counters must, until the scheduler ends.

    Parameters
    ----------
    client
        Client of the cluster.
    corpus
        Value of the label ``corpus``.
    every
        Seconds between two updates.

    Raises
    ------
    RuntimeError
        The scheduler has no prometheus_client.
    """
    counts, name = Counts(), str(spelt(corpus))
    shown = endpoint.Shown(client, name)
    shown.check()
    shown.update(counts.values())
    with ExitStack() as stack:
        stack.enter_context(listen(counts))
        stack.enter_context(_every(every, lambda: shown.update(counts.values())))
        yield counts
