"""Recordings of up to ten million frames through `run` by landmarks: peak memory of client and workers, time a frame.

A simulated recording with a known truth is written to Zarr chunk by chunk. `run` works in a process of its own, whose
memory is watched from here, and that of each of its workers: private memory alone, without pages of files. The
truth is then read from the states, chunk by chunk.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import zarr
from scipy.signal import lfilter

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.jobs.progress import Stages

CHUNK = 2**18
# What is left of each of two hidden coordinates after a frame, their noise in a sensor, and the pull of the readout.
KEPT, NOISE, RIDGE = (0.995, 0.98), 0.1, 1e-6
_SECONDS = 0.1


def simulate(path: Path, n_frames: int, n_sensors: int, seed: int = 1) -> None:
    """Sensors that answer to places in a plane, in which a point wanders; with the point itself as ``truth``."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_sensors, len(KEPT)))
    group = zarr.create_group(path, attributes={"sampling_rate": 10.0})
    shapes = {"recording": (n_frames, n_sensors), "truth": (n_frames, len(KEPT))}
    names = {"recording": ("time", "channel"), "truth": ("time", "component")}
    arrays = {
        name: group.create_array(
            name, shape=shape, chunks=(CHUNK, shape[1]), dtype="float32", dimension_names=names[name]
        )
        for name, shape in shapes.items()
    }
    last = np.zeros(len(KEPT))
    for first in range(0, n_frames, CHUNK):
        n = min(CHUNK, n_frames - first)
        steps = rng.normal(size=(n, len(KEPT))) * np.sqrt(1 - np.square(KEPT))
        columns = [lfilter([1.0], [1.0, -kept], steps[:, k], zi=[kept * last[k]])[0] for k, kept in enumerate(KEPT)]
        truth = np.stack(columns, axis=1)
        last = truth[-1]
        answers = np.exp(-np.square(truth[:, None] - centres).sum(axis=2) / 4)
        arrays["recording"][first : first + n] = answers + NOISE * rng.normal(size=answers.shape)
        arrays["truth"][first : first + n] = truth


def settings(preset: str, n_landmarks: int, smooth: bool) -> mo.RunConfig:
    """What is run."""
    engine = {"method": "landmarks", "landmarks": n_landmarks}
    return mo.RunConfig(
        mo.FeatureConfig("identity"),
        opening=mo.OpenConfig(variable="recording"),
        embedding=mo.EmbedConfig(n_modes=4, preset=preset, **engine),
        smooth=smooth,
    )


def run_once(recording: Path, out: Path, config: mo.RunConfig, n_workers: int) -> dict[str, Any]:
    """One run on workers of its own, in this process: seconds of its stages."""
    stages = Stages()
    with connect("local", n_workers=n_workers) as client:
        (out.parent / "pids").write_text(json.dumps(list(client.run(_pid).values())))
        mo.run(recording, out, config, stages=stages)
    return stages.seconds


def _pid() -> int:
    """Of a worker."""
    return psutil.Process().pid


class Watch(threading.Thread):
    """Peaks of a process's own memory and of those of the workers that it names, in bytes."""

    def __init__(self, process: subprocess.Popen[str], named: Path) -> None:
        super().__init__(daemon=True)
        self.process, self.named, self.peaks = process, named, {"client": 0, "worker": 0}
        self.over: list[tuple[float, int]] = []
        self.cpu: dict[int, float] = {}

    def run(self) -> None:
        """Look ten times a second."""
        began = time.perf_counter()
        while self.process.poll() is None:
            client = _private(self.process.pid)
            self.over.append((round(time.perf_counter() - began, 1), client))
            self.peaks["client"] = max(self.peaks["client"], client)
            self._spent(self.process.pid)
            if self.named.exists():
                with suppress(json.JSONDecodeError):
                    pids = json.loads(self.named.read_text())
                    self.peaks["worker"] = max([self.peaks["worker"], *map(_private, pids)])
                    for pid in pids:
                        self._spent(pid)
            time.sleep(_SECONDS)

    def _spent(self, pid: int) -> None:
        """Note how much processor time a process has taken."""
        with suppress(psutil.Error):
            own = psutil.Process(pid).cpu_times()
            self.cpu[pid] = own.user + own.system


def _private(pid: int) -> int:
    """Memory that is a process's own: what is resident without pages of files."""
    with suppress(psutil.Error):
        memory = psutil.Process(pid).memory_info()
        return int(memory.rss - memory.shared)
    return 0


