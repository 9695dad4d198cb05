"""Reader of NumPy's ``.npy`` files: the xarray engine ``manifold-npy``.

Nothing is ever unpickled, and only the range that is asked for is read. A file holds numbers
alone: without ``sampling_rate`` there is no clock.
"""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from manifold_observer.datasets.regular import uniform_time

from .contract import (
    Lies,
    check_channels,
    check_sampling_rate,
    check_upright,
    has_suffix,
    lazy_variable,
    local_file,
    recording_dataset,
    refusal,
)
from .sniff import NPY, describe

_READER = "npy"
_HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True)
class NpyHeader:
    """What the header of a file says of its one array."""

    shape: tuple[int, ...]
    """Shape of the array."""
    dtype: np.dtype[Any]
    """Dtype on disk, with its byte order."""
    data_start: int
    """Where the values begin, in bytes."""
    upright: bool = True
    """Whether the values of a row lie together, as in C."""


class NpyArray(BackendArray):
    """An array in a file, opened anew for every read so that it can be pickled.

    Parameters
    ----------
    path
        The file.
    dtype
        Dtype to hand out, in native byte order.
    shape
        Shape to hand out, (samples, channels).
    channels_first
        Whether the file holds (channel, time).

    Examples
    --------
    >>> NpyArray("night.npy", np.dtype("i2"), (1000, 4), channels_first=False).ndim
    2
    """

    def __init__(self, path: str, dtype: np.dtype[Any], shape: tuple[int, int], *, channels_first: bool) -> None:
        self.path = path
        self.dtype = dtype
        self.shape = shape
        self.channels_first = channels_first

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read one range."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self._read)

    def lies(self) -> Lies | None:
        """Where the numbers lie, if those of one sample lie together; a file that is another by now is refused."""
        header = self._checked_header()
        upright = len(header.shape) == 1 or (header.upright and not self.channels_first)
        return Lies(self.path, header.data_start, header.dtype) if upright else None

    def _read(self, key: tuple[Any, ...]) -> np.ndarray[Any, np.dtype[Any]]:
        """Copy one range out of the memory map, into native byte order."""
        self._checked_header()  # a map of a file that shrank is fatal
        stored = np.load(self.path, mmap_mode="r", allow_pickle=False)
        table = stored[:, np.newaxis] if stored.ndim == 1 else stored
        turned = table.T if self.channels_first and stored.ndim == 2 else table
        return np.array(turned[: self.shape[0]][key], dtype=self.dtype)

    def _checked_header(self) -> NpyHeader:
        """What the file says now; it may have grown."""
        header = read_npy_header(self.path)
        found = _native_dtype(self.path, header.dtype)
        n_samples, n_channels = _table_shape(self.path, header.shape, self.channels_first)
        if n_channels != self.shape[1] or n_samples < self.shape[0] or found != self.dtype:
            must = f"keep its shape {self.shape} and dtype {self.dtype} while it is read"
            raise refusal(_READER, self.path, must, f"{header.shape} and {found}", "Open it again")
        return header


