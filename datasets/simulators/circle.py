"""An angle on a circle, seen by three sensors in short bursts (section V-B of the paper).

The hidden angle has known rates -1, -2, -3, ... (in 1/s), and the bursts give each frame the local
covariance from which they can be found. Frames are simulated in blocks of a fixed size, as the samples
of the sphere are, so the values depend on the seed alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from os import PathLike
from typing import Any, Literal

import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray

from .recursion import recursion
from .simulated import (
    check_counts,
    check_numbers,
    finish_store,
    generator,
    open_simulation,
    rebatched,
    write_labels,
)

Array = NDArray[Any]

BLOCK_FRAMES = 64
"""Frames that share one random generator; another number would be other frames."""

_PATH, _BURST, _EMISSION, _DARK = range(4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Settings:
    """Every number of the simulation, checked once."""

    n_frames: int
    seed: int
    dt: float
    arc: float
    features: str
    noise: float
    burst_duration: float
    burst_size: int
    burst_samples: int
    sensor_angles: tuple[float, float, float]
    sensor_distance: float

    def __post_init__(self) -> None:
        check_counts("circle", {"n_frames": self.n_frames, "burst_samples": self.burst_samples}, at_least=1)
        check_counts("circle", {"seed": self.seed}, at_least=0)
        check_counts("circle", {"burst_size": self.burst_size}, at_least=2)
        positive = ("dt", "arc", "burst_duration", "sensor_distance")
        check_numbers("circle", {name: getattr(self, name) for name in positive}, positive=True)
        check_numbers("circle", {"noise": self.noise}, positive=False)
        if abs(self.sensor_distance - 1) < 0.05:
            raise ValueError(
                f"circle: sensor_distance must keep 0.05 away from 1, where the rates have a cusp; "
                f"got {self.sensor_distance}. Try sensor_distance=0.5 or sensor_distance=2."
            )
        if len(self.sensor_angles) != 3 or not all(math.isfinite(angle) for angle in self.sensor_angles):
            raise ValueError(
                f"circle: sensor_angles must be three finite angles in rad; got {self.sensor_angles}. "
                "Try sensor_angles=(np.pi / 2, -np.pi / 2, np.pi)."
            )
        if self.features not in ("rates", "histogram"):
            raise ValueError(
                f"circle: features must be 'rates' or 'histogram'; got {self.features!r}. Try features='rates'."
            )
        if self.features == "rates" and self.noise:
            raise ValueError(
                f"circle: noise must be 0 for features='rates', which count nothing; got {self.noise}. "
                "Try features='histogram'."
            )

    @property
    def n_bins(self) -> int:
        """Bins of one sensor's histogram: one a count, the last for that count or more."""
        rate = 1 + self.noise
        return math.ceil(rate + 5 * math.sqrt(rate)) + 2

    @property
    def labels(self) -> list[str]:
        """Name of each feature."""
        sensors = [f"sensor {number}" for number in range(3)]
        if self.features == "rates":
            return sensors
        return [f"{sensor}, count {count}" for sensor in sensors for count in range(self.n_bins)]


