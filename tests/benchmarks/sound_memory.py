"""Peak memory of a whole run over hours of sound, within a memory control group, against what the plan said.

It writes a mono 16-bit WAV file of the size that is asked for, asks ``plan`` and then ``run`` for its spectra and its
levels, and watches the processes of the run. Control groups of both versions are used where this user may make one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

RATE = 44_100
_BLOCK = 2**22
# What a run is told beside its files: two features, and how many modes.
FEATURES = {"stft": ["--features", "stft"], "log_rms": ["--features", "log_rms"]}


def write_sound(path: Path, n_bytes: int, seed: int = 1) -> None:
    """Tones whose level wanders, in noise, 16 bits; a few blocks of it, each time turned by another length."""
    rng = np.random.default_rng(seed)
    n_blocks = -(-n_bytes // (2 * _BLOCK))
    blocks = [_block(rng, 500.0 + 200.0 * number) for number in range(min(7, n_blocks))]
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        for number in range(n_blocks):
            count = min(_BLOCK, n_bytes // 2 - number * _BLOCK)
            sound.writeframes(np.roll(blocks[number % 7], int(rng.integers(_BLOCK)))[:count].tobytes())


def _block(rng: np.random.Generator, pitch: float) -> np.ndarray[Any, np.dtype[np.int16]]:
    """95 seconds of a tone in noise."""
    seconds = np.arange(_BLOCK) / RATE
    level = 6000 + 3000 * np.sin(seconds / 15)
    return (level * np.sin(2 * np.pi * pitch * seconds) + rng.integers(-1500, 1500, _BLOCK)).astype("<i2")


@contextmanager
def control_group(limit: int | None) -> Iterator[Path | None]:
    """A memory control group of that many bytes, or None where none can be made; it is removed at the end."""
    place = _parent()
    if limit is None or place is None:
        yield None
        return
    group = place / f"sound-memory-{os.getpid()}"
    group.mkdir()
    try:
        (group / ("memory.max" if _is_second(place) else "memory.limit_in_bytes")).write_text(str(limit))
        yield group
    finally:
        _remove(group)


def _parent() -> Path | None:
    """Where this process may make a group: its own group of the memory controller, of either version."""
    for line in Path("/proc/self/cgroup").read_text().splitlines() if Path("/proc/self/cgroup").exists() else []:
        _, controllers, path = line.split(":", 2)
        root = Path("/sys/fs/cgroup/memory" if controllers == "memory" else "/sys/fs/cgroup")
        place = root / path.lstrip("/")
        second = controllers == "" and "memory" in _text(place / "cgroup.subtree_control")
        if (controllers == "memory" or second) and os.access(place, os.W_OK):
            return place
    return None


def _is_second(place: Path) -> bool:
    """Whether a group is of version 2."""
    return (place / "cgroup.controllers").exists()


def _text(path: Path) -> str:
    """A file's text, empty where there is none."""
    return path.read_text() if path.exists() else ""


def _remove(group: Path) -> None:
    """Remove a group; its last process may take a moment to go."""
    for _ in range(50):
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            return


def watched(command: list[str], group: Path | None) -> dict[str, Any]:
    """Run a command within a group; what it printed, and the peaks of it and of its workers, GiB."""
    enter = [] if group is None else ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    peaks: dict[int, int] = {}
    before = time.perf_counter()
    process = subprocess.Popen([*enter, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, peaks, ended))
    watcher.start()
    try:
        printed, said = process.communicate()
    finally:
        ended.set()
        watcher.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {said}")
    workers = sorted((value for pid, value in peaks.items() if pid != process.pid), reverse=True)
    return {
        "printed": json.loads(printed),
        "seconds": round(time.perf_counter() - before, 1),
        "caller_gib": _gib(peaks.get(process.pid, 0)),
        "workers_gib": [_gib(value) for value in workers],
        "group_gib": _group_peak(group),
    }


def _watch(parent: int, peaks: dict[int, int], ended: threading.Event) -> None:
    """Keep the peak of a process and of all that it started."""
    while not ended.wait(0.05):
        for pid in [parent, *filter(_is_worker, _children(parent))]:
            for line in _status(pid).splitlines():
                if line.startswith("VmHWM"):
                    peaks[pid] = max(peaks.get(pid, 0), int(line.split()[1]) * 1024)


def _children(parent: int) -> list[int]:
    """Processes that a process started, and those that they started."""
    try:
        lists = [path.read_text() for path in Path(f"/proc/{parent}/task").glob("*/children")]
    except OSError:
        return []
    own = [int(pid) for text in lists for pid in text.split()]
    return own + [pid for child in own for pid in _children(child)]


def _is_worker(pid: int) -> bool:
    """Whether a process is a worker: not Python's resource tracker, nor a copy of the parent that starts something."""
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _status(pid: int) -> str:
    """State of a process, empty once it has gone."""
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""


def _group_peak(group: Path | None) -> float | None:
    """Most that the group held, file cache included."""
    for name in ("memory.peak", "memory.max_usage_in_bytes"):
        if group is not None and (group / name).exists():
            return _gib(int((group / name).read_text()))
    return None


def _gib(n_bytes: float) -> float:
    """Bytes as GiB."""
    return round(n_bytes / 2**30, 3)


def measure(sound: Path, out: Path, features: str, n_workers: int, limit: int | None, options: list[str]) -> Any:
    """Plan and run once: predicted and measured peaks, and the larger of measured over predicted of all workers."""
    program = [sys.executable, "-m", "manifold_observer.pipeline.cli.commands"]
    told = [*FEATURES[features], "--frame", "23ms", "--workers", str(n_workers), "--json", *options]
    with control_group(limit) as group:
        planned = watched([*program, "plan", str(sound), *told], group)["printed"]
    with control_group(limit) as group:
        found = watched([*program, "run", str(sound), str(out), *told], group)
    printed = found.pop("printed")
    return {
        "features": features,
        "n_workers": n_workers,
        "n_frames": printed["n_frames"],
        "way": f"{planned['method']} {planned['form']} {planned['home']}",
        "planned_gib": _gib(planned["peak_worker_bytes"]),
        "planned_caller_gib": _gib(planned["peak_caller_bytes"]),
        "planned_seconds": planned["seconds"],
        **found,
        "stages": printed["seconds"],
        "measured_over_planned": round(max(found["workers_gib"]) * 2**30 / planned["peak_worker_bytes"], 3),
        "within_group": group is not None,
    }


def run(n_bytes: int, features: list[str], workers: list[int], limit: int | None, options: list[str]) -> Iterator[Any]:
    """A row for each kind of features and number of workers."""
    with tempfile.TemporaryDirectory() as folder:
        sound = Path(folder) / "hours.wav"
        write_sound(sound, n_bytes)
        for name in features:
            for n_workers in workers:
                yield measure(sound, Path(folder) / f"{name}-{n_workers}.zarr", name, n_workers, limit, options)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=float, default=2e9, help="of 16-bit samples")
    parser.add_argument("--features", nargs="+", choices=sorted(FEATURES), default=sorted(FEATURES))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--limit", type=float, default=4 * 2**30, help="of the control group, bytes; 0 for none")
    parser.add_argument("options", nargs="*", help="more for plan and run, after --")
    given = parser.parse_args()
    for row in run(int(given.bytes), given.features, given.workers, int(given.limit) or None, given.options):
        print(json.dumps(row), flush=True)
