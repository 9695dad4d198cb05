"""The index of a regular clock: nothing is stored, and it selects, slices, aligns and concatenates by time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from xarray.core.indexing import IndexSelResult
from xarray.indexes import PandasIndex, RangeIndex

# Share of a period by which a time may miss a sample and still mean it.
_NEAR = 1e-3


class RegularIndex(RangeIndex):
    """A RangeIndex with what xarray's own lacks: slices by time, exact labels, joins and concatenation.

    Examples
    --------
    >>> clock = xr.Coordinates.from_xindex(RangeIndex.linspace(0.0, 1.0, 10, endpoint=False, dim="time"))
    >>> found = regular(xr.DataArray(np.arange(10.0), dims="time", coords=clock)).sel(time=slice(0.25, 0.5))
    >>> found.values, type(found.xindexes["time"]).__name__
    (array([3., 4., 5.]), 'RegularIndex')
    """

    def isel(self, indexers: Mapping[Any, Any]) -> Any:
        """The index of some samples: regular again where these are evenly spread."""
        chosen = indexers[self.dim]
        if isinstance(chosen, slice):
            return type(self)(self.transform.slice(chosen))
        numbers = np.asarray(getattr(chosen, "values", chosen))
        if numbers.ndim == 1 and numbers.dtype.kind == "b":
            numbers = np.flatnonzero(numbers)
        if numbers.ndim != 1:
            return None
        dim = chosen.dims[0] if isinstance(chosen, xr.Variable) else self.dim
        spread = np.unique(np.diff(numbers))
        if dim == self.dim and len(spread) == 1 and spread[0] > 0:
            return type(self)(self.transform.slice(slice(int(numbers[0]), int(numbers[-1]) + 1, int(spread[0]))))
        return _stored(self._times(numbers), dim, self.coord_name)

    def sel(self, labels: dict[Any, Any], method: str | None = None, tolerance: Any = None) -> IndexSelResult:
        """Samples by their times: slices hold both ends, as pandas has it; a single time must be a sample's."""
        wanted = labels[self.dim]
        if isinstance(wanted, slice):
            return IndexSelResult({self.dim: self._between(wanted)})
        if method not in (None, "nearest"):
            return _stored(self._times(np.arange(self.size)), self.dim, self.coord_name).sel(labels, method, tolerance)
        times = np.asarray(getattr(wanted, "values", wanted), np.float64)
        places = (times - self.start) / self.step
        numbers = np.rint(places).astype(np.int64)
        if method is None:
            _check_found(times, np.abs(places - numbers) > _NEAR, numbers, self.size)
        elif tolerance is not None:
            _check_found(times, np.abs(places - numbers) * self.step > float(tolerance), numbers, self.size)
        numbers = np.clip(numbers, 0, self.size - 1)
        if isinstance(wanted, xr.DataArray | xr.Variable):
            return IndexSelResult({self.dim: xr.Variable(wanted.dims, numbers)})
        return IndexSelResult({self.dim: int(numbers) if numbers.ndim == 0 else numbers})

    def join(self, other: Any, how: str = "inner") -> Any:
        """The times of both, or of either."""
        if self._on_grid_of(other):
            first = round((other.start - self.start) / self.step)
            last = first + other.size
            if how == "inner":
                begin = max(first, 0)
                return type(self)(self.transform.slice(slice(begin, max(begin, min(last, self.size)))))
            if how == "outer" and first <= self.size and last >= 0:
                begin, stop = min(first, 0), max(last, self.size)
                return _regular_if_even(self.start + self.step * np.arange(begin, stop), self)
        both = self._as_pandas().join(other._as_pandas(), how=how)
        return _regular_if_even(both.index.values, self)

    def reindex_like(self, other: Any) -> dict[Hashable, Any]:
        """Samples at the times of another index, -1 where there is none."""
        places = (np.asarray(other.to_pandas_index().values, np.float64) - self.start) / self.step
        numbers = np.rint(places).astype(np.int64)
        missing = (np.abs(places - numbers) > _NEAR) | (numbers < 0) | (numbers >= self.size)
        return {self.dim: np.where(missing, -1, numbers)}

    @classmethod
    def concat(cls, indexes: Sequence[Any], dim: Hashable, positions: Iterable[Iterable[int]] | None = None) -> Any:
        """One index after the other: regular where the clock goes on."""
        times = np.concatenate([np.asarray(index.to_pandas_index().values, np.float64) for index in indexes])
        if positions is not None:
            times = times[np.argsort(np.concatenate([np.asarray(list(own)) for own in positions]))]
        return _regular_if_even(times, indexes[0])

    def _times(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Times of samples."""
        return np.asarray(self.transform.forward({self.dim: numbers})[self.coord_name], np.float64)

    def _as_pandas(self) -> PandasIndex:
        """The same with every time stored."""
        return _stored(self._times(np.arange(self.size)), self.dim, self.coord_name)

    def _on_grid_of(self, other: Any) -> bool:
        """Whether another index ticks at the same times."""
        if not isinstance(other, RangeIndex) or abs(other.step / self.step - 1) > 1e-12:
            return False
        apart = (other.start - self.start) / self.step
        return abs(apart - round(apart)) <= _NEAR

    def _between(self, wanted: slice) -> slice:
        """Samples from one time to another, both included."""
        low = 0 if wanted.start is None else int(np.ceil((wanted.start - self.start) / self.step - _NEAR))
        high = self.size if wanted.stop is None else int(np.floor((wanted.stop - self.start) / self.step + _NEAR)) + 1
        return slice(max(low, 0), max(low, 0, min(high, self.size)), wanted.step)


def regular(recording: xr.DataArray) -> xr.DataArray:
    """A recording whose regular clock selects by time; any other is left alone."""
    index = recording.xindexes.get("time")
    if not isinstance(index, RangeIndex) or isinstance(index, RegularIndex):
        return recording
    attrs = recording["time"].attrs
    clocked = recording.drop_vars("time").assign_coords(xr.Coordinates.from_xindex(RegularIndex(index.transform)))
    clocked["time"].attrs.update(attrs)
    return clocked


def _stored(times: NDArray[np.float64], dim: Hashable, name: Hashable) -> PandasIndex:
    """An index with every time stored."""
    return PandasIndex(pd.Index(times, name=name), dim, coord_dtype=times.dtype)


def _regular_if_even(times: NDArray[np.float64], like: RangeIndex) -> Any:
    """A regular index for times with the step of another, a stored one for others."""
    n = len(times)
    even = n > 0 and bool((np.abs(times - (times[0] + like.step * np.arange(n))) <= _NEAR * like.step).all())
    if not even:
        return _stored(times, like.dim, like.coord_name)
    # Rounding in the end of a range would move all its ticks: its step is kept.
    found = RangeIndex.linspace(float(times[0]), float(times[0]) + n * like.step, n, endpoint=False, dim=like.dim)
    return RegularIndex(found.transform)


def _check_found(times: NDArray[np.float64], off: NDArray[np.bool_], numbers: NDArray[np.int64], size: int) -> None:
    """Every time must be a sample's."""
    missing = np.ravel(off | (numbers < 0) | (numbers >= size))
    if missing.any():
        raise KeyError(float(np.ravel(times)[np.argmax(missing)]))
