"""How a command that goes on for ever is asked to end: by Ctrl-C or SIGTERM, after what it is doing."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def unheard() -> Iterator[None]:
    """Ctrl-C is heard neither within the block nor, ever, by processes that are started there."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Ending:
    """Catches the first Ctrl-C or SIGTERM within a ``with`` block; a second one ends at once.

    Examples
    --------
    >>> with Ending() as ending:
    ...     before = ending.wait(0)
    ...     signal.raise_signal(signal.SIGTERM)
    ...     before, ending.wait(60)
    (False, True)
    """

    def __enter__(self) -> Ending:
        # A pipe, not an Event: a handler that runs within Event.wait could wait for itself.
        self._reading, self._writing = os.pipe()
        self._before: dict[int, Any] = {number: signal.signal(number, self._asked) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()
        os.close(self._reading)
        os.close(self._writing)

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until asked to end; whether that was asked."""
        return bool(select.select([self._reading], [], [], seconds)[0])

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        os.write(self._writing, b"x")

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
