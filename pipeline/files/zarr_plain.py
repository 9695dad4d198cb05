"""Zarr that xarray did not write: arrays whose dimensions have no names, and an array that is a whole store.

Such dimensions are called ``dim_0``, ``dim_1``, ...; that of time is the longest where it is so by far, or the one
along which an array called ``time`` runs, or whichever the user names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
import zarr
from xarray.backends import BackendArray
from xarray.core import indexing

from ..stores.address import Address, Place
from ..stores.zarrs import zarr_target

ROOT = "recording"
"""Name of an array that is a whole store."""
# A dimension so many times as long as the others is that of time.
_LONGER = 4
_CLOCK = "time"


class ZarrArray(BackendArray):
    """An array of a store, opened anew in each process.

    Parameters
    ----------
    path
        Where the array lies.
    array
        As zarr opened it.
    """

    def __init__(self, path: Place, array: Any) -> None:
        self.path, self._array = path, array
        self.shape, self.dtype = array.shape, array.dtype

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to open it."""
        return {**self.__dict__, "_array": None}

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read one range."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        """Read integers and slices."""
        if self._array is None:
            self._array = zarr.open_array(zarr_target(self.path), mode="r")
        return self._array[key]


def open_plain(path: Place, time_dim: str | None) -> xr.Dataset | None:
    """Open a store of arrays whose dimensions have no names.

    Parameters
    ----------
    path
        Folder of a group or an array, which was looked at.
    time_dim
        What the user calls the dimension of time; None to find it.

    Returns
    -------
    Variables without indexes, not in chunks; None where all dimensions have names, as xarray wants.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp(), "a.zarr")
    >>> _ = zarr.create_array(folder, data=np.zeros((100, 3)))
    >>> open_plain(folder, None)["recording"].dims
    ('time', 'dim_1')
    """
    node = zarr.open(zarr_target(path), mode="r")
    arrays = {ROOT: node} if isinstance(node, zarr.Array) else dict(node.arrays())
    if not arrays or (not isinstance(node, zarr.Array) and all(_named(array) for array in arrays.values())):
        return None
    shapes = {name: array.shape for name, array in arrays.items()}
    n_time = _length_of_time(shapes) if time_dim is None else None
    sizes: dict[str, int] = {}
    variables = {}
    for name in sorted(arrays, key=lambda name: (-len(shapes[name]), -int(np.prod(shapes[name])))):
        dims = _named(arrays[name]) or _dims(name, shapes[name], n_time, sizes)
        sizes |= dict(zip(dims, shapes[name], strict=True))
        place = path if name == ROOT and node is arrays[name] else path / name
        variables[name] = _variable(name, place, arrays[name], dims)
    variables = {name: variables[name] for name in sorted(variables)}
    coords = {name: variables.pop(name) for name in [*variables] if variables[name].dims == (name,)}
    return xr.Dataset(variables, attrs=dict(node.attrs)).assign_coords(xr.Coordinates(coords, indexes={}))


def without_zero_fill(dataset: xr.Dataset, path: Place) -> xr.Dataset:
    """A dataset in which 0 is 0, where Zarr 2 names it as the fill value by default; xarray reads NaN.

    Parameters
    ----------
    dataset
        As xarray opened it.
    path
        Folder of the group.
    """
    zeros = [name for name, array in zarr.open_group(zarr_target(path), mode="r").arrays() if _fills_with_zero(array)]
    if not zeros:
        return dataset
    how: dict[str, Any] = {"chunks": None, "cache": False, "create_default_indexes": False, "consolidated": False}
    how["consolidated"] = isinstance(path, Address) and path.is_web
    raw = xr.open_dataset(zarr_target(path), engine="zarr", mask_and_scale=False, decode_times=False, **how)
    right = {name: _unmasked(name, raw[name].variable, dataset[name].dtype.kind in "mM") for name in zeros}
    coords = {name: variable for name, variable in right.items() if name in dataset.coords}
    found = dataset.assign({name: variable for name, variable in right.items() if name not in coords})
    found = found.assign_coords(xr.Coordinates(coords, indexes={}))
    found.encoding = dataset.encoding
    return found


def _unmasked(name: str, raw: xr.Variable, dated: bool) -> xr.Variable:
    """A variable as its attributes say, but for the fill value."""
    attrs = {key: value for key, value in raw.attrs.items() if key != "_FillValue"}
    plain = xr.Variable(raw.dims, raw._data, attrs, raw.encoding)
    return xr.conventions.decode_cf_variable(name, plain, decode_times=dated)


def _fills_with_zero(array: Any) -> bool:
    """Whether an array of Zarr 2 has the fill value 0, which says nothing."""
    fill = array.fill_value
    return array.metadata.zarr_format == 2 and array.dtype.kind in "iufb" and fill is not None and fill == 0


def _named(array: Any) -> tuple[str, ...] | None:
    """Names of the dimensions of an array; None where one has none."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    if array.ndim == 0:
        return ()
    if not names or len(names) != array.ndim or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)


def _length_of_time(shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """Samples of the recording; None where it could be either dimension."""
    clock = shapes.get(_CLOCK, ())
    if len(clock) == 1:
        return clock[0]
    largest = max(shapes.values(), key=lambda shape: (len(shape) == 2, int(np.prod(shape))))
    lengths = sorted(largest, reverse=True)
    return lengths[0] if len(lengths) == 1 or (lengths and lengths[0] >= _LONGER * lengths[1]) else None


def _dims(name: str, shape: tuple[int, ...], n_time: int | None, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Names for the dimensions of an array, those of other arrays where they are as long."""
    along = shape.index(n_time) if n_time in shape else None
    dims = []
    for place, n in enumerate(shape):
        general = f"dim_{place}"
        dims.append(_CLOCK if place == along else general if sizes.get(general, n) == n else f"{name}_{general}")
    return tuple(dims)


def _variable(name: str, place: Place, array: Any, dims: tuple[str, ...]) -> xr.Variable:
    """A lazy variable, decoded as its attributes say."""
    chunks = getattr(array, "shards", None) or array.chunks
    lazy = indexing.LazilyIndexedArray(ZarrArray(place if isinstance(place, Address) else place.absolute(), array))
    attrs = {key: value for key, value in array.attrs.items() if key != "_ARRAY_DIMENSIONS"}
    encoding = {"preferred_chunks": dict(zip(dims, chunks, strict=True))}
    return xr.conventions.decode_cf_variable(name, xr.Variable(dims, lazy, attrs, encoding))
