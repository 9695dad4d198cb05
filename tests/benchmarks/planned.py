"""Predicted against measured: seconds of `embed`, passes, peak memory of a worker."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import peaks, sphere_frames

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.clusters.cluster import connect


def run(n_frames: int, n_workers: int, options: dict[str, Any]) -> dict[str, Any]:
    """One plan and what came of it."""
    with tempfile.TemporaryDirectory() as folder, connect("local", n_workers=n_workers) as client:
        frames, _ = sphere_frames(Path(folder), n_frames)
        mo.embed(frames[:300], n_modes=2, preset="paper")  # imports on the workers are not the point
        before = time.perf_counter()
        planned = mo.plan(frames, **mo.EmbedConfig(preset="paper", n_modes=4, **options).options())
        calibration = time.perf_counter() - before
        before = time.perf_counter()
        embedding = mo.embed(frames, **mo.EmbedConfig(preset="paper", n_modes=4, **options).options())
        seconds = time.perf_counter() - before
        memory = peaks(client)
    return {
        "n_frames": n_frames,
        "method": planned.method,
        "home": planned.home,
        "calibration_seconds": round(calibration, 2),
        "predicted_seconds": planned.seconds,
        "seconds": round(seconds, 1),
        "predicted_over_measured": round(planned.seconds / seconds, 2),
        "predicted_passes": planned.passes,
        "passes": embedding.attrs["passes"],
        "predicted_worker_gib": round(planned.peak_worker_bytes / 2**30, 2),
        **memory,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=[20_000, 50_000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--options", default='{"home": "recomputed"}')
    arguments = parser.parse_args()
    for n_frames in arguments.frames:
        print(json.dumps(run(n_frames, arguments.workers, json.loads(arguments.options))), flush=True)
