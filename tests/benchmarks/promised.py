"""Landmarks with a residual that is tolerated, against the exact solve: what was promised, what it is, and errors.

True residuals come from one pass over all pairs, with the coordinates of all embeddings side by side. Errors of
coordinates and states are those of a linear map from the ones that were found to the exact ones, relative.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from measure import sphere_frames

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.engine.blocks import check_moments, make_blocks, table
from manifold_observer.pipeline.engine.condition import choose_conditioning
from manifold_observer.pipeline.engine.config import EmbedConfig
from manifold_observer.pipeline.engine.decide import decide, measure
from manifold_observer.pipeline.engine.problem import Problem
from manifold_observer.pipeline.engine.tiling import recomputed_product, tiling
from manifold_observer.pipeline.graph.compute import one_blas_thread
from manifold_observer.pipeline.graph.progress import silent
from manifold_observer.tasks.engine.kernel import Scale


def product_of(frames: xr.DataArray, epsilon: float) -> Any:
    """Product with the kernel of all pairs of frames, as an embedding by the defaults has it."""
    config = EmbedConfig(method="exact", home="recomputed", epsilon=epsilon).resolved()
    rows = choose_conditioning(table(frames, None, config), config.condition, silent).rows
    rows, total = check_moments(rows, silent)
    problem = Problem(rows, decide(rows, measure(rows, total, config), config), config, silent)
    blocks = make_blocks(rows, problem.distance, problem.spans, silent)
    return recomputed_product(tiling(blocks, problem.spans, problem.distance.precision), Scale(epsilon), silent)


def true_residuals(frames: xr.DataArray, embeddings: list[xr.Dataset]) -> list[float]:
    """The largest norm of S v - mu v of every embedding, over its largest eigenvalue."""
    columns = np.column_stack([np.ones(frames.sizes["frame"]), *(each["coordinate"].values for each in embeddings)])
    with one_blas_thread():
        degrees, *moved = product_of(frames, float(embeddings[0]["epsilon"]))(columns).T
    found, first = [], 0
    for each in embeddings:
        psi, mu = each["coordinate"].values, each["eigenvalue"].values
        left = np.array(moved[first : first + len(mu)]).T / degrees[:, None] - mu * psi
        first += len(mu)
        found.append(float(np.sqrt(degrees @ np.square(left) / (degrees @ np.square(psi))).max() / mu[0]))
    return found


def error(found: np.ndarray, known: np.ndarray) -> float:
    """Root mean square of what a linear map of ``found`` leaves of ``known``, over the deviation of ``known``."""
    inputs = np.column_stack([np.ones(len(found)), found])
    left = known - inputs @ np.linalg.lstsq(inputs, known, rcond=None)[0]
    return float(np.sqrt(np.square(left).mean() / known.var(axis=0).mean()))


def timed(frames: xr.DataArray, **options: Any) -> tuple[xr.Dataset, float]:
    """An embedding, and the seconds it took."""
    before = time.perf_counter()
    return mo.embed(frames, **EmbedConfig(**options).options()), time.perf_counter() - before


def compared(frames: xr.DataArray, truth: xr.DataArray, tolerances: list[float]) -> Iterator[dict[str, Any]]:
    """A row for the exact solve, one for today's landmarks, and one for every tolerance."""
    exact, seconds = timed(frames, method="exact", residual_tolerance=1e-6)
    epsilon = float(exact["epsilon"])
    plain = timed(frames, method="landmarks", epsilon=epsilon)
    promised = [timed(frames, method="landmarks", residual_tolerance=one, epsilon=epsilon) for one in tolerances]
    embeddings = [exact, plain[0], *(each for each, _ in promised)]
    residuals = true_residuals(frames, embeddings)
    state = mo.observe(exact, frames)["state"].load()
    rows = zip(["exact", "2000 landmarks", *tolerances], embeddings, residuals, strict=True)
    times = [seconds, plain[1], *(took for _, took in promised)]
    for (asked, each, residual), took in zip(rows, times, strict=True):
        own = mo.observe(each, frames)["state"].load()
        largest = float(each["eigenvalue"][0])
        yield {
            "asked": asked,
            **{name: each.attrs[name] for name in ("n_landmarks", "passes", "residual_from") if name in each.attrs},
            "expected_residual": each.attrs.get("expected_residual"),
            "residual": float(each["residual"].max()) / largest,
            "at_most": each.attrs.get("residual_at_most", float(each["residual"].max())) / largest,
            "true_residual": residual,
            "eigenvalue_error": float(np.abs(each["eigenvalue"] / exact["eigenvalue"] - 1).max()),
            "coordinate_error": error(each["coordinate"].values, exact["coordinate"].values),
            "state_error": error(own.values, state.values),
            "correlation": mo.scores({"observer": own}, truth).correlation.values.round(4).ravel().tolist(),
            "seconds_over_exact": round(took / seconds, 3),
        }


def run(n_frames: int, tolerances: list[float], n_workers: int) -> Iterator[dict[str, Any]]:
    """All rows for one number of frames."""
    with tempfile.TemporaryDirectory() as folder:
        frames, truth = sphere_frames(Path(folder), n_frames)
        with connect("local", n_workers=n_workers):
            mo.embed(frames[:500], n_modes=2)  # imports on the workers are not the point
            yield from compared(frames, truth, tolerances)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--tolerances", type=float, nargs="+", default=[1e-2, 3e-3, 1e-3, 1e-4])
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    for row in run(arguments.frames, arguments.tolerances, arguments.workers):
        print(json.dumps({"n_frames": arguments.frames} | row), flush=True)
