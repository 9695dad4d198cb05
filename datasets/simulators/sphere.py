"""A point that wanders over a sphere, seen by three counting sensors (section V-A of the paper).

The path takes its steps from ``np.random.default_rng(seed)`` in order, so that three lines of NumPy draw
the same path; counts are drawn in blocks of a fixed size, each with a generator of its own. So the values
depend on the seed alone: not on the chunks they are written in, nor on how long the recording is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np
import xarray as xr
import zarr

from .recursion import recursion
from .simulated import (
    Array,
    check_counts,
    check_numbers,
    finish_store,
    generator,
    open_simulation,
    rebatched,
    write_labels,
)

BLOCK_SAMPLES = 65_536
"""Samples whose counts share one random generator; another number would be another recording."""

_EMISSION, _DARK = range(2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Settings:
    """Every number of the simulation, checked once."""

    n_samples: int
    seed: int
    drift_rate: float
    noise: float
    variance: float
    dt: float
    mean: tuple[float, float]
    sensor_distance: float

    def __post_init__(self) -> None:
        check_counts("sphere", {"n_samples": self.n_samples}, at_least=1)
        check_counts("sphere", {"seed": self.seed}, at_least=0)
        positive = ("drift_rate", "variance", "dt", "sensor_distance")
        check_numbers("sphere", {name: getattr(self, name) for name in positive}, positive=True)
        check_numbers("sphere", {"noise": self.noise}, positive=False)
        if len(self.mean) != 2 or not all(math.isfinite(angle) for angle in self.mean):
            raise ValueError(
                f"sphere: mean must be two finite angles in rad; got {self.mean}. "
                "Try mean=(np.pi / 2, 0.2), the elevation and the azimuth."
            )
        if self.drift_rate * self.dt >= 1:
            raise ValueError(
                f"sphere: drift_rate * dt must be below 1, or the angles overshoot their mean; "
                f"got {self.drift_rate * self.dt:g}. Try dt={0.1 / self.drift_rate:g}."
            )


def write_sphere(
    path: str | PathLike[str],
    *,
    n_samples: int = 240_000,
    seed: int = 0,
    drift_rate: float = 0.008,
    noise: float = 0.1,
    variance: float = 0.005,
    dt: float = 0.1,
    mean: tuple[float, float] = (math.pi / 2, 0.2),
    sensor_distance: float = 1.2,
    chunk_samples: int = BLOCK_SAMPLES,
) -> xr.Dataset:
    r"""Simulate, write chunk by chunk, and open the recording of a point wandering over a sphere.

    .. math:: \theta_{k+1} = \theta_k - c\,(\theta_k - \bar\theta)\,\Delta t + \sqrt{v\,\Delta t}\,w_k

    The two hidden angles :math:`\theta` (elevation, counted from the pole, and azimuth) follow this
    equation independently [1]_. Sensors sit at ``sensor_distance`` on the three axes; per sample,
    sensor j counts Poisson(exp(-distance to the point)) events, and Poisson(noise) of its own.

    Parameters
    ----------
    path
        The Zarr store to make; it must not exist yet.
    n_samples
        Length of the recording, in samples. A longer one begins with the same samples.
    seed
        Chooses the path, the counts and the dark counts, each independently of the others.
    drift_rate
        Pull towards the mean, c, in 1/s.
    noise
        Dark counts of each sensor, in events a sample.
    variance
        Diffusion variance v, in rad²/s (not its square root).
    dt
        Seconds a sample.
    mean
        Elevation and azimuth towards which the angles are pulled and at which they start, in rad.
    sensor_distance
        Distance of each sensor from the centre of the unit sphere.
    chunk_samples
        Samples in one chunk of the store; changes no value.

    Returns
    -------
    The opened store, nothing loaded: ``recording(time, channel)`` in events a sample, the truth
    ``angle(time, component)`` in rad, ``time`` in s; every setting is in ``attrs``.

    Notes
    -----
    Memory: at most 250 bytes for each sample of a block (65,536 samples) or of a chunk, whichever is
    larger, however long the recording.

    References
    ----------
    .. [1] T. Shnitzer, R. Talmon, J.-J. Slotine, "Manifold Learning with Contracting Observers for
       Data-driven Time-series Analysis", IEEE Trans. Signal Processing (2017), section V-A.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sphere = write_sphere(f"{folder}/sphere.zarr", n_samples=600, seed=1).load()
    >>> sphere.recording.dims, sphere.recording.shape, sphere.attrs["sampling_rate"]
    (('time', 'channel'), (600, 3), 10.0)
    >>> sphere.angle.sel(component="azimuth").values[:2].round(3)
    array([0.2  , 0.218])
    """
    settings = _Settings(
        n_samples=n_samples,
        seed=seed,
        drift_rate=drift_rate,
        noise=noise,
        variance=variance,
        dt=dt,
        mean=mean,
        sensor_distance=sensor_distance,
    )
    check_counts("sphere", {"chunk_samples": chunk_samples}, at_least=1)
    group = zarr.create_group(path, zarr_format=3)
    write_labels(group, "channel", ["x", "y", "z"], "axis on which the sensor sits")
    write_labels(group, "component", ["elevation", "azimuth"], "hidden angle")
    recording, angle = _create_variables(group, settings, chunk_samples)
    for k, (counts, angles) in enumerate(rebatched(_blocks(settings), chunk_samples)):
        chunk = slice(k * chunk_samples, k * chunk_samples + len(counts))
        recording[chunk], angle[chunk] = counts, angles
    finish_store(group, "sphere", 1 / dt, dataclasses.asdict(settings))
    return open_simulation(path)


def _create_variables(group: zarr.Group, settings: _Settings, chunk_samples: int) -> tuple[Any, Any]:
    """Empty arrays for the counts and the angles."""
    n_samples = settings.n_samples
    recording = group.create_array(
        "recording",
        shape=(n_samples, 3),
        chunks=(min(chunk_samples, n_samples), 3),
        dtype=_count_dtype(1 + settings.noise),
        dimension_names=("time", "channel"),
        attributes={"sampling_rate": 1 / settings.dt, "units": "1", "long_name": "events counted a sample"},
    )
    angle = group.create_array(
        "angle",
        shape=(n_samples, 2),
        chunks=(min(chunk_samples, n_samples), 2),
        dtype="float64",
        fill_value=math.nan,
        dimension_names=("time", "component"),
        attributes={"sampling_rate": 1 / settings.dt, "units": "rad", "long_name": "true hidden angle"},
    )
    return recording, angle


def _count_dtype(rate: float) -> np.dtype[Any]:
    """Smallest unsigned integer that holds Poisson counts of a rate, 20 standard deviations up."""
    return np.min_scalar_type(math.ceil(rate + 20 * math.sqrt(rate) + 20))


def _blocks(settings: _Settings) -> Iterator[tuple[Array, Array]]:
    """Simulate counts and angles block after block; the filter's memory carries the path across."""
    pull, spread = settings.drift_rate * settings.dt, math.sqrt(settings.variance * settings.dt)
    far = settings.sensor_distance
    memory, walk = np.zeros(2), np.random.default_rng(settings.seed)
    for block, start in enumerate(range(0, settings.n_samples, BLOCK_SAMPLES)):
        n = min(BLOCK_SAMPLES, settings.n_samples - start)
        steps = walk.normal(0, spread, size=(n, 2))
        path = np.concatenate([memory[None], recursion(steps, 1 - pull, memory)])
        deviation, memory = path[:-1], path[-1]
        angles = np.array(settings.mean) + deviation
        # The point has norm 1 and each sensor one coordinate, so |x - s|^2 needs no difference.
        distances = np.sqrt(np.maximum(1 + far**2 - 2 * far * on_sphere(angles), 0))
        counts = generator(settings.seed, _EMISSION, block).poisson(np.exp(-distances))
        counts += generator(settings.seed, _DARK, block).poisson(settings.noise, size=(n, 3))
        yield counts.astype(_count_dtype(1 + settings.noise)), angles


def on_sphere(angles: Array) -> Array:
    """Points of the unit sphere, shape (n, 3), from elevation and azimuth, shape (n, 2)."""
    elevation, azimuth = angles.T
    x, y = np.sin(elevation) * np.cos(azimuth), np.sin(elevation) * np.sin(azimuth)
    return np.stack([x, y, np.cos(elevation)], axis=1)
