"""Time a frame of the pass by the landmarks in the window form, from few frames to many: it should be the same.

The pass alone is timed, by the clock and by the processors of the workers, which a busy machine does not change much.
What comes before it, the landmarks' own diffusion maps, costs the same for any number of frames.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import xarray as xr
from measure import peaks

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.clusters.cluster import connect


def noisy_frames(folder: Path, n_frames: int, n_features: int) -> xr.DataArray:
    """Frames of as many directions as features, stored as a run stores them."""
    chunk = max(1, 2**19 // n_features)
    noise = da.random.default_rng(1).normal(size=(n_frames, n_features), chunks=(chunk, -1))
    place = folder / f"{n_frames}.zarr"
    xr.Dataset({"frames": (("frame", "feature"), noise)}).to_zarr(place, consolidated=False)
    return xr.open_zarr(place, consolidated=False)["frames"]


def embed_once(client: Any, frames: xr.DataArray, n_landmarks: int) -> dict[str, Any]:
    """One embedding; seconds of its pass, by the clock and of the workers' processors."""
    begun: list[float] = []
    seen: dict[str, float] = {}

    def used() -> float:
        return float(sum(client.run(time.process_time).values()))

    def progress(stage: str, done: int, total: int) -> None:
        if stage == "landmarks" and done == 0:
            begun[:] = [time.perf_counter(), used()]
        elif stage == "landmarks" and done == total:
            seen.update(clock=time.perf_counter() - begun[0], processors=used() - begun[1])

    engine = mo.Engine(method="landmarks", landmarks=n_landmarks, form="window", precision="float32")
    mo.embed(frames, n_modes=4, engine=engine, progress=progress, preset="paper")
    n = frames.sizes["frame"]
    return {
        "n_frames": n,
        "n_features": frames.sizes["feature"],
        "n_landmarks": n_landmarks,
        **{f"{name}_microseconds_per_frame": round(seconds / n * 1e6, 1) for name, seconds in seen.items()},
    }


def run(numbers: list[int], n_features: int, n_landmarks: int, n_workers: int, rounds: int) -> Iterator[dict[str, Any]]:
    """A row for each number of frames, the best of some rounds, and the largest against the smallest."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, connect("local", n_workers=n_workers) as client:
        stored = [noisy_frames(Path(folder), n_frames, n_features) for n_frames in numbers]
        mo.embed(stored[0][:300].load(), n_modes=2, preset="paper")  # imports on the workers are not the point
        found: list[list[dict[str, Any]]] = [[] for _ in stored]
        for _ in range(rounds):
            for own, frames in zip(found, stored, strict=True):
                own.append(embed_once(client, frames, n_landmarks))
        for own in found:
            rows.append(min(own, key=lambda row: row["processors_microseconds_per_frame"]))
            yield rows[-1]
        memory = peaks(client)
    times = [row["processors_microseconds_per_frame"] for row in rows]
    yield {"largest_over_smallest": round(max(times) / min(times), 3), "n_workers": n_workers, **memory}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=[20_000, 40_000, 80_000])
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--landmarks", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    for row in run(given.frames, given.features, given.landmarks, given.workers, given.rounds):
        print(json.dumps(row), flush=True)
