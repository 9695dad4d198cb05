"""MP3 files frame by frame: how long they are, and whether any place in them can be found.

An MP3 file is a list of *frames* of 1152 or 576 samples, each with a head that says how many bytes it has. In files of
*variable bit rate* they differ, and libsndfile 1.2 lands in a wrong place when it seeks: such files are read from
their beginning on.
"""

import os
import re
from typing import NamedTuple

from .contract import refusal

_READER = "audio"
# Kilobits a second of layer III, by number from 1.
_MPEG_1_RATES = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MPEG_2_RATES = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
# Frames that encoders and decoders add around the sound, which is then cut out of them.
_MOST_PADDING = 4
_READ_BYTES = 2**20
_CONVERT = "Convert it from the original, for example with: ffmpeg -i FILE NEW.flac"


class Head(NamedTuple):
    """What the head of a frame says: its bytes, its samples, and its bit rate by number."""

    n_bytes: int
    n_samples: int
    rate: int


class Walk(NamedTuple):
    """All frames of a file: samples, those of one frame, whether the length is told, rates vary, the end is missing."""

    counted: int
    step: int
    told: bool
    varies: bool
    cut: bool


def check_mp3(path: str, frames: int) -> bool:
    """Refuse an MP3 file of which libsndfile does not know the length, and one that was cut.

    Parameters
    ----------
    path
        An MP3 file.
    frames
        Its length, as libsndfile has it: exact where the file's first frame tells it.

    Returns
    -------
    Whether it must be read in order, since its bit rate varies.

    Notes
    -----
    Reads the head of every MPEG frame: a second for ten hours.
    """
    found = _walk(path)
    cut = " (it was cut short)" if found.cut else ""
    if not found.told and (cut or found.counted != frames):
        got = f"{frames} of {found.counted} by a guess, for it does not tell{cut}"
        raise refusal(_READER, path, "state how many frames it holds", got, _CONVERT)
    if found.told and not 0 <= found.counted - frames <= _MOST_PADDING * found.step:
        why = cut or " (it was cut short, or is damaged)"
        raise refusal(_READER, path, f"hold the {frames} frames it claims", f"{found.counted}{why}", _CONVERT)
    return found.varies


def _walk(path: str) -> Walk:
    """Go from frame to frame."""
    size, position = os.path.getsize(path), _after_id3(path)
    counted, step, told, rates = 0, 0, False, set()
    with open(path, "rb", _READ_BYTES) as file:
        while position + 4 <= size:
            file.seek(position)
            found = _head(file.read(4))
            if found is None:
                break
            position += found.n_bytes
            if not step and re.search(rb"Xing|Info|VBRI", file.read(200)):
                told = True  # a frame that tells, and holds no sound
            else:
                counted += found.n_samples
                rates.add(found.rate)
            step = found.n_samples
    return Walk(counted, step, told, len(rates) > 1, position > size)


def _after_id3(path: str) -> int:
    """Where the sound begins, after a tag in front of it."""
    with open(path, "rb") as file:
        head = file.read(10)
    if head[:3] != b"ID3" or len(head) < 10:
        return 0
    return 10 + sum((byte & 0x7F) << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=True))


def _head(head: bytes) -> Head | None:
    """What the head of a frame of layer III says; None for what is none."""
    word = int.from_bytes(head, "big")
    version, layer, rate, step = word >> 19 & 3, word >> 17 & 3, word >> 12 & 15, word >> 10 & 3
    if word >> 21 != 0x7FF or version == 1 or layer != 1 or rate in (0, 15) or step == 3:
        return None
    first = version == 3
    rates = _MPEG_1_RATES if first else _MPEG_2_RATES
    hertz = (44_100, 48_000, 32_000)[step] // {3: 1, 2: 2, 0: 4}[version]
    n_bytes = (144 if first else 72) * rates[rate - 1] * 1000 // hertz + (word >> 9 & 1)
    return Head(n_bytes, 1152 if first else 576, rate)
