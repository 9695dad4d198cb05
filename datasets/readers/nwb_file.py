"""What an NWB file (Neurodata Without Borders) holds: series of samples, and units with spike times; by h5py.

Throughout: a *series* is a group with data and a clock, whose name is its path in the file.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .contract import refusal
from .libraries import library

READER = "nwb"
_COPY = "Copy the file again, or export it again"
_DEEPEST = 12
_NAMES = ("channel_name", "label", "name")


class Series(NamedTuple):
    """A series: its name, the shape and type of its data, how they become physical, and its clock.

    ``gain`` one number a channel, or one; ``rate`` in Hz and ``start`` in s, or times stored in the dataset
    ``timestamps``; ``labels`` of the channels, None where nobody named them.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    units: str
    gain: tuple[float, ...]
    offset: float
    rate: float | None
    start: float
    timestamps: str | None
    labels: tuple[str, ...] | None


def is_nwb(path: str) -> bool:
    """Tell whether an HDF5 file is NWB, where h5py is there to tell.

    Parameters
    ----------
    path
        An HDF5 file.
    """
    try:
        with library(READER, path, "h5py").File(path, "r") as file:
            return "nwb_version" in file.attrs
    except (OSError, ImportError, RuntimeError, ValueError, KeyError):  # damaged files raise any of them
        return os.path.splitext(path)[1].lower() == ".nwb"


class Contents:
    """An open file.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._h5py = library(READER, path, "h5py")

    def __enter__(self) -> "Contents":
        """Open it."""
        try:
            self.file = self._h5py.File(self.path, "r")
        except OSError as error:
            said = " ".join(str(error).split())[:200]
            raise refusal(READER, self.path, "be a valid HDF5 file", repr(said), _COPY) from None
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close it; errors of h5py name the file."""
        self.file.close()
        if isinstance(error, Exception) and self.path not in str(error):
            said = " ".join(str(error).split())[:200] or type(error).__name__
            raise refusal(READER, self.path, "follow the NWB schema", f"{said!r}", _COPY) from None

    def series(self) -> dict[str, Any]:
        """Groups with data and a clock, by their paths."""
        return {group.name.lstrip("/"): group for group in self._groups(self.file, 0) if self._is_series(group)}

    def has_units(self) -> bool:
        """Whether there are spike times."""
        return "units" in self.file and "spike_times" in self.file["units"]

    def start_time(self) -> str | None:
        """The instant from which the seconds of all clocks count."""
        for name in ("timestamps_reference_time", "session_start_time"):
            if name in self.file:
                return _instant(self.file[name][()])
        return None

    def spikes(self) -> dict[str, NDArray[np.float64]]:
        """Spike times in s, by the ids of the units."""
        units = self.file["units"]
        times, stops = (
            np.asarray(units["spike_times"][()], np.float64),
            np.asarray(units["spike_times_index"][()], np.int64),
        )
        if (np.diff(stops, prepend=0) < 0).any() or (len(stops) and stops[-1] > len(times)):
            raise refusal(READER, self.path, "have increasing indices of spikes", f"{stops[:9].tolist()}", _COPY)
        ids = [str(number) for number in units["id"][()]] if "id" in units else [str(k) for k in range(len(stops))]
        if len(ids) != len(stops) or len(set(ids)) != len(ids):
            raise refusal(READER, self.path, "have one id for each unit", f"{ids[:9]}", _COPY)
        starts = np.concatenate([[0], stops[:-1]])
        return {name: times[a:b] for name, a, b in zip(ids, starts, stops, strict=True)}

    def describe(self, name: str, group: Any) -> Series:
        """What is needed to read a series."""
        data = group["data"]
        n_channels = data.shape[1] if len(data.shape) > 1 else 1
        gain = np.full(1, float(data.attrs.get("conversion", 1.0)))
        if "channel_conversion" in group:
            gain = gain * np.asarray(group["channel_conversion"][()], np.float64).ravel()
        if not np.isfinite(gain).all() or len(gain) not in (1, n_channels):
            raise refusal(READER, self.path, f"tell how {name} becomes physical", f"factors {gain[:9].tolist()}", _COPY)
        clock = group.get("starting_time")
        rate = float(clock.attrs["rate"]) if clock is not None else None
        if rate is not None and not (rate > 0 and np.isfinite(rate)):
            raise refusal(READER, self.path, f"tell the sampling rate of {name}", f"{rate}", _COPY)
        return Series(
            name,
            tuple(data.shape),
            data.dtype.newbyteorder("="),
            _text(data.attrs.get("unit", "unknown")),
            tuple(gain.tolist()),
            float(data.attrs.get("offset", 0.0)),
            rate,
            float(clock[()]) if clock is not None else 0.0,
            None if clock is not None else group["timestamps"].name,
            self._labels(group, n_channels),
        )

    def _labels(self, group: Any, n_channels: int) -> tuple[str, ...] | None:
        """Names of the electrodes that a series was recorded by."""
        table = "general/extracellular_ephys/electrodes"
        if "electrodes" not in group or table not in self.file or not hasattr(group["electrodes"], "shape"):
            return None
        rows = np.asarray(group["electrodes"][()], np.int64)
        electrodes = self.file[table]
        column = next((name for name in (*_NAMES, "id") if name in electrodes), None)
        if column is None or len(rows) != n_channels or (len(rows) and rows.max() >= len(electrodes[column])):
            return None
        names = electrodes[column][()]
        return tuple(_text(names[row]) for row in rows)

    def _groups(self, group: Any, depth: int) -> Iterator[Any]:
        """All groups that lie in the file itself."""
        for name in group:
            link = group.get(name, getlink=True)
            if not isinstance(link, self._h5py.HardLink) or depth > _DEEPEST or name == "specifications":
                continue
            item = group[name]
            if isinstance(item, self._h5py.Group):
                yield item
                yield from self._groups(item, depth + 1)

    def _is_series(self, group: Any) -> bool:
        """Whether a group has numbers and a clock."""
        for name in ("data", "starting_time", "timestamps"):
            link = group.get(name, getlink=True) if name in group else None
            if isinstance(link, self._h5py.ExternalLink):
                return False
        timed = ("starting_time" in group and "rate" in group["starting_time"].attrs) or "timestamps" in group
        data = group.get("data")
        return timed and isinstance(data, self._h5py.Dataset) and data.dtype.kind in "iuf" and len(data.shape) > 0


def _text(value: Any) -> str:
    """Text of HDF5, or a number."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _instant(value: Any) -> str | None:
    """An instant in UTC where it has a zone."""
    try:
        found = datetime.fromisoformat(_text(value))
    except ValueError:
        return None
    if found.tzinfo is None:
        return found.isoformat()
    return found.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
