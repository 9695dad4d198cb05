"""New frames of the sphere placed by extension and by the observer: |r| with the true angles, mean square, seconds.

Claims, for the means over five seeds and both drift rates: the observer reads both angles better than either extension,
and Nystrom better than one-sided; Nystrom coordinates have a mean square near 1, one-sided ones between 0.2 and 0.9.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.datasets.simulators.sphere import write_sphere

METHODS = ("nystrom", "one-sided")


def simulated(drift_rate: float, seed: int, n_frames: int) -> tuple[xr.DataArray, xr.DataArray]:
    """Histogram frames of 60 samples, and the mean angles over each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sphere.zarr"
        opened = write_sphere(path, n_samples=60 * n_frames, seed=seed, drift_rate=drift_rate, noise=0.1)
        angle = opened["angle"].coarsen(time=60).mean().rename(time="frame").drop_vars("frame", errors="ignore")
        return mo.histogram(mo.open_recording(path), frame=60).compute(), angle.compute()


def run(drift_rate: float, seed: int, n_frames: int = 4000, n_new: int = 1000) -> dict[str, Any]:
    """One embedding of the first frames, and every way to the last ones."""
    frames, truth = simulated(drift_rate, seed, n_frames)
    embedding = mo.embed(frames[:-n_new], n_modes=4, preset="paper")
    estimates, rows = {"observer": mo.observe(embedding, frames[-n_new:])}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # far frames are counted below
        for method in METHODS:
            before = time.perf_counter()
            extended = estimates[method] = mo.extend(embedding, frames[-n_new:], method)
            rows[method] = {
                "mean_square": np.square(extended["coordinate"]).mean("frame").values.round(3).tolist(),
                "far": int(extended["far"].sum()),
                "seconds": round(time.perf_counter() - before, 2),
            }
    scores = mo.scores(estimates, truth[-n_new:])
    return {
        "drift_rate": drift_rate,
        "seed": seed,
        "n_references": extended.attrs["n_references"],
        "n_new": n_new,
        "correlation": {name: scores.correlation.sel(estimate=name).values.round(4).tolist() for name in estimates},
        "correlation_held_out": {
            name: scores.correlation_held_out.sel(estimate=name).values.round(4).tolist() for name in estimates
        },
        **rows,
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean over the seeds, for every drift rate."""
    table = {}
    for drift_rate in sorted({row["drift_rate"] for row in rows}):
        own = [row["correlation"] for row in rows if row["drift_rate"] == drift_rate]
        table[str(drift_rate)] = {
            name: np.mean([row[name] for row in own], axis=0).round(3).tolist() for name in ("observer", *METHODS)
        }
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=4000)
    parser.add_argument("--new", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--drift-rates", type=float, nargs="+", default=[0.008, 0.024])
    arguments = parser.parse_args()
    results = [run(c, seed, arguments.frames, arguments.new) for c in arguments.drift_rates for seed in arguments.seeds]
    print(json.dumps({"rows": results, "correlation": summary(results)}))
