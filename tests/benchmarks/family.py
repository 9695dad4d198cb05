"""The observer family on the sphere: Kalman filter, smoother and calibrated rates against what anybody would try first.

Six settings (drift rate c, noise of the sensors), several seeds each; correlations with the two true angles, in five
contiguous blocks that are read by a linear regression fitted on the others. Every claim is printed with its figures
and whether it holds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import dask
import numpy as np
import xarray as xr
from distributed import Client, LocalCluster
from scipy.signal import lfilter
from scipy.stats import poisson
from threadpoolctl import threadpool_limits

import manifold_observer.pipeline as mo
from manifold_observer.datasets.simulators.simulated import open_simulation
from manifold_observer.datasets.simulators.sphere import on_sphere, write_sphere
from manifold_observer.tasks.observers import kalman, observer

SETTINGS = [(c, noise) for c in (0.008, 0.016, 0.024) for noise in (0.1, 0.5)]
CAUSAL, CENTRED = (1, 2, 3, 5, 9), (3, 5, 9, 15)
FRAME = 60


def one(seed: int, c: float, noise: float, n_frames: int) -> dict[str, list[float]]:
    """All estimates of one simulated recording: correlations with (elevation, azimuth), rate, coverage."""
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1), dask.config.set(scheduler="synchronous"):
        path = Path(folder) / "sphere.zarr"
        write_sphere(path, n_samples=FRAME * n_frames, seed=seed, drift_rate=c, noise=noise)
        frames = mo.histogram(mo.open_recording(path, variable="recording"), frame=FRAME).compute()
        simulated = open_simulation(path).load()
    truth = simulated["angle"].coarsen(time=FRAME).mean().rename(time="frame").drop_vars("frame", errors="ignore")
    with threadpool_limits(1), dask.config.set(scheduler="synchronous"):
        return _estimates(frames, truth, simulated, c)


def _estimates(frames: xr.DataArray, truth: xr.DataArray, simulated: xr.Dataset, c: float) -> dict[str, list[float]]:
    """Scores of every estimate."""
    embedding = mo.calibrate(mo.embed(frames, n_modes=4, preset="paper"))
    inputs = observer.project(frames.values, embedding["feature_mean"].values, np.linalg.pinv(embedding["lift"].values))
    filtered, smoothed = mo.observe(embedding, frames, gain="kalman"), mo.smooth(embedding, frames)
    estimates: dict[str, xr.DataArray | xr.Dataset] = {
        "kalman": filtered,
        "smoother": smoothed,
        "dmk": mo.observe(embedding, frames, gain="dmk"),
        "observer": mo.observe(embedding, frames),
        "diffusion_maps": embedding["coordinate"],
        **{f"causal_{w}": _frames(lfilter(np.ones(w) / w, [1.0], inputs, axis=0)) for w in CAUSAL},
        **{f"centred_{w}": _frames(_centred(inputs, w)) for w in CENTRED},
    }
    table = mo.scores(estimates, truth, embedding=embedding, frames=frames)
    held_out = table["correlation_held_out"]
    found = {str(name): held_out.sel(estimate=name).values.tolist() for name in table["estimate"].values}
    found["rate_over_truth"] = [float(embedding["calibrated_rate"][0]) / (6 * c)]
    found["rate_error"] = [float(embedding.attrs["time_unit_error"] / embedding.attrs["time_unit"])]
    expected = _true_state(embedding, frames, simulated)
    for name, result in (("kalman", filtered), ("smoother", smoothed)):
        inside = np.abs(result["state"].values - expected) < 1.96 * result["state_std"].values
        found[f"coverage_{name}"] = [float(inside.mean())]
    return found


def _frames(values: np.ndarray) -> xr.DataArray:
    return xr.DataArray(values, dims=("frame", "mode"))


def _centred(inputs: np.ndarray, width: int) -> np.ndarray:
    """Centred mean; of fewer frames at the ends."""
    taps = np.ones(width)
    counts = np.convolve(np.ones(len(inputs)), taps, "same")
    return np.stack([np.convolve(column, taps, "same") / counts for column in inputs.T], axis=1)


def _true_state(embedding: xr.Dataset, frames: xr.DataArray, simulated: xr.Dataset) -> np.ndarray:
    """What the state would be without noise: the expected histogram of every frame, as the filter reads it."""
    place = on_sphere(simulated["angle"].values)
    far = simulated.attrs["sensor_distance"]
    rates = np.exp(-np.sqrt(np.maximum(1 + far**2 - 2 * far * place, 0))) + simulated.attrs["noise"]
    counts = np.asarray(frames.attrs["edges"])[:-1]
    cells = poisson.pmf(counts, rates[:, :, None]).reshape(len(rates), -1)
    expected = cells[: len(cells) // FRAME * FRAME].reshape(-1, FRAME, cells.shape[1]).mean(axis=1)
    reading, _ = kalman.weighted_reading(embedding["lift"].values, embedding["feature_noise"].values)
    return observer.project(expected, embedding["feature_mean"].values, reading)


def summarise(c: float, noise: float, rows: list[dict[str, list[float]]]) -> dict[str, object]:
    """Means over the seeds, and the claims."""
    mean = {name: np.mean([row[name] for row in rows], axis=0) for name in rows[0]}
    deviation = {name: np.std([row[name] for row in rows], axis=0) for name in rows[0]}
    best = {
        kind: np.max([mean[f"{kind}_{w}"] for w in widths], axis=0)
        for kind, widths in (("causal", CAUSAL), ("centred", CENTRED))
    }
    own, smoother = mean["kalman"], mean["smoother"]
    rate = float(mean["rate_over_truth"][0])
    claims = {
        "kalman >= best causal average - .01": bool((own >= best["causal"] - 0.01).all()),
        "kalman >= smoothed PCA - .01": bool((own >= mean["smoothed_pca"] - 0.01).all()),
        "kalman >= observer - .01": bool((own >= mean["observer"] - 0.01).all()),
        "smoother >= kalman + .02": bool((smoother >= own + 0.02).all()),
        "smoother >= best centred average - .005": bool((smoother >= best["centred"] - 0.005).all()),
        f"rate within {'25' if noise < 0.3 else '50'} %": abs(rate - 1) <= (0.25 if noise < 0.3 else 0.5),
    }
    return {
        "c": c,
        "noise": noise,
        "seeds": len(rows),
        **{
            name: np.round(value, 4).tolist()
            for name, value in (mean | {f"best_{k}": v for k, v in best.items()}).items()
        },
        "deviation_kalman": np.round(deviation["kalman"], 4).tolist(),
        "claims": claims,
    }


def run(
    seeds: list[int], settings: list[tuple[float, float]], n_frames: int = 4000, n_workers: int = 2
) -> list[dict[str, object]]:
    """All settings, every simulated recording a task."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        futures = {pair: [client.submit(one, seed, *pair, n_frames) for seed in seeds] for pair in settings}
        return [summarise(*pair, client.gather(made)) for pair, made in futures.items()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    for row in run(list(range(1, parser.parse_args().seeds + 1)), SETTINGS):
        print(json.dumps(row), flush=True)
