"""An hour of sound from WAV to states by the command `run`: seconds of each stage, memory, residual, and accuracy.

The sound is two tones in noise whose pitches wander between walls: the hidden state. Exact passes, landmarks or a
residual are given as `run` takes them: ``--with "--residual-tolerance 1e-3"``.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import manifold_observer.pipeline as mo

RATE = 44_100
FRAME = "23ms"
# Samples that are made at a time, and those over which a pitch is held.
CHUNK, HELD = 2**20, 256
LOWEST, SPAN = np.array([400.0, 1600.0]), np.array([800.0, 1600.0])
# Wandering over a second, in units of the way between the walls.
DRIFT = 0.08


def write_sound(path: Path, minutes: float, seed: int = 0) -> np.ndarray:
    """Write the sound a chunk at a time; the places of both pitches between their walls, one for every HELD samples."""
    rng, n = np.random.default_rng(seed), int(60 * minutes * RATE)
    steps = rng.normal(size=(n // HELD + 1, 2)) * DRIFT * np.sqrt(HELD / RATE)
    places = np.abs(np.mod(steps.cumsum(axis=0) + 1, 2.0) - 1.0)
    phase = np.zeros(2)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, n, "NONE", ""))
        for first in range(0, n, CHUNK):
            held = places[first // HELD : -(-min(first + CHUNK, n) // HELD)]
            turns = np.repeat(2 * np.pi * (LOWEST + held * SPAN) / RATE, HELD, axis=0)[: min(CHUNK, n - first)]
            angles = phase + turns.cumsum(axis=0)
            phase = np.mod(angles[-1], 2 * np.pi)
            samples = 0.15 * np.sin(angles).sum(axis=1) + 0.05 * rng.normal(size=len(angles))
            file.writeframesraw((samples * 2**15).astype("<i2").tobytes())
    return places


def run(minutes: float, n_workers: int | None, options: list[str]) -> dict[str, Any]:
    """One sound through the command, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        sound, out = Path(folder, "sound.wav"), Path(folder, "sound.zarr")
        places = write_sound(sound, minutes)
        command = [sys.executable, "-m", "manifold_observer.pipeline.cli.entry", "run", str(sound), str(out)]
        command += ["--features", "stft", "--frame", FRAME, "--json", *options]
        command += [] if n_workers is None else ["--workers", str(n_workers)]
        before, spent = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        seconds, used = time.perf_counter() - before, resource.getrusage(resource.RUSAGE_CHILDREN)
        summary, tree = json.loads(told.stdout.splitlines()[-1]), mo.load(out)
        attrs, score = tree["embedding"].attrs, accuracy(tree["state/state"], places)
    named = ("method", "landmark_kernel", "n_landmarks", "passes", "residual_from", "form", "axes", "precision")
    return {
        "minutes_of_sound": minutes,
        "n_frames": summary["n_frames"],
        **{name: attrs[name] for name in named if name in attrs},
        "largest_residual": max(summary["residuals"]),
        "eigenvalues": summary["eigenvalues"],
        "correlation": score,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime - spent.ru_utime - spent.ru_stime, 1),
        "stages": {name: round(value, 1) for name, value in summary["seconds"].items()},
        "largest_process_gib": round(used.ru_maxrss / 2**20, 2),
        "warnings": summary["warnings"],
    }


def accuracy(states: xr.DataArray, places: np.ndarray) -> list[float]:
    """Correlation of both places with what a regression on the first half of the states says of the second."""
    length = round(0.023 * RATE)
    middle = (np.arange(states.sizes["frame"]) * length + length // 2) // HELD
    truth = xr.DataArray(places[middle], dims=("frame", "component"), coords={"component": ["low", "high"]})
    return mo.scores({"observer": states.load()}, truth).correlation.values.round(4).ravel().tolist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--with", dest="options", type=shlex.split, default=[], help="more options of run")
    arguments = parser.parse_args()
    print(json.dumps(run(arguments.minutes, arguments.workers, arguments.options)))
