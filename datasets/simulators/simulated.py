"""What the simulators share: random numbers, chunks, the store's labels and its opening."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray

from manifold_observer.datasets.regular import uniform_time

Array = NDArray[Any]

VERSION = "1"
"""Stored with each recording; raised when a seed gives other values than before."""


def open_simulation(path: str | PathLike[str]) -> xr.Dataset:
    """Open a simulated recording, nothing loaded, with times that take no memory.

    Parameters
    ----------
    path
        A store written by a simulator of this folder.

    Returns
    -------
    The variables of the store; where they are samples, ``time`` in s follows from ``sampling_rate``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = zarr.create_group(f"{folder}/sphere.zarr")
    ...     array = store.create_array("recording", data=np.zeros(20), dimension_names=["time"])
    ...     finish_store(store, "sphere", 10.0, {})
    ...     print(open_simulation(f"{folder}/sphere.zarr").sizes["time"])
    20
    """
    dataset = xr.open_zarr(path, consolidated=False, chunks=None)
    if "sampling_rate" not in dataset.attrs:
        raise ValueError(
            f"open_simulation: the store must be complete; got no sampling_rate in {path}, the last thing "
            "a simulator writes. Remove the store and simulate again."
        )
    if "time" not in dataset.dims:
        return dataset
    times = uniform_time(dataset.sizes["time"], dataset.attrs["sampling_rate"], "time since the start")
    return dataset.assign_coords(times)


def generator(seed: int, stream: int, block: int) -> np.random.Generator:
    """Random numbers of one block of one stream, independent of every other's."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream, block)))


def rebatched(blocks: Iterable[tuple[Array, ...]], size: int) -> Iterator[tuple[Array, ...]]:
    """Cut the same rows into batches of ``size`` (the last may be shorter): no chunk is written twice."""
    held: list[tuple[Array, ...]] = []
    n_held = 0
    for block in blocks:
        held.append(block)
        n_held += len(block[0])
        if n_held < size:
            continue
        whole = tuple(np.concatenate(parts) for parts in zip(*held, strict=True))
        n_out = n_held // size * size
        for start in range(0, n_out, size):
            yield tuple(rows[start : start + size] for rows in whole)
        held = [tuple(rows[n_out:] for rows in whole)]
        n_held -= n_out
    if n_held:
        yield tuple(np.concatenate(parts) for parts in zip(*held, strict=True))


def write_labels(group: zarr.Group, name: str, labels: list[str], long_name: str) -> None:
    """Write a coordinate of strings along its own dimension."""
    attributes = {"long_name": long_name}
    array = group.create_array(
        name, shape=(len(labels),), dtype="string", dimension_names=(name,), attributes=attributes
    )
    array[:] = np.array(labels, dtype=object)


def finish_store(group: zarr.Group, simulator: str, rate: float, settings: Mapping[str, Any]) -> None:
    """Write the settings last: a store that has its sampling rate was written to its end."""
    plain = {name: x.item() if isinstance(x, np.generic) else x for name, x in settings.items()}
    origin = {"simulator": f"manifold_observer.datasets.simulators.{simulator}", "simulator_version": VERSION}
    group.update_attributes(plain | origin | {"sampling_rate": rate})


def check_counts(what: str, values: Mapping[str, Any], *, at_least: int) -> None:
    """Refuse what is not a whole number, or too small a one."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
            constraint = f"a whole number, at least {at_least}"
            raise ValueError(f"{what}: {name} must be {constraint}; got {value!r}. Try {name}={at_least}.")


def check_numbers(what: str, values: Mapping[str, float], *, positive: bool) -> None:
    """Refuse what is not finite, or negative, or zero where that is not allowed either."""
    for name, value in values.items():
        if not math.isfinite(value) or value < 0 or (positive and value == 0):
            constraint = "finite and positive" if positive else "finite and not negative"
            raise ValueError(f"{what}: {name} must be {constraint}; got {value!r}. Leave it out for the default.")
