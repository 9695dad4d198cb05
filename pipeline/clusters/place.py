"""What is known of the cluster that a run computes on: what it is called, how many workers it should have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing() -> None:
    """Nothing has gone wrong."""


@dataclass(frozen=True)
class Place:
    """Where a run computes."""

    name: str
    """In sentences: an address, or what was started."""
    remedy: str
    """What to do where it has no workers."""
    wanted: int = 1
    """Workers that should come."""
    patience: float = 60.0
    """Seconds without any worker after which a run gives up."""
    failing: Callable[[], str | None] = _nothing
    """Why no worker will come any more, as a sentence; None as long as some may."""
