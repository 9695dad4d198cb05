"""Labels of stored results: read once and kept, or, where frames are many, read where they are used."""

from __future__ import annotations

from typing import Any

import xarray as xr
from xarray.core import indexing

from ..graph.limits import LAZY_FRAMES
from ..graph.slabs import source_of


def labels_at_hand(opened: xr.Dataset) -> xr.Dataset:
    """The same with coordinates that are read, and kept, when they are first used: groupby and where take no Dask."""
    sources = {name: source_of(one.data) for name, one in opened.coords.items() if one.chunks is not None}
    kept: Any = indexing.MemoryCachedArray
    plain = {
        name: xr.Variable(
            opened[name].dims,
            # Those of many frames are read where they are used, each time.
            source.array if opened[name].size > LAZY_FRAMES else kept(source.array),
            opened[name].attrs,
            opened[name].encoding,
        )
        for name, source in sources.items()
        if isinstance(source, indexing.ImplicitToExplicitIndexingAdapter)
    }
    return opened.assign_coords(plain)


def lazy_labels(dataset: xr.Dataset, length: int) -> xr.Dataset:
    """Stored labels of many frames are read chunk by chunk as they are written."""
    many = [
        name
        for name, label in dataset.coords.items()
        if label.size > LAZY_FRAMES and label.chunks is None and not label.variable._in_memory
    ]
    return dataset.assign_coords({name: dataset[name].variable.chunk(frame=length) for name in many})
