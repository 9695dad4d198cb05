"""What a worker on this machine loads as it starts, once, without walking through it again: a preload of Dask's."""

from __future__ import annotations

from ..graph.loading import leave_at_once, loading

leave_at_once()
with loading():
    import dask.array  # noqa: F401 - tasks read and write with these
    import scipy.linalg  # noqa: F401
    import xarray as xr  # noqa: F401
    import zarr  # noqa: F401
