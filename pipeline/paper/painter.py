"""The picture of a demonstration, drawn by a second process, which loads Matplotlib while the first one computes.

What it shows comes to its standard input. That ends when the first process does, whatever ends it: so does this one.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..graph.loading import leave_at_once, loading
from .demo_picture import Shown, draw


class Painter:
    """Draws one picture; in this process where it has no other one, or that failed.

    Parameters
    ----------
    path
        File to write.
    process
        Another process, which runs :func:`main`.
    """

    def __init__(self, path: Path, process: subprocess.Popen[bytes] | None = None) -> None:
        self._path, self._process = path, process
        self._shown: Shown | None = None

    def begin(self, shown: Shown) -> None:
        """Say what is on the picture; until the other process has loaded Matplotlib, this waits for it."""
        self._shown = shown
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError), self._process.stdin as pipe:  # it has failed; Windows says EINVAL
                pickle.dump(shown, pipe)

    def end(self) -> bool:
        """Wait for the picture; False where there is no Matplotlib."""
        if self._process is not None and self._process.wait() == 0:
            return True
        with suppress(ImportError):
            assert self._shown is not None
            draw(self._path, self._shown)
            return True
        return False


@contextmanager
def painting(path: Path, n_processors: int) -> Iterator[Painter]:
    """Have a picture drawn beside the block where there is a processor for that, which ends with it.

    Parameters
    ----------
    path
        File to write.
    n_processors
        How many this process may use.
    """
    process = _started(path) if n_processors > 1 else None
    try:
        yield Painter(path, process)
    finally:
        if process is not None:
            process.kill()
            process.communicate()


def _started(path: Path) -> subprocess.Popen[bytes] | None:
    """A process that waits for what is on a picture; none where it cannot be started, or Python is part of a program.

    It finds modules where this one does, and hears no Ctrl-C of the terminal.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    where = {"PYTHONPATH": os.pathsep.join(str(folder) or os.curdir for folder in sys.path)}
    words = [sys.executable, "-P", "-m", __name__, str(path)]
    alone: dict[str, Any] = {"start_new_session": True}  # and its like on Windows
    alone["creationflags"] = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    with suppress(OSError):
        return subprocess.Popen(words, stdin=subprocess.PIPE, env=os.environ | where, **alone)
    return None


def main() -> None:
    """Draw what standard input says; whatever goes wrong, the process that waits for it says that."""
    leave_at_once()
    with suppress(Exception):
        with loading():
            from matplotlib import figure  # noqa: F401, PLC0415 - while there is nothing to draw
        draw(Path(sys.argv[1]), pickle.load(sys.stdin.buffer))
        sys.exit(0)
    sys.exit(1)


if __name__ == "__main__":
    main()
