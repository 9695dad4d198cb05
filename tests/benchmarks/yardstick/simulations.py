"""Simulated recordings, seeded, each of which takes seconds; every hidden number is known.

``length`` is in frames of the case.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d
from scipy.signal import lfilter

from manifold_observer.datasets.simulators.sphere import write_sphere

from .case import Case, case, recording_of, shuffled

Array = NDArray[Any]

_COUNTS = "spike counts of .25 s"
_SPHERE_FRAME = 60
# Orders of the negative control.
_DRAWS = 8


def track(length: int = 2400, seed: int = 1) -> Case:
    """Forty place cells of a rat that runs to and fro on a track and rests at its ends."""
    rng = np.random.default_rng(seed)
    place = _to_and_fro(rng, length)
    centres, widths = rng.uniform(0, 1, 40), rng.uniform(0.05, 0.15, 40)
    rates = 0.1 + rng.gamma(2, 1.2, 40) * np.exp(-(((place[:, None] - centres) / widths) ** 2) / 2)
    recording = recording_of(rng.poisson(rates), 4.0)
    return case("place_track", recording, "identity", _COUNTS, {"position": place}, kind="counts")


def _to_and_fro(rng: np.random.Generator, length: int) -> Array:
    """Position in 0..1: runs of 3 to 6 s, rests of 1 to 8 s."""
    pieces, here = [], 0.0
    while sum(map(len, pieces)) < length:
        run = np.linspace(here, 1 - here, rng.integers(12, 24))
        pieces += [run, np.full(rng.integers(4, 32), 1 - here)]
        here = 1 - here
    return np.concatenate(pieces)[:length]


def field(length: int = 2400, seed: int = 2) -> Case:
    """Sixty place cells of a rat that wanders in a box."""
    rng = np.random.default_rng(seed)
    steps = lfilter([0.02], [1, -0.9], rng.normal(size=(length, 2)), axis=0)
    # A walk is folded back at the walls.
    place = np.abs((0.5 + np.cumsum(steps, axis=0) + 1) % 2 - 1)
    centres, width = rng.uniform(-0.1, 1.1, (60, 2)), 0.15
    apart = ((place[:, None] - centres) ** 2).sum(axis=2)
    rates = 0.1 + rng.gamma(2, 1.2, 60) * np.exp(-apart / (2 * width**2))
    truths = {"x": place[:, 0], "y": place[:, 1]}
    return case("place_field", recording_of(rng.poisson(rates), 4.0), "identity", _COUNTS, truths, kind="counts")


def heart(length: int = 2400, seed: int = 3) -> Case:
    """Fifteen leads see a loop in three dimensions that comes round about once a second; noise and a wandering base."""
    rng = np.random.default_rng(seed)
    rate = 80.0
    pace = 2 * np.pi / rate * (1.1 + lfilter([0.02], [1, -0.99], rng.normal(size=length)))
    phase = np.cumsum(pace)
    waves = [(0.0, 0.12, (1.2, 0.3, -0.4)), (-1.0, 0.25, (0.2, 0.1, 0.1)), (1.6, 0.45, (0.3, -0.2, 0.4))]
    waves += [(0.25, 0.1, (-0.4, 0.6, 0.5))]
    loop = sum(
        np.exp(-(np.angle(np.exp(1j * (phase - at))) ** 2) / (2 * width**2))[:, None] * np.array(size)
        for at, width, size in waves
    )
    base = lfilter([0.01], [1, -0.999], rng.normal(size=(length, 15)), axis=0)
    leads = loop @ rng.normal(size=(3, 15)) + base + 0.1 * rng.normal(size=(length, 15))
    truths = {"cos": np.cos(phase), "sin": np.sin(phase)}
    return case("heart", recording_of(leads, rate), "identity", "sensor values at 80 Hz", truths)


def gestures(length: int = 1200, seed: int = 4) -> Case:
    """Eight muscles, five gestures with rests between them, in an order that repeats no plan."""
    rng = np.random.default_rng(seed)
    rate, frame = 500.0, 50
    levels = np.vstack([np.full(8, 0.05), rng.gamma(1.0, 0.4, (5, 8)) + 0.05])
    hidden = _turns(rng, length, 6, (10, 30))
    level = uniform_filter1d(levels[hidden], 3, axis=0) * np.exp(0.6 * rng.normal(size=(length, 8)))
    samples = np.repeat(level, frame, axis=0) * rng.normal(size=(length * frame, 8))
    truths = {"gesture": np.repeat(hidden, frame)}
    return case(
        "gestures", recording_of(samples, rate), "log_rms", "log level in frames of 100 ms", truths, frame="100ms"
    )


def _turns(rng: np.random.Generator, length: int, n_classes: int, stay: tuple[int, int]) -> Array:
    """A class for a while, then another one."""
    pieces: list[Array] = []
    now = 0
    while sum(map(len, pieces)) < length:
        pieces.append(np.full(rng.integers(*stay), now))
        now = (now + rng.integers(1, n_classes)) % n_classes
    return np.concatenate(pieces)[:length]


def bench(length: int = 1200, seed: int = 5) -> Case:
    """Eight sensors of a machine in units from 1e-3 to 1e3: three regimes, a slow drift, and 2 s lost every minute."""
    rng = np.random.default_rng(seed)
    units = 10.0 ** np.array([-3, -2, -1, 0, 0, 1, 2, 3])
    regime = _turns(rng, length, 3, (40, 120))
    drift = _standard(lfilter([1], [1, -0.995], rng.normal(size=length)))
    means, slopes, spread = rng.normal(size=(3, 8)), rng.normal(size=8), rng.uniform(0.3, 1.2, (3, 8))
    clean = means[regime] + np.tanh(drift[:, None] * slopes)
    values = units * (clean + lfilter([1], [1, -0.5], rng.normal(size=(length, 8)), axis=0) * spread[regime])
    times = np.arange(length) + 2.0 * (np.arange(length) // 58)
    recording = recording_of(values, 1.0).assign_coords(time=("time", times))
    why = "sensor values, a frame a second"
    return case("bench", recording, "identity", why, {"regime": regime, "drift": drift})


def sphere(c: float, noise: float, length: int = 1500, seed: int = 6) -> Case:
    """The paper's point on a sphere, seen by three counters."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"n_samples": _SPHERE_FRAME * length, "seed": seed, "drift_rate": c, "noise": noise}
        simulated = write_sphere(Path(folder) / "sphere.zarr", **options).load()
    angles = uniform_filter1d(simulated["angle"].values, _SPHERE_FRAME, axis=0)
    counts = recording_of(simulated["recording"].values, simulated.attrs["sampling_rate"])
    truths = {"elevation": angles[:, 0], "azimuth": angles[:, 1]}
    why = f"histograms of counts over {_SPHERE_FRAME} samples"
    return case(f"sphere_c{c}_noise{noise}", counts, "histogram", why, truths, frame=_SPHERE_FRAME)


