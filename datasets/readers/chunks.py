"""Chunks behind the samples of a sound file: a header that claims too few samples is told from one with notes after it.

A *chunk* is a name, a size and a body. What follows the samples must be chunks up to the last byte of the file: four
letters that look like a name are found among samples, too, but the size behind them leads nowhere.
"""

import os
import struct
from typing import BinaryIO

from .contract import refusal

_READER = "audio"
_MOST_CHUNKS = 10_000
_ID3_BYTES, _TAG_BYTES, _BLOCK_BYTES = 10, 128, 2**20
# Chunks that hold samples: a second one would not be read.
_SAMPLES = (b"data", b"SSND")
_REWRITE = "Write its header anew, for example: ffmpeg -i FILE NEW.flac"


def ends_in_chunks(path: str, start: int, head: struct.Struct) -> bool:
    r"""Tell whether a file consists of chunks from some byte to its end; tags of MP3 players and zeros may follow.

    Parameters
    ----------
    path
        The file.
    start
        Where the first chunk is looked for.
    head
        Layout of name and size.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a").write_bytes(b"LIST\x04\0\0\0INFO")
    ...     _ = Path(folder, "b").write_bytes(b"LIST\x05\0\0\0INFO")
    ...     [ends_in_chunks(folder + "/" + name, 0, struct.Struct("<4sI")) for name in "ab"]
    [True, False]
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        for _ in range(_MOST_CHUNKS):
            if start >= size or _is_tag(file, start, size) or _zeros_from(file, start):
                return True
            file.seek(start)
            found = file.read(head.size)
            if len(found) < head.size:
                return False
            name, n_bytes = head.unpack(found)
            end = start + head.size + n_bytes
            if not is_chunk_name(name) or name in _SAMPLES or end > size:
                return False
            file.seek(end)
            # An odd body is padded, but for some writers' and, at times, in the last chunk.
            start = end + (n_bytes % 2 and not is_chunk_name(file.read(4)))
    return False


def is_chunk_name(name: bytes) -> bool:
    """Tell whether four bytes can name a chunk: printable ASCII.

    Examples
    --------
    >>> is_chunk_name(b"fmt "), is_chunk_name(b"fmt")
    (True, False)
    """
    return len(name) == 4 and all(32 <= letter < 127 for letter in name)


def zero_from(path: str, position: int) -> bool:
    """Tell whether nothing but zero bytes follows, as where a recorder reserved room.

    Parameters
    ----------
    path
        The file.
    position
        Where to begin.

    Examples
    --------
    >>> zero_from(os.devnull, 0)
    True
    """
    with open(path, "rb") as file:
        return _zeros_from(file, position)


def check_aiff(path: str) -> None:
    """Refuse an AIFF file in which more follows the samples than chunks.

    Parameters
    ----------
    path
        A file that begins as AIFF.
    """
    head, position, size = struct.Struct(">4sI"), 12, os.path.getsize(path)
    with open(path, "rb") as file:
        for _ in range(_MOST_CHUNKS):
            file.seek(position)
            found = file.read(head.size)
            if len(found) < head.size:
                return  # libsndfile says what is missing
            name, n_bytes = head.unpack(found)
            position += head.size + n_bytes + n_bytes % 2
            if name == b"SSND":
                break
    if position < size and not ends_in_chunks(path, position, head):
        raise _more_than_claimed(path, n_bytes, size - position)


def check_au(path: str) -> None:
    """Refuse an AU file that holds more than its header claims.

    Parameters
    ----------
    path
        A file that begins as AU.
    """
    with open(path, "rb") as file:
        _, start, claimed = struct.unpack(">4sII", file.read(12).ljust(12, b"\0"))
        rest = os.path.getsize(path) - start - claimed
        if claimed != 0xFFFFFFFF and rest > 1 and not _zeros_from(file, start + claimed):
            raise _more_than_claimed(path, claimed, rest)


def check_wave64(path: str) -> None:
    """Refuse a Wave64 file in which more follows the samples than chunks.

    Parameters
    ----------
    path
        A file that begins as Wave64.

    Notes
    -----
    Names have 16 bytes, sizes count name and size, and chunks begin at multiples of 8.
    """
    head, position, size, claimed = struct.Struct("<4s12sQ"), 40, os.path.getsize(path), 0
    with open(path, "rb") as file:
        for _ in range(_MOST_CHUNKS):
            if position >= size or (claimed and _zeros_from(file, position)):
                return
            file.seek(position)
            found = file.read(head.size)
            name, _, n_bytes = head.unpack(found.ljust(head.size, b"\0"))
            end = position + n_bytes
            if n_bytes < head.size or not is_chunk_name(name) or (claimed and (end > size or name == b"data")):
                break
            claimed = n_bytes - head.size if name == b"data" else claimed
            position = end + -end % 8
    if claimed:
        raise _more_than_claimed(path, claimed, size - position)


def _more_than_claimed(path: str, claimed: int, rest: int) -> ValueError:
    """Build the error of a header that claims fewer samples than there are."""
    got = f"{rest} bytes more (its header is out of date or damaged)"
    return refusal(_READER, path, f"end with the {claimed} bytes of samples its header claims", got, _REWRITE)


def _is_tag(file: BinaryIO, start: int, size: int) -> bool:
    """Tell whether a tag of MP3 players takes up the rest of a file."""
    file.seek(start)
    head = file.read(_ID3_BYTES)
    if head[:3] == b"TAG":
        return size - start <= _TAG_BYTES
    if head[:3] not in (b"ID3", b"id3") or len(head) < _ID3_BYTES or max(head[6:]) > 0x7F:
        return False
    n_bytes = sum(byte << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=True))
    rest = size - start - _ID3_BYTES - n_bytes
    return rest >= 0 and _zeros_from(file, start + _ID3_BYTES + n_bytes)


def _zeros_from(file: BinaryIO, position: int) -> bool:
    """The same of an open file."""
    file.seek(position)
    return not any(block.strip(b"\0") for block in iter(lambda: file.read(_BLOCK_BYTES), b""))