class NpyBackend(BackendEntrypoint):
    """Opens ``.npy`` files as lazy recordings with ``xr.open_dataset``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "counts.npy"), np.arange(6, dtype=">i2").reshape(3, 2))
    ...     dataset = xr.open_dataset(Path(folder, "counts.npy"), sampling_rate=10.0).load()
    >>> dataset["recording"].values
    array([[0, 1],
           [2, 3],
           [4, 5]], dtype=int16)
    >>> dataset["time"].values
    array([0. , 0.1, 0.2])
    """

    description = "Open NumPy .npy files as recordings (time, channel), lazily and without pickle"
    open_dataset_parameters = (
        "filename_or_obj",
        "drop_variables",
        "sampling_rate",
        "channels_first",
        "units",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim files by their name, whatever they hold."""
        return has_suffix(filename_or_obj, {".npy"})

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        sampling_rate: float | None = None,
        channels_first: bool | None = None,
        units: str = "unknown",
    ) -> xr.Dataset:
        """Open one file; its values are read when they are used.

        Parameters
        ----------
        filename_or_obj
            Path of the file. One dimension is one channel, two are (time, channel).
        drop_variables
            Names to leave out.
        sampling_rate
            Samples per second, in Hz. Without it the recording has no time coordinate.
        channels_first
            Whether the file holds (channel, time) instead; None refuses one that looks so.
        units
            Unit of the values.

        Returns
        -------
        Dataset with the variable ``recording``, dims (time, channel), in native byte order;
        integers stay integers.
        """
        check_sampling_rate(_READER, sampling_rate)
        path = local_file(_READER, filename_or_obj)
        header = read_npy_header(path)
        n_samples, n_channels = _table_shape(path, header.shape, bool(channels_first))
        check_channels(_READER, path, n_channels)
        if channels_first is None:
            check_upright(_READER, path, n_samples, n_channels, "give channels_first=True")
        dtype = _native_dtype(path, header.dtype)
        array = NpyArray(path, dtype, (n_samples, n_channels), channels_first=bool(channels_first))
        return recording_dataset(
            lazy_variable(array, dtype, array.shape),
            path=path,
            channels=[f"ch{number}" for number in range(1, n_channels + 1)],
            time=None if sampling_rate is None else uniform_time(n_samples, sampling_rate),
            sampling_rate=sampling_rate,
            units=units,
            long_name="recorded values",
            drop_variables=drop_variables,
        )


def read_npy_header(path: str) -> NpyHeader:
    """Read the header of a ``.npy`` file and check it against the file's size.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Shape, dtype and where the values begin.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(folder + "/a.npy", np.zeros((5, 2)))
    ...     read_npy_header(folder + "/a.npy").shape
    (5, 2)
    """
    if (words := describe(path)) != NPY:
        raise refusal(_READER, path, "be a NumPy .npy array", words, "Export the array again with numpy.save")
    header = _parse_header(path)
    if header.dtype.hasobject:
        raise refusal(
            _READER,
            path,
            "hold plain numbers",
            "pickled Python objects, which are never unpickled",
            "Save it again from numbers, with numpy.save(path, array.astype(float))",
        )
    _check_size(path, header)
    return header


def _parse_header(path: str) -> NpyHeader:
    """Parse the header without touching the values."""
    try:
        with open(path, "rb") as file:
            shape, turned, dtype = _HEADER_READERS[np.lib.format.read_magic(file)](file)
            return NpyHeader(shape, dtype, file.tell(), not turned)
    except (ValueError, KeyError) as error:
        raise refusal(
            _READER,
            path,
            "have a readable .npy header",
            f"one that NumPy cannot parse ({error})",
            "Export the array again with numpy.save",
        ) from error


def _check_size(path: str, header: NpyHeader) -> None:
    """Refuse a file that is shorter or longer than its header says."""
    expected = header.data_start + math.prod(header.shape) * header.dtype.itemsize
    found = os.path.getsize(path)
    if found != expected:
        raise refusal(
            _READER,
            path,
            f"be {expected} bytes long for its shape {header.shape}",
            f"{found} bytes ({'it was cut short' if found < expected else 'more follows the array'})",
            "Copy it again, or export the array again with numpy.save",
        )


def _table_shape(path: str, shape: tuple[int, ...], channels_first: bool) -> tuple[int, int]:
    """Find samples and channels, refusing what is not a table or has no values."""
    if len(shape) not in (1, 2) or 0 in shape:
        raise refusal(
            _READER,
            path,
            "hold samples of shape (time,) or (time, channel)",
            f"shape {shape}",
            "Save it again with numpy.save(path, array.reshape(n_samples, n_channels))",
        )
    table = shape if len(shape) == 2 else (shape[0], 1)
    if channels_first and len(shape) == 2:
        table = table[::-1]
    return table[0], table[1]


def _native_dtype(path: str, stored: np.dtype[Any]) -> np.dtype[Any]:
    """Choose the dtype to hand out: integers stay, booleans count, floats are 32 or 64 bits."""
    if stored.kind in "iu":
        return stored.newbyteorder("=")
    if stored.kind == "b":
        return np.dtype(np.uint8)
    if stored.kind == "f" and stored.itemsize <= 8:
        return np.dtype(np.float64 if stored.itemsize == 8 else np.float32)
    raise refusal(
        _READER,
        path,
        "hold real numbers of at most 64 bits",
        f"dtype {stored}",
        _other_dtype(stored),
    )


def _other_dtype(stored: np.dtype[Any]) -> str:
    """How an array of another dtype is saved as numbers, none of which are lost."""
    if stored.names is not None:
        return "Save its fields as columns of a table, with pandas.DataFrame(array).to_csv('table.csv'), and open that"
    if stored.kind == "c":
        return "Save its real and imaginary parts as channels, with numpy.save(path, array.view(float))"
    if stored.kind in "mM":
        return "It is a clock: save what was measured, as a table with the clock in its first column"
    return "Save it again with numpy.save(path, array.astype(float))"
