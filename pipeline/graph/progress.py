"""How far a stage is, and who is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

# (stage, parts done, parts in all)
Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""


_WATCHERS: list[Progress] = []


@contextmanager
def watched(watcher: Progress) -> Iterator[None]:
    """Have a function called with the progress of all stages within a block for which the caller gave none.

    Parameters
    ----------
    watcher
        Takes (stage, parts done, parts in all), from any thread.

    Examples
    --------
    >>> seen = []
    >>> with watched(lambda *told: seen.append(told)):
    ...     or_watched()("lift", 1, 1)
    >>> seen[-1]
    ('lift', 1, 1)
    """
    _WATCHERS.append(watcher)
    try:
        yield
    finally:
        _WATCHERS.remove(watcher)


def or_watched(progress: Progress = silent) -> Progress:
    """The progress that was given, or that of the block in which a stage runs."""
    return _WATCHERS[-1] if progress is silent and _WATCHERS else progress
