"""A corpus whose driver, or whose workers, are killed at random moments: the same command ends with the same bits."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

COMMAND = (str(Path(sys.executable).parent / "manifold-observer"), "corpus", "run")


def make(folder: Path, n: int, n_frames: int, cluster: str) -> Path:
    """Recordings, and the file of their corpus."""
    (folder / "in").mkdir(parents=True)
    for number in range(n):
        walk = np.random.default_rng(number).normal(size=(n_frames, 3)).cumsum(axis=0)
        np.save(folder / "in" / f"night{number:02}.npy", walk)
    return written(folder, "out", cluster)


def written(folder: Path, out: str, cluster: str) -> Path:
    """The file of a corpus with that output."""
    file = folder / f"{out}.toml"
    file.write_text(
        f'[corpus]\ninputs = ["in/*.npy"]\noutput = "{out}"\ncluster = "{cluster}"\nbackoff = 0.5\n'
        '[run]\nfeatures = "identity"\nn-modes = 2\n'
    )
    return file


def contents(out: Path) -> dict[str, str]:
    """Digests of all files of all results."""
    files = (path for place in out.glob("night*.zarr") for path in place.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def started(file: Path) -> subprocess.Popen[str]:
    """The command, in a process group of its own."""
    pipe = subprocess.PIPE
    return subprocess.Popen([*COMMAND, str(file)], stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def finished(run: subprocess.Popen[str], file: Path) -> str:
    """Wait for a command that nobody kills; it must succeed, and leave nothing but results."""
    said = " ".join(run.communicate())
    if run.returncode != 0:
        raise AssertionError(f"ended with {run.returncode}: {said}")
    found = [path.name for path in file.with_suffix("").iterdir()]
    strange = [name for name in found if not name.endswith(".zarr") and name != ".corpus"]
    if strange:
        raise AssertionError(f"left behind: {strange}")
    return said


def kill_driver(file: Path, rng: random.Random, seconds: float, left: int) -> int:
    """Kill the driver again and again at random moments until the corpus is finished, or enough; how often."""
    for number in range(left):
        run = started(file)
        try:
            run.communicate(timeout=rng.uniform(0, seconds))
            return number
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
    return left


def kill_workers(file: Path, rng: random.Random, seconds: float, left: int) -> int:
    """Kill a worker now and then while the corpus is computed; how often."""
    run, killed = started(file), 0
    while killed < left:
        try:
            run.wait(timeout=rng.uniform(0.2, seconds / 4))
            break
        except subprocess.TimeoutExpired:
            killed += _killed_one(run.pid, rng)
    finished(run, file)
    return killed


def _killed_one(pid: int, rng: random.Random) -> int:
    """Kill one worker of a driver, if there is one."""
    try:
        children = psutil.Process(pid).children(recursive=True)
        workers = [child for child in children if "multiprocessing.spawn" in " ".join(child.cmdline())]
        if not workers:
            return 0
        rng.choice(workers).send_signal(signal.SIGKILL)
    except psutil.Error:
        return 0
    return 1


def campaign(folder: Path, kill: Callable[..., int], n_kills: int, cluster: str, seed: int) -> dict[str, object]:
    """Corpora until there have been so many kills; each must end as one that nothing disturbed."""
    rng, file = random.Random(seed), folder / "out.toml"
    before = time.perf_counter()
    finished(started(file), file)
    seconds = time.perf_counter() - before
    expected = contents(folder / "out")
    killed = corpora = 0
    while killed < n_kills:
        other = written(folder, f"{kill.__name__}{corpora}", cluster)
        n = kill(other, rng, seconds, n_kills - killed)
        finished(started(other), other)
        if contents(other.with_suffix("")) != expected:
            raise AssertionError(f"other bits in {other.with_suffix('')}")
        killed, corpora = killed + n, corpora + 1
    return {"kills": killed, "corpora": corpora, "files": len(expected), "undisturbed_seconds": round(seconds, 1)}


def main() -> None:
    """Print one JSON object for the driver and one for workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=int, default=12)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--driver", type=int, default=25, help="kills of the driver")
    parser.add_argument("--worker", type=int, default=25, help="kills of a worker")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for kill, n_kills in ((kill_driver, options.driver), (kill_workers, options.worker)):
        with tempfile.TemporaryDirectory() as name:
            make(Path(name), options.recordings, options.frames, "local")
            found = campaign(Path(name), kill, n_kills, "local", options.seed)
            print(json.dumps({"what": kill.__name__, **found}), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
