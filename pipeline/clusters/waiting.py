"""Workers that are still to come: jobs wait in queues, pods for nodes, and a cluster that grows for its first task."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dask.utils import format_time

from . import paused
from .lost import LostClusterError, no_workers
from .place import Place

_LOOK_SECONDS = 0.2
_SILENT_SECONDS = 3
# So long after the last one came, the others are left to join a run that has begun.
_SETTLED_SECONDS = 15


def await_workers(client: Any, place: Place, tell: Callable[[str], None]) -> int:
    """Wait until all workers are there that should come, or some and no others for a while; how many there are.

    Parameters
    ----------
    client
        Of the cluster.
    place
        What it is, and how many workers should come.
    tell
        Called with a line whenever their number changes, unless the wait is short.

    Raises
    ------
    LostClusterError
        None came in time, or none can come any more.
    """
    # A task, so that a cluster which grows with its work gets its first worker.
    first = client.submit(int, pure=False)
    begun = changed = time.monotonic()
    known, told = 0, None
    while True:
        here, now = len(client.nthreads()), time.monotonic()
        changed = now if here != known else changed
        known = here
        settled = here and (here >= place.wanted or now > changed + _SETTLED_SECONDS)
        if settled and first.done():
            first.result()
            return known
        late = now > begun + place.patience
        if late and here:
            _check_memory(client, place)
        _check(place, here > 0 or not late)
        if told != here and now > begun + _SILENT_SECONDS:
            tell(f"waiting for workers: {here} of {place.wanted}")
            told = here
        time.sleep(_LOOK_SECONDS)


def _check_memory(client: Any, place: Place) -> None:
    """Refuse to wait for workers that are all full."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if paused.all_stand_still(workers):
        raise LostClusterError(paused.sentence(workers, format_time(place.patience)))


def _check(place: Place, in_time: bool) -> None:
    """Refuse to wait for workers that will not come."""
    failing = place.failing()
    if failing is not None:
        raise LostClusterError(failing)
    if not in_time:
        raise no_workers(place)
