"""A scheduler that many workers keep less busy with saying that they live."""

from __future__ import annotations

from typing import Any

from distributed import Scheduler

# Heartbeats a second that all workers send together, and seconds between two of one worker, at most. Dask asks for up
# to 200 a second, each of which takes the scheduler half a millisecond.
_RATE = 25.0
_LONGEST = 30.0


class QuietScheduler(Scheduler):  # type: ignore[misc]
    """A scheduler that asks a thousand workers for a heartbeat every 30 s, a fifth as often as Dask does.

    A worker whose connection breaks is missed at once, whatever the heartbeats.
    """

    def heartbeat_worker(self, **told: Any) -> dict[str, Any]:
        """Take a heartbeat; the answer says when the next one is wanted."""
        answer: dict[str, Any] = super().heartbeat_worker(**told)
        if "heartbeat-interval" in answer:
            answer["heartbeat-interval"] = beat(len(self.workers), answer["heartbeat-interval"])
        return answer


def beat(n_workers: int, seconds: float) -> float:
    """Seconds between two heartbeats of one of so many workers, of which Dask wants one every so many.

    Examples
    --------
    >>> [beat(*case) for case in ((4, 0.5), (64, 2.0), (256, 2.28), (1000, 6.0))]
    [0.5, 2.56, 10.24, 30.0]
    """
    return max(seconds, min(n_workers / _RATE, _LONGEST))
