"""Recordings of nerve cells: spike counts, with where the animal was or looked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.ndimage import uniform_filter1d

from .case import Case, case, recording_of
from .files import read_spikes, read_track

Array = NDArray[Any]

_TRACK_BIN, _TRACK_SECONDS = 0.25, 900
_HEAD_BIN_SAMPLES = 20
# Below this share of its fastest tenth a rat sits; thresholds from .05 to .2 hardly differ.
_SITS = 0.1


def linear_track(folder: Path) -> Case:
    """Counts of 31 units, and the position along the track, while running and always."""
    times, place = read_track(folder / "trajectory.videoPositionTracking")
    edges = times[0] + _TRACK_BIN * np.arange(round(_TRACK_SECONDS / _TRACK_BIN) + 1)
    counts = np.stack([np.histogram(unit, edges)[0] for unit in read_spikes(folder / "spikes.mat")], axis=1)
    middle = (edges[:-1] + edges[1:]) / 2
    binned = np.stack([np.interp(middle, times, axis) for axis in place.T], axis=1)
    along = _longest_axis(binned)
    speed = np.abs(np.gradient(uniform_filter1d(along, 5)))
    running = speed > _SITS * np.quantile(speed, 0.9)
    return case(
        "linear_track",
        recording_of(counts, 1 / _TRACK_BIN),
        "identity",
        "spike counts of .25 s, the first 15 minutes",
        {"position": along, "position, running": np.where(running, along, np.nan)},
        kind="counts",
    )


def _longest_axis(place: Array) -> Array:
    """Position along the direction in which the animal moved most."""
    centred = place - place.mean(axis=0)
    return centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1]


def head_direction(folder: Path) -> Case:
    """Counts of 19 head-direction cells awake, and where the head points.

    The camera's angles are repeated in the bins between its pictures: they are averaged on the circle.
    """
    stored = loadmat(folder / "dataHD.mat")
    n = len(stored["Qrun"]) // _HEAD_BIN_SAMPLES
    counts = stored["Qrun"][: n * _HEAD_BIN_SAMPLES].reshape(n, _HEAD_BIN_SAMPLES, -1).astype(np.int64).sum(axis=1)
    angle = stored["angRun"][: n * _HEAD_BIN_SAMPLES, 1].reshape(n, _HEAD_BIN_SAMPLES)
    mean = np.angle(np.exp(1j * angle).mean(axis=1))
    return case(
        "head_direction",
        recording_of(counts, 1 / (0.01 * _HEAD_BIN_SAMPLES)),
        "identity",
        "spike counts of .2 s, the first 15 minutes",
        {"cos": np.cos(mean), "sin": np.sin(mean)},
        kind="counts",
    )


def ratgps_1d(folder: Path) -> Case:
    """Ready counts of 71 cells on a track."""
    return _ratgps(folder, "R2336_1D_1x1400_at35_step200_bin100-RAW", ["position"])


def ratgps_2d(folder: Path) -> Case:
    """Ready counts of 63 cells in a field."""
    return _ratgps(folder, "R2192_1x1400_at35_step200_bin100-RAW", ["x", "y"])


def _ratgps(folder: Path, stem: str, axes: list[str]) -> Case:
    """Two tables of text, a row every .2 s."""
    counts = np.loadtxt(folder / f"{stem}_feat.dat").astype(np.int64)
    place = np.loadtxt(folder / f"{stem}_pos.dat", ndmin=2)
    place = place.reshape(len(counts), len(axes))
    return case(
        folder.name,
        recording_of(counts, 5.0),
        "identity",
        "spike counts of 1.4 s every .2 s, the first 15 minutes",
        dict(zip(axes, place.T, strict=True)),
        kind="counts",
    )
