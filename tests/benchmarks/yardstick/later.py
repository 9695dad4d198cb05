"""Eight more simulated kinds, written after those of ``apart.py`` had been looked at, and reported as they are.

Each has the frames that a user without labels would take first. What was changed with them in view is in LAB.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.signal import lfilter

from .apart import kept_apart
from .case import Array, Case, case, recording_of
from .simulations import _standard, _turns


def wrist(length: int = 1500, seed: int = 31) -> Case:
    """An accelerometer at the wrist: lying, sitting, walking, running, cycling, in bouts of 20 to 90 s."""
    rng = np.random.default_rng(seed)
    rate, frame = 50, 50
    n = length * frame
    activity = _turns(rng, length, 5, (20, 90))
    posture = rng.normal(size=(5, 3))
    down = posture[activity] + 0.3 * _walks(rng, length, 15, 3)
    down = gaussian_filter1d(np.repeat(down / np.linalg.norm(down, axis=1)[:, None], frame, axis=0), 25, axis=0)
    each = np.repeat(activity, frame)
    pace = np.repeat(1 + 0.12 * _walk(rng, length, 25), frame)
    phase = np.cumsum(2 * np.pi * pace * np.array([0, 0, 1.8, 2.6, 1.1])[each] / rate)
    size, jitter = np.array([0, 0, 0.25, 0.9, 0.1])[each], np.array([0.01, 0.04, 0.1, 0.25, 0.15])[each]
    swing = sum(np.outer(np.sin(k * phase + rng.uniform(0, 6)), rng.normal(size=3)) / k for k in (1, 2, 3))
    # Hands do things of their own in every activity but lying.
    fidgets = (
        lfilter([1], [1, -0.9], rng.normal(size=(n, 3)), axis=0)
        * np.repeat(np.exp(0.8 * _walk(rng, length, 4)) * 0.04 * (activity > 0), frame)[:, None]
    )
    values = down + size[:, None] * swing + fidgets + jitter[:, None] * rng.normal(size=(n, 3))
    truths = {"activity": each, "pace": np.where(each >= 2, pace, np.nan)}
    recording = recording_of(np.round(values, 2), rate, ["x", "y", "z"])
    return case("wrist", recording, "stft", "magnitudes of spectra of 1 s", truths, frame="1s")


def calcium(length: int = 2400, seed: int = 32) -> Case:
    """Fluorescence of fifty cells that prefer directions of the head: rises at once, decays within 1.5 s, bleaches."""
    rng = np.random.default_rng(seed)
    rate = 10.0
    turn = np.cumsum(0.12 * _walk(rng, length, 12))
    preferred, sharp = rng.uniform(0, 2 * np.pi, 50), rng.uniform(1, 5, 50)
    tuned = np.exp(sharp * (np.cos(turn[:, None] - preferred) - 1))
    # A third of the cells care for something else, or nothing.
    other = np.exp(_walks(rng, length, 30, 50) - 1)
    drive = np.where(np.arange(50) % 3 > 0, tuned, other)
    spikes = rng.poisson(drive * rng.gamma(2, 0.2, 50))
    glow = lfilter([1], [1, -np.exp(-1 / 15)], spikes, axis=0)
    fading = np.exp(-np.outer(np.arange(length) / length, rng.uniform(0, 0.8, 50))) * rng.gamma(3, 1, 50)
    moved = 0.15 * np.abs(_walk(rng, length, 5))[:, None] * rng.normal(size=50)
    values = (4 + glow) * fading + moved + 0.5 * rng.normal(size=(length, 50))
    truths = {"cos": np.cos(turn), "sin": np.sin(turn)}
    return case("calcium", recording_of(values, rate), "identity", "fluorescence at 10 Hz", truths)


def weather(length: int = 2400, seed: int = 33) -> Case:
    """A town's weather and power, an hour a row: day and night, week-ends, fronts, and 3 to 40 h missing at times."""
    rng = np.random.default_rng(seed)
    long = 2 * length
    hour = np.arange(long)
    front, warmth = _turns(rng, long, 3, (24, 120)), _walk(rng, long, 80)
    blend = gaussian_filter1d(np.eye(3)[front], 4, axis=0)
    cloud = np.clip(blend @ [0.1, 0.5, 0.9] + 0.15 * _walk(rng, long, 3), 0, 1)
    sun = np.maximum(np.cos(2 * np.pi * (hour - 12) / 24) + 0.1, 0) * (1 - 0.8 * cloud)
    temperature = 12 + 4 * warmth + 4 * lfilter([0.15], [1, -0.85], sun) * 2 + blend @ [1.0, 0.0, -2.0]
    pressure = 1013 + blend @ [8.0, 0.0, -9.0] + 5 * _walk(rng, long, 30)
    humidity = np.clip(60 + 35 * (cloud - 0.4) - 1.5 * (temperature - 12) + 4 * rng.normal(size=long), 5, 100)
    wind = rng.gamma(3, (blend @ [0.6, 1.2, 2.0]) / 1.5)
    rain = (rng.random(long) < 0.5 * np.maximum(blend[:, 2] - 0.2, 0)) * rng.gamma(1, 1.5, long)
    work = np.where(hour // 24 % 7 < 5, 1.0, 0.7)
    daily = work * (1 + 0.3 * np.cos(2 * np.pi * (hour - 18) / 24) + 0.15 * np.cos(4 * np.pi * (hour - 9) / 24))
    load = 500 * daily + 8 * np.maximum(15 - temperature, 0) + 25 * _walk(rng, long, 10)
    turbines, panels = 300 * np.tanh((wind / 6) ** 3), 150 * sun
    values = np.column_stack([temperature, pressure, humidity, wind, rain, load, turbines, panels])
    there = np.ones(long, bool)
    for first in rng.integers(0, long, long // 150):
        there[first : first + rng.integers(3, 40)] = False
    kept = np.flatnonzero(there)[:length]
    recording = recording_of(values[kept], 1 / 3600).assign_coords(time=("time", kept * 3600.0))
    truths = {"front": front[kept], "warmth": warmth[kept]}
    return case("weather", recording, "identity", "sensor values, a frame an hour", truths)


def bearing(length: int = 1600, seed: int = 34) -> Case:
    """Two vibration sensors of a bearing that is worn and replaced three times, under a changing load and speed."""
    rng = np.random.default_rng(seed)
    rate, frame = 4000, 200
    n = length * frame
    ends = rng.choice(np.arange(length // 8, length - length // 8, length // 32), 3, replace=False)
    pieces = np.array_split(np.arange(length), np.sort(ends))
    wear = np.concatenate([np.linspace(0, 1, len(piece)) ** rng.uniform(1, 3) for piece in pieces])
    speed, load = 1 + 0.15 * _walk(rng, length, 60), np.exp(0.4 * _walk(rng, length, 20))
    each = {name: np.repeat(values, frame) for name, values in (("wear", wear), ("speed", speed), ("load", load))}
    shaft = np.cumsum(25 * each["speed"] / rate)
    # A ball passes the pit 3.6 times a turn, and slips a little; each pass rings at 1.3 kHz.
    struck = np.diff(np.floor(3.6 * shaft + 0.02 * np.repeat(rng.normal(size=length), frame)), prepend=0) > 0
    rings = lfilter([1], [1, -2 * 0.95 * np.cos(2 * np.pi * 1300 / rate), 0.95**2], struck * rng.gamma(4, 0.25, n))
    turns = sum(np.sin(2 * np.pi * k * shaft) / k for k in (1, 2, 3))
    hum = lfilter([1], [1, -0.7], rng.normal(size=(n, 2)), axis=0)
    values = np.outer(turns, [1.0, 0.6]) + each["load"][:, None] * (
        hum + np.outer(1.2 * each["wear"] * rings, [1, 0.5])
    )
    truths = {"wear": each["wear"], "speed": each["speed"]}
    return case("bearing", recording_of(values, rate), "stft", "magnitudes of spectra of 50 ms", truths, frame="50ms")


def pulse(length: int = 2000, seed: int = 35) -> Case:
    """Two leads of a heart whose rate wanders and follows the breath, which moves the size of beats and the base."""
    rng = np.random.default_rng(seed)
    rate, hop = 100, 25
    n = length * hop + 2 * rate
    slow = np.interp(np.arange(n), np.arange(0, n + 999, 1000), _walk(rng, n // 1000 + 2, 8))
    wander = gaussian_filter1d(_walk(rng, n, 500), 50)
    breath = np.cumsum(2 * np.pi / rate * 0.25 * np.exp(0.25 * wander))
    beat = 1.15 * np.exp(0.18 * slow) * (1 + 0.06 * np.cos(breath))
    phase = np.cumsum(2 * np.pi * beat / rate)
    waves = [(0.0, 0.13, (1.0, 0.6)), (-1.1, 0.25, (0.15, 0.1)), (1.7, 0.45, (0.3, -0.2)), (0.3, 0.1, (-0.3, 0.3))]
    shape = sum(
        np.exp(-(np.angle(np.exp(1j * (phase - at))) ** 2) / (2 * width**2))[:, None] * np.array(size)
        for at, width, size in waves
    )
    depth = 1 + 0.15 * np.sin(breath)[:, None] * [1, -1]
    base = 0.1 * np.sin(breath + 0.5)[:, None] * [1, 0.5] + lfilter(
        [0.02], [1, -0.998], rng.normal(size=(n, 2)), axis=0
    )
    values = shape * depth + base + 0.08 * rng.normal(size=(n, 2))
    truths = {"rate": np.log(beat), "breath cos": np.cos(breath), "breath sin": np.sin(breath)}
    why = "magnitudes of spectra of 2 s every .25 s"
    return case("pulse", recording_of(values, rate), "stft", why, truths, frame="2s", hop="250ms")


def talk(length: int = 2000, seed: int = 36) -> Case:
    """Two people talk in a noisy room: turns of .5 to 4 s, pauses, at times both; syllables of changing vowels."""
    rng = np.random.default_rng(seed)
    rate, frame = 8000, 200
    n = length * frame
    who = _turns(rng, length, 4, (20, 160))
    # Pauses and what is said at once are short.
    short = np.isin(who, (0, 3)) & (rng.random(length) < 0.5)
    who = np.where(short, 0, who)
    spoken = [np.repeat(np.isin(who, own), frame) for own in ((1, 3), (2, 3))]
    voices = [_voice(rng, n, rate, hertz, formants) for hertz, formants in ((115, 1.0), (200, 1.18))]
    sound = sum(voice * gaussian_filter1d(own.astype(float), 80) for voice, own in zip(voices, spoken, strict=True))
    sound = sound + 0.25 * lfilter([1], [1, -0.8], rng.normal(size=n))
    return case(
        "talk", recording_of(sound, rate), "stft", "magnitudes of spectra of 25 ms", {"who": np.repeat(who, frame)},
        frame="25ms",
    )  # fmt: skip


def _voice(rng: np.random.Generator, n: int, rate: int, hertz: float, formants: float) -> Array:
    """Four syllables or so a second, each with one of five vowels and a pitch that glides; unit variance."""
    vowels = formants * np.array([[700, 1200], [300, 2300], [400, 800], [500, 1800], [350, 1400]])
    sound, now, phase = np.zeros(n), 0, 0.0
    while now < n:
        span = min(int(rng.uniform(0.12, 0.35) * rate), n - now)
        pitch = hertz * 2 ** np.linspace(*rng.normal(0, 0.15, 2), span)
        turn = phase + np.cumsum(2 * np.pi * pitch / rate)
        phase, own = turn[-1], vowels[rng.integers(5)]
        parts = range(1, int(3800 / (1.4 * hertz)))
        loud = [sum(np.exp(-(((k * hertz - f) / 120) ** 2)) for f in own) + 0.05 / k for k in parts]
        sound[now : now + span] = np.hanning(span) * sum(a * np.sin(k * turn) for k, a in zip(parts, loud, strict=True))
        now += span + int(rng.exponential(0.04) * rate)
    return sound / sound.std()


def gaze(length: int = 3000, seed: int = 37) -> Case:
    """Both eyes at 50 Hz: reading lines, searching a picture, following a dot; blinks are zeros, pupils wander."""
    rng = np.random.default_rng(seed)
    task, arousal = _turns(rng, length, 3, (150, 400)), _walk(rng, length, 150)
    place, here, line = np.zeros((length, 2)), np.zeros(2), 0.0
    dot = np.column_stack([np.sin(np.arange(length) / 30), np.cos(np.arange(length) / 47)])
    left, follows = 0, False
    for now in range(length):
        if task[now] == 2:
            here = here + 0.5 * (dot[now] - here)
        elif left <= 0:
            if task[now] == 1:
                here = rng.uniform(-1, 1, 2)
            elif here[0] > 0.7 or follows:
                line = line - 0.1 if line > -0.8 else 0.8
                here = np.array([-0.8, line])
            else:
                here = here + np.array([rng.uniform(0.1, 0.3), 0.0])
            left = int(rng.integers(8, 18))
        follows, left = task[now] == 2, left - 1
        place[now] = here
    pupils = 3 + 0.4 * arousal[:, None] + 0.1 * _walks(rng, length, 40, 2)
    seen = np.column_stack([place + np.array([0.03, 0]), place - np.array([0.03, 0]), pupils]) + 0.02 * rng.normal(
        size=(length, 6)
    )
    for first in np.flatnonzero(rng.random(length) < 0.005):
        seen[first : first + rng.integers(5, 12)] = 0
    truths = {"task": task, "arousal": arousal}
    return case("gaze", recording_of(seen, 50.0), "identity", "gaze and pupils at 50 Hz", truths)


def rhythm(length: int = 1200, seed: int = 38) -> Case:
    """Thirty channels of a magnetic helmet: noise falls with frequency, a faint rhythm of 10 Hz waxes and wanes."""
    rng = np.random.default_rng(seed)
    rate, frame = 120, 60
    n = length * frame
    sources = lfilter([1], [1, -0.95], rng.normal(size=(n, 12)), axis=0)
    loud = np.exp(0.4 * _walks(rng, length, 6, 12))
    noise = sources * np.repeat(loud, frame, axis=0) @ rng.normal(size=(12, 30)) + 2 * rng.normal(size=(n, 30))
    level = np.repeat(np.exp(0.8 * _walk(rng, length, 25)), frame)
    bouts = np.repeat(_turns(rng, length, 2, (15, 60)), frame)
    phases = [np.cumsum(2 * np.pi * (f + 0.5 * np.repeat(_walk(rng, length, 3), frame)) / rate) for f in (10, 21)]
    alpha, beta = level * np.sin(phases[0]), bouts * np.sin(phases[1])
    values = noise + np.outer(alpha, 3 * rng.normal(size=30)) + np.outer(beta, 1.5 * rng.normal(size=30))
    truths = {"alpha": np.log(level), "beta": bouts}
    return case("rhythm", recording_of(values, rate), "stft", "magnitudes of spectra of .5 s", truths, frame="500ms")


def _walk(rng: np.random.Generator, length: int, memory: float) -> Array:
    """A random walk that forgets within so many frames, of unit variance."""
    return _walks(rng, length, memory, 1)[:, 0]


def _walks(rng: np.random.Generator, length: int, memory: float, number: int) -> Array:
    """Some of them, (length, number)."""
    steps = rng.normal(size=(length, number))
    return np.column_stack([_standard(lfilter([1], [1, -np.exp(-1 / memory)], one)) for one in steps.T])


LATER: dict[str, Callable[..., Case]] = {
    make.__name__: partial(kept_apart, make) for make in (wrist, calcium, weather, bearing, pulse, talk, gaze, rhythm)
}
