"""Do states of the same hidden value agree across recordings? One map against separate embeddings and pooled PCA.

Forty simulated recordings share two hidden numbers, x and y, seen by sensors with noise. Some recordings are short,
some see only a part of the range, and one has sensors of other gains. A read-out (linear, and of the nearest
neighbours) from state to hidden numbers is fitted on every second recording and scored on the others: the mean
correlation of read and true numbers. Rivals have as many coordinates as the state, and the best of several causal
averages, chosen by looking at the truth.

    python tests/benchmarks/one_map.py [--recordings 40] [--frames 6000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.signal import lfilter
from scipy.spatial import cKDTree

import manifold_observer.pipeline as mo

SENSORS, COLUMNS, NEIGHBOURS = 24, 8, 15
SHORT, LONG = (300, 500), (800, 1800)
POLES = (0.0, 0.5, 0.8, 0.9)


class Recording(NamedTuple):
    """A simulated recording: what it is, sensors (n, p) and hidden numbers (n, 2)."""

    kind: str
    samples: np.ndarray
    hidden: np.ndarray


def walk(rng, n, low, high, step=0.05):
    """A smooth random walk within bounds (n, 2), reflected at them."""
    speed = lfilter([1], [1, -0.9], rng.normal(size=(n, 2)) * step * 0.1, axis=0)
    free = rng.uniform(low, high, 2) + np.cumsum(speed, axis=0)
    width = high - low
    return low + np.abs((free - low) % (2 * width) - width) * -1 + width


def sensors(hidden, world, rng, noise):
    """What sensors see: bumps over the square (cells with places), or smooth curves of x and y."""
    shape = np.random.default_rng(99)
    if world == "places":
        centres = shape.uniform(0, 1, (SENSORS, 2))
        values = np.exp(-((hidden[:, None] - centres) ** 2).sum(-1) / 0.05)
    else:
        turns, phases = shape.normal(size=(SENSORS, 2)) * 2.0, shape.uniform(0, 6, SENSORS)
        values = np.tanh(np.sin(hidden @ turns.T + phases) * 1.5)
    return values + noise * rng.normal(size=values.shape)


def simulate(world, number, noise=0.3, seed=0):
    """Recordings of a world, in order."""
    found = []
    for k in range(number):
        rng = np.random.default_rng([seed, k])
        kind = "gain" if k == number - 1 else "part" if k // 2 % 4 == 3 else "short" if k // 2 % 4 == 2 else "whole"
        n = int(rng.integers(*(SHORT if kind == "short" else LONG)))
        low, high = np.zeros(2), np.ones(2)
        if kind == "part":
            axis = k // 8 % 2
            low[axis], high[axis] = (0.0, 0.55) if k // 16 % 2 else (0.45, 1.0)
        hidden = walk(rng, n, low, high)
        samples = sensors(hidden, world, rng, noise)
        if kind == "gain":
            samples = samples * rng.uniform(0.6, 1.6, SENSORS) + rng.normal(size=SENSORS) * 0.3
        found.append(Recording(kind, samples, hidden))
    return found


def score(states, recordings):
    """Correlation of read and true numbers on recordings that the read-out has not seen, by kind and read-out."""
    learn, held = range(0, len(states), 2), range(1, len(states), 2)
    known, truth = (np.concatenate([values[k] for k in learn]) for values in (states, [r.hidden for r in recordings]))
    mean, spread = known.mean(axis=0), known.std(axis=0) + 1e-12
    inputs = np.column_stack([np.ones(len(known)), (known - mean) / spread])
    weights = np.linalg.lstsq(inputs, truth, rcond=None)[0]
    tree = cKDTree((known - mean) / spread)
    found = {}
    for k in held:
        own = (states[k] - mean) / spread
        near = truth[tree.query(own, NEIGHBOURS)[1]].mean(axis=1)
        line = np.column_stack([np.ones(len(own)), own]) @ weights
        for name, read in (("linear", line), ("neighbours", near)):
            r = np.mean([np.corrcoef(read[:, d], recordings[k].hidden[:, d])[0, 1] for d in range(2)])
            found.setdefault((recordings[k].kind, name), []).append(r)
            found.setdefault(("all", name), []).append(r)
    return {key: float(np.nanmean(values)) for key, values in found.items()}


def smoothed(values, pole):
    """Causal average of every column, from its first value on."""
    return lfilter([1 - pole], [1, -pole], values, axis=0, zi=pole * values[:1])[0]


def pca(learn, values):
    """Leading components of values, standardised and turned as those that are learnt from."""
    mean, spread = learn.mean(axis=0), learn.std(axis=0)
    basis = np.linalg.svd((learn - mean) / spread, full_matrices=False)[2][:COLUMNS]
    return (values - mean) / spread @ basis.T


def rivals(recordings):
    """States of PCA, fitted on all recordings or on each by itself, with the best causal average."""
    pool = np.concatenate([r.samples for r in recordings])
    ways = {
        "pooled PCA, smoothed": [pca(pool, r.samples) for r in recordings],
        "PCA apart, smoothed": [pca(r.samples, r.samples) for r in recordings],
    }
    found = {}
    for name, states in ways.items():
        scores = [score([smoothed(s, pole) for s in states], recordings) for pole in POLES]
        found[name] = max(scores, key=lambda one: one["all", "neighbours"])
    return found


def one_map(recordings, folder, how, config):
    """States of all recordings by one map, and how far each lies outside."""
    paths = []
    for k, recording in enumerate(recordings):
        paths.append(folder / f"night_{k:02d}.npy")
        np.save(paths[-1], recording.samples)
    shared = mo.fit_map(paths, folder / "map.zarr", config, how, overwrite=True)
    results = [mo.apply_map(shared, path, path.with_suffix(".zarr"), overwrite=True) for path in paths]
    return shared, results


def apart(recordings, config):
    """States of embeddings of each recording by itself."""
    states = []
    for recording in recordings:
        frames = mo.identity(mo_recording(recording))
        embedding = mo.embed(frames, **config.embedding.options())
        states.append(mo.observe(embedding, frames).state.values)
    return states


def mo_recording(recording):
    """A recording as the pipeline takes it."""
    return xr.DataArray(recording.samples, dims=("time", "channel"), attrs={"sampling_rate": 1.0})


def compare(world, number, how, *, noise=0.3, seed=0, separate=True):
    """Scores by way, and the share outside by kind of recording."""
    recordings = simulate(world, number, noise, seed)
    config = mo.RunConfig(mo.FeatureConfig("identity"), mo.OpenConfig(sampling_rate=1.0), smooth=True)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shared, results = one_map(recordings, Path(folder), how, config)
        table = {"one map": score([r["state/state"].values for r in results], recordings)}
        table["one map, smooth"] = score([r["smoothed/state"].values for r in results], recordings)
        outside = {}
        for recording, result in zip(recordings, results, strict=True):
            outside.setdefault(recording.kind, []).append(result.attrs["outside_share"])
        if separate:
            table["separate embeddings"] = score(apart(recordings, config), recordings)
    return table | rivals(recordings), outside, shared


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--recordings", type=int, default=40)
    parser.add_argument("--frames", type=int, default=6000)
    parser.add_argument("--standardise", default="corpus")
    parser.add_argument("--worlds", nargs="+", default=["places", "curves"])
    options = parser.parse_args()
    for world in options.worlds:
        began = time.perf_counter()
        how = mo.MapConfig(frames=options.frames, standardise=options.standardise)
        table, outside, _ = compare(world, options.recordings, how)
        print(f"\n{world}, {options.recordings} recordings, {time.perf_counter() - began:.0f} s")
        kinds = ("all", "whole", "short", "part", "gain")
        print("| way | " + " | ".join(f"{kind}, {name}" for kind in kinds for name in ("linear", "neighbours")) + " |")
        for way, scores in table.items():
            cells = [f"{scores.get((kind, name), np.nan):.2f}" for kind in kinds for name in ("linear", "neighbours")]
            print(f"| {way} | " + " | ".join(cells) + " |")
        print({kind: np.round(shares, 3).tolist() for kind, shares in outside.items()})


if __name__ == "__main__":
    main()
