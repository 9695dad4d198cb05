"""Open decoders of files that can only be read in order, kept for who reads on.

A slab of such a file would else cost all that lies before it, and a whole file the square of its length.
"""

import os
import threading
from typing import NamedTuple

import soundfile

_MOST = 4


class InOrder(soundfile.SoundFile):  # type: ignore[misc]
    """A file that is never sought: soundfile does so after every read, to the frame where it is anyway."""

    def seekable(self) -> bool:
        """Say no, whatever the format allows."""
        return False


class Decoder(NamedTuple):
    """An open file, and the frame that it gives next."""

    sound: soundfile.SoundFile
    position: int


class Decoders:
    """Decoders that nobody uses at the moment, the last few of this process.

    Examples
    --------
    >>> kept = Decoders()
    >>> kept.take(os.devnull, 5) is None
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[tuple[tuple[str, int, int], Decoder]] = []

    def take(self, path: str, start: int) -> Decoder | None:
        """The decoder of a file that has the shortest way to a frame; it is the caller's alone.

        Parameters
        ----------
        path
            The file.
        start
            The frame.

        Returns
        -------
        None where the file has to be opened.
        """
        with self._lock:
            wanted = _mark(path)
            fits = [n for n, (mark, free) in enumerate(self._free) if mark == wanted and free.position <= start]
            return self._free.pop(max(fits, key=lambda n: self._free[n][1].position))[1] if fits else None

    def give(self, path: str, decoder: Decoder) -> None:
        """Keep a decoder for the next who reads on; the one that was not used for longest is closed.

        Parameters
        ----------
        path
            The file.
        decoder
            Where it stands.
        """
        with self._lock:
            self._free.append((_mark(path), decoder))
            while len(self._free) > _MOST:
                self._free.pop(0)[1].sound.close()


def _mark(path: str) -> tuple[str, int, int]:
    """Which file it is, and when it was written."""
    found = os.stat(path)
    return path, found.st_size, found.st_mtime_ns
