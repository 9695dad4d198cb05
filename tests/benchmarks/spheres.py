"""The defaults against the paper's observer on the paper's own sphere: six settings, several recordings of each."""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator

import dask
import numpy as np
from threadpoolctl import threadpool_limits
from yardstick import judge, simulations
from yardstick.ways import WAYS

DRIFTS, NOISES = (0.008, 0.016, 0.024), (0.1, 0.5)
PRINTED, OURS = ("paper", "paper eight"), ("default", "smoother")


def one(c: float, noise: float, seed: int) -> dict[tuple[str, str], float]:
    """Correlation of every way with both angles."""
    case = simulations.sphere(c, noise, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        states = {way: WAYS[way](case, len(case.plain)).state for way in (*OURS, *PRINTED)}
    return {(way, angle): judge.score(states[way], truth) for way in states for angle, truth in case.truths.items()}


def told(c: float, noise: float, scores: list[dict[tuple[str, str], float]]) -> Iterator[str]:
    """Means, and by how much each recording is read better than by the better one of the paper's observers."""
    for angle in ("elevation", "azimuth"):
        means = ", ".join(f"{way} {np.mean([s[way, angle] for s in scores]):.3f}" for way in (*OURS, *PRINTED))
        above = {way: [s[way, angle] - max(s[old, angle] for old in PRINTED) for s in scores] for way in OURS}
        each = "; ".join(f"{way} above by " + " ".join(f"{x:+.3f}" for x in found) for way, found in above.items())
        yield f"c {c}, noise {noise}, {angle}: {means}; {each}"


def main() -> None:
    """Run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[6, 7, 8])
    seeds = parser.parse_args().seeds
    with threadpool_limits(1), dask.config.set(scheduler="synchronous"):
        for c, noise in itertools.product(DRIFTS, NOISES):
            print(*told(c, noise, [one(c, noise, seed) for seed in seeds]), sep="\n", flush=True)


if __name__ == "__main__":
    main()
