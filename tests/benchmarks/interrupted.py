"""Exact modes of many frames, killed without warning after a pass and started again with the same command."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import xarray as xr
from measure import peaks, sphere_frames

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.clusters.cluster import connect


def job(folder: Path, n_workers: int, options: dict[str, Any]) -> dict[str, Any]:
    """One embedding with checkpoints, from frames on disk."""
    with connect("local", n_workers=n_workers) as client:
        frames = xr.open_zarr(folder / "frames.zarr", consolidated=False)["frames"]
        begun = sorted(path.name for path in (folder / "checkpoint").glob("pass-*.npz"))
        before = time.perf_counter()
        embedding = mo.embed(
            frames, checkpoint=folder / "checkpoint", **mo.EmbedConfig(preset="paper", n_modes=4, **options).options()
        )
        return {
            "passes_found": len(begun),
            "passes": embedding.attrs["passes"],
            "eigenvalues": embedding["eigenvalue"].values.tolist(),
            "residuals": embedding["residual"].values.tolist(),
            "seconds": round(time.perf_counter() - before, 1),
            **peaks(client),
        }


def run(n_frames: int, n_workers: int, options: dict[str, Any]) -> dict[str, Any]:
    """Start, kill after the first pass, start again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frames, _ = sphere_frames(folder, n_frames)
        command = [
            sys.executable,
            __file__,
            "--job",
            name,
            "--workers",
            str(n_workers),
            "--options",
            json.dumps(options),
        ]
        started = time.perf_counter()
        first = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
        while not (folder / "checkpoint" / "pass-001.npz").exists() and first.poll() is None:
            time.sleep(0.05)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        killed = time.perf_counter() - started
        second = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return {
            "n_frames": n_frames,
            "n_features": frames.sizes["feature"],
            "killed_after_seconds": round(killed, 1),
            **second,
            "seconds_of_both": round(time.perf_counter() - started, 1),
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--options", default='{"method": "exact", "home": "recomputed", "residual_tolerance": 1e-3}')
    parser.add_argument("--job", type=Path)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(job(arguments.job, arguments.workers, json.loads(arguments.options))))
    else:
        print(json.dumps(run(arguments.frames, arguments.workers, json.loads(arguments.options))))
