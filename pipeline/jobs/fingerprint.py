"""Whether a recording is still the one that a result was made from.

Sizes and times are looked at first. Only where they have changed is the content read: a file that was copied back,
touched or moved to another disk is the same recording.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..frames.label_place import file_for, names_file
from ..stores.address import Address, Place, is_address, place
from ..stores.copies import beside
from ..stores.objects import found_in, look
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
    found, recording = [path], place(path)
    if isinstance(recording, Address):
        if recording.suffix.lower() in _HEADERS and not recording.is_web:
            found += [str(one) for one in beside(recording) if one != recording]
    elif recording.suffix.lower() in _HEADERS and recording.parent.is_dir():
        beside_it = (entry.path for entry in os.scandir(recording.parent) if Path(entry.name).stem == recording.stem)
        found += sorted(set(beside_it) - {path})
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
    return [one for top in files for one in _stamps(top)]


def stamps_of(recordings: Sequence[Place], run: RunConfig) -> str:
    """Digest of the stamps of recordings, for a result to carry that no clock dates beside them.

    Examples
    --------
    >>> len(stamps_of([Path("/nowhere")], RunConfig()))
    40
    """
    stamps = [stamp(files_of(str(path), run)) for path in recordings]
    return hashlib.blake2b(repr(stamps).encode(), digest_size=20).hexdigest()


def digest(files: list[str]) -> str:
    """Digest of the content of files, and of the names in those that are folders; of objects, of their tags.

    Raises
    ------
    OSError
        One cannot be read.
    """
    made = hashlib.blake2b(digest_size=20)
    for top in files:
        if is_address(top):
            made.update(repr([one[1:] for one in _stamps(top)]).encode())
            continue
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


def _stamps(top: str) -> list[list[Any]]:
    """Names, sizes and what changes with them: times of files, tags of objects."""
    where = place(top)
    if isinstance(where, Path):
        return [_stamp(path) for path in _below(top)]
    one = look(where)
    there = (
        [(where, one)] if one is not None else [] if where.is_web else [(where / o.name, o) for o in found_in(where)]
    )
    return [[str(address), found.size, found.tag, 0] for address, found in there] or [[top, -1, 0, 0]]


def _stamp(path: str) -> list[Any]:
    """Size and times; the time of change also sees what keeps the time of modification, such as rsync -t."""
    try:
        found = os.stat(path)
    except OSError:
        return [path, -1, 0, 0]
    return [path, found.st_size if os.path.isfile(path) else 0, found.st_mtime_ns, found.st_ctime_ns]
