"""What the labels of frames say: segments, times, and what a result keeps of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray


def segment_of(labelled: xr.DataArray | xr.Dataset) -> NDArray[np.int64]:
    """Segment of every frame; one segment where nothing is said.

    Examples
    --------
    >>> segment_of(xr.DataArray([1.0, 2.0], dims="frame"))
    array([0, 0])
    """
    if "segment" in labelled.coords:
        return np.asarray(labelled["segment"].values)
    return np.zeros(labelled.sizes["frame"], np.int64)


def frame_labels(labelled: xr.DataArray | xr.Dataset) -> dict[Any, xr.DataArray]:
    """Coordinates that belong to the frames alone."""
    return {name: c for name, c in labelled.coords.items() if c.dims == ("frame",)}


def frame_period(frames: xr.DataArray) -> float:
    """Seconds between two frames.

    Raises
    ------
    ValueError
        The frames have neither a period nor times.
    """
    if "frame_period" in frames.attrs:
        return float(frames.attrs["frame_period"])
    if "time" not in frames.coords or frames.sizes["frame"] < 2:
        raise ValueError("observe: frames need a 'time' coordinate in seconds for rates='generator'.")
    return float(np.median(np.diff(frames["time"].values)))
