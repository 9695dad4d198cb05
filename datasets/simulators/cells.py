"""Place cells of a rat that runs to and fro on a track and rests at its ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.datasets.regular import uniform_time

from .simulated import check_counts

Array = NDArray[Any]

RATE = 4.0
"""Counts a second."""
_FIELD_WIDTH, _BACKGROUND = (0.05, 0.15), 0.1


def place_cells(*, seed: int = 1, n_samples: int = 2400, n_cells: int = 40) -> xr.DataArray:
    r"""Spike counts of cells that each fire in a field of their own; where the rat is, is a coordinate.

    .. math:: n_{ik} \sim \mathrm{Poisson}\bigl(b + g_k\,e^{-(x_i - c_k)^2 / 2 w_k^2}\bigr)

    Parameters
    ----------
    seed
        Chooses fields, path and spikes.
    n_samples
        Counts, of a quarter of a second each.
    n_cells
        Cells.

    Returns
    -------
    Dims ``(time, channel)``, spikes in 0.25 s, with ``position`` (0 to 1) and ``moving`` along ``time``.

    Examples
    --------
    >>> counts = place_cells(n_samples=400)
    >>> counts.shape, float(counts.position.min()), float(counts.position.max())
    ((400, 40), 0.0, 1.0)
    """
    check_counts("place_cells", {"n_samples": n_samples, "n_cells": n_cells}, at_least=1)
    check_counts("place_cells", {"seed": seed}, at_least=0)
    rng = np.random.default_rng(seed)
    position, moving = _to_and_fro(rng, n_samples)
    centres, widths = rng.uniform(0, 1, n_cells), rng.uniform(*_FIELD_WIDTH, n_cells)
    peaks = rng.gamma(2, 1.2, n_cells)
    counts = rng.poisson(spike_rates(position, centres, widths, peaks)).astype(np.int16)
    labels = {
        "position": ("time", position, {"units": "1", "long_name": "position on the track"}),
        "moving": ("time", moving, {"long_name": "whether the rat runs"}),
        "channel": [f"cell {number + 1}" for number in range(n_cells)],
    }
    return xr.DataArray(
        counts,
        dims=("time", "channel"),
        coords=uniform_time(n_samples, RATE).assign(labels),
        name="recording",
        attrs={"units": "1", "long_name": "spikes in 0.25 s", "sampling_rate": RATE},
    )


def spike_rates(position: Array, centres: Array, widths: Array, peaks: Array) -> Array:
    """Expected spikes in a quarter of a second, shape (samples, cells).

    Examples
    --------
    >>> spike_rates(np.array([0.5]), np.array([0.5]), np.array([0.1]), np.array([2.0]))
    array([[2.1]])
    """
    return np.asarray(_BACKGROUND + peaks * np.exp(-(((position[:, None] - centres) / widths) ** 2) / 2))


def _to_and_fro(rng: np.random.Generator, n_samples: int) -> tuple[Array, Array]:
    """Position in 0..1 and whether it changes: runs of 3 to 6 s, rests of 1 to 8 s."""
    paths: list[Array] = []
    moves: list[Array] = []
    here, n = 0.0, 0
    while n < n_samples:
        run, rest = np.linspace(here, 1 - here, rng.integers(12, 24)), int(rng.integers(4, 32))
        paths += [run, np.full(rest, 1 - here)]
        moves += [np.ones(len(run), bool), np.zeros(rest, bool)]
        here, n = 1 - here, n + len(run) + rest
    return np.concatenate(paths)[:n_samples], np.concatenate(moves)[:n_samples]
