"""What the chunks of a store cost: bytes that reading decodes against bytes that it uses.

Slabs of all channels are read along time, one after the other. Two kinds of chunks cost far more than that: long ones,
such as one channel over all times, of which every slab decodes all again; and tiny ones, each of which costs as much
as some thousands of bytes do.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import dask.array as da
import xarray as xr

from ..graph.slabs import SLAB_BYTES, Stored, source_of, stored_chunks
from ..graph.warn import warn

# Bytes that are decoded in the time that a chunk takes whatever it holds, as measured: a file of its own, or a place
# in a file.
_ZARR_CHUNK, _FILE_CHUNK = 2**16, 2**10
# Times the bytes that are used, and bytes in all beyond them (a few tenths of a second), above which it is told.
_DEAR, _WASTE = 2.0, 2**26


class Cost(NamedTuple):
    """How many bytes reading costs for each that it uses, those beyond them, and the chunk: samples, channels."""

    factor: float
    waste: float
    samples: int
    channels: int


def chunk_cost(recording: xr.DataArray) -> Cost | None:
    """What the stored chunks of an open recording cost, the dearest of its variables; None where it has none.

    Parameters
    ----------
    recording
        As :func:`.open_recording` has it, dims ``(time, channel)``.

    Examples
    --------
    >>> chunk_cost(xr.DataArray(da.zeros((4, 2)), dims=("time", "channel"))) is None
    True
    """
    source = source_of(recording.data) if isinstance(recording.data, da.Array) else None
    if not isinstance(source, Stored):
        return None
    slab = max(recording.chunks[0]) if recording.chunks else 1
    along = [values.variable for values in source.dataset.data_vars.values() if "time" in values.dims]
    found = [_cost(source, stored, slab) for stored in along]
    return max((cost for cost in found if cost is not None), default=None)


def warn_of_chunks(recording: xr.DataArray, path: object) -> None:
    """Say in one sentence that other chunks would be read twice as fast or faster, and how they are made."""
    cost = chunk_cost(recording)
    if cost is None or cost.factor <= _DEAR or cost.waste < _WASTE:
        return
    n, p = recording.shape
    row = p * recording.dtype.itemsize
    rows = min(n, max(1, SLAB_BYTES // row))
    warn(
        f"open_recording: {path} is stored in chunks of {cost.samples} x {cost.channels} samples x channels, which "
        f"costs about {cost.factor:.0f} times the reading that it takes. Store it once in chunks of all channels and "
        f"about {rows} samples: xr.open_dataset(OLD).chunk(time={rows}).drop_encoding().to_zarr(NEW)."
    )


def _cost(source: Stored, stored: xr.Variable, slab: int) -> Cost | None:
    """What the chunks of one variable cost."""
    chunks = stored_chunks(stored)
    if "time" not in chunks:
        return None
    sizes = [min(chunks[dim], stored.sizes[dim]) for dim in stored.dims]
    samples = min(chunks["time"], stored.sizes["time"])
    again = 1.0 if source.kept_bytes or source.rows is not None else max(1.0, samples / slab)
    each = _ZARR_CHUNK if "compressors" in stored.encoding or "filters" in stored.encoding else _FILE_CHUNK
    several = prod(sizes) < stored.size
    factor = again + several * each / (prod(sizes) * stored.dtype.itemsize)
    return Cost(factor, (factor - 1) * stored.nbytes, samples, prod(sizes) // samples)
