"""What the engine costs: two workers against one, and Dask against the same block functions in a plain loop.

The machine's own rate wanders: a round measures every way, the least of three passes each, and what is compared
are medians over the rounds. The plain loop runs in a worker's process, where memory and BLAS threads are as the
tasks have them, and in this one. What two processes that know nothing of Dask gain on this machine is measured in
the same rounds: it bounds what two workers can.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from dask.delayed import Delayed
from distributed import Client
from measure import sphere_frames
from threadpoolctl import threadpool_limits

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.engine.blocks import check_moments, local_metric, make_blocks, table
from manifold_observer.pipeline.engine.config import EmbedConfig
from manifold_observer.pipeline.engine.cuts import tile_size
from manifold_observer.pipeline.engine.tiling import recomputed_product, tiling
from manifold_observer.pipeline.engine.windows import window_starts
from manifold_observer.pipeline.graph.progress import silent
from manifold_observer.pipeline.graph.spans import blocks
from manifold_observer.tasks.engine import covariance, forms, kernel, lanczos, moments, panel
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.slab import Metric, Slab, narrow

WINDOW, WIDTH = 21, 21


def plain_loop(values: np.ndarray, epsilon: float, repeats: int = 1) -> float:
    """Seconds of one pass over all tiles, one thread, no Dask; the least of several."""
    n = len(values)
    axes = moments.span_axes(moments.moments(values))
    starts, spans = window_starts(np.zeros(n, np.int64), WINDOW), blocks(n, tile_size(n))
    x = lanczos.random_block(n, WIDTH, seed=0)
    metric, scale = Metric(WINDOW, covariance.PseudoInverse()), kernel.Scale(epsilon)
    with threadpool_limits(1):
        whole = Slab(axes.apply(values), np.arange(n), starts, None)
        made = [forms.build_block(narrow(whole, *s, WINDOW), metric, "quadratic", np.float32) for s in spans]
        return min(_timed(lambda: _plain_pass(made, spans, x, scale)) for _ in range(repeats))


def _plain_pass(made: list[Any], spans: list[tuple[int, int]], x: np.ndarray, scale: kernel.Scale) -> np.ndarray:
    """The product of the whole kernel with x, tile after tile."""
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
    return y


def engine_pass(client: Client, frames: Any, epsilon: float) -> Callable[[], float]:
    """A function that makes one pass of the engine and says how long it took."""
    with client.as_current():
        config = EmbedConfig(window=WINDOW, epsilon=epsilon)
        rows, total = check_moments(table(frames, None, config), silent)
        distance = Distance(local_metric(rows, total, config), moments.span_axes(total), "quadratic", "float32")
        spans = blocks(rows.n_frames, tile_size(rows.n_frames))
        made: list[Delayed] = make_blocks(rows, distance, spans, silent)
        product = recomputed_product(tiling(made, spans, "float32"), kernel.Scale(epsilon), silent)
    x = lanczos.random_block(rows.n_frames, WIDTH, seed=0)

    def once() -> float:
        with client.as_current():
            return _timed(lambda: product(x))

    return once


def together(pool: ProcessPoolExecutor, values: np.ndarray, epsilon: float) -> float:
    """Seconds of the plain loop in two processes at the same time, half a pass each being what two workers do."""
    both = [pool.submit(plain_loop, values, epsilon) for _ in range(2)]
    return max(half.result() for half in both) / 2


def in_worker(client: Client, values: Any, epsilon: float, passes: int) -> float:
    """Seconds of the plain loop as one task of a worker."""
    return float(client.submit(plain_loop, values, epsilon, passes, pure=False).result())


def _timed(function: Callable[[], Any]) -> float:
    """Seconds of one call."""
    before = time.perf_counter()
    function()
    return time.perf_counter() - before


def one_round(frames: Any, values: np.ndarray, epsilon: float, passes: int) -> dict[str, list[float]]:
    """Seconds of every way, one after the other; nothing else is up meanwhile."""
    seconds = {"plain_loop": [plain_loop(values, epsilon, passes)]}
    with connect("local", n_workers=1) as client:
        there = client.scatter(values)
        seconds["plain_loop_in_worker"] = [in_worker(client, there, epsilon, passes)]
        seconds["one_worker"] = _after_the_first(engine_pass(client, frames, epsilon), passes)
    with connect("local", n_workers=2) as client:
        seconds["two_workers"] = _after_the_first(engine_pass(client, frames, epsilon), passes)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        seconds["plain_loops_together"] = _after_the_first(lambda: together(pool, values, epsilon), passes)
    return seconds


def _after_the_first(once: Callable[[], float], passes: int) -> list[float]:
    """Seconds of some calls; before them imports are made, and frames go to the second worker."""
    once()
    return [once() for _ in range(passes)]


def run(n_frames: int, rounds: int, passes: int = 3) -> dict[str, Any]:
    """One table."""
    with tempfile.TemporaryDirectory() as folder:
        frames, _ = sphere_frames(Path(folder), n_frames)
        values = frames.values
        epsilon = float(mo.embed(frames[:2000], n_modes=2, preset="paper")["epsilon"])
        made = [one_round(frames, values, epsilon, passes) for _ in range(rounds)]
    middle = {way: float(np.median([min(one[way]) for one in made])) for way in made[0]}
    return {
        "n_frames": n_frames,
        "rounds": rounds,
        **{f"{way}_seconds": round(seconds, 3) for way, seconds in middle.items()},
        "one_worker_over_plain_loop": round(middle["one_worker"] / middle["plain_loop"], 3),
        "one_worker_over_plain_loop_in_worker": round(middle["one_worker"] / middle["plain_loop_in_worker"], 3),
        "one_worker_over_two": round(middle["one_worker"] / middle["two_workers"], 2),
        "plain_loop_over_two_together": round(middle["plain_loop"] / middle["plain_loops_together"], 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(json.dumps(run(arguments.frames, arguments.rounds)))
