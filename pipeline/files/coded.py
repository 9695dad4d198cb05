"""Chunks that are coded as a whole: their files are decoded here, without the store's library.

Zarr reads and decodes in threads of its own, and copies what they give, which takes as long again as decoding by
zstd. The chunk that a thread decoded last is kept, for what it reads next begins in it.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

MOST_BYTES = 2**23
"""Of a chunk that is decoded here: as much stays with each thread. Larger ones are left to their library."""


def decoder_of(codec: Any) -> Any:
    """What decodes chunks that a codec of a Zarr array made, of either format; None where the array's library has to.

    Examples
    --------
    >>> import zarr
    >>> decoder_of(zarr.codecs.ZstdCodec(level=3)), decoder_of(zarr.codecs.Crc32cCodec())
    (Zstd(level=0), None)
    """
    import numcodecs  # noqa: PLC0415 - slow to import, and imported where there is an array

    if type(codec) in (numcodecs.Zstd, numcodecs.Blosc, numcodecs.GZip, numcodecs.Zlib, numcodecs.LZ4):
        return codec
    made = {"ZstdCodec": numcodecs.Zstd, "BloscCodec": numcodecs.Blosc, "GzipCodec": numcodecs.GZip}
    found = made.get(type(codec).__name__)
    return None if found is None else found()  # what is coded says how


class _Kept(threading.local):
    """The chunk that a thread decoded last."""

    def __init__(self) -> None:
        self.key: tuple[Any, ...] | None = None
        self.chunk: memoryview = memoryview(b"")

    def read(self, path: str, place: int, room: memoryview, size: int, codec: Any) -> bool:
        """Fill room with the bytes from a place in a chunk on; whether it is there, is sound, and of a size."""
        try:
            found = os.stat(path)
            key = path, found.st_ino, found.st_size, found.st_mtime_ns
            if key != self.key:
                self.key, self.chunk = None, memoryview(b"")  # gone before the next one is there
                chunk = memoryview(codec.decode(Path(path).read_bytes())).cast("B")
                if len(chunk) != size:
                    return False
                self.key, self.chunk = key, chunk
        except Exception:  # codecs have errors of many kinds; the library reads it again, and says why
            return False
        room[:] = self.chunk[place : place + len(room)]
        return True


DECODED = _Kept()
"""Of this thread."""