def write_circle(
    path: str | PathLike[str],
    *,
    n_frames: int = 1_600,
    seed: int = 0,
    dt: float = 1.0,
    arc: float = 0.5,
    features: Literal["rates", "histogram"] = "rates",
    noise: float = 0.0,
    burst_duration: float = 0.01,
    burst_size: int = 100,
    burst_samples: int = 60,
    sensor_angles: tuple[float, float, float] = (math.pi / 2, -math.pi / 2, math.pi),
    sensor_distance: float = 0.5,
    chunk_frames: int = 1_600,
) -> xr.Dataset:
    r"""Simulate, write chunk by chunk, and open frames and local covariances of an angle on a circle.

    .. math:: \dot\theta = -\theta + \sqrt2\,\dot w

    The generator of this equation has the eigenvalues -1, -2, -3, ... [1]_, whatever the sensors. The point
    sits on the unit circle at ``arc`` times :math:`\theta`; the rate of a sensor is exp(-distance to the
    point). From the state of every frame, ``burst_size`` short continuations are simulated: the first
    gives the frame its features, all together the covariance of those.

    Parameters
    ----------
    path
        The Zarr store to make; it must not exist yet.
    n_frames
        Number of frames. A longer run begins with the same frames.
    seed
        Chooses the path, the bursts and the counts.
    dt
        Seconds from one frame to the next.
    arc
        Radians on the circle for one unit of the angle. At 0.5 the half circle is left once in 600 frames;
        at 1 the ends of the path meet round the back.
    features
        ``"rates"``, the mean rate of each sensor over the burst, without counting; or ``"histogram"``, the
        share of the burst's samples in which a sensor counted 0, 1, 2, ... events.
    noise
        Dark counts of each sensor, in events a sample; only for ``"histogram"``.
    burst_duration
        Length of a burst, in s.
    burst_size
        Bursts a frame.
    burst_samples
        Samples a burst.
    sensor_angles
        Where the sensors sit, in rad. By default the far side of the circle is watched too.
    sensor_distance
        Distance of the sensors from the centre; at 1 they would sit on the circle, where the rate has a cusp.
    chunk_frames
        Frames in one chunk of the store; changes no value.

    Returns
    -------
    The opened store, nothing loaded: ``frames(frame, feature)``, ``covariance(frame, feature, feature_1)``,
    the truth ``angle(frame)``, ``time(frame)`` in s and ``segment(frame)``, always 0. The settings are in
    ``attrs``, with ``covariance_duration``, the time in s in which the path itself would spread as the
    features do: about a third of ``burst_duration``, because they are means. This is the duration that
    turns eigenvalues into rates.

    Notes
    -----
    The path is exact: θ(t + s) is normal with mean exp(-s) θ(t) and variance 1 - exp(-2 s), for frames
    and for the samples of a burst alike; it starts in the stationary state, which has variance 1.
    There is one hidden angle, so pseudo-inverses of these covariances should be taken with rank 1; the
    counting noise of a histogram hides it. Memory: a block of 64 frames with all their bursts, 150 bytes a
    sample (58 MB by default), and a chunk.

    References
    ----------
    .. [1] T. Shnitzer, R. Talmon, J.-J. Slotine, "Manifold Learning with Contracting Observers for
       Data-driven Time-series Analysis", IEEE Trans. Signal Processing (2017), section V-B.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     circle = write_circle(f"{folder}/circle.zarr", n_frames=50, burst_size=10).load()
    >>> circle.frames.shape, circle.covariance.dims
    ((50, 3), ('frame', 'feature', 'feature_1'))
    >>> round(circle.attrs["covariance_duration"] / circle.attrs["burst_duration"], 2)
    0.34
    """
    settings = _Settings(
        n_frames=n_frames,
        seed=seed,
        dt=dt,
        arc=arc,
        features=features,
        noise=noise,
        burst_duration=burst_duration,
        burst_size=burst_size,
        burst_samples=burst_samples,
        sensor_angles=sensor_angles,
        sensor_distance=sensor_distance,
    )
    check_counts("circle", {"chunk_frames": chunk_frames}, at_least=1)
    group = zarr.create_group(path, zarr_format=3)
    arrays = _create_variables(group, settings, min(chunk_frames, n_frames))
    for number, rows in enumerate(rebatched(_blocks(settings), chunk_frames)):
        start = number * chunk_frames
        for array, part in zip(arrays, rows, strict=True):
            array[start : start + len(part)] = part
    duration = {"covariance_duration": _spread_duration(burst_duration, burst_samples)}
    finish_store(group, "circle", 1 / dt, dataclasses.asdict(settings) | duration)
    return open_simulation(path)


