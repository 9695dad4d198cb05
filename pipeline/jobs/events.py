"""What happens while a job runs, for those who write logs or count: events, and who listens to them.

The standard library only. Events of one process reach the listeners of that process; a corpus passes on in its
own process what its workers report.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

KINDS = ("begun", "started", "stage", "finished", "failed", "retried", "skipped", "warned", "told", "ended")
"""Of a whole corpus: begun, ended. Of a recording: started, then finished, failed or skipped; retried with its wait.
Told: what a computation expects of itself."""


class Event(NamedTuple):
    """Something that happened. What a kind has no use for keeps its default.

    Examples
    --------
    >>> Event("finished", recording="night1", seconds=2.5, n_frames=800).seconds
    2.5
    """

    kind: str
    """One of ``KINDS``."""
    recording: str = ""
    """Name of the recording, as its result is called; empty where a job is about no single one."""
    stage: str = ""
    """Of ``stage``: its name, such as ``eigensolve``."""
    done: int = 0
    """Of ``stage``: units done. Of ``ended`` and every outcome of a recording: recordings of the corpus dealt with."""
    total: int = 0
    """Units or recordings in all."""
    seconds: float = 0.0
    """How long it took: a stage that ended, a recording, a corpus. Of ``retried``: the wait before the next attempt."""
    n_frames: int = 0
    """Of ``finished``: frames of the recording."""
    sentence: str = ""
    """Of ``failed``, ``retried``, ``warned``: why. Of ``told``: what."""


Listener = Callable[[Event], None]

_LISTENERS: list[Listener] = []
_LOCK = threading.Lock()
_RECORDING: ContextVar[str] = ContextVar("recording", default="")


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Have a function called with every event of this process for the length of a block.

    It is called in the thread that the event happens in, and should return at once. One that fails is not called
    again: no result is lost for its sake.

    Parameters
    ----------
    listener
        Takes an :class:`Event`.

    Examples
    --------
    >>> seen = []
    >>> with listen(seen.append):
    ...     emit(Event("stage", stage="eigensolve", done=1, total=5))
    >>> seen[0].stage
    'eigensolve'
    """
    with _LOCK:
        _LISTENERS.append(listener)
    try:
        yield
    finally:
        _forget(listener)


def emit(event: Event) -> None:
    """Tell all listeners; an event without a recording gets that of the block it happens in.

    Examples
    --------
    >>> emit(Event("begun", total=12))  # nobody listens
    """
    if not _LISTENERS:
        return
    if not event.recording:
        event = event._replace(recording=_RECORDING.get())
    for listener in tuple(_LISTENERS):
        try:
            listener(event)
        except Exception as error:
            _forget(listener)
            warnings.warn(f"events: a listener failed and is not called again ({error!r}).", stacklevel=2)


@contextmanager
def about(recording: str) -> Iterator[None]:
    """Events within the block are about a recording.

    Examples
    --------
    >>> seen = []
    >>> with listen(seen.append), about("night1"):
    ...     emit(Event("stage", stage="features", done=1, total=1))
    >>> seen[0].recording
    'night1'
    """
    token = _RECORDING.set(recording)
    try:
        yield
    finally:
        _RECORDING.reset(token)


def _forget(listener: Listener) -> None:
    """Call a listener no more."""
    with _LOCK:
        if listener in _LISTENERS:
            _LISTENERS.remove(listener)
