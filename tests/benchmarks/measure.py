"""What the benchmarks share: frames to work on, peak memory, and the machine's rate in the same run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

import manifold_observer.pipeline as mo
from manifold_observer.datasets.simulators.sphere import write_sphere


def sphere_frames(folder: Path, n_frames: int, seed: int = 1) -> tuple[xr.DataArray, xr.DataArray]:
    """Histogram frames of a simulated sphere, ten counts a sensor, stored as Zarr and opened lazily; true angles."""
    simulated = write_sphere(folder / "sphere.zarr", n_samples=60 * n_frames, seed=seed)
    frames = mo.histogram(mo.open_recording(folder / "sphere.zarr"), frame=60, edges=np.arange(11), outside="clip")
    # The labels of the features are not what is measured.
    frames = frames.drop_vars(["channel", "bin"]).chunk(frame=16384)
    frames.to_dataset(name="frames").to_zarr(folder / "frames.zarr", consolidated=False)
    truth = simulated["angle"].coarsen(time=60).mean().rename(time="frame").drop_vars("frame", errors="ignore")
    return xr.open_zarr(folder / "frames.zarr", consolidated=False)["frames"], truth.load()


def write_tones(place: Path, n_frames: int, frame: int = 1024, hop: int = 256, seed: int = 1) -> np.ndarray:
    """Write a sound of so many frames: two tones in noise, whose pitches wander by themselves; the pitches."""
    rng, rate = np.random.default_rng(seed), 8000.0
    held = n_frames - 1 + frame // hop
    steps = rng.normal(size=(held, 2)) * 0.02
    places = np.abs(np.mod(steps.cumsum(axis=0), 2.0) - 1.0)  # between walls
    pitches = [400.0, 1600.0] + places * [800.0, 1600.0]
    phase = np.repeat(pitches, hop, axis=0).cumsum(axis=0) * (2 * np.pi / rate)
    samples = np.sin(phase).sum(axis=1) + 0.3 * rng.normal(size=len(phase))
    recording = xr.Dataset({"recording": ("time", samples.astype(np.float32))}, attrs={"sampling_rate": rate})
    recording.chunk(time=2**20).to_zarr(place, consolidated=False)
    return pitches[:n_frames]


def tone_frames(folder: Path, n_frames: int, seed: int = 1) -> tuple[xr.DataArray, xr.DataArray]:
    """Spectra of 513 bins of two wandering tones as lazy features; the pitches."""
    pitches = write_tones(folder / "tones.zarr", n_frames, 1024, 256, seed)
    frames = mo.stft(mo.open_recording(folder / "tones.zarr"), frame=1024, hop=256)
    truth = xr.DataArray(pitches, dims=("frame", "component"), coords={"component": ["low", "high"]})
    return frames, truth


def peak_rss() -> int:
    """Largest resident memory of this process so far, bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM in /proc/self/status")


def peaks(client: Any) -> dict[str, float]:
    """Peak memory of each worker and of the client, GiB."""
    workers = [round(value / 2**30, 3) for value in client.run(peak_rss).values()]
    return {"workers_gib": max(workers), "client_gib": round(peak_rss() / 2**30, 3)}


# Side of the matrices, and how long they are multiplied.
SIDE, SECONDS = 2048, 1.0


def sgemm_rate() -> float:
    """Rate of float32 matrix products of one thread, operations a second, best of several."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(SIDE, SIDE)).astype(np.float32) for _ in range(2))
    out, best, started = np.empty_like(a), np.inf, time.perf_counter()
    with threadpool_limits(1):
        while time.perf_counter() - started < SECONDS:
            before = time.perf_counter()
            np.matmul(a, b, out=out)
            best = min(best, time.perf_counter() - before)
    return 2 * SIDE**3 / best


def sgemm_rate_of_workers(client: Any) -> float:
    """Sum of the rates of all workers, measured at the same time."""
    return float(sum(client.run(sgemm_rate).values()))
