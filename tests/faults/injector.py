"""Compiles the injector, and steers it from the process that it is loaded into."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

OPERATIONS = (
    "create",
    "open",
    "write",
    "truncate",
    "sync",
    "close",
    "rename",
    "link",
    "mkdir",
    "remove",
    "attribute",
)
_NOTHING, _FAIL_ONCE, _FAIL_ON, _KILL_BEFORE, _KILL_AFTER, _CUT, _SHORT = range(7)
_ALL = frozenset(OPERATIONS)
# What needs room on a disk, now or (sync, close, rename) when it is settled.
_ROOM = frozenset({"create", "write", "truncate", "link", "mkdir"})
_SETTLED = _ROOM | {"sync", "close", "rename"}


class Kind(NamedTuple):
    """One kind of fault: how the n-th call fails, with which error, which calls can fail so."""

    how: int
    error: int
    operations: frozenset[str]

    @property
    def kills(self) -> bool:
        """Whether the process does not survive it."""
        return self.how in (_KILL_BEFORE, _KILL_AFTER, _CUT)


KINDS = {
    "full": Kind(_FAIL_ON, errno.ENOSPC, _ROOM),
    "full-once": Kind(_FAIL_ONCE, errno.ENOSPC, _SETTLED),
    "broken": Kind(_FAIL_ON, errno.EIO, _ALL),
    "broken-once": Kind(_FAIL_ONCE, errno.EIO, _ALL),
    "read-only": Kind(_FAIL_ON, errno.EROFS, _ALL - {"sync", "close"}),
    "kill-before": Kind(_KILL_BEFORE, 0, _ALL),
    "kill-after": Kind(_KILL_AFTER, 0, _ALL),
    "cut": Kind(_CUT, 0, frozenset({"write"})),
    "short": Kind(_SHORT, errno.ENOSPC, frozenset({"write"})),
}
"""By name. "full", "broken", "read-only" last from the n-th call on; "cut" writes half and kills, "short" half."""


class Call(NamedTuple):
    """One traced call."""

    operation: str
    path: str
    n_bytes: int
    faulted: bool

    def __str__(self) -> str:
        return f"{self.operation} {self.path or '.'}"


class Fault(NamedTuple):
    """A kind of fault and the number of the call, from 1, that it befalls."""

    kind: str
    number: int


def applies(kind: str, call: Call) -> bool:
    """Whether a call can go wrong in that way."""
    return call.operation in KINDS[kind].operations and (kind not in ("cut", "short") or call.n_bytes > 1)


def compiler() -> str | None:
    """The C compiler, where there is one that makes what can be preloaded."""
    return shutil.which("gcc") or shutil.which("cc") if sys.platform == "linux" else None


def compiled(folder: Path) -> Path:
    """Compile the injector into a folder."""
    library, source = folder / "injector.so", Path(__file__).with_name("injector.c")
    command = [str(compiler()), "-shared", "-fPIC", "-O2", "-Wall", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


def environment(library: Path) -> dict[str, str]:
    """Environment of a process that the injector is loaded into; one thread, so that it can fork; one order of sets."""
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # Where PyArrow is installed, pandas imports it, and its allocator starts a thread.
    allocators = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
    settled = {**threads, **allocators, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **settled, "LD_PRELOAD": str(library), "PYTHONPATH": paths}


class _Entry(ctypes.Structure):
    _fields_ = (
        ("operation", ctypes.c_int),
        ("faulted", ctypes.c_int),
        ("n_bytes", ctypes.c_long),
        ("path", ctypes.c_char * 232),
    )


class _Control(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_int),
        ("how", ctypes.c_int),
        ("error", ctypes.c_int),
        ("mask", ctypes.c_uint),
        ("halved", ctypes.c_int),
        ("hit", ctypes.c_int),
        ("number", ctypes.c_long),
        ("count", ctypes.c_long),
        ("folder", ctypes.c_char * 4096),
        ("entries", _Entry * 65536),
    )


def _control() -> _Control:
    """The control block of this process, shared with its children."""
    function = ctypes.CDLL(None).fault_control
    function.restype = ctypes.POINTER(_Control)
    return function().contents


def arm(folder: Path, fault: Fault | None) -> None:
    """Watch this process from here on."""
    control = _control()
    kind = KINDS[fault.kind] if fault else Kind(_NOTHING, 0, frozenset())
    control.how, control.error, control.halved = kind.how, kind.error, kind.error == errno.ENOSPC
    control.mask = sum(1 << OPERATIONS.index(name) for name in kind.operations)
    control.number, control.count, control.hit = fault.number if fault else 0, 0, 0
    control.folder = os.fsencode(folder.resolve())
    control.pid = os.getpid()


def disarm() -> None:
    """Watch no longer; what was counted stays."""
    _control().pid = 0


def traced() -> list[Call]:
    """What was counted."""
    control = _control()
    if control.count > len(control.entries):
        raise AssertionError(f"the trace holds {len(control.entries)} calls; there were {control.count}")
    entries = control.entries[: control.count]
    return [Call(OPERATIONS[e.operation], os.fsdecode(e.path), e.n_bytes, bool(e.faulted)) for e in entries]


def was_hit() -> bool:
    """Whether the n-th call came."""
    return bool(_control().hit)
