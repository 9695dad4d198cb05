"""Spike times of units, counted in bins; and tables of them: the xarray engine ``manifold-spikes``.

Throughout: a *unit* is a neuron, told apart from others by its spikes; a *bin* is a period in which they are counted.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from xarray.backends import BackendEntrypoint

from .contract import check_channels, has_suffix, local_file, recording_dataset, refusal
from .sampled import Stretch, stretch_time
from .sniff import TEXT, describe

READER = "spikes"
_MOST_COUNTS = 2**28
_UNITS = ("unit", "unit_id", "units", "neuron", "neuron_id", "cell", "cell_id", "cluster", "cluster_id", "id")
_TIMES = ("time", "times", "spike_time", "spike_times", "time_s", "time (s)", "t", "timestamp", "timestamps", "seconds")


class SpikesBackend(BackendEntrypoint):
    r"""Opens tables of spike times (a unit and a time a row) as counts, with ``xr.open_dataset``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("unit,time\na,0.1\nb,0.3\na,0.15\na,0.6\n")
    ...     dataset = xr.open_dataset(Path(folder, "a.csv"), engine="manifold-spikes", bin=0.25)
    >>> dataset["recording"].values
    array([[2, 0],
           [0, 1],
           [1, 0]], dtype=int32)
    >>> dataset["time"].values, dataset["channel"].values.tolist()
    (array([0.125, 0.375, 0.625]), ['a', 'b'])
    """

    description = "Open tables of spike times (unit, time) as counts in bins"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "bin")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim text tables by their name; without a bin, they are tables of samples."""
        return has_suffix(filename_or_obj, {".csv", ".tsv", ".txt"})

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        bin: float | str | None = None,
    ) -> xr.Dataset:
        """Read one table whole, and count.

        Parameters
        ----------
        filename_or_obj
            Path of a CSV file with a header, a column of units and one of times in s.
        drop_variables
            Names to leave out.
        bin
            Length of a bin in s.

        Returns
        -------
        Dataset with the variable ``recording``, dims (time, channel): counts, a channel a unit.
        """
        path = local_file(READER, filename_or_obj)
        units = read_spike_table(path)
        return counted(READER, path, units, bin, drop_variables)


def read_spike_table(path: str) -> dict[str, NDArray[np.float64]]:
    """Read a table of spikes.

    Parameters
    ----------
    path
        A CSV file.

    Returns
    -------
    Times in s, by unit.
    """
    if (words := describe(path)) != TEXT:
        raise refusal(READER, path, "be a table of spike times", words, "Export it as CSV with columns unit, time")
    try:
        table = pd.read_csv(path, sep=None, engine="python", skipinitialspace=True, dtype=str)
    except (ValueError, pd.errors.ParserError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())[:200]
        raise refusal(READER, path, "be a table of spike times", said, "Export it with columns unit, time") from None
    unit, time = _column(path, table, _UNITS, "unit"), _column(path, table, _TIMES, "time")
    times = pd.to_numeric(table[time], errors="coerce").to_numpy(np.float64)
    bad = np.flatnonzero(~np.isfinite(times) | table[unit].isna().to_numpy())
    if len(bad):
        row = int(bad[0])
        got = f"{table[time].iloc[row]!r} for unit {table[unit].iloc[row]!r} in line {row + 2}"
        raise refusal(READER, path, "hold a unit and a time in every row", got, "Correct the row")
    names = table[unit].to_numpy(str)
    return {name: times[names == name] for name in in_natural_order(set(names.tolist()))}


def lists_spikes(labels: Sequence[str]) -> bool:
    """Whether a table with such columns has a unit and a time in every row, and nothing else.

    Examples
    --------
    >>> lists_spikes(["Unit", "time"]), lists_spikes(["unit", "time", "left"])
    (True, False)
    """
    plain = [label.strip().lower() for label in labels]
    return len(plain) == 2 and any(a in _UNITS and b in _TIMES for a, b in (plain, plain[::-1]))


def in_natural_order(names: Iterable[str]) -> list[str]:
    """Names in the order of the numbers in them: 2 before 10.

    Examples
    --------
    >>> in_natural_order({"10", "2", "b"})
    ['2', '10', 'b']
    """
    return sorted(names, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))


def counted(
    reader: str,
    path: str,
    units: Mapping[str, NDArray[np.float64]],
    bin: float | str | None,
    drop_variables: str | Iterable[str] | None = None,
    start_time: str | None = None,
) -> xr.Dataset:
    """Count the spikes of every unit in bins that begin at whole multiples of their length.

    Parameters
    ----------
    reader, path
        For errors and labels.
    units
        Times in s, by unit.
    bin
        Length of a bin in s; None is refused.
    drop_variables
        Names to leave out.
    start_time
        The instant from which the seconds count, in ISO 8601.

    Returns
    -------
    Dataset with the variable ``recording``, dims (time, channel); ``time`` is the centre of a bin.
    """
    if bin is None:
        got = f"spike times of {len(units)} units"
        raise refusal(reader, path, "be counted in bins", got, "Give their length in seconds with bin=0.1")
    length = _seconds(reader, bin)
    spikes = [times[np.isfinite(times)] for times in units.values()]
    there = [times for times in spikes if len(times)]
    if not there:
        raise refusal(reader, path, "hold spikes", f"{len(units)} units without any", "Check what was exported")
    check_channels(reader, path, len(units))
    first = math.floor(min(float(times.min()) for times in there) / length)
    last = math.floor(max(float(times.max()) for times in there) / length)
    n_bins = last - first + 1
    if n_bins * len(units) > _MOST_COUNTS:
        got = f"{n_bins} bins of {length:g} s for {len(units)} units"
        remedy = "Give a longer bin, and make sure that the times are in seconds"
        raise refusal(reader, path, f"make at most {_MOST_COUNTS} counts", got, remedy)
    counts = np.empty((n_bins, len(units)), np.int32)
    for column, times in enumerate(spikes):
        counts[:, column] = np.bincount(np.floor(times / length).astype(np.int64) - first, minlength=n_bins)
    return recording_dataset(
        xr.Variable(("time", "channel"), counts),
        path=path,
        channels=list(units),
        time=stretch_time(n_bins, 1 / length, [Stretch(0, (first + 0.5) * length)], start_time),
        sampling_rate=1 / length,
        units="1",
        long_name="spikes in a bin",
        drop_variables=drop_variables,
    )


def _seconds(reader: str, bin: float | str) -> float:
    """The length of a bin."""
    try:
        length = float(bin)
    except (TypeError, ValueError):
        length = math.nan
    if not (length > 0 and math.isfinite(length)):
        raise ValueError(f"{reader}: bin must be a positive number of seconds; got {bin!r}. For example bin=0.1.")
    return length


def _column(path: str, table: pd.DataFrame, names: Iterable[str], what: str) -> str:
    """The column of one meaning."""
    found = [str(column) for column in table.columns if str(column).strip().lower() in names]
    if len(found) != 1:
        got = f"{found or 'none'} among {[str(column) for column in table.columns][:9]}"
        raise refusal(READER, path, f"have one column of the {what} of each spike", got, f"Call it {what!r}")
    return found[0]
