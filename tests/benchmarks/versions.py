"""The command `run` of two versions in turn: seconds of CPU of the whole process tree, of the wall, and of each stage.

Each version is an interpreter that has it. Both get one recording, compute on one kind of cluster, and have their own
defaults else. ``spectra`` are 513 bins of a sound with two wandering tones, ``sphere`` histograms of three sensors. The
best of some runs counts, CPU and wall each for itself:

    python versions.py --new .venv/bin/python --old elsewhere/bin/python
    python versions.py --new .venv/bin/python --old elsewhere/bin/python --recording sphere --frames 4000
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from measure import write_tones

from manifold_observer.datasets.simulators.sphere import write_sphere

TONE_FRAME, TONE_HOP, SPHERE_FRAME = 1024, 256, 60
_SUBREAPER = 36  # of Linux: orphans of children become children


def spectra(place: Path, n_frames: int) -> list[str]:
    """Write a sound of so many frames; how it is cut into them."""
    write_tones(place, n_frames, TONE_FRAME, TONE_HOP)
    return ["--features", "stft", "--frame", str(TONE_FRAME), "--hop", str(TONE_HOP)]


def sphere(place: Path, n_frames: int) -> list[str]:
    """Write three sensors; how they are cut into frames."""
    write_sphere(place, n_samples=SPHERE_FRAME * n_frames, seed=1)
    return ["--features", "histogram", "--frame", str(SPHERE_FRAME)]


RECORDINGS: dict[str, Callable[[Path, int], list[str]]] = {"spectra": spectra, "sphere": sphere}


def once(python: str, words: list[str], folder: Path) -> dict[str, Any]:
    """One run, with all processes that it starts."""
    out = folder / "out.zarr"
    command = [python, "-m", "manifold_observer.pipeline.cli.entry", "run", *words, str(out), "--json"]
    before, spent = time.perf_counter(), _cpu()
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=folder)
    wall = time.perf_counter() - before
    _await_orphans()
    cpu = _cpu() - spent
    shutil.rmtree(out)
    return {"cpu": cpu, "wall": wall, "stages": json.loads(told.stdout.splitlines()[-1])["seconds"]}


def _cpu() -> float:
    """Seconds of CPU of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _adopt_orphans() -> None:
    """Be told of processes whose parent ends before them; elsewhere than on Linux they do not count."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _await_orphans() -> None:
    """Wait for them, so that their time counts too."""
    with suppress(ChildProcessError):
        while True:
            os.wait()


def best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The least seconds of CPU and of wall, and the stages of the run of least wall."""
    quick = min(runs, key=lambda one: one["wall"])
    least = {name: round(min(one[name] for one in runs), 2) for name in ("cpu", "wall")}
    return least | {"stages": {name: round(seconds, 2) for name, seconds in quick["stages"].items()}}


def compare(
    pythons: dict[str, str], recording: str, n_frames: int, cluster: str, repeats: int, options: list[str]
) -> dict[str, Any]:
    """All versions in turn, and the second over the first."""
    _adopt_orphans()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "recording.zarr")
        cut = RECORDINGS[recording](place, n_frames)
        words = [str(place), *cut, *([] if cluster == "default" else ["--cluster", cluster]), *options]
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in pythons}
        for _ in range(repeats):
            for name, python in pythons.items():
                found[name].append(once(python, words, Path(folder)))
    told: dict[str, Any] = {name: best(runs) for name, runs in found.items()}
    if len(told) == 2:
        old, new = told.values()
        told["ratio"] = {name: round(new[name] / old[name], 2) for name in ("cpu", "wall")}
    return {"recording": recording, "n_frames": n_frames, "cluster": cluster, "repeats": repeats, **told}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--new", default=sys.executable, help="interpreter of the version that is judged")
    parser.add_argument("--old", help="interpreter of the version that it is compared with")
    parser.add_argument("--recording", choices=sorted(RECORDINGS), default="spectra")
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--cluster", default="local", help="of both; 'default' leaves the choice to each")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--with", dest="options", type=shlex.split, default=[], help="more options of run, for both")
    given = parser.parse_args()
    named = ({} if given.old is None else {"old": given.old}) | {"new": given.new}
    print(
        json.dumps(compare(named, given.recording, given.frames, given.cluster, given.repeats, given.options), indent=1)
    )
