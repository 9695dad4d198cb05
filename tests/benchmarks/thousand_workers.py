"""Passes of many workers on one machine: the real scheduler, graph and client, and workers that only wait.

A pass over all pairs, and one past the landmarks, are built by the functions that build them in a run. Workers speak
the scheduler's protocol and let the modelled time pass (``simulated.py``); they, the scheduler and the client have a
process each, so that the seconds of CPU of each are known. Shares are of the pass as it would be if the workers
were never idle.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from dask.delayed import Delayed
from distributed import Client
from simulated import Costed, Nowhere, Sized, serve, zeros

from manifold_observer.pipeline.clusters.local import QUIET
from manifold_observer.pipeline.clusters.quiet import QuietScheduler
from manifold_observer.pipeline.engine import landmarks as landmark_graphs
from manifold_observer.pipeline.engine.blocks import Table
from manifold_observer.pipeline.engine.config import EmbedConfig
from manifold_observer.pipeline.engine.cuts import tile_size
from manifold_observer.pipeline.engine.passing import Own, Piece
from manifold_observer.pipeline.engine.problem import Problem
from manifold_observer.pipeline.engine.tiling import Cut, MatMat, Share, recomputed_product, tiling
from manifold_observer.pipeline.frames.segments import Segments
from manifold_observer.pipeline.graph.compute import persist, task
from manifold_observer.pipeline.graph.limits import LAZY_FRAMES, Workers
from manifold_observer.pipeline.graph.progress import silent
from manifold_observer.pipeline.graph.spans import Span, blocks
from manifold_observer.tasks.engine import kernel, landmarks
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.slab import Metric

# What one core takes, as measured (pipeline/DESIGN.md): a tile of 2,048 frames and its product, and a frame that
# passes 2,000 landmarks; bytes of a frame in its block, 30 features in 19 axes.
TILE_SECONDS, FRAME_SECONDS, FRAME_BYTES, ADD_SECONDS = 0.058, 170e-6, 1680, 1e-9
N_FEATURES, WIDTH, MODES, SAMPLE = 30, 21, 10, 256


def block_task(distance: Distance, part: Any, span: Span) -> Costed:
    """Stand-in for a block of frames."""
    n = span[1] - span[0]
    return Costed(Sized(n, n * FRAME_BYTES), 1e-5 * n)


def together(blocks: list[Sized]) -> Costed:
    """Stand-in for the blocks of a group."""
    return Costed(blocks, 0.0)


def sum_of(terms: Any, shares: list[np.ndarray]) -> Costed:
    """Stand-in for the sum of the panels' shares."""
    rows, width = sum(own[0].stop - own[0].first for own in terms.units), shares[0].shape[1]
    return Costed(Share(zeros(rows, width), 0), len(shares) * rows * width * ADD_SECONDS)


def fused(groups: list[list[Sized]], cut: Cut, how: Any, x: list[np.ndarray]) -> Costed:
    """Stand-in for a panel's share of a product; of a tile on the diagonal little more than half is made."""
    tiles = cut.plan.n_tiles * (0.55 if cut.plan.sides[0].node is None else 1)
    scale = (groups[0][0].n_frames / 2048) ** 2
    rows = sum(stop - start for start, stop in (side.frames for side in cut.sides))
    return Costed(zeros(rows, x[0].shape[1]), TILE_SECONDS * scale * tiles)


def on_span(own: Own) -> tuple[landmarks.Placed, landmarks.Summed]:
    """What a span of frames that passes the landmarks gives."""
    n, sampled = own.span[1] - own.span[0], own.arguments[-1]
    placed = landmarks.Placed(zeros(n, MODES, dtype=float), zeros(n, dtype=float))
    sums = [zeros(*shape, dtype=float) for shape in ((N_FEATURES, MODES), (MODES,), (SAMPLE, MODES), (SAMPLE,))]
    summed = landmarks.Summed(*sums, zeros(len(sampled), MODES, dtype=float), zeros(MODES, dtype=float), 0, -1)
    return placed, summed


