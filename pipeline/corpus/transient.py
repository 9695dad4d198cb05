"""Which errors may pass by themselves: those of disks, networks and workers, never those of a recording."""

from __future__ import annotations

import errno

from ..clusters.lost import LostClusterError
from ..graph.errors import causes
from ..jobs.store import NoSpaceError
from ..jobs.workfolder import BusyError
from ..stores.refusals import UnavailableError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_PASSING = _FULL | {
    getattr(errno, name)
    for name in (
        "EIO", "EAGAIN", "EBUSY", "EINTR", "ENOLCK", "ENFILE", "EMFILE", "ENOMEM", "ETXTBSY", "ESTALE", "ETIMEDOUT",
        "ECONNRESET", "ECONNREFUSED", "ECONNABORTED", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH",
        "ENOTCONN", "EPIPE", "EREMOTEIO", "ENODEV", "ENXIO",
    )
    if hasattr(errno, name)
}  # fmt: skip


def is_passing(error: BaseException) -> bool:
    """Whether the same may succeed another time.

    Examples
    --------
    >>> is_passing(OSError(errno.EIO, "Input/output error")), is_passing(ValueError("frames: too few"))
    (True, False)
    """
    return any(
        isinstance(one, LostClusterError | BusyError | NoSpaceError | MemoryError | UnavailableError)
        or (isinstance(one, OSError) and one.errno in _PASSING)
        for one in causes(error)
    )


def is_full(error: BaseException) -> bool:
    """Whether the place of the results takes no more: it is full, at its quota, or read-only.

    Examples
    --------
    >>> is_full(OSError(errno.ENOSPC, "No space left on device"))
    True
    """
    return any(isinstance(one, OSError) and one.errno in _FULL for one in causes(error))
