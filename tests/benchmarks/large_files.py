"""Files of many gigabytes: seconds to open them, seconds and peak memory to make frames of the whole of them.

It writes sparse files (headers of the sizes that are asked for, and a hole for the samples, which takes no room on the
disk), opens each, and computes levels of all of it on a local cluster of processes.
"""

from __future__ import annotations

import argparse
import json
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import peaks

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.clusters.cluster import connect

EDF_CHANNELS, EDF_RATE = 64, 256
WAVE_RATE = 44_100
# Samples that are zero have no logarithm.
FLOOR = 1e-6


def write_wave(path: Path, n_bytes: int) -> None:
    """Silence of one channel, 16 bits."""
    size = n_bytes // 2 * 2
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", size + 36, b"WAVE", b"fmt ", 16, 1, 1, WAVE_RATE, 2 * WAVE_RATE, 2, 16, b"data", size)  # fmt: skip  # noqa: E501
    _sparse(path, head, size)


def write_edf(path: Path, n_bytes: int) -> None:
    """64 channels of zeros at 256 Hz, records of a second."""
    n_records = max(1, n_bytes // (2 * EDF_CHANNELS * EDF_RATE))
    n = EDF_CHANNELS
    fields = [(16, [f"EEG {k + 1:03d}" for k in range(n)]), (80, [""] * n), (8, ["uV"] * n), (8, ["-3276.8"] * n)]
    fields += [(8, ["3276.7"] * n), (8, ["-32768"] * n), (8, ["32767"] * n), (80, [""] * n)]
    fields += [(8, [str(EDF_RATE)] * n), (32, [""] * n)]
    table = "".join(f"{value:{width}}" for width, values in fields for value in values)
    fixed = f"{'0':8}{'X X X X':80}{'Startdate 02-MAR-2031 X X X':80}02.03.3104.05.06"
    fixed += f"{256 * (n + 1):<8}{'':44}{n_records:<8}{1:<8}{n:<4}"
    _sparse(path, (fixed + table).encode("ascii"), 2 * n * EDF_RATE * n_records)


def write_netcdf(path: Path, n_bytes: int) -> None:
    """A contiguous NetCDF 4 variable, 64 channels of float32, and its clock."""
    import h5netcdf  # noqa: PLC0415 - of the extra 'formats'
    import h5py  # noqa: PLC0415

    n = max(1, n_bytes // (4 * EDF_CHANNELS))
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"time": n, "channel": EDF_CHANNELS}
        file.attrs["sampling_rate"] = float(EDF_RATE)
    with h5py.File(path, "r+") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.CONTIGUOUS)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((n, EDF_CHANNELS))
        made = h5py.Dataset(h5py.h5d.create(file.id, b"volts", h5py.h5t.IEEE_F32LE, space, plist))
        for axis, name in enumerate(("time", "channel")):
            made.dims[axis].attach_scale(file[name])


def _sparse(path: Path, head: bytes, n_bytes: int) -> None:
    """A file that begins with something, and a hole."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + n_bytes)


KINDS: dict[str, tuple[Callable[[Path, int], None], str, int, str]] = {
    "2 GB WAV": (write_wave, "sound.wav", 2 * 10**9, "23ms"),
    "24 h EDF of 64 channels": (write_edf, "night.edf", 2 * EDF_CHANNELS * EDF_RATE * 86_400, "1s"),
    "10 GB contiguous NetCDF": (write_netcdf, "month.nc", 10 * 10**9, "1s"),
}


def measure(kind: str, folder: Path, share: float, client: Any) -> dict[str, Any]:
    """One file, opened and made into frames."""
    write, name, n_bytes, frame = KINDS[kind]
    path = folder / name
    write(path, int(share * n_bytes))
    began = time.perf_counter()
    recording = mo.open_recording(path)
    opened = time.perf_counter() - began
    frames = mo.log_rms(recording, frame=frame, floor=FLOOR)
    began = time.perf_counter()
    levels = frames.compute()
    seconds = time.perf_counter() - began
    assert np.isfinite(levels.values).all()
    return {
        "file": kind,
        "gigabytes": round(path.stat().st_size / 1e9, 3),
        "on_disk_megabytes": round(path.stat().st_blocks * 512 / 1e6, 3),
        "open_seconds": round(opened, 3),
        "n_frames": levels.sizes["frame"],
        "seconds": round(seconds, 1),
        **peaks(client),
    }


def run(kinds: list[str], share: float = 1.0, n_workers: int = 1) -> Iterator[dict[str, Any]]:
    """A row for each file; each has new workers, so that peaks are its own."""
    with tempfile.TemporaryDirectory() as folder:
        write_wave(Path(folder) / "first.wav", 8000)
        mo.open_recording(Path(folder) / "first.wav")  # imports are not the point
        for kind in kinds:
            with connect("local", n_workers=n_workers) as client:
                yield measure(kind, Path(folder), share, client)


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as text."""
    head = [*rows[0]]
    lines = [head, ["---"] * len(head), *([str(row[name]) for name in head] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=list(KINDS))
    parser.add_argument("--share", type=float, default=1.0, help="of the full sizes")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = []
    for row in run(given.kinds, given.share, given.workers):
        found.append(row)
        if given.json:
            print(json.dumps(row), flush=True)
    if not given.json:
        print(table(found))
