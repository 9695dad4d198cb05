"""Short recordings per minute: one corpus run against a shell loop over ``run``, in turn on the same machine."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from corpus_kills import COMMAND, make

RUN = (COMMAND[0], "run")
OPTIONS = ("--features", "identity", "--n-modes", "2")


def loop(folder: Path, names: list[str], cluster: str) -> float:
    """Recordings per minute of a loop."""
    before = time.perf_counter()
    for name in names:
        out = folder / f"{cluster}-{name}.zarr"
        words = [*RUN, str(folder / "in" / f"{name}.npy"), str(out), *OPTIONS, "--cluster", cluster]
        subprocess.run(words, capture_output=True, check=True)
    return 60 * len(names) / (time.perf_counter() - before)


def corpus(file: Path, n: int) -> float:
    """Recordings per minute of a corpus, with its start."""
    before = time.perf_counter()
    subprocess.run([*COMMAND, str(file)], capture_output=True, check=True)
    return 60 * n / (time.perf_counter() - before)


def measured(folder: Path, n: int, n_frames: int, n_loop: int, cluster: str = "local") -> dict[str, float]:
    """Both, and how many times faster the corpus is than the loop with a cluster for each run, and with none."""
    file = make(folder, n, n_frames, cluster)
    names = sorted(path.stem for path in (folder / "in").iterdir())
    before = {way: loop(folder, names[: (n_loop + 1) // 2], way) for way in ("local", "none")}
    together = corpus(file, n)
    after = {way: loop(folder, names[(n_loop + 1) // 2 : n_loop], way) for way in ("local", "none") if n_loop > 1}
    rates = {way: (before[way] + after.get(way, before[way])) / 2 for way in before}
    found = {"corpus": together, "loop_local": rates["local"], "loop_none": rates["none"]}
    found |= {f"times_{way}": together / rate for way, rate in rates.items()}
    return {name: round(value, 2) for name, value in found.items()}


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=int, default=40)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--loop", type=int, default=4, help="recordings of the loop, half before and half after")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = measured(Path(name), options.recordings, options.frames, options.loop)
        print(json.dumps({"recordings": options.recordings, "frames": options.frames, "per_minute": found}))
