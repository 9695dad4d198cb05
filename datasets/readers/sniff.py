"""What a file really is, from its first bytes: the words that the readers put into their errors.

A name says what a file should be; a signature says what it is. Downloads that failed
leave HTML pages and Git LFS pointers under the names of recordings.
"""

import importlib.util
import os
import re

Signature = tuple[str, tuple[tuple[int, bytes], ...]]

HEAD_BYTES = 4096
EMPTY = "an empty file"
TEXT = "text"
NPY = "a NumPy .npy array"
HDF5 = "HDF5 (NetCDF 4)"
ZARR = "a Zarr store"
WAVE64 = "a Sony Wave64 file"
FLAC = "FLAC"
AIFF = "an AIFF file"
AU = "a Sun/NeXT .au file"
CAF = "a Core Audio file"
EDF = "an EDF recording"
BDF = "a BDF recording"
MATLAB_5 = "a MATLAB 5 file"
MATLAB_7 = "a MATLAB 7.3 file (HDF5)"
MIDI = "MIDI (notes, no samples)"
PARQUET = "a Parquet table"
FEATHER = "a Feather table (Arrow)"
BRAINVISION = "a BrainVision header"
FIF = "a FIF recording"
XDF = "an XDF recording"
UNKNOWN = "binary data of an unknown kind"
WAVES = {
    b"RIFF": "a RIFF/WAVE file",
    b"RIFX": "a RIFX/WAVE file (big-endian)",
    b"RF64": "an RF64/WAVE file",
    b"BW64": "a BW64/WAVE file",
}

_SOUND_SIGNATURES: tuple[Signature, ...] = (
    *((words, ((0, magic), (8, b"WAVE"))) for magic, words in WAVES.items()),
    (WAVE64, ((0, b"riff\x2e\x91\xcf\x11"),)),
    (FLAC, ((0, b"fLaC"),)),
    ("Ogg", ((0, b"OggS"),)),
    (AIFF, ((0, b"FORM"), (8, b"AIF"))),
    (AU, ((0, b".snd"),)),
    (CAF, ((0, b"caff"),)),
    ("MP3", ((0, b"ID3"),)),
    *(("MP3", ((0, bytes((0xFF, layer))),)) for layer in (0xFB, 0xFA, 0xF3, 0xF2, 0xE3, 0xE2)),
)
_OTHER_SIGNATURES: tuple[Signature, ...] = (
    ("a RIFF file that is not WAVE", ((0, b"RIFF"),)),
    ("a Git LFS pointer, not the data: run 'git lfs pull'", ((0, b"version https://git-lfs"),)),
    (MATLAB_7, ((0, b"MATLAB 7.3"),)),
    (MATLAB_5, ((0, b"MATLAB 5.0"),)),
    # HDF5 allows a user block of 512 bytes, or a power of two more, before its signature.
    *((HDF5, ((at, b"\x89HDF\r\n\x1a\n"),)) for at in (0, 512, 1024, 2048)),
    ("classic NetCDF 3", ((0, b"CDF\x01"),)),
    ("classic NetCDF 3", ((0, b"CDF\x02"),)),
    ("classic NetCDF 3", ((0, b"CDF\x05"),)),
    (MIDI, ((0, b"MThd"),)),
    (NPY, ((0, b"\x93NUMPY"),)),
    (EDF, ((0, b"0       "),)),
    (BDF, ((0, b"\xffBIOSEMI"),)),
    (XDF, ((0, b"XDF:"),)),
    (BRAINVISION, ((0, b"Brain Vision"),)),
    (BRAINVISION, ((0, b"BrainVision"),)),
    (FIF, ((0, b"\0\0\0\x64\0\0\0\x1f\0\0\0\x14"),)),
    (PARQUET, ((0, b"PAR1"),)),
    (FEATHER, ((0, b"ARROW1"),)),
    ("a PDF document", ((0, b"%PDF"),)),
    ("a ZIP archive (.zip, .npz, .xlsx)", ((0, b"PK\x03\x04"),)),
    ("a gzip archive", ((0, b"\x1f\x8b"),)),
    ("a bzip2 archive", ((0, b"BZh"),)),
    ("an xz archive", ((0, b"\xfd7zXZ"),)),
    ("a Zstandard archive", ((0, b"\x28\xb5\x2f\xfd"),)),
    # What pickle protocols 2 to 5 begin with.
    *(("a Python pickle", ((0, bytes((0x80, protocol))),)) for protocol in range(2, 6)),
)
SOUNDS = frozenset(words for words, _ in _SOUND_SIGNATURES)
# What xarray needs for HDF5, each alone: h5netcdf itself comes without a library that reads files.
_HDF5_ENGINES = (("netCDF4",), ("h5netcdf", "h5py"), ("h5netcdf", "pyfive"))
_ZARR_FILES = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def describe(path: str | os.PathLike[str]) -> str:
    """Say in words what a file or folder is, whatever its name says.

    Parameters
    ----------
    path
        A local file or folder.

    Returns
    -------
    A few words that can follow "got", such as "an HTML page".

    Notes
    -----
    Reads at most 4 kB.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Path(folder, "night.wav")
    ...     _ = page.write_text("<html><title>404 Not Found</title></html>")
    ...     describe(page)
    'an HTML page'
    """
    if os.path.isdir(path):
        return _describe_folder(path)
    if os.path.exists(path) and not os.path.isfile(path):
        return "a FIFO, a socket or a device"
    head = read_head(path)
    if not head:
        return EMPTY
    for words, parts in _SOUND_SIGNATURES + _OTHER_SIGNATURES:
        if all(head[at : at + len(magic)] == magic for at, magic in parts):
            return words
    return _describe_text(head) if _is_text(head) else _describe_unsigned(head)


