"""Reader of sound files: the xarray engine ``manifold-audio``.

Everything goes through libsndfile, opened anew for each read: an array holds a path and no open
file, so it can be pickled, and threads and worker processes read side by side. Reading takes
the requested range in blocks; opening reads the header, the first frames and the last one.
"""

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import soundfile
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from manifold_observer.datasets.regular import uniform_time

from .chunks import check_aiff, check_au, check_wave64
from .containers import check_caf, check_ogg, last_pages
from .contract import (
    CHUNK_BYTES,
    Lies,
    has_suffix,
    lazy_variable,
    local_file,
    recording_dataset,
    refusal,
)
from .decoders import Decoder, Decoders, InOrder
from .flac import count_flac, with_total
from .mpeg import check_mp3
from .sniff import AIFF, AU, CAF, FLAC, SOUNDS, UNKNOWN, WAVE64, WAVES, describe, looks_crlf_mangled
from .wave_header import check_wave, samples_lie

_READER = "audio"
_WAVE_SUFFIXES = (".wav", ".wave", ".bwf", ".rf64", ".w64")
_OTHER_SUFFIXES = (".flac", ".ogg", ".oga", ".opus", ".aif", ".aiff", ".aifc", ".au", ".snd", ".caf", ".mp3")
_SUFFIXES = frozenset((*_WAVE_SUFFIXES, *_OTHER_SUFFIXES))
_LOGGED_SIZES = re.compile(r"(?:SSND|Data Size|riff)\s*: (\d+) \(should be (\d+)\)")
# Samples that float32 does not hold exactly.
_WIDE_SUBTYPES = ("PCM_32", "DOUBLE", "ALAC_32")
_PROBE_FRAMES = 4096
# Whole numbers of 16 bits are scaled here, a stretch that stays in cache at a time: a third of libsndfile's time.
_SCALE_16, _WHOLE_BYTES = 2.0**-15, 2**20
_UNKNOWN_SIZE = b"\xff\xff\xff\xff"
# libsndfile gives the largest number for a length that it does not know.
_MOST_FRAMES = 2**62
# Blocks of files that are decoded in order: whoever takes them in another order decodes what lies before each.
_IN_ORDER_BYTES = 2**26
_COPY = "Copy or download it again"
_CONVERT = "Convert it, for example with: ffmpeg -i FILE NEW.flac"
_MANGLED = "Copy it again in binary mode, for every LF in it became CRLF in a text-mode transfer"
_DECODERS = Decoders()

Samples = np.ndarray[Any, np.dtype[Any]]
Repairs = tuple[tuple[int, bytes], ...]


@dataclass(frozen=True)
class AudioFile:
    """What is needed to read a range of a file again."""

    path: str
    """The file."""
    frames: int
    """Number of samples of each channel."""
    channels: int
    """Number of channels."""
    sampling_rate: float
    """Frames per second, in Hz."""
    dtype: np.dtype[Any]
    """Float32, or float64 where the file holds more than 24 bits."""
    repairs: Repairs = ()
    """Header fields to be read as something else."""
    last_seek: int | None = None
    """Last frame at which reading may begin; None for any."""
    in_order: bool = False
    """Whether reading must begin with the first frame."""
    scale: float | None = None
    """What whole numbers of 16 bits are multiplied by; None where libsndfile makes the floats."""
    plain: str | None = None
    """Subtype, as libsndfile calls it, of the samples of a sound WAVE file, which may lie there as they are."""


class AudioArray(BackendArray):
    """The samples of a sound file as (frames, channels), read range by range.

    Parameters
    ----------
    file
        The file, as :func:`inspect_audio` found it.

    Examples
    --------
    >>> file = AudioFile("night.flac", 480_000, 2, 48_000.0, np.dtype("f4"))
    >>> AudioArray(file).shape
    (480000, 2)
    """

    def __init__(self, file: AudioFile) -> None:
        self.file, self.scale = file, file.scale or 1.0
        self.shape = (file.frames, file.channels)
        self.dtype = file.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read one range."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def lies(self) -> Lies | None:
        """Where the samples lie, in a file that does not code them; its header may have been written anew."""
        file = self.file
        return samples_lie(file.path, file.frames, file.channels, file.plain) if file.plain is not None else None

    def _read(self, key: tuple[Any, Any]) -> Samples:
        """Read integers or slices of positive step; memory is the answer and one block."""
        time, channel = (part if isinstance(part, slice) else slice(part, part + 1) for part in key)
        rows, n_columns = range(self.file.frames)[time], len(range(self.file.channels)[channel])
        answer = np.empty((len(rows), n_columns), self.dtype)
        position, filled = rows.start, 0
        for block in _decoded(self.file, rows.start, rows[-1] + 1 if rows else rows.start):
            chosen = block[(rows.start - position) % rows.step :: rows.step, channel]
            _scaled(self.file, chosen, answer[filled : filled + len(chosen)])
            position, filled = position + len(block), filled + len(chosen)
        return answer[tuple(slice(None) if isinstance(part, slice) else 0 for part in key)]


