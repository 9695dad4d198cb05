"""Where the lines of a log go: to standard error, or to the end of a file."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from logging.handlers import WatchedFileHandler
from pathlib import Path

from ..jobs.events import listen
from .logs import FORMATS, LOGGER, EventLog
from .places import check_place

# Of text: a time in UTC and a level. Of JSON: the same.
_OURS = re.compile(rb'(\{"time": ")?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z("| [A-Z]+ )')


@contextmanager
def logged(file: Path | None, form: str, said: Callable[[str], str] = str) -> Iterator[None]:
    r"""Write a line for every event within the block.

    Parameters
    ----------
    file
        Log that the lines are added to; None takes standard error, and for the length of the block what other libraries
        log there comes in the same form.
    form
        ``"text"`` or ``"json"``.
    said
        How sentences are put for those who read the log.

    Raises
    ------
    ValueError, OSError
        The file is something else, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from ..jobs.events import Event, emit
    >>> place = Path(tempfile.mkdtemp(), "night.log")
    >>> with logged(place, "text"):
    ...     emit(Event("finished", recording="night1", seconds=2.5))
    >>> place.read_text().split(maxsplit=1)[1]
    'INFO finished recording=night1 seconds=2.5\n'
    """
    handler: logging.Handler = _ToStream(sys.stderr) if file is None else _opened(file)
    handler.setFormatter(FORMATS[form]())
    with ExitStack() as stack:
        stack.callback(handler.close)
        stack.enter_context(_attached(handler))
        if file is None:
            stack.enter_context(_others(form))
        stack.enter_context(listen(EventLog(said=said)))
        yield


class _Forgiving(logging.Handler):
    """A handler that costs no result: what it cannot write is lost, and that is said once."""

    failed = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Say once that lines are missing."""
        error = sys.exc_info()[1]
        if self.failed or not isinstance(self, WatchedFileHandler):
            return
        self.failed = True
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"Warning: log-file: {self.baseFilename} misses lines: {error}.\n")


class _ToStream(_Forgiving, logging.StreamHandler):  # type: ignore[type-arg]
    """Lines on an open stream."""


class _ToFile(_Forgiving, WatchedFileHandler):
    """Lines at the end of a file; a new one is begun where logrotate has moved it."""

    def close(self) -> None:
        """Close the file; what a full disk has not taken is lost, as was said."""
        with contextlib.suppress(OSError):
            super().close()


def _opened(file: Path) -> logging.Handler:
    """A log file, with its last line ended: a run that was killed may have left a part of one."""
    check_place(file, "log-file", lambda head, tail: not head or bool(_OURS.match(head)), streams=True)
    handler = _ToFile(file, encoding="utf-8", errors="backslashreplace")
    if handler.stream is not None and _breaks_off(file):
        handler.stream.write("\n")
    return handler


def _breaks_off(file: Path) -> bool:
    """Whether a file ends within a line."""
    if not stat.S_ISREG(os.stat(file).st_mode) or not os.stat(file).st_size:
        return False
    with file.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read() != b"\n"


@contextmanager
def _attached(handler: logging.Handler) -> Iterator[None]:
    """Give events to a handler; those of a program that this runs in keep theirs."""
    level = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)


@contextmanager
def _others(form: str) -> Iterator[None]:
    """Have what other loggers write to standard error come in the same form."""
    import distributed.config  # noqa: F401, PLC0415 - it gives its loggers their handlers when it is imported

    before: list[tuple[logging.Logger, list[logging.Handler]]] = []
    for logger in [logging.root, *_loggers()]:
        spoken = [handler for handler in logger.handlers if _on_stderr(handler)]
        if logger is not LOGGER and (spoken or logger is logging.root):
            before.append((logger, logger.handlers[:]))
            logger.handlers = [handler for handler in logger.handlers if handler not in spoken]
            logger.handlers.append(_like(spoken, form))
    propagated, LOGGER.propagate = LOGGER.propagate, False
    try:
        yield
    finally:
        LOGGER.propagate = propagated
        for logger, handlers in before:
            logger.handlers = handlers


def _like(spoken: list[logging.Handler], form: str) -> logging.Handler:
    """A handler for one logger alone: Dask sets the levels of those that it finds."""
    handler = _ToStream(sys.stderr)
    handler.setFormatter(FORMATS[form]())
    handler.setLevel(spoken[0].level if spoken else logging.WARNING)
    return handler


def _loggers() -> list[logging.Logger]:
    """All loggers that there are, but the root."""
    return [one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger)]


def _on_stderr(handler: logging.Handler) -> bool:
    """Whether a handler writes to this process's standard error."""
    return isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stderr, sys.__stderr__)
