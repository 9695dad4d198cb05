"""Coordinates along the time of a recording, such as labels, on its frames: by majority, or by mean."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from .segments import FrameRun
from .variables import label_name

_OWN = ("time", "segment")
# Each value is counted in a pass of its own.
_MOST_VALUES = 256


def beside(recordings: Iterable[xr.DataArray]) -> list[Hashable]:
    """Names of coordinates along time that all of some recordings have, other than their clock and segments.

    Examples
    --------
    >>> list(beside([xr.DataArray([0.0], dims="time", coords={"time": [0.0], "stage": ("time", ["W"])})]))
    ['stage']
    """
    names = [
        {name for name, values in each.coords.items() if values.dims == ("time",) and name not in _OWN}
        for each in recordings
    ]
    return sorted(set.intersection(*names), key=str) if names else []


def carried(recording: xr.DataArray, runs: list[FrameRun], length: int, stride: int) -> dict[str, Any]:
    """What a recording has beside its samples, for every frame.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``.
    runs
        Frames, run by run.
    length, stride
        Samples in a frame, and from a frame to the next.

    Returns
    -------
    Coordinates along ``frame``, by name: words, whole numbers and flags by majority (of equal counts, the smallest),
    other numbers by mean, with NaN where a sample has NaN; date-times and words of more than 256 kinds are left out.
    What has the name of something in a result, such as ``state``, is called ``state_label``.

    Examples
    --------
    >>> recording = xr.DataArray(np.zeros((4, 1)), dims=("time", "channel"), coords={"stage": ("time", list("WWWN"))})
    >>> carried(recording, [FrameRun(0, 0, 2)], 2, 2)["stage"][1].tolist()
    ['W', 'N']
    """
    named = {
        name: values
        for name, values in recording.coords.items()
        if values.dims == ("time",) and name not in _OWN and values.dtype.kind in "biufUSO"
    }
    if not named:  # which is what recordings of many millions of frames are like
        return {}
    firsts = np.concatenate([run.first_sample + stride * np.arange(run.n_frames) for run in runs])
    found: dict[str, Any] = {}
    for name, values in named.items():
        samples = values.values.astype(str) if values.dtype.kind in "SO" else values.values
        how = _how(samples)
        if how == "neither":
            continue
        one = _mean(samples, firsts, length) if how == "mean" else _majority(samples, firsts, length)
        found[label_name(str(name))] = ("frame", one, {**values.attrs, "cell_methods": f"time: {how}"})
    return found


def _how(values: NDArray[Any]) -> str:
    """Majority for words and whole numbers (labels are those that a table holds as 0.0, too), where there are few."""
    if values.dtype.kind == "f" and not np.all(values % 1 == 0):
        return "mean"
    if len(np.unique(values)) <= _MOST_VALUES:
        return "majority"
    return "neither" if values.dtype.kind == "U" else "mean"


def _mean(values: NDArray[Any], firsts: NDArray[np.int64], length: int) -> NDArray[np.float64]:
    """Mean of every frame."""
    # Sums of a frame from its own samples: running sums would spread a NaN to all later frames.
    windows = np.lib.stride_tricks.sliding_window_view(values.astype(np.float64), length)
    return np.asarray(windows[firsts].mean(axis=1))


def _majority(values: NDArray[Any], firsts: NDArray[np.int64], length: int) -> NDArray[Any]:
    """The most frequent value of every frame."""
    known, codes = np.unique(values, return_inverse=True)
    best, most = np.zeros(len(firsts), np.int64), np.full(len(firsts), -1, np.int64)
    for code in range(len(known)):
        counts = np.concatenate([[0], np.cumsum(codes == code)])
        own = counts[firsts + length] - counts[firsts]
        best[own > most], most = code, np.maximum(own, most)
    # Zarr has no lasting form for words of fixed length.
    return np.asarray(known[best].astype(object) if known.dtype.kind == "U" else known[best])
