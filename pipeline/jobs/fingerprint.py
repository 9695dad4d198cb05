"""Whether a recording is still the one that a result was made from.

Sizes and times are looked at first. Only where they have changed is the content read: a file that was copied back,
touched or moved to another disk is the same recording.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..frames.label_place import file_for, names_file
from .config import RunConfig

_BLOCK = 2**22
# Headers, whose samples lie in other files of the same stem.
_HEADERS = (".hea", ".vhdr", ".ahdr", ".set", ".rec", ".cbin")


def files_of(path: str, run: RunConfig) -> list[str]:
    """All files that the result of a recording depends on: itself, what its header names, its labels.

    Examples
    --------
    >>> files_of("/data/night1.npy", RunConfig())
    ['/data/night1.npy']
    """
    found = [path]
    recording = Path(path)
    if recording.suffix.lower() in _HEADERS and recording.parent.is_dir():
        beside = (entry.path for entry in os.scandir(recording.parent) if Path(entry.name).stem == recording.stem)
        found += sorted(set(beside) - {path})
    if names_file(run.opening.labels):
        found.append(file_for(run.opening.labels, path))
    return found


def stamp(files: list[str]) -> list[list[Any]]:
    """Names, sizes and times of files, and of everything in those that are folders; JSON holds it as it is.

    Examples
    --------
    >>> stamp(["/nowhere"])
    [['/nowhere', -1, 0, 0]]
    """
    return [_stamp(path) for top in files for path in _below(top)]


def digest(files: list[str]) -> str:
    """Digest of the content of files, and of the names in those that are folders.

    Raises
    ------
    OSError
        One cannot be read.
    """
    made = hashlib.blake2b(digest_size=20)
    for top in files:
        for path in _below(top):
            made.update(os.fsencode(os.path.relpath(path, top)) + b"\0")
            if os.path.isfile(path):
                _add(made, path)
    return made.hexdigest()


def _add(made: Any, path: str) -> None:
    """Add the content of a file."""
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            made.update(block)


def _below(top: str) -> Iterator[str]:
    """A file, or a folder with everything in it, in order."""
    yield top
    if os.path.isdir(top):
        for folder, folders, names in os.walk(top):
            folders.sort()
            yield from (os.path.join(folder, name) for name in sorted(names))


def _stamp(path: str) -> list[Any]:
    """Size and times; the time of change also sees what keeps the time of modification, such as rsync -t."""
    try:
        found = os.stat(path)
    except OSError:
        return [path, -1, 0, 0]
    return [path, found.st_size if os.path.isfile(path) else 0, found.st_mtime_ns, found.st_ctime_ns]