def speaker(length: int = 1300, seed: int = 7) -> Case:
    """A voice of changing pitch moves from side to side before two microphones that hear its loudness and its echo."""
    rng = np.random.default_rng(seed)
    rate, frame = 8000, 184
    angle = _standard(lfilter([1], [1, -0.99], rng.normal(size=length)))
    angle = np.pi / 3 * np.tanh(angle)
    note = _turns(rng, length, 5, (8, 25))
    hertz = 150 * 2 ** (note / 4)
    each = {key: np.repeat(values, frame) for key, values in (("angle", angle), ("hertz", hertz))}
    phase = np.cumsum(2 * np.pi * each["hertz"] / rate)
    voice = sum(np.sin(k * phase) / k for k in range(1, 9))
    side = uniform_filter1d(np.sin(each["angle"]), frame)
    # The far ear hears less of all, and least of what is high.
    high = lfilter([1, -0.8], [1], voice)
    ears = np.stack([voice * (1 - 0.4 * sign * side) + high * (0.5 - 0.4 * sign * side) for sign in (1, -1)], axis=1)
    sound = ears + 1.5 * rng.normal(size=ears.shape)
    truths = {"angle": each["angle"], "note": np.repeat(note, frame)}
    why = "magnitudes of spectra of 23 ms"
    return case("speaker", recording_of(sound, rate), "stft", why, truths, frame="23ms")


def regimes(length: int = 2400, seed: int = 8) -> Case:
    """A plane oscillator that switches between three dynamics, seen by ten sensors none of which is linear."""
    rng = np.random.default_rng(seed)
    regime = _turns(rng, length, 3, (60, 160))
    decay, turn = np.array([0.98, 0.95, 0.97]), np.array([0.05, 0.5, -0.2])
    push = rng.normal(size=(length, 2)) @ [1, 1j] * np.sqrt(1 - decay[regime] ** 2)
    z = np.zeros(length, complex)
    for now in range(1, length):
        step = decay[regime[now]] * np.exp(1j * turn[regime[now]])
        z[now] = step * z[now - 1] + push[now]
    plane = np.stack([z.real, z.imag], axis=1)
    mixed = plane @ rng.normal(size=(2, 10)) + rng.normal(size=10)
    seen = np.where(np.arange(10) % 2, np.tanh(mixed), 0.3 * mixed**2) + 0.2 * rng.normal(size=(length, 10))
    truths = {"x": plane[:, 0], "y": plane[:, 1], "regime": regime}
    return case("regimes", recording_of(seen, 50.0), "identity", "sensor values at 50 Hz", truths)


def track_shuffled(draw: int = 1, length: int = 2400) -> Case:
    """Negative control: the track's frames in random order, of which one may be read by luck."""
    return shuffled(track(length), seed=8 + draw, draw=draw)


def _standard(values: Array) -> Array:
    """Zero mean, unit variance."""
    return (values - values.mean()) / values.std()


SIMULATED: dict[str, Callable[..., Case]] = {
    "place_track": track,
    "place_field": field,
    "heart": heart,
    "gestures": gestures,
    "bench": bench,
    **{f"sphere_c{c}_noise{noise}": partial(sphere, c, noise) for c in (0.008, 0.024) for noise in (0.1, 0.5)},
    "speaker": speaker,
    "regimes": regimes,
    "place_track_shuffled": track_shuffled,
    **{f"place_track_shuffled_{draw}": partial(track_shuffled, draw) for draw in range(2, _DRAWS + 1)},
}
