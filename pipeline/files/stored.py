"""What a file holds against what it declares, so that a small file cannot ask for a large memory.

Throughout: a *declared* size is what the metadata claim, a *stored* one what lies on the disk.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import NamedTuple

from ..stores.address import Place
from .ordinary import refusal

MOST_BYTES_A_CHUNK = 2**31
"""A chunk is decoded whole, by every task that needs a part of it."""
MOST_BYTES_A_VALUE = 2**16
MOST_CHANNELS = 2**18
# Compressed data are at most so many times as large: more is made to exhaust the memory.
_MOST_EXPANSION = 1000
_LARGE = 2**26
# A store in which fewer chunks than this share are there was hardly begun, or not copied.
_LEAST_SHARE = 1e-3


class Stored(NamedTuple):
    """One array of a file.

    ``shape`` and ``itemsize`` are declared; ``chunk`` is the shape of what is decoded at once, None where any
    range can be read alone; ``n_chunks`` of them are declared, ``n_stored`` stored, in ``n_bytes``;
    ``fill``: what the others read as.
    """

    shape: tuple[int, ...]
    itemsize: int
    chunk: tuple[int, ...] | None
    n_chunks: int
    n_stored: int
    n_bytes: int
    fill: str

    @property
    def declared_bytes(self) -> int:
        """Bytes of all values in memory."""
        return math.prod(self.shape) * self.itemsize


def check_declared(path: str | Place, name: str, array: Stored) -> None:
    """Refuse an array of which a part alone would exhaust the memory, whether it is used or not.

    Parameters
    ----------
    path, name
        The file and the array, for the error.
    array
        What is declared.

    Raises
    ------
    ValueError
        Values or chunks are too large.

    Examples
    --------
    >>> check_declared("a.zarr", "volts", Stored((10**12,), 8, (10**12,), 1, 1, 500, "0"))
    Traceback (most recent call last):
    ValueError: open_recording: a.zarr must have chunks of at most 2147483648 bytes; got 8000000000000 in 'volts'. ...
    """
    if array.itemsize > MOST_BYTES_A_VALUE:
        raise refusal(
            path,
            f"hold values of at most {MOST_BYTES_A_VALUE} bytes",
            f"{array.itemsize} in {name!r}",
            "Store it again as numbers, or as short labels",
        )
    n_bytes = math.prod(array.chunk or ()) * array.itemsize
    if array.chunk is not None and n_bytes > MOST_BYTES_A_CHUNK:
        raise refusal(
            path, f"have chunks of at most {MOST_BYTES_A_CHUNK} bytes", f"{n_bytes} in {name!r}", "Store it in chunks"
        )


def check_stored(path: str | Place, arrays: Iterable[tuple[str, Stored]], *, quiet: bool = False) -> None:
    """Refuse a recording of which hardly anything is stored, and say where a part is missing.

    What is missing reads as the fill value. That is right where a writer leaves out what equals it, as Zarr's do;
    an interrupted copy looks the same.

    Parameters
    ----------
    path
        The file.
    arrays
        Names and sizes of the recording and its coordinates.
    quiet
        Do not warn of what is missing.

    Raises
    ------
    ValueError
        Nothing is stored, or a thousandth of what is declared.

    Warns
    -----
    UserWarning
        Some chunks are missing.

    Examples
    --------
    >>> check_stored("a.zarr", [("volts", Stored((10**12,), 8, (10**6,), 10**6, 1, 500, "0.0"))])
    Traceback (most recent call last):
    ValueError: open_recording: a.zarr must hold the data that it declares; got 1 of 1000000 chunks of 'volts', ...
    """
    for name, array in arrays:
        if not math.prod(array.shape):
            continue
        if array.n_stored < max(1.0, _LEAST_SHARE * array.n_chunks) or _expands(array):
            raise refusal(
                path,
                "hold the data that it declares",
                f"{array.n_stored} of {array.n_chunks} chunks of {name!r}, {array.n_bytes} bytes for "
                f"{array.declared_bytes} (the rest would read as the fill value {array.fill})",
                "Copy it again, or wait until it is written",
            )
        if array.n_stored < array.n_chunks and not quiet:
            warnings.warn(
                f"open_recording: {path} stores {array.n_stored} of {array.n_chunks} chunks of {name!r}; "
                f"the others read as the fill value {array.fill}. Copy it again, unless that is what was recorded.",
                stacklevel=2,
            )


def _expands(array: Stored) -> bool:
    """Whether chunks that are there would grow beyond what compressed recordings do."""
    share = array.n_stored / array.n_chunks
    return array.declared_bytes * share > max(_LARGE, _MOST_EXPANSION * array.n_bytes)


def check_channels(path: str | Place, n_channels: int) -> None:
    """Refuse more channels than any recording has.

    Examples
    --------
    >>> check_channels("a.nc", 10**7)
    Traceback (most recent call last):
    ValueError: open_recording: a.nc must have at most 262144 channels; got 10000000. ...
    """
    if n_channels > MOST_CHANNELS:
        raise refusal(
            path,
            f"have at most {MOST_CHANNELS} channels",
            str(n_channels),
            "Is it (channel, time)? Transpose it, or keep fewer channels",
        )
