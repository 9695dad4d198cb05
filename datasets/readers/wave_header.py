"""The arithmetic of WAVE headers: whether the sizes that a header claims agree with the file.

libsndfile shortens what does not agree without a word. A WAVE file is a list of *chunks*, each
a four-letter name, a size and a body padded to an even length; ``fmt`` says how samples are
coded and ``data`` holds them. RF64 and BW64 keep the 64-bit size of ``data`` in ``ds64``.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

import numpy as np

from .chunks import ends_in_chunks, is_chunk_name, zero_from
from .contract import Lies, refusal

_READER = "audio"
_COPY = "Copy it again from the recorder, or download it again"
_REWRITE = "Write its header anew, for example: ffmpeg -ignore_length 1 -i FILE -c copy -rf64 auto NEW.wav"
# What programs that stream to a pipe write, for they cannot return to the header: ffmpeg, SoX.
_STREAMED_SIZES = (0xFFFFFFFF, 0x7FFFF000)
# Integer PCM, floats, and the extensible form of either.
_LINEAR_FORMATS = (1, 3, 0xFFFE)
_BLOCK_BYTES = 2**20
# Numbers that need no decoding, as libsndfile and as NumPy call them.
_NUMBERS = {"PCM_16": "i2", "FLOAT": "f4"}


@dataclass(frozen=True)
class WaveHeader:
    """What a WAVE header claims."""

    riff_size: int
    """Bytes of the file after the first eight."""
    data_start: int
    """Where the samples begin, in bytes."""
    data_size: int
    """Bytes of samples."""
    frame_bytes: int
    """Bytes of one sample of every channel; 0 for coded sound."""
    order: Literal["<", ">"] = field(default="<", repr=False)
    """Byte order of all numbers, as struct and NumPy call it."""


def check_wave(path: str) -> tuple[int, ...]:
    """Refuse a WAVE file whose header does not agree with its size.

    Parameters
    ----------
    path
        A file that begins as WAVE.

    Returns
    -------
    Offsets of the size fields that a crashed recorder left at zero, to be read as unknown;
    empty for a sound header.

    Notes
    -----
    Reads the header alone, unless bytes follow the samples: those must be chunks up to the end of the file, for
    samples of which four bytes happen to be letters would else be left out.

    Examples
    --------
    >>> import tempfile, wave
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with wave.open(folder + "/a.wav", "wb") as sound:
    ...         sound.setparams((1, 2, 8000, 0, "NONE", ""))
    ...         sound.writeframes(bytes(200))
    ...     check_wave(folder + "/a.wav")
    ()
    """
    header = read_wave_header(path)
    held = os.path.getsize(path) - header.data_start
    if header.data_size in _STREAMED_SIZES and held <= header.data_size:
        return ()
    if header.data_size > held:
        raise _cut_short(path, header, held)
    nothing = header.data_size == 0 and held > 0
    if nothing and (zero_from(path, header.data_start) or not _holds_chunks(path, header.data_start, header.order)):
        return _zero_sizes(path, header, held)
    _check_rest(path, header)
    return ()


def read_wave_header(path: str) -> WaveHeader:
    """Read the chunks up to the samples.

    Parameters
    ----------
    path
        A file that begins as WAVE.

    Returns
    -------
    What the header claims.

    Examples
    --------
    >>> import tempfile, wave
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with wave.open(folder + "/a.wav", "wb") as sound:
    ...         sound.setparams((3, 2, 8000, 0, "NONE", ""))
    ...         sound.writeframes(bytes(600))
    ...     read_wave_header(folder + "/a.wav")
    WaveHeader(riff_size=636, data_start=44, data_size=600, frame_bytes=6)
    """
    with open(path, "rb") as file:
        order: Literal["<", ">"] = ">" if file.read(4) == b"RIFX" else "<"
        (riff_size,) = _unpack(file, order, "I")
        wide_size, frame_bytes = None, 0
        for name, start, size in _chunks(path, file, order):
            if name == b"ds64":
                riff_size, wide_size = _unpack(file, "<", "QQ")
            elif name == b"fmt ":
                frame_bytes = _frame_bytes(*_unpack(file, order, "HHIIHH"))
            elif name == b"data":
                # ds64 counts only where the 32-bit field says so.
                known = size if wide_size is None or size != 0xFFFFFFFF else wide_size
                return WaveHeader(riff_size, start, known, frame_bytes, order)
    raise refusal(
        _READER,
        path,
        "hold a 'data' chunk",
        f"{os.path.getsize(path)} bytes that end before it (the file was cut short)",
        _COPY,
    )


def samples_lie(path: str, frames: int, channels: int, subtype: str) -> Lies | None:
    """Where the samples of a WAVE file lie; None where they are coded, or the header does not say it for sure.

    Parameters
    ----------
    path
        A file that begins as WAVE, and that :func:`check_wave` has found sound.
    frames, channels
        How many there are.
    subtype
        Of the samples, as libsndfile calls it.

    Examples
    --------
    >>> import tempfile, wave
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with wave.open(folder + "/a.wav", "wb") as sound:
    ...         sound.setparams((1, 2, 8000, 0, "NONE", ""))
    ...         sound.writeframes(bytes(200))
    ...     samples_lie(folder + "/a.wav", 100, 1, "PCM_16").offset
    44
    """
    code = _NUMBERS.get(subtype)
    if code is None:
        return None
    header = read_wave_header(path)
    dtype = np.dtype(code).newbyteorder(header.order)
    whole = header.frame_bytes == dtype.itemsize * channels
    held = os.path.getsize(path) - header.data_start >= frames * header.frame_bytes
    return Lies(path, header.data_start, dtype) if whole and held else None


def _chunks(path: str, file: BinaryIO, order: str) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, start and claimed size of each chunk; the file stands at the chunk's start."""
    position, end = 12, os.path.getsize(path)
    while position + 8 <= end:
        file.seek(position)
        name = file.read(4)
        (size,) = _unpack(file, order, "I")
        if not is_chunk_name(name):
            raise refusal(
                _READER,
                path,
                "consist of named chunks",
                f"the bytes {name!r} for a name at byte {position} (the chunk before it has a wrong size)",
                _REWRITE,
            )
        yield name, position + 8, size
        position += 8 + size + size % 2


