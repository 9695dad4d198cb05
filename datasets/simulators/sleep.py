"""A night that looks like EEG: stages that follow each other, each with rhythms of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.datasets.regular import uniform_time

from .simulated import check_counts, check_numbers

Array = NDArray[Any]

STAGES = ("W", "N1", "N2", "N3", "R")
"""Wake, three depths of sleep, and dreaming."""
BANDS = {"delta": (0.5, 4.0), "theta": (4.0, 8.0), "alpha": (8.0, 12.0), "sigma": (12.0, 15.0), "beta": (15.0, 30.0)}
"""Bounds of the rhythms in Hz."""
LEVELS = np.array(
    [[8, 5, 14, 3, 8], [9, 9, 5, 3, 5], [18, 8, 4, 8, 3], [45, 8, 3, 4, 2], [10, 11, 3, 2, 5]], np.float64
)
"""Root mean square of each rhythm in each stage, in microvolts, shape (stages, bands)."""

# Chances of the next stage after one has ended; a stage never follows itself.
_NEXT = np.array(
    [[0, 1, 0, 0, 0], [0.2, 0, 0.7, 0, 0.1], [0.1, 0.1, 0, 0.5, 0.3], [0, 0, 1, 0, 0], [0.2, 0.2, 0.6, 0, 0]]
)
_CHANNELS = {
    "frontal": (1.2, 1.0, 0.6, 1.1, 1.0),
    "central": (1.0, 1.0, 0.8, 1.2, 1.0),
    "occipital": (0.8, 0.9, 1.6, 0.7, 0.9),
}
# A stage changes over so many seconds.
_FADE = 4.0


def night(*, seed: int = 0, hours: float = 1.5, sampling_rate: float = 64.0) -> xr.DataArray:
    """Three channels of EEG-like noise whose rhythms are those of the stage of sleep; the stage is a coordinate.

    Parameters
    ----------
    seed
        Chooses the stages and the noise.
    hours
        Length.
    sampling_rate
        In Hz, more than 60.

    Returns
    -------
    Dims ``(time, channel)`` in microvolts, float32, with ``stage`` along ``time``: W, N1, N2, N3 or R, each for 2 to
    8 minutes.

    Examples
    --------
    >>> sleep = night(hours=0.5)
    >>> sleep.sizes["time"], set(sleep.stage.values.tolist()) <= set(STAGES)
    (115200, True)
    """
    check_counts("night", {"seed": seed}, at_least=0)
    check_numbers("night", {"hours": hours, "sampling_rate": sampling_rate}, positive=True)
    if sampling_rate <= 2 * BANDS["beta"][1]:
        raise ValueError(f"night: sampling_rate must be above 60 Hz; got {sampling_rate:g}. Try sampling_rate=64.")
    rng, n = np.random.default_rng(seed), round(hours * 3600 * sampling_rate)
    stage = _stages(rng, n, sampling_rate)
    levels = _faded(LEVELS[stage], round(_FADE * sampling_rate))
    samples = sum(
        levels[:, [number]]
        * np.array([gains[number] for gains in _CHANNELS.values()])
        * _rhythm(rng, n, band, sampling_rate)
        for number, band in enumerate(BANDS.values())
    )
    labels = {
        "stage": ("time", np.array(STAGES)[stage], {"long_name": "stage of sleep"}),
        "channel": list(_CHANNELS),
    }
    return xr.DataArray(
        np.asarray(samples, np.float32),
        dims=("time", "channel"),
        coords=uniform_time(n, sampling_rate).assign(labels),
        name="recording",
        attrs={"units": "uV", "long_name": "potential", "sampling_rate": float(sampling_rate)},
    )


def _stages(rng: np.random.Generator, n: int, sampling_rate: float) -> Array:
    """Number of the stage of every sample, from waking on."""
    parts: list[Array] = []
    now, made = 0, 0
    while made < n:
        parts.append(np.full(round(rng.uniform(120, 480) * sampling_rate), now))
        made += len(parts[-1])
        now = int(rng.choice(len(STAGES), p=_NEXT[now]))
    return np.concatenate(parts)[:n]


def _faded(levels: Array, width: int) -> Array:
    """Levels that change over some samples, as moving averages."""
    padded = np.concatenate([np.repeat(levels[:1], width, axis=0), levels])
    sums = np.cumsum(padded, axis=0)
    return np.asarray((sums[width:] - sums[:-width]) / width)


def _rhythm(rng: np.random.Generator, n: int, band: tuple[float, float], sampling_rate: float) -> Array:
    """Noise of unit variance within a band, three channels that share most of it, shape (samples, 3)."""
    frequency = np.fft.rfftfreq(n, 1 / sampling_rate)
    shared, own = rng.standard_normal((n, 1)), rng.standard_normal((n, len(_CHANNELS)))
    spectrum = np.fft.rfft(0.9 * shared + 0.45 * own, axis=0)
    spectrum[(frequency < band[0]) | (frequency >= band[1])] = 0
    noise = np.fft.irfft(spectrum, n, axis=0)
    return np.asarray(noise / noise.std(axis=0))
