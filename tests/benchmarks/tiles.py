"""Tiles from frames to exp(-d / epsilon), one thread, against the machine's sgemm rate of the same run.

The nominal rate counts 4 q operations a pair, q = (p + 1)(p + 2) / 2, as if distances were taken in all
features; the actual one counts those in the axes that the frames span.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import sgemm_rate, sphere_frames
from threadpoolctl import threadpool_limits

from manifold_observer.tasks.engine import covariance, forms, kernel, moments
from manifold_observer.tasks.engine.slab import Metric, Slab

SECONDS = 1.5


def best(function) -> float:
    """Least time of a function in some seconds."""
    least, started = np.inf, time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        before = time.perf_counter()
        function()
        least = min(least, time.perf_counter() - before)
    return least


def quadratic(frames: np.ndarray, side: int, in_axes: bool) -> dict[str, float]:
    """Rate of one tile of the quadratic form."""
    total = moments.moments(frames)
    axes = moments.span_axes(total) if in_axes else moments.Axes(total.mean, None)
    n = 2 * side
    starts = np.clip(np.arange(n) - 10, 0, n - 21)
    slab = Slab(axes.apply(frames[:n]), np.arange(n), starts, None)
    whole = forms.build_block(slab, Metric(21, covariance.PseudoInverse()), "quadratic", np.float32)
    rows, columns = whole.take(np.arange(side)), whole.take(np.arange(side, n))
    out = np.empty(side * side, np.float32)
    with threadpool_limits(1):
        rate = sgemm_rate()
        seconds = best(lambda: kernel.kernel_tile(rows, columns, 50.0, out=out))
        rate = (rate + sgemm_rate()) / 2
    nominal, actual = (side**2 * 2 * (p + 1) * (p + 2) for p in (frames.shape[1], axes.width))
    return {
        "form": "quadratic",
        "side": side,
        "features": frames.shape[1],
        "axes": axes.width,
        "sgemm_gflops": round(rate / 1e9, 1),
        "actual_share_of_sgemm": round(actual / seconds / rate, 3),
        "nominal_share_of_sgemm": round(nominal / seconds / rate, 3),
    }


def wide(n_features: int = 513, side: int = 512) -> dict[str, float]:
    """The window form against the factor form for spectrogram-like frames."""
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(side, n_features)).cumsum(axis=0)
    frames -= frames.mean(axis=0)
    starts = np.clip(np.arange(side) - 10, 0, side - 21)
    slab = Slab(frames, np.arange(side), starts, None)
    metric = Metric(21, covariance.PseudoInverse())
    seconds = {}
    with threadpool_limits(1):
        rate = sgemm_rate()
        for form in ("factor", "window"):
            block = forms.build_block(slab, metric, form, np.float32)
            seconds[form] = best(lambda block=block: kernel.squared_distances(block, block))
            bytes_per_frame = sum(part.nbytes for part in block) / side
            seconds[f"{form}_bytes_per_frame"] = round(bytes_per_frame)
    return {
        "form": "window against factor",
        "features": n_features,
        "side": side,
        "sgemm_gflops": round(rate / 1e9, 1),
        "window_nanoseconds_per_pair": round(1e9 * seconds["window"] / side**2, 1),
        "factor_over_window": round(seconds["factor"] / seconds["window"], 2),
        "window_bytes_per_frame": seconds["window_bytes_per_frame"],
        "factor_bytes_per_frame": seconds["factor_bytes_per_frame"],
    }


def run(sides: list[int], n_features_wide: int = 513) -> list[dict[str, float]]:
    """All of them."""
    with tempfile.TemporaryDirectory() as folder:
        frames, _ = sphere_frames(Path(folder), 2 * max(sides))
        values = frames.values
    found = [quadratic(values, side, in_axes) for side in sides for in_axes in (False, True)]
    return [*found, wide(n_features_wide, min(512, max(sides)))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="+", default=[512, 1024, 2048])
    for row in run(parser.parse_args().sides):
        print(json.dumps(row))
