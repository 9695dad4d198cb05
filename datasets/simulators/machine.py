"""Eight sensors of a machine that changes between three regimes and slowly drifts."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from .recursion import recursion
from .simulated import check_counts

Array = NDArray[Any]

SENSORS = {
    "bearing": ("mm", -3), "gap": ("mm", -2), "vibration": ("g", -1), "torque": ("Nm", 0),
    "current": ("A", 0), "flow": ("l/min", 1), "temperature": ("degC", 2), "pressure": ("kPa", 3),
}  # fmt: skip
"""Unit and power of ten of every sensor."""
REGIMES = ("idle", "low", "high")
_START = np.datetime64("2024-03-04T06:00:00", "ns")
# Samples between holes, and seconds that are lost in one.
_RUN, _LOST = (150, 500), (10, 60)


def machine(*, seed: int = 5, n_samples: int = 2400, holes: bool = True) -> xr.DataArray:
    """Sensor values once a second, in units from 1e-3 to 1e3, with date-times; regime and drift are coordinates.

    Parameters
    ----------
    seed
        Chooses everything.
    n_samples
        Samples.
    holes
        Whether some seconds are lost every few minutes: 10 to 60 after 150 to 500 samples.

    Returns
    -------
    Dims ``(time, channel)``, with ``channel_units``, and ``regime`` (idle, low or high, each for 40 to 120 s) and
    ``drift`` (the wear that moves all sensors, without unit) along ``time``.

    Examples
    --------
    >>> values = machine(n_samples=600)
    >>> int((np.diff(values.time.values) > np.timedelta64(1, "s")).sum()), str(values.channel_units.values[-1])
    (2, 'kPa')
    """
    check_counts("machine", {"n_samples": n_samples}, at_least=1)
    check_counts("machine", {"seed": seed}, at_least=0)
    rng = np.random.default_rng(seed)
    regime = _turns(rng, n_samples)
    # An AR(1) that forgets over 200 s, of unit variance.
    drift = recursion(np.sqrt(1 - 0.995**2) * rng.normal(size=n_samples), 0.995)
    means, slopes, spread = rng.normal(size=(3, 8)), rng.normal(size=8), rng.uniform(0.3, 1.2, (3, 8))
    clean = means[regime] + np.tanh(drift[:, None] * slopes)
    noise = recursion(rng.normal(size=(n_samples, 8)), 0.5)
    values = 10.0 ** np.array([power for _, power in SENSORS.values()]) * (clean + noise * spread[regime])
    seconds = np.arange(n_samples) + (_lost(rng, n_samples) if holes else 0)
    labels = {
        "time": _START + seconds * np.timedelta64(1, "s"),
        "channel": list(SENSORS),
        "channel_units": ("channel", [unit for unit, _ in SENSORS.values()]),
        "regime": ("time", np.array(REGIMES)[regime], {"long_name": "regime of the machine"}),
        "drift": ("time", drift, {"units": "1", "long_name": "wear that moves all sensors"}),
    }
    attrs = {"units": "mixed", "long_name": "sensor value"}
    return xr.DataArray(values, dims=("time", "channel"), coords=labels, name="recording", attrs=attrs)


def _lost(rng: np.random.Generator, n_samples: int) -> Array:
    """Seconds that were lost before each sample."""
    lost = np.zeros(n_samples, np.int64)
    at = int(rng.integers(*_RUN))
    while at < n_samples:
        lost[at:] += int(rng.integers(*_LOST))
        at += int(rng.integers(*_RUN))
    return lost


def _turns(rng: np.random.Generator, n_samples: int) -> Array:
    """A regime for a while, then another one."""
    parts: list[Array] = []
    now, made = 0, 0
    while made < n_samples:
        parts.append(np.full(rng.integers(40, 120), now))
        made += len(parts[-1])
        now = int(now + rng.integers(1, len(REGIMES))) % len(REGIMES)
    return np.concatenate(parts)[:n_samples]
