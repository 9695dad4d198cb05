"""How the way through landmarks grows: peak memory of a worker and time a frame, from few frames to many."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import peaks, sphere_frames

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.clusters.cluster import connect


def embed_once(n_frames: int, n_workers: int, n_landmarks: int) -> dict[str, Any]:
    """One embedding by workers that have done nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        frames, _ = sphere_frames(Path(folder), n_frames)
        with connect("local", n_workers=n_workers) as client:
            mo.embed(frames[:300], n_modes=2, preset="paper")  # imports on the workers are not the point
            before = time.perf_counter()
            embedding = mo.embed(
                frames, n_modes=4, engine=mo.Engine(method="landmarks", landmarks=n_landmarks), preset="paper"
            )
            seconds = time.perf_counter() - before
            memory = peaks(client)
    return {
        "n_frames": n_frames,
        "n_workers": n_workers,
        "n_landmarks": embedding.attrs["n_landmarks"],
        "seconds": round(seconds, 2),
        "microseconds_per_frame": round(seconds / n_frames * 1e6, 1),
        **memory,
    }


def run(numbers: list[int], n_workers: int, n_landmarks: int) -> Iterator[dict[str, Any]]:
    """A row for each number of frames, and the last against the first."""
    rows = []
    for n_frames in numbers:
        rows.append(embed_once(n_frames, n_workers, n_landmarks))
        yield rows[-1]
    yield {
        "peak_worker_ratio": round(rows[-1]["workers_gib"] / rows[0]["workers_gib"], 3),
        "seconds_per_frame_ratio": round(
            rows[-1]["microseconds_per_frame"] / rows[0]["microseconds_per_frame"],
            3,
        ),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--landmarks", type=int, default=2000)
    arguments = parser.parse_args()
    for row in run(arguments.frames, arguments.workers, arguments.landmarks):
        print(json.dumps(row), flush=True)
