"""Settings of a whole process that several threads need at once: made by the first, taken back by the last.

``dask.config.set`` and ``warnings.catch_warnings`` change what all threads see, and put back what they found:
two that overlap in two threads leave the one's state behind, or take it away while the other still works.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

import dask


class Shared:
    """A context that is entered by the first of those who need it and left by the last.

    Examples
    --------
    >>> shared = Shared(lambda: dask.config.set({"a-setting": 1}))
    >>> with shared():
    ...     with shared():
    ...         pass
    ...     dask.config.get("a-setting")
    1
    """

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._users = 0
        self._stack = ExitStack()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Need it for the length of a block."""
        with self._lock:
            if self._users == 0:
                self._stack.enter_context(self._make())
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._stack.close()


_FOR_USERS = (UserWarning, FutureWarning, DeprecationWarning)
_HERE: ContextVar[bool] = ContextVar("here", default=False)
_MEMORY: ContextVar[int | None] = ContextVar("memory", default=None)
_HEARD: ContextVar[list[str] | None] = ContextVar("heard", default=None)
# By its function: asked for by name, Dask imports distributed first, which takes longer than a small job.
_SYNCHRONOUS = Shared(lambda: dask.config.set(scheduler=dask.get))


@contextmanager
def in_this_thread(memory: int | None = None) -> Iterator[None]:
    """Compute everything within the block in this thread, although it may itself be a task of a cluster.

    Parameters
    ----------
    memory
        Bytes that it may take; what is free by default.
    """
    tokens = _HERE.set(True), _MEMORY.set(memory)
    try:
        with _SYNCHRONOUS():
            yield
    finally:
        _HERE.reset(tokens[0])
        _MEMORY.reset(tokens[1])


def is_in_this_thread() -> bool:
    """Whether this code runs within such a block."""
    return _HERE.get()


def memory_of_this_thread() -> int | None:
    """Bytes that such a block may take, if that was said."""
    return _MEMORY.get()


@contextmanager
def _hearing() -> Iterator[None]:
    """Hand warnings for users to the list of the thread that they come from."""
    with warnings.catch_warnings():
        for category in _FOR_USERS:
            warnings.simplefilter("always", category)
        before = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            heard = _HEARD.get()
            if heard is None or not issubclass(category, _FOR_USERS):
                before(message, category, *place, **more)
            elif (sentence := " ".join(str(message).split())) not in heard:
                heard.append(sentence)

        warnings.showwarning = show
        yield


_HEARING = Shared(_hearing)


@contextmanager
def warnings_heard() -> Iterator[list[str]]:
    """Give a list that gets every warning for users of this thread within the block, once each, as one line.

    Examples
    --------
    >>> with warnings_heard() as heard:
    ...     warnings.warn("embed: frozen.")
    >>> heard
    ['embed: frozen.']
    """
    heard: list[str] = []
    token = _HEARD.set(heard)
    try:
        with _HEARING():
            yield heard
    finally:
        _HEARD.reset(token)
