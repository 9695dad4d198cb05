"""What a computation says on its way: sentences that are no warnings, to whoever listens, else to Python's logging."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LISTENERS: list[Callable[[str], None]] = []


@contextmanager
def heard(listener: Callable[[str], None]) -> Iterator[None]:
    """Have a function called with every sentence that is said within a block.

    Examples
    --------
    >>> with heard(print):
    ...     say("embed: a residual of 0.001 is expected to take 512 landmarks.")
    embed: a residual of 0.001 is expected to take 512 landmarks.
    """
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)


def say(sentence: str) -> None:
    """Say a sentence; where nobody listens it is a record of level INFO of the logger ``manifold_observer``."""
    if _LISTENERS:
        _LISTENERS[-1](sentence)
    else:
        logging.getLogger("manifold_observer").info(sentence)
