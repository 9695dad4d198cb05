"""Many recordings of which twenty are broken in twenty ways: each of these costs one sentence, and no other result."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMMAND = (str(Path(sys.executable).parent / "manifold-observer"), "corpus", "run")


def walk(seed: int, n: int) -> NDArray[np.float64]:
    """A recording that is whole."""
    return np.random.default_rng(seed).normal(size=(n, 3)).cumsum(axis=0)


def saved(change: Callable[[NDArray[np.float64]], Any]) -> Callable[[Path], None]:
    """An array that is saved as it should be, and holds what it should not."""
    return lambda path: np.save(path.with_suffix(".npy"), change(walk(0, 80)), allow_pickle=True)


def bytes_of(content: bytes, suffix: str = ".npy") -> Callable[[Path], None]:
    """A file of those bytes."""
    return lambda path: void(path.with_suffix(suffix).write_bytes(content))


def void(_: object) -> None:
    """Nothing."""


def cut(path: Path) -> None:
    """An array whose end is missing."""
    np.save(path.with_suffix(".npy"), walk(0, 80))
    os.truncate(path.with_suffix(".npy"), 1000)


def with_hole(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A value that is missing."""
    values[40, 1] = np.nan
    return values


def without_end(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A value that is infinite."""
    values[40, 1] = np.inf
    return values


BROKEN: dict[str, Callable[[Path], None]] = {
    "empty": bytes_of(b""),
    "noise": bytes_of(np.random.default_rng(0).bytes(5000)),
    "text": bytes_of(b"these are words\n" * 50),
    "cut": cut,
    "pickled": saved(lambda values: np.array([{"a": 1}, None] * 40, dtype=object)),
    "no-rows": saved(lambda values: values[:0]),
    "one-row": saved(lambda values: values[:1]),
    "hole": saved(with_hole),
    "infinite": saved(without_end),
    "constant": saved(np.ones_like),
    "cube": saved(lambda values: values.reshape(4, 20, 3)),
    "complex": saved(lambda values: values * 1j),
    "words": saved(lambda values: np.array([["a", "b"]] * 80)),
    "fifo": lambda path: os.mkfifo(path.with_suffix(".npy")),
    "folder": lambda path: path.with_suffix(".npy").mkdir(),
    "link": lambda path: path.with_suffix(".npy").symlink_to("nowhere.npy"),
    "header": bytes_of(b"x,y,z\n", ".csv"),
    "cells": bytes_of(b"x,y\n" + b"1,2\n" * 30 + b"1,broken\n" + b"1,2\n" * 30, ".csv"),
    "ragged": bytes_of(b"x,y\n" + b"1,2\n" * 30 + b"1,2,3,4\n" + b"1,2\n" * 30, ".csv"),
    "sound": bytes_of(b"RIFF\x10\x00\x00\x00WAVEfmt ", ".wav"),
}
"""Twenty ways in which a recording may be broken."""


def make(folder: Path, n: int, cluster: str, n_frames: int = 80) -> Path:
    """A corpus of so many recordings, twenty of them broken."""
    (folder / "in").mkdir(parents=True)
    for number in range(n - len(BROKEN)):
        np.save(folder / "in" / f"night{number:03}.npy", walk(number, n_frames))
    for name, spoil in BROKEN.items():
        spoil(folder / "in" / f"broken-{name}")
    file = folder / "corpus.toml"
    file.write_text(
        f'[corpus]\ninputs = ["in/*"]\noutput = "out"\ncluster = "{cluster}"\n'
        '[run]\nfeatures = "identity"\nn-modes = 2\n'
    )
    return file


def judged(file: Path, n: int) -> dict[str, Any]:
    """Run the corpus twice; what is promised must hold."""
    before = time.perf_counter()
    first = subprocess.run([*COMMAND, str(file), "--json"], capture_output=True, text=True, check=False)
    between = time.perf_counter()
    again = subprocess.run([*COMMAND, str(file), "--json"], capture_output=True, text=True, check=False)
    after = time.perf_counter()
    found = json.loads(first.stdout)
    sentences = {one["name"]: one["sentence"] for one in found["recordings"] if one["stands"] == "failed"}
    results = sorted(path.name for path in (file.parent / "out").glob("night*.zarr"))
    codes = first.returncode, again.returncode
    expected = sorted(f"broken-{name}" for name in BROKEN)
    if codes != (3, 3) or len(results) != n - len(BROKEN) or sorted(sentences) != expected:
        raise AssertionError(f"{codes}, {len(results)} results, failed {sorted(sentences)}: {first.stderr[-2000:]}")
    told = [line for line in first.stderr.splitlines() if " failed: " in line]
    if len(told) != len(BROKEN) or any("Traceback" in said for said in (first.stderr, again.stderr)):
        raise AssertionError(f"{len(told)} lines: {first.stderr[-2000:]}")
    seconds = {"first": round(between - before, 1), "again": round(after - between, 1)}
    return {"results": len(results), "codes": codes, "seconds": seconds, "sentences": sentences}


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=int, default=200)
    parser.add_argument("--cluster", default="local")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(judged(make(Path(name), options.recordings, options.cluster), options.recordings), indent=1))
