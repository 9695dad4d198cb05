"""What of a stored result is held once it was read, and what of many frames is read where it is used."""

from __future__ import annotations

from typing import Any

import dask
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


def at_hand(embedding: xr.Dataset) -> xr.Dataset:
    """A stored embedding that has been read, but for its frames, and numbers of every one of many of them."""
    few = embedding.sizes["frame"] <= LAZY_FRAMES
    small = [
        name
        for name, values in embedding.data_vars.items()
        if "frame" not in values.dims or (few and "reference" not in str(name))
    ]
    # Here, where the store is open: workers would read each of some twenty arrays in a task of its own, and send it. By
    # the scheduler's function: asked for by name, Dask imports distributed first.
    return embedding.assign(embedding[small].compute(scheduler=dask.get).data_vars)
