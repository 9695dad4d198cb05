"""Where arrays lie that need no library: Zarr of one codec at most, NetCDF 3, HDF5 in one piece, .npy, PCM sound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from ..stores.address import Place
from .coded import MOST_BYTES, decoder_of
from .plain import Fixed, Lying, PlainRows, last_written

_DEEPEST = 8
# The number of a chunk, by which its name is split into what stands before and after.
_MARKED = 987_654_321


def plain_rows(path: Place, variable: xr.Variable) -> PlainRows | None:
    """Rows of a variable, if they lie in files of this machine as they are.

    Parameters
    ----------
    path
        File or folder that it was opened from.
    variable
        As xarray opened it, lazily.

    Examples
    --------
    >>> plain_rows(Path("a.nc"), xr.Variable("time", [1.0])) is None
    True
    """
    array = _stored_array(variable)
    if not isinstance(path, Path) or array is None or variable.ndim not in (1, 2) or variable.dtype.kind not in "iuf":
        return None
    lying: Callable[[], Lying | None] | None
    lying = _Told(array) if hasattr(array, "lies") else _looked_for(path, array)
    found = None if lying is None else lying()
    if lying is None or found is None:
        return None
    return PlainRows(variable.shape, variable.dtype, lying, getattr(array, "scale", 1.0), found.dtype.itemsize)


@dataclass(frozen=True)
class _Told:
    """An array of this project's readers, which says where it lies each time that it is read."""

    array: Any

    def __call__(self) -> Lying | None:
        """Where it lies."""
        found = self.array.lies()
        return None if found is None else Lying(found.path, None, self.array.shape[0], found.offset, found.dtype)


def _stored_array(variable: xr.Variable) -> Any:
    """What a variable reads, where xarray decodes and chooses nothing on the way; else None."""
    array: Any = variable._data
    for _ in range(_DEEPEST):
        chosen = isinstance(array, indexing.LazilyIndexedArray) and not _is_whole(array)
        if chosen or not isinstance(array, indexing.LazilyIndexedArray | indexing.CopyOnWriteArray):
            break
        array = array.array
    return array if isinstance(array, BackendArray) and getattr(array, "shape", None) == variable.shape else None


def _is_whole(array: indexing.LazilyIndexedArray) -> bool:
    """Whether nothing is chosen of an array."""
    return all(isinstance(part, slice) and part in (slice(None), slice(0, None, 1)) for part in array.key.tuple)


def _looked_for(path: Path, array: Any) -> Fixed | None:
    """Where the array of a library lies; None where that cannot be told."""
    look = {
        "ZarrArrayWrapper": _in_zarr,
        "ZarrArray": _in_zarr,
        "ScipyArrayWrapper": _in_netcdf3,
        "H5NetCDFArrayWrapper": _in_hdf5,
        "NetCDF4ArrayWrapper": _in_hdf5,
    }.get(type(array).__name__)
    try:
        written = None if path.is_dir() else last_written(str(path.absolute()))
        found = None if look is None else look(path, array)
        return None if found is None else Fixed(found, written)
    except (AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError):
        return None  # another version of the library, say: it reads its array itself


def _in_zarr(_path: Path, wrapper: Any) -> Lying | None:
    """Files of a local Zarr array whose chunks are rows."""
    from zarr.storage import LocalStore  # noqa: PLC0415 - slow to import, and imported where there is an array

    array, metadata = wrapper._array, wrapper._array.metadata
    chunks = tuple(array.chunks)
    if not isinstance(array.store, LocalStore) or array.shards or chunks[1:] != array.shape[1:]:
        return None
    codecs = _codecs_in_zarr(metadata)
    if codecs is None or len(codecs) > 1:
        return None
    decoder = decoder_of(codecs[0]) if codecs else None
    if codecs and (decoder is None or math.prod(chunks) * array.dtype.itemsize > MOST_BYTES):
        return None
    key = metadata.encode_chunk_key((_MARKED, *(0 for _ in chunks[1:])))
    before, after = key.split(str(_MARKED))
    folder = Path(array.store.root).absolute() / array.path
    return Lying(f"{folder}/{before}", after, chunks[0], 0, _dtype_in_zarr(metadata), decoder)


def _codecs_in_zarr(metadata: Any) -> list[Any] | None:
    """What codes the bytes of a chunk, one after the other; None where its numbers do not lie there in their order."""
    if metadata.zarr_format == 2:
        plain = not metadata.filters and metadata.order == "C"
        return [codec for codec in (metadata.compressor,) if codec is not None] if plain else None
    first, *others = metadata.codecs
    return others if type(first).__name__ == "BytesCodec" else None


def _dtype_in_zarr(metadata: Any) -> np.dtype[Any]:
    """How numbers lie in a chunk before its bytes are coded."""
    if metadata.zarr_format == 2:
        return np.dtype(metadata.dtype.to_native_dtype())
    endian = metadata.codecs[0].endian
    native: np.dtype[Any] = metadata.data_type.to_native_dtype()
    return native.newbyteorder(">" if endian.value == "big" else "<") if endian is not None else native


def _in_netcdf3(path: Path, wrapper: Any) -> Lying | None:
    """Where SciPy has mapped an array."""
    dataset = wrapper.datastore.ds
    values = dataset.variables[wrapper.variable_name].data
    whole = np.frombuffer(dataset._mm, np.uint8)
    offset = values.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    inside = 0 <= offset <= whole.size - values.nbytes
    if not values.flags.c_contiguous or not inside:
        return None
    return Lying(str(path.absolute()), None, max(1, len(values)), offset, values.dtype)


def _in_hdf5(path: Path, wrapper: Any) -> Lying | None:
    """Where an array of one piece lies."""
    import h5py  # noqa: PLC0415 - the extra 'formats'

    variable = wrapper.get_array(False)
    name = variable._h5ds.name if hasattr(variable, "_h5ds") else f"{variable.group().path}/{variable.name}"
    with h5py.File(path, "r") as file:
        stored = file[name]
        offset = stored.id.get_offset()
        if stored.chunks is not None or stored.is_virtual or stored.external or offset is None or not stored.shape:
            return None
        # NumPy has no numbers of 12 bits, say, or floats of another bias: HDF5 hands those out converted.
        if stored.id.get_type() != h5py.h5t.py_create(stored.dtype):
            return None
        return Lying(str(path.absolute()), None, max(1, stored.shape[0]), offset, stored.dtype)