def correlations(recording: Path, out: Path) -> list[float]:
    """How well the states of the second half tell the truth after a regression on the first, chunk by chunk."""
    truth, state = zarr.open_array(recording / "truth"), zarr.open_array(out / "state" / "state")
    n, columns = state.shape
    gram, cross = np.zeros((columns + 1, columns + 1)), np.zeros((columns + 1, truth.shape[1]))
    for known, told in _chunks(state, truth, 0, n // 2):
        gram, cross = gram + known.T @ known, cross + known.T @ told
    weights = np.linalg.solve(gram + RIDGE * np.trace(gram) * np.eye(len(gram)), cross)
    sums = np.zeros((6, truth.shape[1]))
    for known, told in _chunks(state, truth, n // 2, n):
        read = known @ weights
        sums += [
            read.sum(0),
            told.sum(0),
            (read * read).sum(0),
            (told * told).sum(0),
            (read * told).sum(0),
            0 * told[0],
        ]
    sums /= n - n // 2
    spread = np.sqrt((sums[2] - sums[0] ** 2) * (sums[3] - sums[1] ** 2))
    return [round(float(r), 4) for r in (sums[4] - sums[0] * sums[1]) / spread]


def _chunks(state: Any, truth: Any, start: int, stop: int) -> Iterator[tuple[Any, Any]]:
    """Rows of a constant and the states, and the truth."""
    for first in range(start, stop, CHUNK):
        own = slice(first, min(first + CHUNK, stop))
        rows = np.asarray(state[own])
        yield np.hstack([np.ones((len(rows), 1)), rows]), np.asarray(truth[own], np.float64)


def measure(n_frames: int, given: argparse.Namespace) -> dict[str, Any]:
    """One recording, run in a process of its own."""
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        recording, out = folder / "recording.zarr", folder / "out.zarr"
        simulate(recording, n_frames, given.sensors)
        command = [sys.executable, __file__, "--one", str(recording), str(out), *_passed_on(given)]
        before = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            watch = Watch(process, folder / "pids")
            watch.start()
            text, _ = process.communicate()
            seconds = time.perf_counter() - before
            if process.returncode:
                raise RuntimeError(f"the run of {n_frames} frames ended with {process.returncode}")
        stages = json.loads(text.splitlines()[-1])
        if given.trace:
            Path(given.trace).write_text(json.dumps(watch.over))
        return {
            "n_frames": n_frames,
            "n_workers": given.workers,
            "seconds": round(seconds, 1),
            "microseconds_per_frame": round(seconds / n_frames * 1e6, 1),
            "cpu_microseconds_per_frame": round(sum(watch.cpu.values()) / n_frames * 1e6, 1),
            "client_cpu_microseconds_per_frame": round(watch.cpu[process.pid] / n_frames * 1e6, 1),
            "stages": {stage: round(taken / n_frames * 1e6, 2) for stage, taken in stages.items()},
            **{f"{who}_gib": round(peak / 2**30, 3) for who, peak in watch.peaks.items()},
            "correlations": correlations(recording, out),
        }


def _passed_on(given: argparse.Namespace) -> list[str]:
    """Options of the run itself."""
    named = {"--preset": given.preset, "--landmarks": given.landmarks, "--workers": given.workers}
    return [*(str(part) for pair in named.items() for part in pair), *(["--smooth"] if given.smooth else [])]


def run(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each number of frames, and the last against the first."""
    rows = []
    for n_frames in given.frames:
        rows.append(measure(n_frames, given))
        yield rows[-1]
    first, last = rows[0], rows[-1]
    yield {
        "frames_ratio": round(last["n_frames"] / first["n_frames"], 3),
        **{
            f"{name}_ratio": round(last[name] / first[name], 3)
            for name in ("microseconds_per_frame", "cpu_microseconds_per_frame", "client_gib", "worker_gib")
        },
    }


def parser() -> argparse.ArgumentParser:
    """Options."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--frames", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    made.add_argument("--sensors", type=int, default=10)
    made.add_argument("--workers", type=int, default=2)
    made.add_argument("--landmarks", type=int, default=1000)
    made.add_argument("--preset", default="auto")
    made.add_argument("--smooth", action="store_true")
    made.add_argument("--folder", help="for the recording and the result: 0.3 GB a million frames")
    made.add_argument("--trace", help="write the client's memory over time to this file")
    made.add_argument("--one", nargs=2, type=Path, help=argparse.SUPPRESS)
    return made


if __name__ == "__main__":
    asked = parser().parse_args()
    if asked.one:
        chosen = settings(asked.preset, asked.landmarks, asked.smooth)
        print(json.dumps(run_once(*asked.one, chosen, asked.workers)))
    else:
        for row in run(asked):
            print(json.dumps(row), flush=True)
