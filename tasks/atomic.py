"""Files that appear under their name complete: written beside it, put on disk, moved there in one step."""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_PARTIAL = re.compile(r"(?P<name>.+)\.[0-9a-f]{32}\.partial")
# What systems answer that cannot put a folder on disk by itself, or a file that is open for reading. A disk that
# fails says EIO.
_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF)


@contextmanager
def replacing(place: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file that takes its place when the block ends without an error.

    Until then it lies beside the place under a name of its own, so that two writers never share one. After an
    error it is removed; after a kill it stays, and :func:`final_name` tells what it was to become.

    Parameters
    ----------
    place
        Path of the file. What is there is replaced; of a symbolic link the link, not what it points to.
    durable
        Whether file and folder are put on disk first, so that a power cut leaves the old file or the new one.

    Yields
    ------
    The open file.

    Raises
    ------
    OSError
        The file could not be written; the place is as it was before.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder, "numbers.txt")
    ...     with replacing(place) as file:
    ...         _ = file.write(b"1 2 3")
    ...         before = place.exists()
    ...     before, place.read_text(), len(list(Path(folder).iterdir()))
    (False, '1 2 3', 1)
    """
    partial = place.with_name(f"{place.name}.{uuid.uuid4().hex}.partial")
    try:
        with partial.open("xb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(partial, place)
    except BaseException:
        with suppress(OSError):  # what went wrong first is what to report
            partial.unlink(missing_ok=True)
        raise
    if durable:
        sync(place.parent)


def write(place: Path, content: bytes | memoryview) -> None:
    """Write a whole file as :func:`replacing` does.

    Raises
    ------
    OSError
        The file could not be written; the place is as it was before.
    """
    with replacing(place) as file:
        file.write(content)


def sync(path: Path) -> None:
    """Put one file, or the names in a folder, on disk, where the system can.

    Raises
    ------
    OSError
        The disk failed, or a file could not be read. A folder that can be written to but not read is left.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        unreadable_folder = error.errno == errno.EACCES and path.is_dir()
        if error.errno not in _NO_SYNC and not unreadable_folder:
            raise


def final_name(name: str) -> str | None:
    """The name that a partial file was to get, or None for any other file.

    Examples
    --------
    >>> final_name("a.txt.0123456789abcdef0123456789abcdef.partial"), final_name("thesis.partial")
    ('a.txt', None)
    """
    found = _PARTIAL.fullmatch(name)
    return None if found is None else found["name"]
