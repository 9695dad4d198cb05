"""Dask's performance report of a job."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from manifold_observer.tasks.atomic import write

from ..graph.warn import warn
from .places import check_place

# How much the scheduler's monitor has seen. Made here, so that it travels as it is: a scheduler could not import it.
_COUNT = eval("lambda dask_scheduler: dask_scheduler.monitor.count", {"__name__": "__main__"})
# Ends a report of ours; browsers do not show it.
_MARK = b"<!-- Written by manifold-observer. -->\n"


def check_report(file: Path) -> None:
    """Refuse what cannot become a report, before anything is computed.

    Parameters
    ----------
    file
        Where it shall be.

    Raises
    ------
    ImportError
        bokeh is not installed.
    ValueError, OSError
        Something else is there, or the folder cannot be written to.
    """
    if find_spec("bokeh") is None:
        raise ImportError(
            "performance-report: bokeh must be installed; it was not found. Install it with pip install bokeh."
        )
    check_place(file, "performance-report", lambda head, tail: tail.endswith(_MARK))


@contextmanager
def reported(client: Any, file: Path, code: str) -> Iterator[None]:
    """Write a performance report of what a cluster does within the block; also where the block fails.

    Parameters
    ----------
    client
        Client of the cluster.
    file
        HTML file to write; it holds all that it needs and opens without a network.
    code
        What was run, for the report.
    """
    begun = time.time()
    count = client.run_on_scheduler(_COUNT)
    client.get_task_stream(start=0, stop=0)  # begins to record
    try:
        yield
    finally:
        try:
            page = client.sync(
                client.scheduler.performance_report, start=begun, last_count=count, code=code, mode="inline"
            )
            write(file, page.encode() + b"\n" + _MARK)
        except Exception as error:  # the cluster may be gone; the result, or its own error, matters more
            warn(f"performance-report: {file} could not be written ({type(error).__name__}: {error}).")
