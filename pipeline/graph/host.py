"""Which machine this is, and whether a process of it lives: for locks and marks of runs that may have been killed."""

from __future__ import annotations

import socket
from pathlib import Path

# Processes are compared by when they began, which two ways of asking may round differently.
_TOLERANCE_SECONDS = 1.0


def this_machine() -> tuple[str, str]:
    """Name of this machine and of its boot; the second tells machines of one name apart, too.

    Examples
    --------
    >>> this_machine() == this_machine()
    True
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return socket.gethostname(), boot


def process_lives(pid: int, since: float) -> bool:
    """Whether a process of this machine is still the one that began then; one that cannot be asked counts as alive.

    Examples
    --------
    >>> import psutil
    >>> own = psutil.Process()
    >>> process_lives(own.pid, own.create_time()), process_lives(own.pid, 0.0)
    (True, False)
    """
    import psutil  # noqa: PLC0415 - a corpus with nothing to do need not wait for it

    try:
        return abs(psutil.Process(pid).create_time() - since) <= _TOLERANCE_SECONDS
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
