"""The folder for what the workers of a local cluster spill."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import dask

from ..graph.errors import causes

# What a disk answers that cannot take more, or takes nothing.
_REFUSALS = tuple(
    os.strerror(number)
    for number in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, getattr(errno, "EDQUOT", errno.ENOSPC))
)
# Scheduler and workers each make some files and folders as they start, and fail in many ways where one is missing.
_FILES, _PAGE = 64, bytes(4096)


def scratch() -> str:
    """A folder for what workers spill, which nobody else can read or take the place of.

    Dask's own is shared by all users. It clears away what killed workers left, so the place is the same every time.

    Returns
    -------
    Its path; something can be written there.

    Raises
    ------
    OSError
        Nothing can be written there.

    Examples
    --------
    >>> os.path.isdir(scratch())
    True
    """
    base = dask.config.get("temporary-directory", None)
    try:
        base = base or tempfile.gettempdir()
        folder = _own(Path(base))
        with tempfile.TemporaryDirectory(dir=folder) as trial:
            for number in range(_FILES):
                Path(trial, str(number)).write_bytes(_PAGE)
    except OSError as error:
        raise _refusal(base or "the folder for temporary files", error.strerror or str(error)) from None
    return str(folder)


def explained_start(error: Exception, folder: str) -> Exception:
    """The error of a cluster that could not start, in words where it had no room for its files; else as it is.

    Parameters
    ----------
    error
        What Dask raised; the reason stands in its text, or in what it came from.
    folder
        As :func:`scratch` gave it.

    Examples
    --------
    >>> type(explained_start(RuntimeError("Cluster failed to start: [Errno 28] No space left on device: 'x'"), "/tmp"))
    <class 'OSError'>
    """
    texts = [str(one) for one in causes(error)]
    why = next((reason for reason in _REFUSALS if any(reason in text for text in texts)), None)
    return error if why is None else _refusal(folder, why)


def _refusal(folder: str, why: str) -> OSError:
    """Nothing can be written there."""
    return OSError(
        f"cluster: the folder for what workers spill must take files; {folder} does not ({why}). Name another one by "
        "the environment variable DASK_TEMPORARY_DIRECTORY, or make room there."
    )


def _own(base: Path) -> Path:
    """A folder below a shared one that only this user can look into."""
    if not hasattr(os, "getuid"):  # Windows, where the folder for temporary files is the user's own
        return base
    folder = base / f"manifold-observer-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if own and stat.S_IMODE(found.st_mode) == 0o700:
        return folder
    return Path(tempfile.mkdtemp(prefix="manifold-observer-", dir=base))