def on_spans(function: Any, distance: Any, pieces: list[Piece], *others: Any) -> Costed:
    """Stand-in for spans that pass the landmarks."""
    seconds = FRAME_SECONDS * sum(piece.own.span[1] - piece.own.span[0] for piece in pieces)
    return Costed([on_span(piece.own) for piece in pieces], seconds)


def pairs_on_spans(*arguments: Any) -> Costed:
    """Stand-in for spans whose coordinates stay on the workers."""
    pairs, seconds = on_spans(*arguments)
    placed, summed = zip(*pairs, strict=True)
    return Costed((list(placed), summed[0]), seconds)


STANDINS: dict[str, Callable[..., Costed]] = {"block_task": block_task, "_fused": fused, "_sum": sum_of}
STANDINS |= {"_together": together, "_on_spans": on_spans, "_pairs_on_spans": pairs_on_spans}


def exact_pass(n_frames: int, n_workers: int) -> Callable[[], Any]:
    """One product with the kernel of so many frames."""
    spans = blocks(n_frames, tile_size(n_frames))
    made: list[Delayed] = persist([task(block_task, None, None, span) for span in spans], "covariances")
    product: MatMat = recomputed_product(tiling(made, spans, "float32", n_workers), kernel.Scale(1.0), silent)
    x = np.zeros((n_frames, WIDTH))
    return lambda: product(x)


def landmark_pass(n_frames: int, n_workers: int) -> Callable[[], Any]:
    """One pass of so many frames past the landmarks."""
    stored = Nowhere(n_frames, N_FEATURES)
    data = da.from_array(stored, (16384, N_FEATURES), name="frames-nowhere", meta=np.empty((0, 0), np.float32))
    rows = Table(data, Segments.of([np.zeros(n_frames, np.int64)]), None)
    distance = Distance(Metric(21, PseudoInverse()), Axes(np.zeros(N_FEATURES), None), "quadratic", "float32")
    there = Workers(n_workers, 2**32)
    decision = argparse.Namespace(distance=distance, lazy=n_frames > LAZY_FRAMES, workers=there)
    problem = Problem(rows, decision, EmbedConfig(), silent)  # type: ignore[arg-type]
    met = persist([task(landmark_graphs._met, *(task(some_bytes, n) for n in (2000, SAMPLE)))], "landmarks")[0]
    sample = np.linspace(0, n_frames - 1, SAMPLE).astype(int)
    return lambda: landmark_graphs._carried(problem, "landmarks", sample, met)


def some_bytes(n: int) -> Sized:
    """A block of landmarks."""
    return Sized(n, n * FRAME_BYTES)


PASSES = {"exact": exact_pass, "landmarks": landmark_pass}


