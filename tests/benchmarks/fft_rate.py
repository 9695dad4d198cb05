"""Spectra by scipy.fft as tasks compute them: workers of one transform against a task a core, float32 against float64.

The project gives each core a thread, and each thread a task. ``tasks`` is the number of threads that compute spectra at
once, ``workers`` the threads that each transform may use beside. ``cpu`` is nanoseconds of all threads for a sample:
where each core has a task, what costs more is slower. ``wall`` is millions of samples a second, for an idle machine.
The best of the rounds counts; ``error`` is the median difference of float32 from float64, relative to each
magnitude, for a tone that is a thousand times as loud as the noise; a thousandth of all exceed ``error_999``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from manifold_observer.tasks.frames.framing import frame_view
from manifold_observer.tasks.frames.stft import stft_magnitude

CHANNELS, STRIP_NUMBERS = 8, 2**15
Array = NDArray[Any]


def samples_of(n_samples: int) -> Array:
    """A loud tone in noise."""
    noise = np.random.default_rng(0).normal(size=(n_samples, CHANNELS))
    tone = 1000 * np.sin(0.3 * np.arange(n_samples))
    return (noise + tone[:, None]).astype(np.float32)


def single(samples: Array, frame: int) -> Array:
    """The same spectra in float32 throughout."""
    frames = np.moveaxis(frame_view(samples, frame, frame), 1, -1)
    taper = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(frame) / frame)).astype(np.float32)
    step, found = max(1, STRIP_NUMBERS // (frame * CHANNELS)), np.empty((*frames.shape[:2], frame // 2 + 1))
    for first in range(0, len(frames), step):
        part = frames[first : first + step]
        found[first : first + step] = np.abs(fft.rfft(np.ascontiguousarray(part) * taper, axis=-1))
    return found.reshape(len(frames), -1)


def times(compute: Callable[[Array, int], Array], samples: Array, frame: int, tasks: int, workers: int) -> Array:
    """Seconds of CPU and of wall time for a sample, all tasks together."""

    def task(_: int) -> None:
        with fft.set_workers(workers):
            compute(samples, frame)

    with ThreadPoolExecutor(tasks) as pool:
        before = time.process_time(), time.perf_counter()
        list(pool.map(task, range(2 * tasks)))
        after = time.process_time(), time.perf_counter()
    return np.subtract(after, before) / (2 * tasks * samples.size)


def run(n_samples: int, rounds: int = 3, frames: tuple[int, ...] = (200, 1024, 8192)) -> Iterator[dict[str, Any]]:
    """One row a frame length and kind of numbers."""
    samples = samples_of(n_samples)
    for frame in frames:
        exact = stft_magnitude(samples, frame)
        errors = np.abs(single(samples, frame) - exact) / exact
        for name, compute in (("float64", stft_magnitude), ("float32", single)):
            row: dict[str, Any] = {"frame": frame, "kind": name, "error": 0.0, "error_999": 0.0}
            if name == "float32":
                row |= {"error": float(np.median(errors)), "error_999": float(np.quantile(errors, 0.999))}
            for tasks, workers in ((1, 1), (1, 2), (2, 1), (2, 2)):
                cpu, wall = np.min([times(compute, samples, frame, tasks, workers) for _ in range(rounds)], axis=0)
                row[f"cpu_tasks_{tasks}_workers_{workers}"] = round(1e9 * float(cpu), 2)
                row[f"wall_tasks_{tasks}_workers_{workers}"] = round(1e-6 / float(wall), 1)
            yield row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2**18)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for row in run(given.samples, given.rounds):
        print(json.dumps(row), flush=True)
