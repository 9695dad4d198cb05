"""Sampled recordings of any format, read range by range, and clocks with gaps.

Throughout: a *source* knows its file and reads some samples of it; a *stretch* is a run of samples without a gap.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xarray.backends import BackendArray
from xarray.core import indexing
from xarray.indexes import RangeIndex

from .contract import CHUNK_BYTES, lazy_variable, recording_dataset
from .table_layout import unique_labels

Samples = np.ndarray[Any, np.dtype[Any]]


class Source(Protocol):
    """Samples of a file, which can be pickled: it holds a path, and no open file."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and channels."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of what :meth:`read` gives: physical values, unless a format stores what it measures."""
        return np.dtype(np.float64)

    def read(self, start: int, stop: int) -> Samples:
        """Samples from ``start`` to before ``stop``, shape (samples, channels)."""


class Stretch(NamedTuple):
    """Samples without a gap: number of the first, and its time in s."""

    first: int
    start: float


class SampledArray(BackendArray):
    """The samples of a source as (time, channel), read range by range in blocks of at most 8 MB.

    Parameters
    ----------
    source
        Reads a range.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.shape = source.shape
        self.dtype = source.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read one range."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, Any]) -> Samples:
        """Read integers or slices of positive step; memory is the answer and one block."""
        time, channel = (part if isinstance(part, slice) else slice(part, part + 1) for part in key)
        rows, columns = range(self.shape[0])[time], range(self.shape[1])[channel]
        answer = np.empty((len(rows), len(columns)), self.dtype)
        filled, longest = 0, max(1, CHUNK_BYTES // (self.dtype.itemsize * self.shape[1]))
        for start in range(rows.start, rows[-1] + 1 if rows else rows.start, longest):
            block = self.source.read(start, min(start + longest, rows[-1] + 1))
            chosen = block[(rows.start - start) % rows.step :: rows.step, channel]
            answer[filled : filled + len(chosen)] = chosen
            filled += len(chosen)
        return answer[tuple(slice(None) if isinstance(part, slice) else 0 for part in key)]


class StretchTimes(BackendArray):
    """Times of samples with gaps, computed when they are asked for.

    Parameters
    ----------
    n_samples
        Samples in all.
    sampling_rate
        In Hz.
    stretches
        In order.

    Examples
    --------
    >>> times = StretchTimes(4, 2.0, (Stretch(0, 0.0), Stretch(2, 10.0)))
    >>> times[indexing.BasicIndexer((slice(1, 4),))]
    array([ 0.5, 10. , 10.5])
    """

    def __init__(self, n_samples: int, sampling_rate: float, stretches: Sequence[Stretch]) -> None:
        self.shape = (n_samples,)
        self.dtype = np.dtype(np.float64)
        self.sampling_rate = sampling_rate
        self.firsts = np.array([stretch.first for stretch in stretches], np.int64)
        self.starts = np.array([stretch.start for stretch in stretches], np.float64)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Times of some samples."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self._at)

    def _at(self, key: tuple[Any, ...]) -> Any:
        """From the start of the stretch that holds a sample."""
        part = key[0]
        chosen = range(self.shape[0])[part] if isinstance(part, slice) else part
        is_range = isinstance(chosen, range)
        samples = np.arange(chosen.start, chosen.stop, chosen.step) if is_range else np.asarray(chosen)
        number = np.searchsorted(self.firsts, samples, side="right") - 1
        return self.starts[number] + (samples - self.firsts[number]) / self.sampling_rate


def stretches_of(firsts: NDArray[np.int64], starts: NDArray[np.float64], sampling_rate: float) -> tuple[Stretch, ...]:
    """Join pieces that follow each other without a gap, to within half a sample.

    Parameters
    ----------
    firsts
        Number of the first sample of every piece.
    starts
        Its time, in s.
    sampling_rate
        In Hz.

    Examples
    --------
    >>> stretches_of(np.array([0, 2, 4]), np.array([0.0, 1.0, 5.0]), 2.0)
    (Stretch(first=0, start=0.0), Stretch(first=4, start=5.0))
    """
    stretches = [Stretch(int(firsts[0]), float(starts[0]))]
    for first, start in zip(firsts[1:].tolist(), starts[1:].tolist(), strict=True):
        expected = stretches[-1].start + (first - stretches[-1].first) / sampling_rate
        if abs(start - expected) > 0.5 / sampling_rate:
            stretches.append(Stretch(first, start))
    return tuple(stretches)


def stretch_time(
    n_samples: int, sampling_rate: float, stretches: Sequence[Stretch], start_time: str | None = None
) -> xr.Coordinates:
    """Make the coordinate ``time``, in s, without storing it; gaps show in it.

    Parameters
    ----------
    n_samples
        Samples in all.
    sampling_rate
        In Hz.
    stretches
        In order; one is a regular clock.
    start_time
        The instant from which the seconds count, in ISO 8601.

    Examples
    --------
    >>> stretch_time(3, 2.0, [Stretch(0, 1.0)])["time"].values
    array([1. , 1.5, 2. ])
    """
    attrs = {"units": "s", "long_name": "time"} | ({} if start_time is None else {"start_time": start_time})
    if len(stretches) == 1:
        start = stretches[0].start
        stop = start + n_samples / sampling_rate
        index = RangeIndex.linspace(start, stop, n_samples, endpoint=False, dim="time")
        time = xr.Coordinates.from_xindex(index)
        time["time"].attrs.update(attrs)
        return time
    array = indexing.LazilyIndexedArray(StretchTimes(n_samples, sampling_rate, stretches))
    rows = min(n_samples, CHUNK_BYTES // 8)
    variable = xr.Variable(("time",), array, attrs, {"preferred_chunks": {"time": rows}})
    return xr.Coordinates({"time": variable}, indexes={})


def segment_numbers(n_samples: int, stretches: Sequence[Stretch]) -> xr.Coordinates:
    """Make the coordinate ``segment``, for stretches between which nobody knows how long it paused.

    Parameters
    ----------
    n_samples
        Samples in all.
    stretches
        In order.

    Examples
    --------
    >>> segment_numbers(3, [Stretch(0, 0.0), Stretch(2, 1.0)])["segment"].values
    array([0, 0, 1])
    """
    lengths = np.diff([*(stretch.first for stretch in stretches), n_samples])
    numbers = np.repeat(np.arange(len(stretches)), lengths)
    return xr.Coordinates({"segment": ("time", numbers, {"long_name": "number of the segment"})}, indexes={})


def sampled_dataset(
    source: Source,
    *,
    path: str,
    channels: Sequence[str],
    units: Sequence[str],
    time: xr.Coordinates | None,
    sampling_rate: float | None,
    drop_variables: str | Iterable[str] | None = None,
) -> xr.Dataset:
    """Label the samples of a source; channels of one name are numbered, channels of several units keep theirs.

    Parameters
    ----------
    source
        Reads the samples.
    path
        The file.
    channels
        Label of each channel.
    units
        Unit of each channel; empty where nobody knows.
    time
        The coordinate, or None.
    sampling_rate
        In Hz, or None.
    drop_variables
        Names to leave out.

    Returns
    -------
    The variable ``recording``, dims (time, channel), and the coordinate ``channel_units`` where units differ.
    """
    known = [unit.strip() or "unknown" for unit in units]
    dataset = recording_dataset(
        lazy_variable(SampledArray(source), source.dtype, source.shape),
        path=path,
        channels=distinct_labels(channels),
        time=time,
        sampling_rate=sampling_rate,
        units=known[0] if len(set(known)) == 1 else "mixed",
        long_name="recorded values",
    )
    if len(set(known)) > 1:
        note = {"long_name": "unit of the channel"}
        dataset = dataset.assign_coords(channel_units=("channel", np.array(known), note))
    return dataset.drop_vars([] if drop_variables is None else drop_variables, errors="ignore")


def distinct_labels(labels: Iterable[str]) -> list[str]:
    """Labels without padding, each once: repeated ones are numbered, empty ones called by their place.

    Examples
    --------
    >>> distinct_labels(["EEG ", "EEG", "", "EEG_2"])
    ['EEG', 'EEG_3', 'ch3', 'EEG_2']
    """
    return [*unique_labels([label.strip() or f"ch{number}" for number, label in enumerate(labels, 1)])]


def told(reader: str, path: str, what: str) -> None:
    """Warn of something that the user should know of a file.

    Parameters
    ----------
    reader
        Short name of the reader.
    path
        The file.
    what
        A sentence or two.
    """
    warnings.warn(f"{reader}: {path}: {what}", stacklevel=3)
