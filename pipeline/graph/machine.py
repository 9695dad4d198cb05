"""How much memory this machine has left for a computation, whatever limits it."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

# A limit of a version 1 group that is none: the largest number of pages.
_NO_LIMIT = 2**62
_LIMITS = ("RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_RSS")


def free_memory(root: Path = Path("/")) -> int:
    """Bytes that this process and those it starts may still take: the least that the machine and any limit leave.

    Parameters
    ----------
    root
        Where ``proc`` and ``sys`` lie.

    Returns
    -------
    The least of what is available on the machine, what each control group that holds this process has left (of
    version 1 and 2; file cache that can be dropped counts as free), the limits of a process, and what Dask takes
    for the machine's memory.

    Examples
    --------
    >>> 0 < free_memory() <= psutil.virtual_memory().total
    True
    """
    # What Dask found at its import, where it has been imported: that takes longer than a small run.
    told = getattr(sys.modules.get("distributed.system"), "MEMORY_LIMIT", psutil.virtual_memory().total)
    return max(0, min(psutil.virtual_memory().available, told, *_group_rooms(root), *_process_limits()))


def own_memory() -> int:
    """Bytes that this process holds already."""
    return int(psutil.Process().memory_info().rss)


def _group_rooms(root: Path) -> list[int]:
    """What is left in the memory control groups of this process and in those around them."""
    text = _text(root / "proc/self/cgroup")
    rooms = []
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            rooms += _rooms(root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes")
        elif not controllers:
            for mount in ("sys/fs/cgroup", "sys/fs/cgroup/unified"):
                for limit in ("memory.max", "memory.high"):
                    rooms += _rooms(root / mount, path, limit, "memory.current")
    return rooms


def _rooms(mount: Path, path: str, limit: str, usage: str) -> list[int]:
    """What is left in a group and in all above it; within a container only the upper ones may be seen."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    places = [mount.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
    found = [(place, _number(place / limit), _number(place / usage)) for place in places]
    return [
        most - max(used - _droppable(place), 0)
        for place, most, used in found
        if most is not None and used is not None and most < _NO_LIMIT
    ]


def _droppable(place: Path) -> int:
    """Bytes of file cache that a group gives up when it needs memory."""
    stat = dict(line.split(" ", 1) for line in _text(place / "memory.stat").splitlines() if " " in line)
    return int(stat.get("total_inactive_file", stat.get("inactive_file", 0)))


def _process_limits() -> list[int]:
    """Limits of a process, where there are some."""
    if resource is None:
        return []
    soft = [resource.getrlimit(getattr(resource, name))[0] for name in _LIMITS if hasattr(resource, name)]
    return [limit for limit in soft if limit != resource.RLIM_INFINITY]


def _number(path: Path) -> int | None:
    """The number in a file; None where it says "max", or there is no file."""
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    """A file's text, empty where it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
