"""Classic NetCDF is read through a memory map by SciPy: pages that were read count as memory of the process.

They are the system's to take back, but whoever watches a worker sees it grow to the size of the file, and ends it.
"""

from __future__ import annotations

import mmap
from typing import Any

import xarray as xr

_DEEPEST = 16


def release(variable: xr.Variable) -> None:
    """Give pages back that reading a variable has mapped; what is read again is mapped again.

    Parameters
    ----------
    variable
        As xarray opened it; others than those of memory maps are left alone.

    Examples
    --------
    >>> release(xr.Variable("time", [1.0]))
    """
    mapped = getattr(getattr(_store_of(variable._data), "ds", None), "_mm", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _store_of(array: Any) -> Any:
    """The store behind the layers in which xarray wraps an array; None where there is none of SciPy's."""
    for _ in range(_DEEPEST):
        if array is None or hasattr(array, "datastore"):
            break
        array = getattr(array, "array", None)
    store = getattr(array, "datastore", None)
    return store if type(store).__name__ == "ScipyDataStore" else None
