"""Frames to eigenpairs: `embed` on a running cluster against the loop that a careful user would write.

Both start from the same frames and end with the same eigenpairs, and both may use every core: the loop
through BLAS threads, `embed` through one process a core. Prints seconds, their ratio, and how far the
eigenvalues differ.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import xarray as xr
from scipy.sparse.linalg import eigsh

import manifold_observer.pipeline as mo
from manifold_observer.datasets.simulators.sphere import write_sphere
from manifold_observer.pipeline.clusters.cluster import connect


def loop(z: np.ndarray, n_modes: int, window: int = 21, tolerance: float = 1e-3) -> np.ndarray:
    """The method as a careful NumPy user writes it: one frame at a time, then `eigsh`."""
    n = len(z)
    z = z - z.mean(axis=0)
    distances = np.zeros((n, n))
    for i in range(n):
        start = min(max(i - window // 2, 0), n - window)
        values, vectors = np.linalg.eigh(np.cov(z[start : start + window].T))
        kept = values > tolerance * values[-1]
        factor = vectors[:, kept] / np.sqrt(values[kept])
        images = z @ factor
        distances[i] = np.square(images - images[i]).sum(axis=1)
    distances = (distances + distances.T) / 2
    epsilon = np.median(distances[np.triu_indices(n, 1)])
    kernel = np.exp(-distances / epsilon)
    scale = 1 / np.sqrt(kernel.sum(axis=1))
    values, _ = eigsh(scale[:, None] * kernel * scale, k=n_modes + 1, which="LA", v0=np.ones(n))
    return np.sort(values)[::-1][1:]


def compare(n_frames: int, repeats: int, n_workers: int | None, n_modes: int = 4) -> dict[str, float]:
    """Best of some repeats of both, taken in turns so that a busy machine hits both alike."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sphere.zarr"
        write_sphere(path, n_samples=60 * n_frames, seed=1)
        frames = mo.histogram(mo.open_recording(path), frame=60).compute()
    seconds: dict[str, list[float]] = {"loop": [], "embed": []}
    with connect("local", n_workers=n_workers):
        embedding = _embed(frames, n_modes)  # imports on the workers are not the point
        for _ in range(repeats):
            before = time.perf_counter()
            expected = loop(frames.values, n_modes)
            seconds["loop"].append(time.perf_counter() - before)
            before = time.perf_counter()
            embedding = _embed(frames, n_modes)
            seconds["embed"].append(time.perf_counter() - before)
    best = {name: min(values) for name, values in seconds.items()}
    return {
        "n_frames": n_frames,
        "n_features": frames.sizes["feature"],
        **{f"{name}_seconds": round(value, 3) for name, value in best.items()},
        "ratio": round(best["loop"] / best["embed"], 2),
        "largest_eigenvalue_difference": float(np.abs(embedding["eigenvalue"].values - expected).max()),
    }


def _embed(frames: xr.DataArray, n_modes: int) -> xr.Dataset:
    """What is timed."""
    return mo.embed(frames, n_modes=n_modes, preset="paper")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=None)
    arguments = parser.parse_args()
    print(json.dumps(compare(arguments.frames, arguments.repeats, arguments.workers)))
