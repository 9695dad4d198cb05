"""Reader of MATLAB files, version 5 (by SciPy) and 7.3 (HDF5, by h5py): the xarray engine ``manifold-mat``.

A variable is a table of numbers, (time, channel); or cells, in cells perhaps, of spike times. In version 7.3 only the
asked range is read; a variable of version 5 (at most 2 GB) is read whole.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xarray.backends import BackendEntrypoint

from manifold_observer.datasets.regular import uniform_time

from .contract import (
    check_channels,
    check_sampling_rate,
    check_upright,
    has_suffix,
    lazy_variable,
    local_file,
    recording_dataset,
    refusal,
)
from .mat_files import Table, open_mat
from .sniff import MATLAB_5, MATLAB_7, describe, holds
from .spikes import counted

READER = "mat"
_SPIKE_FIELDS = ("time", "times", "spike_times", "spiketimes", "spikes", "ts", "timestamps", "t")


class MatBackend(BackendEntrypoint):
    """Opens variables of MATLAB files as recordings with ``xr.open_dataset``.

    Examples
    --------
    >>> import scipy.io
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scipy.io.savemat(folder + "/a.mat", {"lfp": np.arange(6.0).reshape(3, 2), "fs": 1000.0})
    ...     dataset = xr.open_dataset(folder + "/a.mat", engine="manifold-mat", sampling_rate=1000.0)
    >>> dataset["recording"].values
    array([[0., 1.],
           [2., 3.],
           [4., 5.]])
    """

    description = "Open variables of MATLAB files (5 and 7.3) as recordings, and cells of spike times as counts"
    open_dataset_parameters = (
        "filename_or_obj",
        "drop_variables",
        "variable",
        "sampling_rate",
        "channels_first",
        "bin",
        "units",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim files by their name or their signature."""
        return has_suffix(filename_or_obj, {".mat"}) or self.recognises(filename_or_obj)

    def recognises(self, filename_or_obj: Any) -> bool:
        """Claim files by their signature alone; EEGLAB keeps its own name."""
        return holds(filename_or_obj, MATLAB_5, MATLAB_7) and not has_suffix(filename_or_obj, {".set"})

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        variable: str | None = None,
        sampling_rate: float | None = None,
        channels_first: bool | None = None,
        bin: float | str | None = None,
        units: str = "unknown",
    ) -> xr.Dataset:
        """Open one variable.

        Parameters
        ----------
        filename_or_obj
            Path of the file.
        drop_variables
            Names to leave out.
        variable
            Name of the variable, with points before the fields of a struct. By default the only one that can be a
            recording.
        sampling_rate
            Samples per second, in Hz. Without it the recording has no time coordinate.
        channels_first
            Whether the variable is (channel, time) instead; None refuses one that looks so.
        bin
            Length of the bins in which spike times are counted, in s.
        units
            Unit of the values.

        Returns
        -------
        Dataset with the variable ``recording``, or of the name that was asked for, dims (time, channel).
        """
        check_sampling_rate(READER, sampling_rate)
        path = local_file(READER, filename_or_obj)
        if (words := describe(path)) not in (MATLAB_5, MATLAB_7):
            got = f"{words} (version 4 is not read)"
            raise refusal(READER, path, "be a MATLAB file of version 5 or 7.3", got, "Save it again with -v7 or -v7.3")
        mat = open_mat(path, seven=words == MATLAB_7)
        name = variable or _only(path, mat.shapes())
        found = mat.variable(name)
        if not isinstance(found, list | dict):
            dataset = _recording(path, name, found, sampling_rate, channels_first, units)
        else:
            dataset = counted(READER, path, _units_of(path, name, found), bin)
        dataset = dataset if variable is None else dataset.rename(recording=variable)
        return dataset.drop_vars([] if drop_variables is None else drop_variables, errors="ignore")


def _only(path: str, shapes: Mapping[str, tuple[str, tuple[int, ...]]]) -> str:
    """The variable that can be a recording, where there is one."""
    tables = [name for name, (kind, shape) in shapes.items() if kind == "numbers" and np.prod(shape) > 1]
    likely = tables or [name for name, (kind, _) in shapes.items() if kind == "cells"]
    if len(likely) == 1:
        return likely[0]
    listed = ", ".join(f"{name} {shape} {kind}" for name, (kind, shape) in list(shapes.items())[:20])
    example = likely[0] if likely else "NAME"
    remedy = f"Choose one with variable={example!r}, and a field of a struct as NAME.FIELD"
    raise refusal(READER, path, "hold one variable that can be a recording", listed or "no variables", remedy)


def _recording(
    path: str, name: str, table: Table, sampling_rate: float | None, channels_first: bool | None, units: str
) -> xr.Dataset:
    """A table of numbers as a recording."""
    shape = table.shape
    is_row = len(shape) == 2 and shape[0] == 1 and channels_first is None
    turned = is_row or bool(channels_first)
    if len(shape) != 2 or 0 in shape:
        remedy = "Choose another with variable=, or save it again as (time, channel)"
        raise refusal(READER, path, f"hold samples (time, channel) in {name!r}", f"shape {shape}", remedy)
    n_samples, n_channels = shape[::-1] if turned else shape
    check_channels(READER, path, n_channels)
    if channels_first is None:
        check_upright(READER, path, n_samples, n_channels, "give channels_first=True")
    array = table.array(turned)
    values = (
        xr.Variable(("time", "channel"), array)
        if isinstance(array, np.ndarray)
        else lazy_variable(array, array.dtype, (n_samples, n_channels))
    )
    return recording_dataset(
        values,
        path=path,
        channels=[f"ch{number}" for number in range(1, n_channels + 1)],
        time=None if sampling_rate is None else uniform_time(n_samples, sampling_rate),
        sampling_rate=sampling_rate,
        units=units,
        long_name="recorded values",
    )


def _units_of(path: str, name: str, cells: Any) -> dict[str, NDArray[np.float64]]:
    """Spike times in cells, by their place in them."""
    units: dict[tuple[int, ...], NDArray[np.float64]] = {}
    _gather(cells, (), units)
    if not units:
        remedy = "Choose another variable with variable="
        raise refusal(READER, path, f"hold spike times in {name!r}", "cells without numbers", remedy)
    first, last = min(units), max(units)
    # Cells within a single cell need not be told by it.
    shared = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return {"-".join(map(str, place[shared:])) or "1": times for place, times in units.items()}


def _gather(item: Any, place: tuple[int, ...], units: dict[tuple[int, ...], NDArray[np.float64]]) -> None:
    """Walk through cells; a struct is a unit by its field of times."""
    if isinstance(item, dict):
        field = next((key for key in item if key.lower() in _SPIKE_FIELDS), None)
        if field is not None:
            _gather(item[field], place, units)
    elif isinstance(item, list):
        for number, part in enumerate(item, 1):
            _gather(part, (*place, number), units)
    elif isinstance(item, np.ndarray) and item.dtype.kind in "iuf" and item.size and max(item.shape) == item.size:
        units[place] = item.ravel().astype(np.float64)