def _create_variables(group: zarr.Group, settings: _Settings, chunk: int) -> list[Any]:
    """Make empty arrays for frames, covariances, angles, times and segments, and label the features."""
    for name in ("feature", "feature_1"):
        write_labels(group, name, settings.labels, "what the feature measures")
    unit = {"units": "1", "coordinates": "time segment"}
    plan = [
        ("frames", ("frame", "feature"), "float64", unit | {"long_name": f"{settings.features} of a burst"}),
        (
            "covariance",
            ("frame", "feature", "feature_1"),
            "float64",
            unit | {"long_name": "covariance of the features over the bursts of a frame"},
        ),
        ("angle", ("frame",), "float64", unit | {"long_name": "true hidden angle"}),
        ("time", ("frame",), "float64", {"units": "s", "long_name": "time since the start"}),
        ("segment", ("frame",), "int32", {"units": "1", "long_name": "uninterrupted stretch"}),
    ]
    n_features = len(settings.labels)
    return [
        group.create_array(
            name,
            shape=(settings.n_frames,) + (n_features,) * (len(dims) - 1),
            chunks=(chunk,) + (n_features,) * (len(dims) - 1),
            dtype=dtype,
            fill_value=math.nan if dtype == "float64" else -1,
            dimension_names=dims,
            attributes=attributes,
        )
        for name, dims, dtype, attributes in plan
    ]


def _blocks(settings: _Settings) -> Iterator[tuple[Array, ...]]:
    """Simulate block after block; the filter's memory carries the path across."""
    decay = math.exp(-settings.dt)
    last = 0.0
    for block, start in enumerate(range(0, settings.n_frames, BLOCK_FRAMES)):
        n = min(BLOCK_FRAMES, settings.n_frames - start)
        steps = generator(settings.seed, _PATH, block).standard_normal(n)
        steps[0 if start else 1 :] *= math.sqrt(1 - decay**2)
        angle = recursion(steps, decay, last)
        last = angle[-1]
        bursts = _burst_features(angle, settings, block)
        centred = bursts - bursts.mean(axis=1, keepdims=True)
        covariance = centred.swapaxes(1, 2) @ centred / (settings.burst_size - 1)
        covariance = (covariance + covariance.swapaxes(1, 2)) / 2
        time = np.arange(start, start + n) * settings.dt
        yield bursts[:, 0], covariance, angle, time, np.zeros(n, "int32")


def _burst_features(angle: Array, settings: _Settings, block: int) -> Array:
    """Features of every burst from each angle, shape (frame, burst, feature)."""
    shape = (len(angle), settings.burst_size, settings.burst_samples)
    decay = math.exp(-settings.burst_duration / settings.burst_samples)
    steps = generator(settings.seed, _BURST, block).normal(0, math.sqrt(1 - decay**2), size=shape)
    path = np.moveaxis(recursion(np.moveaxis(steps, 2, 0), decay, angle[:, None]), 0, 2)
    far = settings.sensor_distance
    gap = settings.arc * path[..., None] - np.array(settings.sensor_angles)
    rates = np.exp(-np.sqrt(1 + far**2 - 2 * far * np.cos(gap)))
    if settings.features == "rates":
        return rates.mean(axis=2)
    counts = generator(settings.seed, _EMISSION, block).poisson(rates)
    counts += generator(settings.seed, _DARK, block).poisson(settings.noise, size=counts.shape)
    np.minimum(counts, settings.n_bins - 1, out=counts)
    shares = np.stack([(counts == count).mean(axis=2) for count in range(settings.n_bins)], axis=-1)
    return shares.reshape(*shape[:2], -1)


def _spread_duration(burst_duration: float, burst_samples: int) -> float:
    """Time in which free diffusion spreads as far as the mean of the path over a burst."""
    step = burst_duration / burst_samples
    pulls = np.cumsum(np.exp(-step * np.arange(burst_samples))) / burst_samples
    return float(-np.expm1(-2 * step) * (pulls**2).sum() / 2)
