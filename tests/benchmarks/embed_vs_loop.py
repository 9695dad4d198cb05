"""Frames to eigenpairs: `embed` against the loop that a careful user would write, in turn in one run.

Both start from the same frames and end with the same eigenpairs, and both may use as many threads: the loop through
BLAS, `embed` through one thread a task with one BLAS thread each; with --workers, through processes that run already.
Prints seconds of the clock and of the processor (of this process alone), their ratios, and how far the eigenvalues
differ.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.threaded
import numpy as np
import xarray as xr
from scipy.sparse.linalg import eigsh
from threadpoolctl import threadpool_limits

import manifold_observer.pipeline as mo
from manifold_observer.datasets.simulators.sphere import write_sphere
from manifold_observer.pipeline.clusters.cluster import connect

# Threads of BLAS look for more work, at the cost of a core, for some time after they had any.
_REST_SECONDS = 0.2


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


def compare(
    n_frames: int, repeats: int, n_workers: int | None, n_modes: int = 4, threads: int | None = None
) -> dict[str, Any]:
    """Best of some repeats of both, taken in turns so that a busy machine hits both alike."""
    threads = threads or os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sphere.zarr"
        write_sphere(path, n_samples=60 * n_frames, seed=1)
        frames = mo.histogram(mo.open_recording(path), frame=60).compute()
    seconds: dict[str, list[float]] = {"loop": [], "embed": [], "loop_cpu": [], "embed_cpu": []}

    def timed(name: str, function: Callable[..., Any], *given: Any) -> Any:
        time.sleep(_REST_SECONDS)
        before = time.perf_counter(), time.process_time()
        found = function(*given)
        for key, start, now in zip(
            (name, f"{name}_cpu"), before, (time.perf_counter(), time.process_time()), strict=True
        ):
            seconds[key].append(now - start)
        return found

    here = dask.config.set(scheduler=dask.threaded.get, num_workers=threads)
    with here if n_workers is None else connect("local", n_workers=n_workers):
        _embed(frames, n_modes)  # imports are not the point
        for _ in range(repeats):
            with threadpool_limits(limits=threads, user_api="blas"):
                expected = timed("loop", loop, frames.values, n_modes)
            embedding = timed("embed", _embed, frames, n_modes)
    best = {name: min(values) for name, values in seconds.items()}
    return {
        "n_frames": n_frames,
        "n_features": frames.sizes["feature"],
        **{f"{name}_seconds": round(value, 3) for name, value in best.items()},
        "ratio": round(best["loop"] / best["embed"], 2),
        **({"cpu_ratio": round(best["loop_cpu"] / best["embed_cpu"], 2)} if n_workers is None else {}),
        "ratios": [round(a / b, 2) for a, b in zip(seconds["loop"], seconds["embed"], strict=True)],
        "largest_eigenvalue_difference": float(np.abs(embedding["eigenvalue"].values - expected).max()),
    }


def _embed(frames: xr.DataArray, n_modes: int) -> xr.Dataset:
    """What is timed."""
    return mo.embed(frames, n_modes=n_modes, preset="paper")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=None, help="processes; threads of this process by default")
    parser.add_argument("--threads", type=int, default=None, help="of either; one a core by default")
    given = parser.parse_args()
    print(json.dumps(compare(given.frames, given.repeats, given.workers, threads=given.threads)))
