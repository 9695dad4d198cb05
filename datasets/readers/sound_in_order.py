"""Decoders that only go forward, for MP3: libsndfile seeks to the wrong samples where the bit rate varies.

A few are kept open, each where it was left, so that slabs that are read one after the other cost one pass.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import soundfile

_MOST_KEPT = 4
_LOCK = threading.Lock()


class Forward(soundfile.SoundFile):  # type: ignore[misc] # soundfile has no types
    """A sound file that is never sought in: after every read, soundfile itself would seek to where it is."""

    position = 0
    """The frame that it gives next."""

    def seekable(self) -> bool:
        """It is not."""
        return False

    def tell(self) -> int:
        """The frame that it gives next."""
        return self.position

    def read(self, frames: int = -1, **how: Any) -> Any:
        """Read on."""
        block = super().read(frames, **how)
        self.position += len(block)
        return block


class _Kept(NamedTuple):
    """A decoder, which file it reads as it was, and the frame that it gives next."""

    key: tuple[str, int, int]
    sound: Forward
    position: int


_KEPT: list[_Kept] = []


@contextmanager
def forward_from(path: str, start: int) -> Iterator[Forward]:
    """Give a decoder at or before a frame, and keep it afterwards for what follows.

    Parameters
    ----------
    path
        The file.
    start
        The frame.

    Yields
    ------
    The decoder, whose ``tell`` says where it is.
    """
    found = os.stat(path)
    key = (path, found.st_size, found.st_mtime_ns)
    with _LOCK:
        fits = [kept for kept in _KEPT if kept.key == key and kept.position <= start]
        nearest = max(fits, key=lambda kept: kept.position, default=None)
        if nearest is not None:
            _KEPT.remove(nearest)
    sound = Forward(path) if nearest is None else nearest.sound
    try:
        yield sound
    except BaseException:
        sound.close()
        raise
    with _LOCK:
        _KEPT.append(_Kept(key, sound, sound.tell()))
        while len(_KEPT) > _MOST_KEPT:
            _KEPT.pop(0).sound.close()
