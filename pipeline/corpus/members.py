"""The recordings of a corpus, opened alike; one that differs from most is refused by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from manifold_observer.tasks.corpus import levels as tasks

from ..frames.labels import channel_name
from ..frames.recording import open_recording
from ..frames.units import alike, power_of_ten, spelt_units
from ..graph.compute import compute, task
from ..graph.slabs import ROWS_BYTES, rows_of
from ..graph.spans import blocks
from ..jobs.config import RunConfig
from ..jobs.run import Given
from ..stores.address import Place, place

STANDARDISED = "standard deviations"
"""Unit of recordings that were standardised one by one."""


class Sensors(NamedTuple):
    """What the recordings of a corpus have in common: channels, their unit, and a recording that has them."""

    channels: list[str]
    units: str
    channel_units: list[str]
    source: str

    def template(self) -> xr.DataArray:
        """A recording of no samples with these sensors, to compare others with."""
        coords: dict[str, Any] = {"channel": np.array(self.channels, object)}
        if self.channel_units:
            coords["channel_units"] = ("channel", np.array(self.channel_units, object))
        attrs = {"units": self.units, "source": self.source}
        return xr.DataArray(np.zeros((0, len(self.channels))), dims=("time", "channel"), coords=coords, attrs=attrs)


def in_order_of_name(paths: Iterable[Given]) -> list[Place]:
    """Recordings by name: nothing depends on the order in which they are given.

    Examples
    --------
    >>> [path.name for path in in_order_of_name([Path("b.npy"), Path("a.npy")])]
    ['a.npy', 'b.npy']
    """
    return sorted(map(place, paths), key=lambda path: (path.name, str(path)))


def sensors_of(recording: xr.DataArray) -> Sensors:
    """Channels and units of a recording."""
    names = recording["channel"].values if "channel" in recording.coords else range(recording.sizes["channel"])
    own = recording["channel_units"].values if "channel_units" in recording.coords else ()
    return Sensors(
        [channel_name(name).strip() for name in names],
        str(recording.attrs.get("units", "unknown")),
        list(map(str, own)),
        str(recording.attrs.get("source", "a recording")),
    )


def common_sensors(opened: Sequence[xr.DataArray]) -> Sensors:
    """Sensors that most recordings have; of equal numbers, those of the first.

    Examples
    --------
    >>> one, two = (xr.DataArray(np.zeros((3, p)), dims=("time", "channel")) for p in (1, 2))
    >>> common_sensors([one, two, two]).channels
    ['0', '1']
    """
    kinds = [_kind(each) for each in opened]
    most = Counter(kinds).most_common(1)[0][0]
    return sensors_of(opened[kinds.index(most)])


def _kind(recording: xr.DataArray) -> Hashable:
    """What tells sensors apart: names in any order, and what they measure, in whatever power of ten."""
    units = spelt_units(recording)
    base = power_of_ten(units)
    return tuple(sorted(sensors_of(recording).channels)), base[1] if base else units


def open_member(path: Place, config: RunConfig, sensors: Sensors | None = None) -> xr.DataArray:
    """Open a recording, with the sensors of its corpus where these are known.

    Raises
    ------
    ValueError, OSError
        It cannot be opened, or its sensors are others.
    """
    recording = open_recording(path, **config.opening.options())
    return recording if sensors is None else with_sensors(recording, sensors)


def with_sensors(recording: xr.DataArray, sensors: Sensors) -> xr.DataArray:
    """A recording with the sensors of its corpus, in their order and unit.

    Raises
    ------
    ValueError
        Its sensors are others.
    """
    if recording.sizes["channel"] != len(sensors.channels):
        raise ValueError(
            f"map: recordings must have the {len(sensors.channels)} channels of the map; got "
            f"{recording.sizes['channel']} in {recording.attrs.get('source', 'the next')}. Choose them with channels=, "
            "or leave it out."
        )
    return alike([sensors.template(), recording], "map")[1]


def standardised(recording: xr.DataArray) -> xr.DataArray:
    """A recording with mean 0 and standard deviation 1 in every channel; this computes, in one pass over it.

    Examples
    --------
    >>> standardised(xr.DataArray([[1.0], [3.0]], dims=("time", "channel"))).values.ravel()
    array([-1.,  1.])
    """
    data = recording.data if recording.chunks else recording.chunk().data
    n, width = recording.shape
    spans = blocks(n, max(1, ROWS_BYTES // (8 * width)))
    found = tasks.joined(compute([task(tasks.levels, rows_of(data, span)) for span in spans]))
    scaled = (recording - xr.DataArray(found.mean, dims="channel")) / xr.DataArray(found.deviation, dims="channel")
    return scaled.drop_vars("channel_units", errors="ignore").assign_attrs({**recording.attrs, "units": STANDARDISED})