def holds(source: object, *words: str) -> bool:
    """Tell whether a source is a local file of one of some kinds, by what it holds.

    Parameters
    ----------
    source
        What the user gave to ``xr.open_dataset``.
    words
        As :func:`describe` says them.

    Returns
    -------
    True where it is.

    Examples
    --------
    >>> holds("missing.edf", EDF), holds(b"0       ", EDF)
    (False, False)
    """
    return isinstance(source, str | os.PathLike) and os.path.isfile(source) and describe(source) in words


def read_head(path: str | os.PathLike[str], n_bytes: int = HEAD_BYTES) -> bytes:
    """Read the first bytes of a file.

    Parameters
    ----------
    path
        A local file.
    n_bytes
        How many bytes at most.

    Returns
    -------
    The bytes, fewer if the file is shorter.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("time,x")
    ...     read_head(Path(folder, "a.txt"), 4)
    b'time'
    """
    with open(path, "rb") as file:
        return file.read(n_bytes)


def missing_engine(path: str | os.PathLike[str]) -> str | None:
    """Say what to install when a file is HDF5 and xarray has no engine for it.

    Parameters
    ----------
    path
        A local file or folder.

    Returns
    -------
    A sentence with the remedy; None when the file is not HDF5 or an engine is there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("time,x")
    ...     missing_engine(Path(folder, "a.txt")) is None
    True
    """
    if "HDF5" not in describe(path) or any(all(map(_is_installed, engine)) for engine in _HDF5_ENGINES):
        return None
    return "Install an engine for HDF5 with: pip install h5netcdf h5py."


def looks_crlf_mangled(path: str | os.PathLike[str]) -> bool:
    r"""Tell whether a binary file went through a text-mode transfer that made LF into CRLF.

    In true binary data a line feed follows a carriage return once in 256 times; after
    such a transfer it always does.

    Parameters
    ----------
    path
        A local file.

    Returns
    -------
    True if the first megabyte holds at least 8 line feeds and each follows a carriage return.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.wav").write_bytes(bytes(range(256)) * 9)
    ...     _ = Path(folder, "b.wav").write_bytes((bytes(range(256)) * 9).replace(b"\n", b"\r\n"))
    ...     [looks_crlf_mangled(Path(folder, name)) for name in ("a.wav", "b.wav")]
    [False, True]
    """
    head = read_head(path, 2**20)
    return not _is_text(head[:HEAD_BYTES]) and head.count(b"\n") == head.count(b"\r\n") >= 8


def _is_installed(module: str) -> bool:
    """Tell whether a module can be imported, without importing it."""
    return importlib.util.find_spec(module) is not None


def _describe_folder(path: str | os.PathLike[str]) -> str:
    """Name a folder: a Zarr store has one of a few files at its root."""
    is_zarr = any(os.path.exists(os.path.join(path, name)) for name in _ZARR_FILES)
    return ZARR if is_zarr else "a directory"


def _is_text(head: bytes) -> bool:
    """Tell text from binary data: a byte-order mark, or no control characters but white space."""
    if head.startswith(_BYTE_ORDER_MARKS[1:]):
        return len(head) > 2 and 0 in head[2:4]  # UTF-16 of any western header
    return re.search(rb"[\x00-\x08\x0e-\x1f]", head) is None


def _describe_text(head: bytes) -> str:
    """Name the texts that are never a table."""
    start = head.removeprefix(_BYTE_ORDER_MARKS[0]).lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "an HTML page"
    if start.startswith((b"<?xml", b"<")):
        return "an XML document"
    return TEXT


def _describe_unsigned(head: bytes) -> str:
    """Name binary data without a signature."""
    return UNKNOWN if any(head) else "nothing but zero bytes at its start"
