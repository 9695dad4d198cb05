"""Reader of NWB files: the xarray engine ``manifold-nwb``, by h5py alone.

Series of samples are read lazily, in physical units and with their clock; the spike times of units are counted in bins.
"""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from .contract import CHUNK_BYTES, check_channels, has_suffix, lazy_variable, local_file, recording_dataset, refusal
from .libraries import library
from .nwb_file import READER, Contents, Series, is_nwb
from .sampled import Stretch, distinct_labels, stretch_time
from .sniff import HDF5, describe, holds
from .spikes import counted

_UNITS = "units"


class NwbArray(BackendArray):
    """A dataset of a file, (time,) or (time, channel), in physical units; opened anew for every read.

    Parameters
    ----------
    path
        The file.
    name
        Of the dataset.
    shape
        To hand out.
    dtype
        To hand out.
    gain, offset
        Physical values are ``gain * stored + offset``; None hands out what is stored.
    """

    def __init__(
        self,
        path: str,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        gain: tuple[float, ...] | None = None,
        offset: float = 0.0,
    ) -> None:
        self.path, self.name, self.shape, self.dtype = path, name, shape, dtype
        self.gain, self.offset = gain, offset

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read one range."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        """Integers and slices of positive step, as HDF5 takes them."""
        with library(READER, self.path, "h5py").File(self.path, "r") as file:
            stored = file[self.name]
            flat = len(stored.shape) == 1 and len(self.shape) == 2
            values = np.asarray(stored[key[:1] if flat else key])
        if flat:
            values = np.expand_dims(values, -1) if isinstance(key[1], slice) else values
            values = values[..., key[1]] if isinstance(key[1], slice) else values
        if self.gain is None:
            return values.astype(self.dtype, copy=False)
        gain = np.asarray(self.gain)[key[1]] if len(self.gain) > 1 else self.gain[0]
        return values.astype(np.float64) * gain + self.offset


class NwbBackend(BackendEntrypoint):
    """Opens series of NWB files as lazy recordings, and units as counts, with ``xr.open_dataset``."""

    description = "Open NWB files: series of samples lazily, spike times of units as counts in bins"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "variable", "bin")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim files by their name or their content."""
        return has_suffix(filename_or_obj, {".nwb"}) or self.recognises(filename_or_obj)

    def recognises(self, filename_or_obj: Any) -> bool:
        """Claim HDF5 files that say that they are NWB; NetCDF keeps its own name."""
        plain = not has_suffix(filename_or_obj, {".nc", ".nc4", ".cdf"})
        return plain and holds(filename_or_obj, HDF5) and is_nwb(os.fspath(filename_or_obj))

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        variable: str | None = None,
        bin: float | str | None = None,  # as in mo.open_recording
    ) -> xr.Dataset:
        """Open one series, or the units.

        Parameters
        ----------
        filename_or_obj
            Path of the file.
        drop_variables
            Names to leave out.
        variable
            Path of the series in the file, or the end of it; "units" for spike times. By default the only one.
        bin
            Length of the bins in which spike times are counted, in s; chooses the units.

        Returns
        -------
        Dataset with the variable ``recording``, or of the name that was asked for, dims (time, channel).
        """
        path = local_file(READER, filename_or_obj)
        if (words := describe(path)) != HDF5:
            raise refusal(READER, path, "be an NWB file", words, "Replace it with the recording")
        with Contents(path) as contents:
            name = _chosen(path, contents, variable, counting=bin is not None)
            start_time = contents.start_time()
            if name == _UNITS:
                dataset = counted(READER, path, contents.spikes(), bin, start_time=start_time)
            else:
                dataset = _recording(path, contents.describe(name, contents.series()[name]), start_time)
        dataset = dataset if variable is None else dataset.rename(recording=variable)
        return dataset.drop_vars([] if drop_variables is None else drop_variables, errors="ignore")


def _chosen(path: str, contents: Contents, variable: str | None, *, counting: bool) -> str:
    """The series that is meant."""
    known = [*contents.series(), *([_UNITS] if contents.has_units() else [])]
    if counting and variable is None and _UNITS in known:
        return _UNITS
    asked = None if variable is None else variable.strip("/")
    fits = [name for name in known if asked is None or name == asked or name.endswith(f"/{asked}")]
    if len(fits) == 1:
        return fits[0]
    if not known:
        raise refusal(READER, path, "hold a series of samples or spike times", "neither", "Name another file")
    must = "hold one series" if variable is None else f"have one series {variable!r}"
    raise refusal(READER, path, must, ", ".join(known[:20]), f"Choose one with variable={known[0]!r}")


def _recording(path: str, series: Series, start_time: str | None) -> xr.Dataset:
    """A series as a recording."""
    if len(series.shape) > 2 or 0 in series.shape:
        must = f"hold samples (time, channel) in {series.name}"
        raise refusal(READER, path, must, f"shape {series.shape}", "Choose another with variable=")
    shape = (series.shape[0], series.shape[1] if len(series.shape) > 1 else 1)
    check_channels(READER, path, shape[1])
    plain = set(series.gain) == {1.0} and not series.offset
    dtype = series.dtype if plain else np.dtype(np.float64)
    array = NwbArray(path, f"/{series.name}/data", shape, dtype, None if plain else series.gain, series.offset)
    return recording_dataset(
        lazy_variable(array, dtype, shape),
        path=path,
        channels=distinct_labels(series.labels or [f"ch{number}" for number in range(1, shape[1] + 1)]),
        time=_time(path, series, start_time),
        sampling_rate=series.rate,
        units=series.units,
        long_name="recorded values",
    )


def _time(path: str, series: Series, start_time: str | None) -> xr.Coordinates:
    """The clock: a rate, or stored times, which are read when they are used."""
    n = series.shape[0]
    if series.rate is not None:
        return stretch_time(n, series.rate, [Stretch(0, series.start)], start_time)
    attrs = {"units": "s", "long_name": "time"} | ({} if start_time is None else {"start_time": start_time})
    times = NwbArray(path, series.timestamps or "", (n,), np.dtype(np.float64))
    chunks = {"preferred_chunks": {"time": min(n, CHUNK_BYTES // 8)}}
    variable = xr.Variable(("time",), indexing.LazilyIndexedArray(times), attrs, chunks)
    return xr.Coordinates({"time": variable}, indexes={})
