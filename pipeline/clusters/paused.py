"""Workers that are full: each has stopped, waits for memory to become free, and none ever will."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dask.utils import format_bytes


def all_stand_still(workers: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether there are workers, and every one of them has paused and runs nothing.

    Parameters
    ----------
    workers
        What the scheduler says of each.

    Examples
    --------
    >>> all_stand_still({"tcp://a:1": {"status": "paused", "metrics": {"task_counts": {"executing": 1}}}})
    False
    """
    return bool(workers) and all(one.get("status") == "paused" and not _running(one) for one in workers.values())


def _running(worker: Mapping[str, Any]) -> int:
    """Tasks that a worker is still running."""
    counts = (worker.get("metrics") or {}).get("task_counts") or {}
    return int(sum(counts.get(state, 0) for state in ("executing", "long-running")))


def sentence(workers: Mapping[str, Mapping[str, Any]], waited: str) -> str:
    """What is wrong, and what to do.

    Parameters
    ----------
    workers
        What the scheduler says of each.
    waited
        For how long.

    Examples
    --------
    >>> stopped = {"status": "paused", "memory_limit": 2**30, "metrics": {"memory": 2**30}, "local_directory": "/tmp/a"}
    >>> sentence({"tcp://a:1": stopped}, "60 s").partition(";")[2].partition(",")[0]
    ' all 1 have stood still for 60 s'
    """
    fullest = max(workers.values(), key=lambda one: _memory(one) / max(int(one.get("memory_limit") or 1), 1))
    limit = int(fullest.get("memory_limit") or 0)
    return (
        f"cluster: workers must have memory for their tasks; all {len(workers)} have stood still for {waited}, with "
        f"{format_bytes(_memory(fullest))} of {format_bytes(limit)} taken and what they could not spill to "
        f"{fullest.get('local_directory', 'their disks')}. Make room there, or give them more memory; "
        "'manifold-observer plan' says how much a worker needs"
    )


def _memory(worker: Mapping[str, Any]) -> int:
    """Bytes that a worker takes."""
    return int((worker.get("metrics") or {}).get("memory") or 0)
