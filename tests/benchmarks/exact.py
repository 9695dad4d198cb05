"""Exact modes of many frames with recomputed tiles: passes, residuals, memory, and time against the machine's sgemm.

The ideal pass is what the workers' sgemm rate of the same run predicts for the multiplications of the form that was
chosen. ``--features tones`` has spectra of 513 bins: as printed in all of them, with ``--preset auto`` in 20 leading
axes, or as many as ``--options`` say (``"max_axes": 40``).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import xarray as xr
from measure import peaks, sgemm_rate_of_workers, sphere_frames, tone_frames

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.tasks.engine import forms

FRAMES = {"sphere": sphere_frames, "tones": tone_frames}


def cpu(client: Any) -> float:
    """Seconds of CPU of the workers and of this process so far: on a busy machine they tell more than the wall's."""
    return time.process_time() + sum(client.run(time.process_time).values())


def run(
    n_frames: int, n_workers: int, options: dict[str, Any], features: str = "sphere", preset: str = "paper"
) -> dict[str, Any]:
    """One embedding with everything that is to be known of it."""
    with tempfile.TemporaryDirectory() as folder:
        frames, truth = FRAMES[features](Path(folder), n_frames)
        with connect("local", n_workers=n_workers) as client:  # whose workers have seen nothing of the simulation
            mo.embed(frames[:500], n_modes=2, preset="paper")  # imports on the workers are not the point
            rate = sgemm_rate_of_workers(client)
            before, spent = time.perf_counter(), cpu(client)
            embedding = mo.embed(frames, **mo.EmbedConfig(preset=preset, n_modes=4, **options).options())
            seconds, used = time.perf_counter() - before, cpu(client) - spent
            memory = peaks(client)
            rate = (rate + sgemm_rate_of_workers(client)) / 2
            before = time.perf_counter()
            state = mo.observe(embedding, frames).compute()
            state = state if isinstance(state, xr.DataArray) else state["state"]
            observing = time.perf_counter() - before
            score = mo.scores({"observer": state}, truth).correlation
    p, axes = frames.sizes["feature"], int(embedding.attrs["axes"])
    window = int(embedding.attrs["window"])
    rank = min(axes, window - 1) if embedding.attrs["shrinkage"] == "none" else axes
    multiplications = forms.FORMS[embedding.attrs["form"]].multiplications(axes, rank, window)
    ideal = n_frames**2 / 2 * 2 * multiplications / rate
    return {
        "n_frames": n_frames,
        "n_features": p,
        "n_axes": axes,
        "multiplications_a_pair": multiplications,
        "n_workers": n_workers,
        **{name: embedding.attrs[name] for name in ("method", "home", "form", "precision", "passes")},
        "eigenvalues": embedding["eigenvalue"].values.round(5).tolist(),
        "residuals": embedding["residual"].values.tolist(),
        "correlation": score.values.round(4).ravel().tolist(),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used, 1),
        "observe_seconds": round(observing, 2),
        "sgemm_gflops_of_workers": round(rate / 1e9, 1),
        "ideal_pass_seconds": round(ideal, 2),
        "seconds_over_ideal": round(seconds / (embedding.attrs["passes"] * ideal), 2)
        if embedding.attrs["passes"]
        else None,
        **memory,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--options", default='{"home": "recomputed", "residual_tolerance": 1e-3}', help="JSON for embed"
    )
    parser.add_argument("--features", choices=sorted(FRAMES), default="sphere")
    parser.add_argument("--preset", choices=["auto", "paper"], default="paper")
    arguments = parser.parse_args()
    options = json.loads(arguments.options)
    print(json.dumps(run(arguments.frames, arguments.workers, options, arguments.features, arguments.preset)))
