"""A folder that the machines of a cluster share, for as long as the cluster lives: certificates, logs of jobs."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from ..graph.host import process_lives
from .lost import LostClusterError

_PREFIX = ".manifold-observer-cluster-"
_OWNER = "owner.json"


@contextmanager
def shared_folder(place: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Make a folder in a place that nobody else can read, and remove it at the end.

    Those of processes of this machine that were killed are removed, too.

    Parameters
    ----------
    place
        Folder; the current one by default.

    Yields
    ------
    The new folder.
    """
    base = Path(place or ".").absolute()
    _clear(base)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    except OSError as error:
        raise LostClusterError(
            f"cluster: shared must be a folder that can be written to; got {base} ({error.strerror}). Give another "
            "--shared."
        ) from None
    try:
        owner = {"host": socket.gethostname(), "pid": os.getpid(), "since": psutil.Process().create_time()}
        (folder / _OWNER).write_text(json.dumps(owner), encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _clear(base: Path) -> None:
    """Remove folders whose process was killed; only their own mark says so."""
    for folder in base.glob(f"{_PREFIX}*"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            owner = json.loads((folder / _OWNER).read_text(encoding="utf-8"))
            if owner["host"] == socket.gethostname() and not process_lives(owner["pid"], owner["since"]):
                shutil.rmtree(folder)
