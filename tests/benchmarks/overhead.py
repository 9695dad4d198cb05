"""What the engine costs: two workers against one, and Dask against the same block functions in a plain loop."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measure import sphere_frames
from threadpoolctl import threadpool_limits

import manifold_observer.pipeline as mo
from manifold_observer.pipeline import ways
from manifold_observer.pipeline.cluster import connect
from manifold_observer.pipeline.cuts import blocks, tile_size, window_starts
from manifold_observer.tasks import covariance, geometry, kernel, lanczos, moments, panel

OPTIONS: dict[str, Any] = {
    "n_modes": 4,
    "home": "recomputed",
    "form": "quadratic",
    "precision": "float32",
    "residual_tolerance": 1e-5,
}


def plain_pass(values: np.ndarray, epsilon: float) -> float:
    """Seconds of one pass over all tiles, one thread, no Dask."""
    n = len(values)
    axes = moments.span_axes(moments.moments(values))
    starts, spans = window_starts(np.zeros(n, np.int64), 21), blocks(n, tile_size(n))
    x = lanczos.random_block(n, 21, seed=0)
    metric, scale = geometry.Metric(21, covariance.PseudoInverse()), kernel.Scale(epsilon)
    with threadpool_limits(1):
        whole = geometry.Slab(axes.apply(values), np.arange(n), starts, None)
        made = [geometry.build_block(geometry.narrow(whole, *s, 21), metric, "quadratic", np.float32) for s in spans]
        before = time.perf_counter()
        y = np.zeros_like(x)
        for i, (first, stop) in enumerate(spans):
            for j in range(i, len(spans)):
                pair = [made[i]] if i == j else [made[i], made[j]]
                own = np.concatenate([x[slice(*spans[k])] for k in ((i,) if i == j else (i, j))])
                corner = (0, 0) if i == j else (0, stop - first)
                share = panel.fused_product(pair, [(0, len(pair) - 1)], [corner], scale, own)
                y[first:stop] += share[: stop - first]
                if i != j:
                    y[slice(*spans[j])] += share[stop - first :]
        return time.perf_counter() - before


def engine_pass(frames: Any, epsilon: float, n_workers: int) -> float:
    """Seconds of one product with the whole kernel on a running cluster, the least of a solve."""
    seconds: list[float] = []
    made = ways.recomputed_product

    def timed(*arguments: Any) -> Any:
        product = made(*arguments)

        def matmat(x: np.ndarray) -> np.ndarray:
            before = time.perf_counter()
            y = product(x)
            seconds.append(time.perf_counter() - before)
            return y

        return matmat

    ways.recomputed_product = timed
    try:
        with connect("local", n_workers=n_workers):
            mo.embed(frames[:500], n_modes=2)
            mo.embed(frames, epsilon=epsilon, **OPTIONS)
    finally:
        ways.recomputed_product = made
    return min(seconds)


def run(n_frames: int) -> dict[str, Any]:
    """One table."""
    with tempfile.TemporaryDirectory() as folder:
        frames, _ = sphere_frames(Path(folder), n_frames)
        values = frames.values
        epsilon = float(mo.embed(frames[:2000], n_modes=2)["epsilon"])
        one = engine_pass(frames, epsilon, 1)
        plain = plain_pass(values, epsilon)
        two = engine_pass(frames, epsilon, 2)
        plain = min(plain, plain_pass(values, epsilon))
    return {
        "n_frames": n_frames,
        "plain_loop_pass_seconds": round(plain, 4),
        "one_worker_pass_seconds": round(one, 4),
        "two_workers_pass_seconds": round(two, 4),
        "one_worker_over_plain_loop": round(one / plain, 3),
        "one_worker_over_two": round(one / two, 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=20_000)
    print(json.dumps(run(parser.parse_args().frames)))
