"""How a command ends when it is asked to: by Ctrl-C, SIGTERM or SIGHUP, with one line and its clean-up.

The standard library's lightest parts only: this is imported, and listens, before anything else.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

# Windows has no SIGHUP, and no masks of signals.
_SIGHUP = getattr(signal, "SIGHUP", None)
_SIGNALS = tuple(number for number in (signal.SIGINT, signal.SIGTERM, _SIGHUP) if number is not None)
# Exit code of a command that a signal ended: this and the signal's number, as shells have it.
_SIGNALLED = 128
# A worker needs longer than this to import what it runs, and has no files before.
_NEWBORN_SECONDS = 1.0


class Interrupted(KeyboardInterrupt):
    """A signal asked the command to end; handlers of Ctrl-C treat all of them alike.

    Examples
    --------
    >>> Interrupted(signal.SIGTERM).code
    143
    """

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.code = _SIGNALLED + number


class Hearing:
    """What signals do while a command runs: the first raises :class:`Interrupted`, a second one ends the process.

    Until :meth:`begin` there is nothing to clean up (the program is still being imported), and the first one ends it
    as well. A signal that was ignored from the start, as ``nohup`` has it, stays ignored.
    """

    def __init__(self) -> None:
        self._begun = False
        self.heard: int | None = None
        """The signal that was heard."""

    def listen(self) -> Hearing:
        """Take the signals over, for good."""
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._hear)
        self._before, sys.unraisablehook = sys.unraisablehook, self._swallowed
        return self

    def begin(self) -> None:
        """From now on there is something to clean up."""
        self._begun = True

    def leave(self, code: int, line: str = "") -> None:
        """End the process without waiting for its threads; workers that it started see that, and end too."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, RuntimeError):  # closed, or caught in the middle of a write
                continue
        _end_newborn()
        if line:
            os.write(2, line.encode())
        os._exit(code)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.heard is not None or not self._begun:
            self.leave(_SIGNALLED + number, "Error: interrupted\n")
        self.heard = number
        _be_quiet()
        raise Interrupted(number)

    def _swallowed(self, unraisable: Any) -> None:
        """An interrupt that fell into a finalizer, from which Python lets nothing out, is raised again."""
        if not isinstance(unraisable.exc_value, Interrupted):
            self._before(unraisable)
            return
        from threading import Timer  # noqa: PLC0415 - as late as it can be

        number, self.heard = self.heard, None
        again = Timer(0.05, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()


def _end_newborn() -> None:
    """End workers that are being started: one that has not heard yet what to run would print that nobody says it."""
    psutil = sys.modules.get("psutil")
    if psutil is None:
        return
    try:
        for child in psutil.Process().children():
            if time.time() - child.create_time() < _NEWBORN_SECONDS and "spawn_main" in " ".join(child.cmdline()):
                child.kill()
    except psutil.Error:  # it has ended by itself
        return


def _be_quiet() -> None:
    """What ends with the command has nothing to say: threads and tasks whose workers go complain otherwise."""
    import logging  # noqa: PLC0415 - loaded long before, where there is anything to be quiet
    import threading  # noqa: PLC0415

    logging.disable(logging.CRITICAL)
    threading.excepthook = lambda _: None


@contextmanager
def unheard() -> Iterator[None]:
    """Threads and processes that are started within the block never hear Ctrl-C or SIGHUP; nor do theirs.

    Both go to every process of a terminal. This one hears what comes meanwhile at the end of the block.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Ending:
    """Catches the first Ctrl-C, SIGTERM or SIGHUP within a ``with`` block; a second one ends at once.

    Examples
    --------
    >>> with Ending() as ending:
    ...     before = ending.wait(0)
    ...     signal.raise_signal(signal.SIGTERM)
    ...     before, ending.wait(60)
    (False, True)
    """

    def __enter__(self) -> Ending:
        import socket  # noqa: PLC0415 - only where somebody waits

        # Not an Event: a handler that runs within Event.wait could wait for itself. Windows cannot select a pipe.
        self._reading, self._writing = socket.socketpair()
        heard = [n for n in _SIGNALS if n != _SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
        self._before: dict[int, Any] = {number: signal.signal(number, self._asked) for number in heard}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()
        self._reading.close()
        self._writing.close()

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until asked to end; whether that was asked."""
        return bool(select.select([self._reading], [], [], seconds)[0])

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        self._writing.send(b"x")

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
