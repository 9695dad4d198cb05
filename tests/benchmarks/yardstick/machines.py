"""Recordings of machines and rooms: rows of sensors, and whether something was the matter."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .case import Case, case, recording_of

Array = NDArray[Any]

_WHY = "sensor values, a frame a row"
# What the curator wrote into the rows, not what was measured.
_LABELS = ("anomaly", "changepoint")


def skab(folder: Path, name: str) -> Case:
    """A water loop and its valves; the logger skips a second every 15 to 25, which are gaps."""
    header, rows = _table(folder / f"{name}.csv", ";")
    sensors = [k for k, column in enumerate(header[1:], 1) if column not in _LABELS]
    values = np.array([[float(row[k]) for k in sensors] for row in rows])
    recording = recording_of(values, 1.0, [header[k] for k in sensors]).assign_coords(
        time=("time", _seconds([row[0] for row in rows]))
    )
    anomaly = np.array([float(row[header.index("anomaly")]) for row in rows]).astype(int)
    return case(f"skab_{name}", recording, "identity", _WHY, {"anomaly": anomaly})


def occupancy(folder: Path) -> Case:
    """Temperature, humidity and carbon dioxide of a room, and whether somebody is in it; light would give it away."""
    _, rows = _table(folder / "datatraining.txt", ",")
    values = np.array([[float(row[k]) for k in (2, 3, 5, 6)] for row in rows])
    recording = recording_of(values, 1 / 60, ["temperature", "humidity", "carbon dioxide", "humidity ratio"])
    occupied = np.array([int(row[-1]) for row in rows])
    why = "sensor values, a frame a minute, the first three days"
    return case("occupancy", recording, "identity", why, {"occupied": occupied})


def _table(path: Path, delimiter: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file, delimiter=delimiter)
    return header, rows


def _seconds(stamps: list[str]) -> Array:
    """Seconds since the first row."""
    times = np.array(stamps, "datetime64[s]")
    return (times - times[0]) / np.timedelta64(1, "s")
