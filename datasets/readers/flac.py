"""How many samples a FLAC file holds, whatever its header says.

A FLAC file is a header, of which STREAMINFO comes first, and *frames* of some thousand samples each, which carry their
number and two check sums. Recorders that crash, and programs that write into a pipe, leave the number of samples in
STREAMINFO at 0, for "unknown"; libsndfile then reads none.
"""

import os
import re
import struct
from typing import NamedTuple

from .contract import refusal

_READER = "audio"
_COPY = "Copy or download it again; or accept the shorter file: ffmpeg -i FILE NEW.flac"
# Where STREAMINFO has its number of samples: the low half of this byte, and four more.
_TOTAL_AT = 21
_INFO = struct.Struct(">4s4xHH3s3sQ16s")
_TAIL_BYTES = 2**22
_TAG_BYTES = 128
_UNKNOWN = 0
# Low bits of the block size by its code; 6 and 7 stand in the frame's head itself.
_SIZES = {1: 192, **{code: 576 << code - 2 for code in range(2, 6)}, **{code: 256 << code - 8 for code in range(8, 16)}}


class Info(NamedTuple):
    """STREAMINFO: samples of a block, bytes of the largest frame (0: unknown), channels, and samples (0: unknown)."""

    block: int
    most_bytes: int
    channels: int
    total: int


class _Last(NamedTuple):
    """The last frame of which the head is there: the sample after it, and whether the frame is whole."""

    stop: int
    whole: bool


def count_flac(path: str) -> int | None:
    """Count the samples of a FLAC file by its last frame.

    Parameters
    ----------
    path
        A file that begins as FLAC.

    Returns
    -------
    The number where the header does not say it; None where it does, and is right.

    Raises
    ------
    ValueError
        The file holds more or fewer samples than its header claims, or ends within a frame.

    Examples
    --------
    >>> import soundfile, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     soundfile.write(folder + "/a.flac", np.zeros(50), 8000)
    ...     count_flac(folder + "/a.flac") is None
    True
    """
    info = read_info(path)
    last = None if info is None else _last_frame(path, info)
    if info is None or (last is None and info.total):
        return None  # libsndfile says what is wrong
    found = last or _Last(0, whole=False)
    if info.total == _UNKNOWN:
        if not found.whole:
            got = "a stream of unknown length that ends within a frame (the file was cut short)"
            raise refusal(_READER, path, "state how many frames it holds", got, _COPY)
        return found.stop
    if found.stop != info.total:
        why = "the file was cut short" if found.stop < info.total else "its header is out of date or damaged"
        must = f"hold the {info.total} frames its header claims"
        raise refusal(_READER, path, must, f"{found.stop} ({why})", _COPY)
    return None


def with_total(path: str, total: int) -> tuple[tuple[int, bytes], ...]:
    """Say which bytes of the header tell a number of samples.

    Parameters
    ----------
    path
        A file that begins as FLAC.
    total
        The number.

    Returns
    -------
    Where the bytes stand, and the bytes.
    """
    with open(path, "rb") as file:
        file.seek(_TOTAL_AT)
        above = file.read(1)[0] & 0xF0
    return ((_TOTAL_AT, (above << 32 | total).to_bytes(5, "big")),)


def read_info(path: str) -> Info | None:
    """Read STREAMINFO; None where it is not in its place.

    Parameters
    ----------
    path
        A file that begins as FLAC.

    Examples
    --------
    >>> read_info(os.devnull) is None
    True
    """
    with open(path, "rb") as file:
        head = file.read(_INFO.size)
    if len(head) < _INFO.size:
        return None
    magic, least, most, _, most_bytes, packed, _ = _INFO.unpack(head)
    if magic != b"fLaC" or head[4] & 0x7F:
        return None
    # Blocks of one size are numbered; of several sizes, the first sample is.
    block = most if least == most else 0
    return Info(block, int.from_bytes(most_bytes, "big"), (packed >> 41 & 7) + 1, packed & (2**36 - 1))


def _last_frame(path: str, info: Info) -> _Last | None:
    """The last frame, found from the end of the file."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        file.seek(max(0, size - max(_TAIL_BYTES, 2 * info.most_bytes)))
        tail = file.read()
    if tail[-_TAG_BYTES:].startswith(b"TAG"):
        tail = tail[:-_TAG_BYTES]
    for at in reversed([found.start() for found in re.finditer(rb"\xff[\xf8\xf9]", tail)]):
        stop = _stop_of(tail[at : at + 17], info)
        if stop is not None:
            return _Last(stop, whole=_crc(tail[at:], 0x8005, 16) == 0)
    return None


def _stop_of(head: bytes, info: Info) -> int | None:
    """Number of the sample after a frame, by the head of the frame; None for bytes that are none."""
    if len(head) < 6 or head[3] & 1 or head[2] >> 4 == 0 or head[2] & 15 == 15:
        return None
    channels = head[3] >> 4
    number, at = _coded(head)
    if number is None or channels > 10 or (channels + 1 if channels < 8 else 2) != info.channels:
        return None
    code = head[2] >> 4
    wide = {6: 1, 7: 2}.get(code, 0)
    n = int.from_bytes(head[at : at + wide], "big") + 1 if wide else _SIZES[code]
    at += wide + {12: 1, 13: 2, 14: 2}.get(head[2] & 15, 0)
    if len(head) <= at or _crc(head[: at + 1], 0x07, 8):
        return None
    if head[1] & 1:
        return n + number
    return n + number * info.block if info.block else None


def _coded(head: bytes) -> tuple[int | None, int]:
    """The number of a frame, coded as UTF-8 codes letters, and where it ends."""
    first = head[4]
    if first < 0x80:
        return first, 5
    n_more = 8 - (first ^ 0xFF).bit_length() - 1
    more = head[5 : 5 + n_more]
    if not 1 <= n_more <= 6 or len(more) < n_more or any(byte >> 6 != 2 for byte in more):
        return None, 0
    number = first & (0x3F >> n_more)
    for byte in more:
        number = number << 6 | byte & 0x3F
    return number, 5 + n_more


def _crc(content: bytes, polynomial: int, bits: int) -> int:
    """Check sum of bytes, their own included: 0 where all are right."""
    table = _table(polynomial, bits)
    mask, value = (1 << bits) - 1, 0
    for byte in content:
        value = (value << 8 & mask) ^ table[value >> bits - 8 ^ byte]
    return value


def _table(polynomial: int, bits: int) -> list[int]:
    """Check sums of single bytes."""
    mask, table = (1 << bits) - 1, []
    for byte in range(256):
        value = byte << bits - 8
        for _ in range(8):
            value = (value << 1 ^ (polynomial if value >> bits - 1 else 0)) & mask
        table.append(value)
    return table
