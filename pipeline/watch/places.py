"""Files that a job writes for those who watch it: only such a file is ever added to or replaced."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

_HEAD_BYTES = 4096
# What a shell or a service manager hands over as a file.
_STREAMS = (stat.S_ISCHR, stat.S_ISFIFO)


def check_place(path: Path, what: str, ours: Callable[[bytes, bytes], bool], *, streams: bool = False) -> None:
    """Refuse a place where something else lies, or that cannot be written to.

    Parameters
    ----------
    path
        The file to write.
    what
        The option, without its dashes; begins the error.
    ours
        Whether a file that begins and ends with these bytes was written by such a job.
    streams
        Whether a device or a pipe, such as ``/dev/stdout``, is taken too.

    Raises
    ------
    ValueError
        Something else is there.
    OSError
        The folder is not there, or cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp(), "notes.txt")
    >>> check_place(place, "log-file", lambda head, tail: False)
    >>> _ = place.write_text("mine")
    >>> check_place(place, "log-file", lambda head, tail: False)
    Traceback (most recent call last):
    ValueError: log-file: /tmp/.../notes.txt must be a file that this option wrote; got something else. Name ...
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        _check_folder(path, what)
        return
    except OSError as error:
        raise OSError(f"{what}: {path} could not be accessed: {error.strerror}. Name another place.") from None
    if streams and any(is_kind(mode) for is_kind in _STREAMS):
        return
    if not stat.S_ISREG(mode):
        raise ValueError(f"{what}: {path} must be a file; got something else. Name another place.")
    if not os.access(path, os.W_OK):
        raise OSError(f"{what}: {path} must be writable; it is read-only for this user. Name another place.")
    if not ours(*_ends(path)):
        raise ValueError(
            f"{what}: {path} must be a file that this option wrote; got something else. Name another file, or move "
            "that one away."
        )


def _check_folder(path: Path, what: str) -> None:
    """Refuse a file in a folder that is not there, or behind a link that leads nowhere."""
    folder = path.parent
    if os.path.islink(path) or not folder.is_dir():
        missing = Path(os.readlink(path)) if os.path.islink(path) else folder
        raise FileNotFoundError(f"{what}: {missing} does not exist. Make that folder, or name another place.")
    if not os.access(folder, os.W_OK):
        raise OSError(f"{what}: {folder} must be writable; it is not for this user. Name another place.")


def _ends(path: Path) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        file.seek(max(0, file.seek(0, os.SEEK_END) - _HEAD_BYTES))
        return head, file.read()
