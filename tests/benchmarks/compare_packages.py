"""This project beside datafold, pydiffmap, deeptime, xeofs and scikit-learn, each in an environment of its own.

Sphere, place cells and a bench of sensors, simulated. All others are given the features conditioned (square roots of
counts, sensors in deviations), and as many coordinates as this project's state has, eight at least. Read-outs are those
of answers.py, on blocks that nothing was fitted on; "smoothed" is the best of seven poles, chosen by looking at the
truth. One thread; seconds are of CPU, and peak memory has the imports in it.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import package_worker
from yardstick import case as cases
from yardstick import judge, rivals, simulations
from yardstick.case import Case

from manifold_observer.datasets.simulators.cells import spike_rates

# What is installed into the environment of each; the next versions may need other companions.
PACKAGES = {
    "datafold": ["datafold==2.0.2"],
    "pydiffmap": ["pydiffmap==0.2.0.1"],
    "deeptime": ["deeptime==0.4.5"],
    "xeofs": ["xeofs==3.0.6"],
    "scikit-learn": ["scikit-learn"],
}
SIMULATED = {
    "sphere": lambda n: simulations.sphere(0.008, 0.1, n),
    "cells": simulations.track,
    "sensors": simulations.bench,
}
_GIB, _LEAST_MODES = 2**30, 8


def interpreters(folder: Path | None) -> dict[str, str]:
    """Interpreter of every package by name; those that are not there are installed below the folder."""
    found = {"manifold-observer": sys.executable}
    for package, wanted in PACKAGES.items():
        place = folder / package if folder else None
        if place and not (place / "bin/python").exists():
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            subprocess.run([place / "bin/pip", "install", "-q", *wanted], check=True)
        found[package] = str(place / "bin/python") if place else sys.executable
    return found


def compare(
    name: str, n_frames: int, ways: Sequence[str], pythons: Mapping[str, str], limit: int = 0, patience: float = 600
) -> Iterator[dict[str, Any]]:
    """One row a way: what it took, and what is read from it."""
    cases.MOST_FRAMES = max(n_frames, cases.MOST_FRAMES)
    case = SIMULATED[name](n_frames)
    features = np.asarray(rivals.condition(case.plain, case.kind), np.float64)
    spans, modes = cases.segments(case.frames), _LEAST_MODES
    for way in ways:
        row = {"case": name, "frames": len(features), "way": way}
        values, said = estimate(way, pythons, features, spans, modes, case, limit, patience)
        if values is not None:
            if package_worker.WAYS[way][0] == "manifold-observer":
                modes = max(modes, values.shape[1])
            said |= {"modes": values.shape[1], **_read(values, case, spans)}
        yield row | said


def estimate(
    way: str,
    pythons: Mapping[str, str],
    features: np.ndarray,
    spans: Sequence[slice],
    modes: int,
    case: Case | None = None,
    limit: int = 0,
    patience: float = 600,
) -> tuple[np.ndarray | None, dict[str, Any]]:
    """Estimate in another process, and what that says of itself; None and the reason where it fails."""
    modes = min(modes, features.shape[1])
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        place = Path(folder)
        np.save(place / "features.npy", features)
        np.save(place / "lengths.npy", [span.stop - span.start for span in spans])
        (place / "settings.json").write_text(json.dumps({"modes": modes, "limit": limit}))
        if case is not None:
            (place / "frames.pickle").write_bytes(pickle.dumps(case.frames))
        command = [pythons[package_worker.WAYS[way][0]], package_worker.__file__, way, folder]
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, env=os.environ | one, timeout=patience
            )
        except subprocess.TimeoutExpired:
            return None, {"failed": f"not done after {patience:.0f} s"}
        if done.returncode:
            return None, {"failed": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:200]}
        return np.load(place / "estimate.npy"), json.loads(done.stdout.splitlines()[-1])


def largest(way: str, pythons: Mapping[str, str], start: int, most: int, limit: int, patience: float) -> dict[str, Any]:
    """Frames, four times as many until an estimate of place cells needs more memory or time than it may."""
    row: dict[str, Any] = {"case": "largest", "way": way, "frames": 0}
    n = start
    while n <= most:
        cases.MOST_FRAMES = max(n, cases.MOST_FRAMES)
        case = _long(n)
        features = np.asarray(rivals.condition(case.plain, case.kind), np.float64)
        values, said = estimate(way, pythons, features, [slice(0, n)], _LEAST_MODES, case, limit, patience)
        if values is None:
            return row | {"failed_at": n, "why": said["failed"]}
        row |= {"frames": n, "seconds": said["seconds"], "peak_mb": said["peak_mb"]}
        n *= 4
    return row | {"why": "no more were tried"}


def _long(n: int, n_cells: int = 40) -> Case:
    """Forty place cells of a rat that runs round a track at a changing pace, for any number of frames."""
    rng = np.random.default_rng(1)
    place = np.abs((np.cumsum(rng.gamma(2.0, 0.02, n)) + 1) % 2 - 1)
    centres, widths, peaks = rng.uniform(0, 1, n_cells), rng.uniform(0.05, 0.15, n_cells), rng.gamma(2, 1.2, n_cells)
    counts = rng.poisson(spike_rates(place, centres, widths, peaks))
    return cases.case("long", cases.recording_of(counts, 4.0), "identity", "counts", {"place": place}, kind="counts")


def _read(values: np.ndarray, case: Case, spans: Sequence[slice]) -> dict[str, Any]:
    """Scores of every truth: as it is, and by the best pole."""
    plain = {key: round(judge.score(values, truth), 3) for key, truth in case.truths.items()}
    every = [rivals.smoothed(values, spans, pole) for pole in rivals.GRID]
    best = {key: round(max(judge.score(x, truth) for x in every), 3) for key, truth in case.truths.items()}
    return {"read": plain, "smoothed": best}


def main() -> None:
    """Run, print a JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venvs", type=Path, help="folder for the environments, made where they are not there")
    parser.add_argument("--frames", type=int, nargs="*", default=[1000, 4000, 20_000])
    parser.add_argument("--cases", nargs="+", default=[*SIMULATED], choices=[*SIMULATED])
    parser.add_argument("--ways", nargs="+", default=[*package_worker.WAYS], choices=[*package_worker.WAYS])
    parser.add_argument("--largest", type=int, default=0, help="up to how many frames to try")
    parser.add_argument("--limit", type=int, default=4, help="GiB for one estimate")
    parser.add_argument("--patience", type=float, default=600, help="seconds for one estimate")
    options = parser.parse_args()
    pythons, limits = interpreters(options.venvs), (options.limit * _GIB, options.patience)
    for n in options.frames:
        for name in options.cases:
            for row in compare(name, n, options.ways, pythons, *limits):
                print(json.dumps(row), flush=True)
    for way in options.ways if options.largest else ():
        print(json.dumps(largest(way, pythons, 20_000, options.largest, *limits)), flush=True)


if __name__ == "__main__":
    main()
