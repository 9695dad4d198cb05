"""Simulated kinds of recordings on which nothing was tuned: they are reported apart, and count in no mean.

They were written after the defaults were chosen, to tell what happens on kinds that the other recordings lack. If one
of them ever decides a default, it belongs among the others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.signal import chirp, lfilter

from .case import Array, Case, case, recording_of
from .simulations import _standard, _turns


def bursts(length: int = 2000, seed: int = 21) -> Case:
    """Thirty neurons follow a slow drive, each within its own range; about once in four seconds all fire at once."""
    rng = np.random.default_rng(seed)
    drive = _slow(rng, length, 40)
    centres, widths = rng.uniform(-2, 2, 30), rng.uniform(0.4, 1.2, 30)
    rates = 0.2 + rng.gamma(2, 1.0, 30) * np.exp(-(((drive[:, None] - centres) / widths) ** 2) / 2)
    burst = lfilter([1], [1, -0.6], (rng.random(length) < 0.06) * rng.gamma(2, 2, length))
    # Gamma gains: counts that vary more than Poisson's.
    rates = (rates + burst[:, None] * rng.uniform(0.2, 1, 30)) * rng.gamma(3, 1 / 3, (length, 30))
    recording = recording_of(rng.poisson(rates), 4.0)
    return case("bursts", recording, "identity", "spike counts of .25 s", {"drive": drive}, kind="counts")


def trend(length: int = 1800, seed: int = 22) -> Case:
    """Eight sensors of a machine that goes round every 40 frames, which warms up and wanders by more than a round."""
    rng = np.random.default_rng(seed)
    phase = np.cumsum(2 * np.pi / 40 * (1 + 0.3 * _slow(rng, length, 60)))
    waves = np.column_stack([np.cos(phase), np.sin(phase), np.cos(2 * phase), np.sin(2 * phase)])
    warmth = np.linspace(0, 4, length)[:, None] * rng.normal(size=8)
    wander = np.cumsum(0.04 * rng.normal(size=(length, 8)), axis=0)
    values = waves @ rng.normal(size=(4, 8)) + warmth + wander + 0.5 * rng.normal(size=(length, 8))
    truths = {"cos": np.cos(phase), "sin": np.sin(phase)}
    return case("trend", recording_of(values, 10.0), "identity", "sensor values at 10 Hz", truths)


def two_rates(length: int = 2000, seed: int = 23) -> Case:
    """Twelve sensors see a state of 150 frames and one of 6, both through one layer of tanh."""
    rng = np.random.default_rng(seed)
    slow, fast = _slow(rng, length, 150), _slow(rng, length, 6)
    seen = np.tanh(np.column_stack([slow, fast]) @ rng.normal(size=(2, 12)) + 0.5 * rng.normal(size=12))
    values = seen + 0.3 * rng.normal(size=(length, 12))
    recording = recording_of(values, 20.0)
    return case("two_rates", recording, "identity", "sensor values at 20 Hz", {"slow": slow, "fast": fast})


def gaps(length: int = 1600, seed: int = 24) -> Case:
    """A buoy of five sensors whose radio fails: pieces of 8 to 60 frames, between them 10 to 200 s of nothing."""
    rng = np.random.default_rng(seed)
    long = 10 * length
    sea, wind = _slow(rng, long, 120), _turns(rng, long, 3, (80, 300))
    times, now = [], 0
    while len(times) < length:
        piece = int(rng.integers(8, 60))
        times += range(now, now + piece)
        now += piece + int(rng.integers(10, 200))
    there = np.array(times[:length])
    means, spread = rng.normal(size=(3, 5)), rng.uniform(0.2, 1.0, (3, 5))
    clean = means[wind] + np.sin(1.5 * sea[:, None] * rng.uniform(0.5, 1.5, 5) + rng.uniform(0, 6, 5))
    values = (clean + rng.normal(size=(long, 5)) * spread[wind])[there]
    recording = recording_of(values, 1.0).assign_coords(time=("time", there.astype(float)))
    truths = {"sea": sea[there], "wind": wind[there]}
    return case("gaps", recording, "identity", "sensor values, a frame a second", truths)


def faulty(length: int = 1800, seed: int = 25) -> Case:
    """Ten sensors of heavy-tailed noise and wild spikes: three saturate, one is stuck, one sticks at times."""
    rng = np.random.default_rng(seed)
    load, mode = _slow(rng, length, 50), _turns(rng, length, 3, (50, 150))
    clean = rng.normal(size=(3, 10))[mode] + np.tanh(load[:, None] * rng.normal(size=10))
    values = clean + 0.4 * rng.standard_t(2.5, size=(length, 10))
    struck = rng.random((length, 10)) < 0.003
    values[struck] += rng.choice([-1, 1], struck.sum()) * rng.uniform(30, 100, struck.sum())
    values[:, :3] = np.clip(values[:, :3], -0.8, 0.8)
    values[:, 3] = 1.25
    for first in rng.integers(0, max(length - 200, 1), 3):
        values[first : first + rng.integers(50, 200), 4] = values[first, 4]
    truths = {"load": load, "mode": mode}
    return case("faulty", recording_of(values, 5.0), "identity", "sensor values at 5 Hz", truths)


def visits(length: int = 2000, seed: int = 26) -> Case:
    """An animal in five moods: counts of twelve behaviours, most of them zero, and four switches."""
    rng = np.random.default_rng(seed)
    mood = _turns(rng, length, 5, (20, 80))
    often = rng.beta(0.5, 3, (5, 12))
    counts = (rng.random((length, 12)) < often[mood]) * (1 + rng.poisson(3, (length, 12)))
    switches = rng.random((length, 4)) < rng.beta(0.5, 0.5, (5, 4))[mood]
    recording = recording_of(np.hstack([counts, switches]).astype(float), 1.0)
    return case("visits", recording, "identity", "events and switches of a second", {"mood": mood}, kind="counts")


def chirps(length: int = 1500, seed: int = 27) -> Case:
    """A voice that glides up or down between 300 Hz and 3 kHz, for up to a second, with pauses, in noise."""
    rng = np.random.default_rng(seed)
    rate, frame = 8000, 160
    n = length * frame
    sound, pitch, sounding = 0.4 * rng.normal(size=n), np.full(n, np.nan), np.zeros(n, int)
    now = 0
    while now < n - 2 * rate:
        span = int(rng.uniform(0.2, 1.0) * rate)
        low, high = 300 * 10 ** rng.uniform(0, 1, 2)
        moment = np.arange(span) / rate
        own = slice(now, now + span)
        sound[own] += np.hanning(span) * chirp(moment, low, moment[-1], high, method="logarithmic")
        pitch[own] = np.log(low) + (np.log(high) - np.log(low)) * moment / moment[-1]
        sounding[own] = 1
        now += span + int(rng.uniform(0.05, 0.6) * rate)
    truths = {"pitch": pitch, "sounding": sounding}
    why = "magnitudes of spectra of 20 ms"
    return case("chirps", recording_of(sound, rate), "stft", why, truths, frame="20ms")


def envelopes(length: int = 2000, seed: int = 28) -> Case:
    """Six hydrophones hear noise alone, as loud as two ships are near, each on its own course."""
    rng = np.random.default_rng(seed)
    rate, frame = 400.0, 40
    ships = np.column_stack([_slow(rng, length, 60), _slow(rng, length, 20)])
    each = np.repeat(ships, frame, axis=0)
    places = rng.uniform(-1.5, 1.5, (2, 6))
    level = sum(np.exp(-((each[:, k, None] - places[k]) ** 2)) for k in range(2))
    samples = (0.1 + level) * rng.normal(size=(length * frame, 6))
    truths = {"first": each[:, 0], "second": each[:, 1]}
    why = "log level in frames of 100 ms"
    return case("envelopes", recording_of(samples, rate), "log_rms", why, truths, frame="100ms")


def field_potential(length: int = 1600, seed: int = 29) -> Case:
    """Four electrodes at 1 kHz: noise that falls with frequency, bouts of 8 Hz, ripples of 180 Hz."""
    rng = np.random.default_rng(seed)
    rate, frame = 1000, 100
    n = length * frame
    state = np.repeat(_turns(rng, length, 3, (20, 90)), frame)
    noise = lfilter([1], [1, -0.98], rng.normal(size=(n, 4)) @ (0.5 + 0.5 * rng.random((4, 4))), axis=0)
    theta = np.sin(np.cumsum(2 * np.pi * (8 + 0.5 * np.repeat(_slow(rng, length, 30), frame)) / rate))
    ripple = np.sin(2 * np.pi * 180 * np.arange(n) / rate) * np.repeat(rng.random(length) < 0.4, frame)
    signal = np.outer(theta * (state == 1), 4 * rng.uniform(0.5, 1.5, 4))
    signal += np.outer(ripple * (state == 2), rng.uniform(0.5, 1.5, 4))
    recording = recording_of(noise + signal, rate)
    return case(
        "field_potential", recording, "stft", "magnitudes of spectra of 100 ms", {"state": state}, frame="100ms"
    )


def _slow(rng: np.random.Generator, length: int, memory: float) -> Array:
    """A random walk that forgets within so many frames, of unit variance."""
    return _standard(lfilter([1], [1, -np.exp(-1 / memory)], rng.normal(size=length)))


def kept_apart(make: Callable[..., Case], other: int = 0, **options: int) -> Case:
    """A case that counts in no mean; ``other`` is added to its usual seed."""
    if other:
        options["seed"] = inspect.signature(make).parameters["seed"].default + other
    return make(**options)._replace(apart=True)


APART: dict[str, Callable[..., Case]] = {
    make.__name__: partial(kept_apart, make)
    for make in (bursts, trend, two_rates, gaps, faulty, visits, chirps, envelopes, field_potential)
}
