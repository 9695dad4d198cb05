"""Only ordinary files and folders are opened: a pipe would be waited for, a device never ends."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from ..stores.address import Address

_KINDS = (
    (stat.S_ISFIFO, "a FIFO (named pipe)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def refusal(path: str | os.PathLike[str] | Address, must: str, got: str, remedy: str) -> ValueError:
    """Build the error of a recording that is not opened.

    Parameters
    ----------
    path
        The recording.
    must
        What it has to do or be; follows "must".
    got
        What was found instead; follows "got".
    remedy
        What the user can do: a sentence, without its final stop.

    Examples
    --------
    >>> refusal("a.nc", "be a file", "a socket", "Name the file")
    ValueError('open_recording: a.nc must be a file; got a socket. Name the file.')
    """
    return ValueError(f"open_recording: {path} must {must}; got {got}. {remedy}.")


def check_ordinary(path: Path, what: str = "open_recording") -> None:
    """Refuse what is neither a file nor a folder, without opening it.

    Parameters
    ----------
    path
        What shall be opened.
    what
        Begins the error.

    Raises
    ------
    FileNotFoundError
        There is nothing.
    ValueError
        A FIFO, a socket, a device or a loop of symbolic links.

    Examples
    --------
    >>> check_ordinary(Path("/dev/zero"))
    Traceback (most recent call last):
    ValueError: open_recording: /dev/zero must be a file or a folder; got a character device. Copy it into a file first.
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"{what}: {path} does not exist. Check the path; relative ones start at {Path.cwd()}."
        ) from None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise OSError(f"{what}: {path} could not be accessed: {error.strerror}. Check the path.") from None
        kind: str | None = "a loop of symbolic links"
    else:
        kind = special_kind(mode)
    if kind is not None:
        raise ValueError(f"{what}: {path} must be a file or a folder; got {kind}. Copy it into a file first.")


def special_kind(mode: int) -> str | None:
    """Words for what is neither a file nor a folder, from its mode; None for an ordinary one.

    Examples
    --------
    >>> special_kind(stat.S_IFIFO), special_kind(stat.S_IFREG)
    ('a FIFO (named pipe)', None)
    """
    return next((words for is_kind, words in _KINDS if is_kind(mode)), None)
