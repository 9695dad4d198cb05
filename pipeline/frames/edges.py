"""Bounds of histogram bins: given ones, or those that hold every sample of some recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..graph.compute import compute
from .labels import in_order

# Most cells that a histogram takes from the data by itself.
_MAX_COUNT_BINS = 256


class Range(NamedTuple):
    """Least and largest sample, and the dtype of the samples."""

    low: float
    high: float
    dtype: np.dtype[Any]


def shared_edges(recordings: Sequence[xr.DataArray], bins: int | None = None) -> NDArray[Any]:
    """Bounds of histogram bins that hold every sample of some recordings; this computes, in one pass.

    Parameters
    ----------
    recordings
        Dims ``(time, channel)`` each.
    bins
        Number of equal bins; without it, integer samples get one bin per count.

    Returns
    -------
    Increasing bounds, in the unit of the samples.

    Raises
    ------
    ValueError
        The samples are not integers and there is no ``bins``, or the range is not finite or too wide.

    Examples
    --------
    >>> shared_edges([xr.DataArray([[0], [2]], dims=("time", "channel"))])
    array([0, 1, 2, 3])
    """
    check_bins([recording.dtype for recording in recordings], bins)
    return edges_over(ranges_of(recordings), bins)


def check_bins(dtypes: Sequence[np.dtype[Any]], bins: int | None) -> None:
    """Refuse bins that cannot be chosen, before anything is read.

    Raises
    ------
    ValueError
        The samples are not integers and there is no ``bins``, or not even one bin.
    """
    if bins is not None and bins < 1:
        raise ValueError(f"histogram: bins must be at least 1; got {bins}.")
    if bins is None and not all(dtype.kind in "iub" for dtype in dtypes):
        raise ValueError(
            f"histogram: samples of dtype {dtypes[0]} need explicit bins. Give their edges, "
            "or bins=10 for equal bins over the range of the data."
        )


def ranges_of(recordings: Sequence[xr.DataArray]) -> list[Range]:
    """Range of every recording; this computes, in one pass over all of them.

    Raises
    ------
    ValueError
        One is not finite.

    Examples
    --------
    >>> ranges_of([xr.DataArray([[0], [2]], dims=("time", "channel"))])[0].high
    2.0
    """
    checked = [in_order("histogram: recording", each, ("time", "channel"), "Rename them.") for each in recordings]
    data = [each.data if each.chunks else each.chunk().data for each in checked]
    found = compute([bound for each in data for bound in (each.min(), each.max())])
    if not np.isfinite(np.array(found, np.float64)).all():
        raise ValueError(
            "histogram: the recording holds NaN or infinity. Open it with gaps='nan' to leave such samples out."
        )
    bounds = zip(found[::2], found[1::2], data, strict=True)
    return [Range(float(low), float(high), each.dtype) for low, high, each in bounds]


def edges_over(ranges: Sequence[Range], bins: int | None) -> NDArray[Any]:
    """Bounds of bins that hold all of some ranges.

    Examples
    --------
    >>> edges_over([Range(0.0, 1.0, np.dtype(float)), Range(1.0, 4.0, np.dtype(float))], 2)
    array([0., 2., 4.])
    """
    check_bins([each.dtype for each in ranges], bins)
    low, high = min(each.low for each in ranges), max(each.high for each in ranges)
    if bins is not None:
        return np.linspace(low, high if high > low else low + 1, bins + 1)
    first = min(low, 0.0) if high < _MAX_COUNT_BINS else low
    if high - first >= _MAX_COUNT_BINS:
        raise ValueError(f"histogram: one bin per count would be {high - first + 1:.0f} bins. Give bins=10, or edges=.")
    return np.arange(int(first), int(high) + 2)


def given_edges(edges: NDArray[Any]) -> NDArray[Any]:
    """Check bounds of bins.

    Raises
    ------
    ValueError
        Fewer than two, or not increasing.
    """
    chosen = np.asarray(edges)
    if chosen.ndim != 1 or len(chosen) < 2 or not np.all(np.diff(chosen) > 0):
        raise ValueError(f"histogram: edges must be at least 2 increasing numbers; got {edges!r}.")
    return chosen
