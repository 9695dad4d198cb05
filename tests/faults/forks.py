"""One job in a forked child, with a fault or without."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from . import injector
from .injector import Call, Fault

# Seconds after which a child counts as hung: each takes a fraction of one.
_PATIENCE = 60


class Ended(NamedTuple):
    """How a child ended ("done", "failed", "killed", "hung"), what it said, what it gave, what it did."""

    how: str
    said: str
    value: Any
    calls: list[Call]
    hit: bool


def in_child(job: Callable[[], Any], folder: Path, fault: Fault | None = None) -> Ended:
    """Run a job in a child whose calls below a folder are traced.

    Parameters
    ----------
    job
        What to run; what it gives must be picklable. A SystemExit other than 0 is a failure.
    folder
        What is watched.
    fault
        What goes wrong.

    Returns
    -------
    How it ended.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        raise AssertionError("this process has threads, which a child would lack: it cannot fork")
    said, given = os.memfd_create("said"), os.memfd_create("given")
    try:
        pid = os.fork()
        if pid == 0:
            _child(job, folder, fault, said, given)
        how = _waited(pid)
        value = pickle.loads(_read(given)) if how == "done" else None
        return Ended(how, _read(said).decode(errors="replace"), value, injector.traced(), injector.was_hit())
    finally:
        os.close(said)
        os.close(given)


def _child(job: Callable[[], Any], folder: Path, fault: Fault | None, said: int, given: int) -> None:
    """Never returns."""
    code = 70
    try:
        os.dup2(said, 1)
        os.dup2(said, 2)
        injector.arm(folder, fault)
        try:
            value, code = job(), 0
            gc.collect()  # what ends noisily shall be heard
        except SystemExit as left:
            value, code = None, left.code if isinstance(left.code, int) else 1
        except BaseException:
            value = None
            traceback.print_exc()
        injector.disarm()
        os.write(given, pickle.dumps(value))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _waited(pid: int) -> str:
    """Wait for a child; one that hangs is killed."""
    handle = os.pidfd_open(pid)
    try:
        ready = select.select([handle], [], [], _PATIENCE)[0]
        if not ready:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(handle)
    if not ready:
        return "hung"
    if os.WIFSIGNALED(status):
        return "killed"
    return "done" if os.WEXITSTATUS(status) == 0 else "failed"


def _read(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    with os.fdopen(os.dup(handle), "rb") as file:
        return file.read()
