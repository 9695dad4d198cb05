"""The arithmetic of sound files beside WAVE, where libsndfile shortens without a word what was cut.

A Core Audio file (CAF) is a list of *chunks*, each a four-letter name, a size in bytes (-1 in the last: to the
end of the file) and a body. An Ogg file is a list of *pages*, each with a table of the sizes that follow it.
"""

import os
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from .chunks import is_chunk_name
from .contract import refusal

_READER = "audio"
_COPY = "Copy or download it again"
_CONVERT = "Split it, or convert it, for example with: ffmpeg -i FILE NEW.flac"
_CHUNK = struct.Struct(">4sq")
_PAGE = struct.Struct("<4xBBqIIIB")
_PAGE_BYTES = 65_307
_LAST_PAGE = 4
_MOST_CHUNKS = 10_000


class Page(NamedTuple):
    """One Ogg page: number of the frame after its last, whether it says that it ends its stream, stream and number."""

    frames: int
    is_last: bool
    serial: int
    number: int


def check_caf(path: str) -> None:
    r"""Refuse a Core Audio file that is shorter than its chunks say.

    Parameters
    ----------
    path
        A file that begins as Core Audio.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.caf").write_bytes(b"caff\0\1\0\0" + b"data" + (100).to_bytes(8, "big") + bytes(60))
    ...     check_caf(folder + "/a.caf")
    Traceback (most recent call last):
    ValueError: audio: /.../a.caf must hold the 100 bytes that its chunk 'data' claims; got 60 ...
    """
    size, position, coded = os.path.getsize(path), 8, False
    names: set[bytes] = set()
    with open(path, "rb") as file:
        while position + _CHUNK.size <= size and len(names) < _MOST_CHUNKS:
            file.seek(position)
            name, n_bytes = _CHUNK.unpack(file.read(_CHUNK.size))
            names.add(name)
            position += _CHUNK.size
            if name == b"desc":
                # Packets without a size of their own need the table of packets that follows.
                coded = file.read(20)[16:] == bytes(4)
            if n_bytes < 0 and name == b"data":
                position = size
            elif n_bytes < 0 or not is_chunk_name(name):
                got = f"the bytes {name!r} for a name before byte {position} (the chunk before it has a wrong size)"
                raise refusal(_READER, path, "consist of named chunks", got, _COPY)
            elif position + n_bytes > size:
                claim = f"hold the {n_bytes} bytes that its chunk {name.decode('latin-1')!r} claims"
                raise refusal(_READER, path, claim, f"{size - position} (the file was cut short)", _COPY)
            else:
                position += n_bytes
        file.seek(position)
        rest = file.read(_CHUNK.size)
    wanted = {b"data", b"pakt"} if coded else {b"data"}
    if wanted - names or rest.strip(b"\0"):
        got = "a file that ends before it (the file was cut short)"
        raise refusal(_READER, path, "hold its samples to the end of its last chunk", got, _COPY)


def check_ogg(path: str) -> None:
    """Refuse an Ogg file of which pages are missing, that holds several streams, or does not end with a last page.

    Parameters
    ----------
    path
        An Ogg file.

    Notes
    -----
    Reads the head of every page: a tenth of a second an hour. libsndfile passes over missing pages, so that what
    follows them comes too early, and reads the first of several streams alone.
    """
    following, serial = 0, None
    for page in _pages(path):
        if serial is not None and page.serial != serial:
            got = "several, one after another or side by side, of which one would be read"
            raise refusal(_READER, path, "hold one Ogg stream", got, _CONVERT)
        if page.number != following:
            got = f"page {page.number} after page {following - 1} (a part of the file is missing)"
            raise refusal(_READER, path, "hold all pages of its Ogg stream", got, _COPY)
        serial, following = page.serial, page.number + 1
    if not any(page.is_last for page in last_pages(path)):
        got = "a stream that stops before it (the file was cut short)"
        raise refusal(_READER, path, "end with the last page of its Ogg stream", got, _COPY)


def _pages(path: str) -> Iterator[Page]:
    """Pages in their order, up to what is none."""
    position = 0
    with open(path, "rb") as file:
        while True:
            file.seek(position)
            head = file.read(_PAGE.size + 255)
            if len(head) < _PAGE.size or head[:4] != b"OggS":
                return
            _, flags, frames, serial, number, _, n_sizes = _PAGE.unpack_from(head)
            yield Page(frames, bool(flags & _LAST_PAGE), serial, number)
            position += _PAGE.size + n_sizes + sum(head[_PAGE.size : _PAGE.size + n_sizes])


def last_pages(path: str) -> list[Page]:
    """List the last pages of an Ogg file that are there to their ends.

    Parameters
    ----------
    path
        An Ogg file.
    """
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 3 * _PAGE_BYTES))
        tail = file.read()
    pages = []
    for found in re.finditer(rb"OggS\0[\0-\7]", tail):
        at = found.start()
        if at + _PAGE.size > len(tail):
            continue
        _, flags, frames, serial, number, _, n_sizes = _PAGE.unpack_from(tail, at)
        body = at + _PAGE.size + n_sizes
        if body + sum(tail[body - n_sizes : body]) <= len(tail):
            pages.append(Page(frames, bool(flags & _LAST_PAGE), serial, number))
    return pages