class AudioBackend(BackendEntrypoint):
    """Opens sound files as lazy recordings with ``xr.open_dataset``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     soundfile.write(Path(folder, "a.wav"), np.array([0.0, 0.5, -0.5]), 10)
    ...     dataset = xr.open_dataset(Path(folder, "a.wav")).load()
    >>> dataset["recording"].values
    array([[ 0. ],
           [ 0.5],
           [-0.5]], dtype=float32)
    >>> dataset["recording"].attrs["sampling_rate"]
    10.0
    """

    description = "Open sound files (WAV, RF64, W64, FLAC, Ogg, AIFF, ...) as recordings, lazily"
    open_dataset_parameters = ("filename_or_obj", "drop_variables")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim files by their name, whatever they hold."""
        return has_suffix(filename_or_obj, _SUFFIXES)

    def open_dataset(self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None) -> xr.Dataset:
        """Open one file; its samples are read when they are used.

        Parameters
        ----------
        filename_or_obj
            Path of the file.
        drop_variables
            Names to leave out.

        Returns
        -------
        Dataset with the variable ``recording``, dims (time, channel), where 1 is full scale.
        """
        file = inspect_audio(local_file(_READER, filename_or_obj))
        array = AudioArray(file)
        return recording_dataset(
            lazy_variable(array, file.dtype, array.shape, n_bytes=_IN_ORDER_BYTES if file.in_order else CHUNK_BYTES),
            path=file.path,
            channels=[f"ch{number}" for number in range(1, file.channels + 1)],
            time=uniform_time(file.frames, file.sampling_rate),
            sampling_rate=file.sampling_rate,
            units="1",
            long_name="sample value relative to full scale",
            drop_variables=drop_variables,
        )


def inspect_audio(path: str) -> AudioFile:
    """Look at a sound file and refuse it if it cannot be read to its end.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    What is needed to read it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     soundfile.write(folder + "/a.flac", np.zeros((50, 2)), 8000)
    ...     inspect_audio(folder + "/a.flac").frames
    50
    """
    if (words := describe(path)) not in SOUNDS | {UNKNOWN}:
        raise refusal(_READER, path, "be a sound file", words, "Replace it with the recording")
    repairs = _repairs(path, words)
    with _errors_named(path, "opened"), _open_sound(path, repairs) as sound:
        wide = sound.subtype in _WIDE_SUBTYPES
        in_order = _check_container(path, sound)
        plain = not repairs and words in WAVES.values()
        file = AudioFile(
            path,
            sound.frames,
            sound.channels,
            float(sound.samplerate),
            np.dtype(np.float64 if wide else np.float32),
            repairs,
            _last_vorbis_seek(path) if sound.subtype == "VORBIS" else None,
            in_order,
            _SCALE_16 if sound.subtype == "PCM_16" else None,
            sound.subtype if plain else None,
        )
    _check_decodes(file)
    return file


def _repairs(path: str, words: str) -> Repairs:
    """Check the arithmetic of a file, and say which fields of its header were never written."""
    checks = {CAF: check_caf, AIFF: check_aiff, AU: check_au, WAVE64: check_wave64}
    if words in checks:
        checks[words](path)
    if words in WAVES.values():
        return tuple((at, _UNKNOWN_SIZE) for at in check_wave(path))
    counted = count_flac(path) if words == FLAC else None
    return () if counted is None else with_total(path, counted)


def read_blocks(file: AudioFile, start: int, stop: int) -> Iterator[Samples]:
    """Read a range of frames, in blocks of at most 8 MB.

    Parameters
    ----------
    file
        The file.
    start
        First frame.
    stop
        Frame after the last.

    Yields
    ------
    Consecutive blocks, shape (frames, channels).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     soundfile.write(folder + "/a.wav", np.arange(4) / 4, 8000)
    ...     [block.ravel() for block in read_blocks(inspect_audio(folder + "/a.wav"), 1, 3)]
    [array([0.25, 0.5 ], dtype=float32)]
    """
    for block in _decoded(file, start, stop):
        yield _scaled(file, block, np.empty(block.shape, file.dtype))


def _scaled(file: AudioFile, block: Samples, out: Samples) -> Samples:
    """Put samples where 1 is full scale, as libsndfile does to the bit."""
    if file.scale is None:
        out[...] = block
    else:
        np.multiply(block, np.float32(file.scale), out=out)
    return out


def _decoded(file: AudioFile, start: int, stop: int) -> Iterator[Samples]:
    """Blocks of a range of frames, as floats or as the whole numbers that the file holds."""
    if start >= stop:
        return
    kept = CHUNK_BYTES if file.scale is None else min(CHUNK_BYTES, _WHOLE_BYTES)
    kind = file.dtype.name if file.scale is None else "int16"
    longest = max(1, kept // (file.dtype.itemsize * file.channels))
    with _errors_named(file.path, f"read in frames {start} to {stop - 1}"), _placed(file, start) as decoder:
        position = decoder.position
        while position < stop:
            # Frames before `start` are read only to be dropped: see _last_vorbis_seek.
            target = min(position + longest, start if position < start else stop)
            block = decoder.sound.read(target - position, dtype=kind, always_2d=True)
            if len(block) < target - position:
                raise _ended_early(file, position + len(block))
            if position >= start:
                yield block
            position = target
        if file.in_order:
            _DECODERS.give(file.path, Decoder(decoder.sound, position))


@contextmanager
def _placed(file: AudioFile, start: int) -> Iterator[Decoder]:
    """The file, open at a frame, or before it where reading cannot begin there."""
    if file.in_order:
        # Not closed: it is kept for who reads on, and closes where it is not.
        yield _DECODERS.take(file.path, start) or Decoder(InOrder(file.path), 0)
        return
    with _open_sound(file.path, file.repairs) as sound:
        position = start if file.last_seek is None else min(start, file.last_seek)
        sound.seek(position)
        yield Decoder(sound, position)


class _Repaired(io.FileIO):
    """A file of which some bytes are read as others."""

    def __init__(self, path: str, repairs: Repairs) -> None:
        super().__init__(path)
        self._repairs = repairs

    def readinto(self, buffer: Any) -> int:
        """Read, then write over the fields that fall into what was read."""
        start = self.tell()
        count = super().readinto(buffer) or 0
        view = memoryview(buffer).cast("B")
        for at, byte in ((at + k, byte) for at, field in self._repairs for k, byte in enumerate(field)):
            if start <= at < start + count:
                view[at - start] = byte
        return count


@contextmanager
def _open_sound(path: str, repairs: Repairs) -> Iterator[soundfile.SoundFile]:
    """Open a file by libsndfile, through the repair of its header where there is one."""
    if not repairs:
        with soundfile.SoundFile(path) as sound:
            yield sound
        return
    with _Repaired(path, repairs) as repaired, soundfile.SoundFile(repaired) as sound:
        yield sound


@contextmanager
def _errors_named(path: str, doing: str) -> Iterator[None]:
    """Turn an error of libsndfile, which may be empty, into one that names the file."""
    try:
        yield
    except soundfile.LibsndfileError as error:
        reason = error.error_string.rstrip(" .") or f"error {error.code}"
        raise refusal(
            _READER,
            path,
            f"be sound that can be {doing}",
            f'"{reason}" from libsndfile (the file is damaged, cut short or of an unknown coding)',
            _MANGLED if looks_crlf_mangled(path) else f"{_COPY}, or convert it to WAV or FLAC",
        ) from error


def _ended_early(file: AudioFile, found: int) -> ValueError:
    """Build the error of a file that decodes to fewer frames than it claims."""
    return refusal(
        _READER,
        file.path,
        f"hold the {file.frames} frames its header claims",
        f"only {found} (the file was cut short)",
        _COPY,
    )


def _check_container(path: str, sound: soundfile.SoundFile) -> bool:
    """Refuse no samples, no seeking, and what libsndfile's log and Ogg's pages tell of a cut; say if order matters."""
    if sound.frames == 0:
        raise refusal(_READER, path, "hold samples", f"0 frames of {sound.format_info}", _COPY)
    if sound.frames > _MOST_FRAMES:
        raise refusal(_READER, path, "state how many frames it holds", "a stream of unknown length", _CONVERT)
    if not sound.seekable():
        raise refusal(_READER, path, "allow reading from any frame", sound.subtype_info, _CONVERT)
    for claimed, held in _LOGGED_SIZES.findall(sound.extra_info):
        if int(held) < int(claimed) < 0xFFFFFFFF:
            got = f"{held} (the file was cut short)"
            raise refusal(_READER, path, f"hold the {claimed} bytes its header claims", got, _COPY)
    if sound.format == "OGG":
        check_ogg(path)
    return check_mp3(path, sound.frames) if sound.format == "MP3" else False


def _check_decodes(file: AudioFile) -> None:
    """Read the first frames and the last one, unless all would have to be read for it."""
    for start in (0,) if file.in_order else (0, file.frames - 1):
        for _ in read_blocks(file, start, min(start + _PROBE_FRAMES, file.frames)):
            pass


def _last_vorbis_seek(path: str) -> int:
    """Find the last frame at which libsndfile 1.2 seeks rightly in Vorbis.

    In the last page, which is trimmed to the length of the sound, it lands some frames late;
    reading on into that page from the one before is right.
    """
    ends = [page.frames for page in last_pages(path) if page.frames > 0]
    return max(0, ends[-2] - 1) if len(ends) > 1 else 0
