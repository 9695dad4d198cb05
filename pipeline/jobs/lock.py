"""Locks on open files that end with the process that holds them, however it ends.

``filelock`` would do for a lock that is a file of its own. The lock here is on the mark of a work folder: the same
open file says whose the folder is, and who only asks whether a run lives takes a shared lock, which ``filelock``
does not have for files.
"""

from __future__ import annotations

import errno
import os

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Windows refuses others the bytes that are locked, so the locked one lies beyond all content.
_BEYOND = 2**30


def try_lock(handle: int, *, shared: bool = False) -> bool:
    """Lock an open file without waiting.

    Parameters
    ----------
    handle
        Descriptor of the file, with its position at the start. Closing it, or the end of the process, unlocks.
    shared
        Whether others may hold a shared lock at the same time. Windows has exclusive locks only.

    Returns
    -------
    False where another descriptor holds a lock that excludes this one.

    Raises
    ------
    OSError
        The file system has no locks.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file, open(file.name) as other:
    ...     try_lock(file.fileno()), try_lock(other.fileno())
    (True, False)
    """
    if fcntl is None:
        return _try_lock_on_windows(handle)
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _try_lock_on_windows(handle: int) -> bool:
    """Lock one byte, exclusively."""
    try:
        import msvcrt  # noqa: PLC0415 - Windows only
    except ImportError:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from None
    os.lseek(handle, _BEYOND, os.SEEK_SET)
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except PermissionError:
        return False
    finally:
        os.lseek(handle, 0, os.SEEK_SET)
    return True
