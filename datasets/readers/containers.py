"""The arithmetic of sound files beside WAVE, where libsndfile shortens without a word what was cut.

A Core Audio file (CAF) is a list of *chunks*, each a four-letter name, a size in bytes (-1 in the last: to the
end of the file) and a body. An Ogg file is a list of *pages*, each with a table of the sizes that follow it.
"""

import os
import re
import struct
from typing import NamedTuple

from .contract import refusal

_READER = "audio"
_COPY = "Copy or download it again"
_CHUNK = struct.Struct(">4sq")
_PAGE = struct.Struct("<4xBBqIIIB")
_PAGE_BYTES = 65_307
_LAST_PAGE = 4
# Kilobits a second of layer III, by number from 1.
_MPEG_1_RATES = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MPEG_2_RATES = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_MOST_CHUNKS = 10_000


class Page(NamedTuple):
    """One Ogg page: number of the frame after its last, and whether it says that it ends its stream."""

    frames: int
    is_last: bool


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
            if n_bytes < 0:
                position = size
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
    """Refuse an Ogg file whose last page does not end its stream, or is not there to its end.

    Parameters
    ----------
    path
        An Ogg file.
    """
    if not any(page.is_last for page in last_pages(path)):
        got = "a stream that stops before it (the file was cut short)"
        raise refusal(_READER, path, "end with the last page of its Ogg stream", got, _COPY)


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
        _, flags, frames, _, _, _, n_sizes = _PAGE.unpack_from(tail, at)
        body = at + _PAGE.size + n_sizes
        if body + sum(tail[body - n_sizes : body]) <= len(tail):
            pages.append(Page(frames, bool(flags & _LAST_PAGE)))
    return pages


def check_mp3(path: str, frames: int) -> None:
    """Refuse an MP3 file of which libsndfile guesses the length, where the guess is wrong, and one that was cut.

    Parameters
    ----------
    path
        An MP3 file.
    frames
        Its length, as libsndfile has it: exact where the file's first frame tells it.

    Notes
    -----
    Reads the head of every MPEG frame of a file that does not tell its length: 0.2 s an hour.
    """
    size, position, counted = os.path.getsize(path), _after_id3(path), 0
    with open(path, "rb") as file:
        while position + 4 <= size:
            file.seek(position)
            head = file.read(4)
            found = _mpeg_frame(head)
            if found is None:
                break
            n_bytes, n_frames = found
            if not counted and re.search(rb"Xing|Info|VBRI", file.read(200)):
                return
            position += n_bytes
            counted += n_frames
    if position > size or counted != frames:
        got = f"{frames} of {counted} by a guess, for it does not tell" + (
            " (it was cut short)" if position > size else ""
        )
        remedy = "Convert it from the original, for example with: ffmpeg -i FILE NEW.flac"
        raise refusal(_READER, path, "state how many frames it holds", got, remedy)


def _after_id3(path: str) -> int:
    """Where the sound begins, after a tag in front of it."""
    with open(path, "rb") as file:
        head = file.read(10)
    if head[:3] != b"ID3" or len(head) < 10:
        return 0
    return 10 + sum((byte & 0x7F) << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=True))


def _mpeg_frame(head: bytes) -> tuple[int, int] | None:
    """Bytes and frames of sound in an MPEG frame of layer III, by its head; None for what is none."""
    word = int.from_bytes(head, "big")
    version, layer, rate, step = word >> 19 & 3, word >> 17 & 3, word >> 12 & 15, word >> 10 & 3
    if word >> 21 != 0x7FF or version == 1 or layer != 1 or rate in (0, 15) or step == 3:
        return None
    first = version == 3
    rates = _MPEG_1_RATES if first else _MPEG_2_RATES
    hertz = (44_100, 48_000, 32_000)[step] // {3: 1, 2: 2, 0: 4}[version]
    return (144 if first else 72) * rates[rate - 1] * 1000 // hertz + (word >> 9 & 1), 1152 if first else 576