def _unpack(file: BinaryIO, order: str, fields: str) -> tuple[int, ...]:
    """Read packed fields; those beyond the end of the file are zero."""
    layout = struct.Struct(order + fields)
    return layout.unpack(file.read(layout.size).ljust(layout.size, b"\0"))


def _frame_bytes(code: int, channels: int, _rate: int, _bytes: int, _block: int, bits: int) -> int:
    """Count the bytes of a frame from channels and bits, for the header's own count is at times wrong."""
    return channels * -(-bits // 8) if code in _LINEAR_FORMATS else 0


def _amount(header: WaveHeader, n_bytes: int) -> str:
    """Say an amount of sound in frames where a frame has a size, else in bytes."""
    if header.frame_bytes:
        return f"{n_bytes // header.frame_bytes} frames ({n_bytes} bytes)"
    return f"{n_bytes} bytes"


def _cut_short(path: str, header: WaveHeader, held: int) -> ValueError:
    """Build the error of a header that claims more than there is."""
    return refusal(
        _READER,
        path,
        f"hold the {_amount(header, header.data_size)} its header claims",
        f"{_amount(header, held)} (the file was cut short)",
        f"{_COPY}; or accept the shorter file: ffmpeg -i FILE -c copy NEW.wav",
    )


def _zero_sizes(path: str, header: WaveHeader, held: int) -> tuple[int, ...]:
    """Locate sizes that a recorder left at zero; refuse where the end of the samples is not certain."""
    # Both sizes unwritten, nothing after the samples to end them, and frames of a known size.
    never_written = header.riff_size in (0, header.data_start - 8)
    if never_written and header.frame_bytes:
        return (4, header.data_start - 4)
    raise refusal(
        _READER,
        path,
        "state how much sound it holds",
        f"0 bytes claimed where {held} follow (the recorder stopped before it wrote the sizes)",
        _REWRITE,
    )


def _check_rest(path: str, header: WaveHeader) -> None:
    """Refuse bytes after the samples that are neither chunks nor padding: samples that would be lost."""
    end = header.data_start + header.data_size
    rest = os.path.getsize(path) - end
    if rest <= 1:
        return
    if _is_crlf_mangled(path, os.path.getsize(path) - header.riff_size - 8):
        raise refusal(
            _READER,
            path,
            f"be the {header.riff_size + 8} bytes its header claims",
            f"{os.path.getsize(path)} (every LF became CRLF in a text-mode transfer)",
            "Copy it again in binary mode",
        )
    if _holds_chunks(path, end, header.order):
        return
    raise refusal(
        _READER,
        path,
        f"end with the {_amount(header, header.data_size)} its header claims",
        f"{_amount(header, rest)} more (its header is out of date or damaged)",
        _REWRITE,
    )


def _holds_chunks(path: str, end: int, order: str) -> bool:
    """Tell whether chunks follow the samples up to the end of the file; some writers leave their padding out."""
    return any(ends_in_chunks(path, start, struct.Struct(order + "4sI")) for start in {end + end % 2, end})


def _is_crlf_mangled(path: str, surplus: int) -> bool:
    """Tell whether a file holds as many CRLF as it is too long, and no LF alone."""
    if surplus <= 0:
        return False
    pairs, last = 0, b""
    with open(path, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            found = (last + block).count(b"\r\n")
            if found != block.count(b"\n"):
                return False
            pairs, last = pairs + found, block[-1:]
    return pairs == surplus