@contextmanager
def simulation(
    n_workers: int, hasten: float = 1.0
) -> Iterator[tuple[Client, psutil.Process, Callable[[], dict[str, int]]]]:
    """A scheduler and its workers; the client, the scheduler's process, and what the workers have counted since."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "address"
        settings = os.environ | {"DASK_INTERNAL_INHERIT_CONFIG": dask.config.serialize(QUIET)}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": Path(__file__).parent}
        quiet["env"] = settings
        scheduler = subprocess.Popen([sys.executable, __file__, "--schedule", file], **quiet)
        try:
            while not file.exists():
                time.sleep(0.1)
            address = file.read_text()
            here = [sys.executable, __file__, "--serve", address, "--workers", str(n_workers), "--hasten", str(hasten)]
            workers = subprocess.Popen(here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                workers.stdout.readline()

                def counts() -> dict[str, int]:
                    workers.stdin.write("\n")
                    workers.stdin.flush()
                    return json.loads(workers.stdout.readline())

                with Client(address, direct_to_workers=True) as client:  # as connect has it
                    yield client, psutil.Process(scheduler.pid), counts
            finally:
                workers.kill()
                workers.communicate()
        finally:
            scheduler.kill()
            scheduler.wait()


async def schedule(file: Path) -> None:
    """Be the scheduler that a run in a queue starts, until killed."""
    async with QuietScheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        file.with_suffix(".part").write_text(scheduler.address)
        file.with_suffix(".part").rename(file)
        await scheduler.finished()


def idle(scheduler: psutil.Process, seconds: float) -> float:
    """Share of a core that the scheduler takes while nothing is computed: heartbeats, mostly."""
    before = cpu(scheduler)
    time.sleep(seconds)
    return (cpu(scheduler) - before) / seconds


def cpu(process: psutil.Process) -> float:
    """Seconds of CPU so far."""
    times = process.cpu_times()
    return times.user + times.system


def measured(once: Callable[[], Any], n_workers: int, watched: Any) -> dict[str, Any]:
    """One pass, and what it took."""
    _, scheduler, counts = watched
    counts()
    before, client_before, scheduler_before = time.perf_counter(), time.process_time(), cpu(scheduler)
    once()
    seconds = time.perf_counter() - before
    client, scheduler_seconds = time.process_time() - client_before, cpu(scheduler) - scheduler_before
    told = counts()
    ideal = told["worker_us"] / 1e6 / n_workers
    return {
        "tasks": told["tasks"],
        "fetches": told.get("fetches", 0),
        "heartbeats": told.get("heartbeats", 0),
        "ideal_seconds": round(ideal, 2),
        "seconds": round(seconds, 2),
        "scheduler_cpu": round(scheduler_seconds, 2),
        "client_cpu": round(client, 2),
        "client_share": round(client / ideal, 3),
        "megabytes_from_peers_per_worker": round(told.get("peer_bytes", 0) / n_workers / 1e6, 2),
        "megabytes_of_results": round(told.get("result_bytes", 0) / 1e6, 3),
    }


def run(
    method: str, n_frames: int, n_workers: int, passes: int = 2, hasten: float = 1.0, rest: float = 1.0
) -> dict[str, Any]:
    """The last of some passes: in the first the blocks are made and sent. ``hasten`` shortens what workers wait.

    For so many seconds of ``rest`` the scheduler is watched with nothing to do.
    """
    with simulation(n_workers, hasten) as watched:
        once = PASSES[method](n_frames, n_workers)
        for _ in range(passes):
            row = measured(once, n_workers, watched)
        row["scheduler_idle"] = idle(watched[1], rest)
        # As if the pass took the ideal time, whatever it took here: heartbeats come by the second.
        busy = row["scheduler_cpu"] - row["scheduler_idle"] * row["seconds"]
        row["scheduler_share"] = round(busy / row["ideal_seconds"] + row["scheduler_idle"], 3)
        memory = psutil.Process(os.getpid()).memory_info().rss, watched[1].memory_info().rss
    gib = dict(zip(("client_gib", "scheduler_gib"), (round(b / 2**30, 2) for b in memory), strict=True))
    return {"method": method, "n_frames": n_frames, "n_workers": n_workers, **row, **gib}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[64, 256, 1000])
    parser.add_argument("--method", choices=sorted(PASSES), nargs="+", default=sorted(PASSES))
    parser.add_argument("--exact-frames", type=int, default=1_000_000)
    parser.add_argument("--landmark-frames", type=int, default=10_000_000)
    parser.add_argument("--hasten", type=float, default=1.0, help="share of the modelled times that workers wait")
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--rest", type=float, default=20.0, help="seconds without work, for what heartbeats take")
    parser.add_argument("--schedule", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.schedule:
        asyncio.run(schedule(arguments.schedule))
        sys.exit()
    if arguments.serve:
        asyncio.run(serve(arguments.serve, arguments.workers[0], STANDINS, arguments.hasten))
        sys.exit()
    n_of = {"exact": arguments.exact_frames, "landmarks": arguments.landmark_frames}
    how = arguments.passes, arguments.hasten, arguments.rest
    for chosen in arguments.method:
        for number in arguments.workers:
            print(json.dumps(run(chosen, n_of[chosen], number, *how)), flush=True)
