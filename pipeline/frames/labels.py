"""What the labels of frames say, and what frames and embedding must have to go together."""

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


def check_features(what: str, embedding: xr.Dataset, frames: xr.DataArray) -> None:
    """Refuse frames with other features than the embedding's, or none at all; ``what`` begins the sentence."""
    known, got = embedding.sizes["feature"], frames.sizes["feature"]
    if known != got:
        raise ValueError(
            f"{what} must have the {known} features of the embedding; got {got}. Make them with the "
            "same options (frame=, edges=) as the embedded frames."
        )
    if frames.sizes["frame"] == 0:
        raise ValueError(f"{what} must hold at least 1 frame; got 0.")


def require(who: str, embedding: xr.Dataset, *names: str) -> None:
    """Refuse an embedding that lacks one of some variables."""
    missing = [name for name in names if name not in embedding]
    if missing:
        raise ValueError(
            f"{who}: the embedding must hold its {missing[0]}; it does not. Embed again, or read a stored result "
            "with mo.read_embedding."
        )
