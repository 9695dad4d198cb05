"""Small recordings whose hidden state is known, made on the spot."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from importlib import import_module
from typing import Any

import dask.array as da
import xarray as xr

from ..frames.regular import regular
from ..graph.slabs import SLAB_BYTES

EXAMPLES: dict[str, tuple[str, str]] = {
    "ode": ("ode", "ode"),
    "place_cells": ("cells", "place_cells"),
    "sleep": ("sleep", "night"),
    "machine": ("machine", "machine"),
    "sphere": ("sphere", "write_sphere"),
}
"""Module and function of the simulator of every example."""


def example(name: str, **options: Any) -> xr.DataArray:
    """Simulate a small recording with a known truth, which is a coordinate along its time.

    Parameters
    ----------
    name
        ``"ode"``: the Ode to Joy by two instruments (``note``, ``instrument``), for :func:`stft`. ``"place_cells"``:
        spike counts of a rat on a track (``position``, ``moving``), for :func:`identity`. ``"sleep"``: a night that
        looks like EEG (``stage``), for :func:`log_rms` or :func:`stft`. ``"machine"``: eight sensors with units, holes
        and date-times (``regime``, ``drift``), for :func:`identity`. ``"sphere"``: the three counters of the paper
        (``elevation``, ``azimuth``), for :func:`histogram`.
    **options
        Of the simulator: ``seed``, and ``verses``, ``hours`` or ``n_samples`` for its length.

    Returns
    -------
    Dims ``(time, channel)``, Dask-backed in chunks of about 16 MB. The truth never enters the features; frames carry
    it along.

    Raises
    ------
    ValueError, TypeError
        There is no example of that name, or it has no such option.

    Examples
    --------
    >>> counts = example("place_cells", n_samples=400)
    >>> counts.sizes, counts.position.dims
    (Frozen({'time': 400, 'channel': 40}), ('time',))
    """
    if name not in EXAMPLES:
        raise ValueError(f"example: name must be one of {', '.join(map(repr, EXAMPLES))}; got {name!r}.")
    module, function = EXAMPLES[name]
    simulate = getattr(import_module(f"manifold_observer.datasets.simulators.{module}"), function)
    known = inspect.signature(simulate).parameters
    if unknown := [option for option in options if option not in known or option == "path"]:
        has = ", ".join(option for option in known if option != "path")
        raise TypeError(f"example: {name!r} has no option {unknown[0]}; it has {has}.")
    recording = regular(_sphere(simulate, **options) if name == "sphere" else simulate(**options))
    row_bytes = recording.sizes["channel"] * recording.dtype.itemsize
    # Zarr has no lasting form for words of fixed length.
    words = {name: one.astype(object) for name, one in recording.coords.items() if one.dtype.kind == "U"}
    recording = recording.assign_coords(words)
    # The labels stay in memory, where groupby and where can use them.
    samples = da.from_array(recording.values, chunks=(max(1, SLAB_BYTES // row_bytes), -1))
    return recording.copy(data=samples).assign_attrs(source=f"example {name}")


def _sphere(simulate: Callable[..., xr.Dataset], **options: Any) -> xr.DataArray:
    """The sphere's simulator writes a store; its angles become coordinates."""
    with tempfile.TemporaryDirectory(prefix="manifold-observer-") as folder:
        simulated = simulate(f"{folder}/sphere.zarr", **options).load()
    angles = {str(one): simulated["angle"].sel(component=one, drop=True) for one in simulated["component"].values}
    return simulated["recording"].assign_coords(angles)
