"""Features at the rate of the disk: files against a plain read of the same bytes, and against careful NumPy loops.

Two forms, one core and one thread of everything. *Cold*: before each reading the file leaves the page cache (which is
checked), and wall time counts, so that it is the disk that sets the rate. *Warm*: all bytes are in the page cache, and
CPU seconds of the process count. The plain read is ``readinto`` of 4 MiB at a time, as ``dd bs=4M`` reads. A loop
reads a few megabytes by the library of the format and computes the same feature of them with NumPy. *Bound* is what
NumPy takes for a sum of squares in double precision of the same numbers in memory; a plain read and that sum, one after
the other, are ``read_and_bound``. All ways take turns; the least of the rounds counts. Where others want the core as
well, ``others_had_the_core`` says for how much of the time, and ``share_of_read_own`` leaves such times out; the disk
reads on meanwhile, which makes it an upper bound.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import numpy as np
import soundfile
import xarray as xr
from scipy import fft
from threadpoolctl import threadpool_limits

import manifold_observer.pipeline as mo

CHANNELS, FRAME, RATE = 8, 200, 2000.0
EDGES = np.linspace(-4, 4, 11)
FEATURES: dict[str, dict[str, Any]] = {"log_rms": {}, "histogram": {"edges": EDGES, "outside": "clip"}, "stft": {}}
FORMATS = ("plain.zarr", "zstd.zarr", "plain.nc", "classic.nc", "sound.wav", "plain.npy")
_READ_BYTES = 2**22
_ROWS = 2**16


def write(folder: Path, n_samples: int, name: str) -> Path:
    """The same noise in one of the formats; WAV holds whole numbers, as recorders do."""
    path = folder / name
    noise = np.random.default_rng(0).normal(size=(min(_ROWS, n_samples), CHANNELS)).astype(np.float32)
    if path.suffix in (".wav", ".npy"):
        _write_in_turn(path, noise, n_samples)
        return path
    samples = np.tile(noise, (-(-n_samples // len(noise)), 1))[:n_samples]
    recording = xr.Dataset({"recording": (("time", "channel"), samples)}, attrs={"sampling_rate": RATE})
    if path.suffix == ".zarr":
        chunks: dict[str, Any] = {"chunks": (_ROWS, CHANNELS)} | ({"compressors": None} if name == "plain.zarr" else {})
        recording.to_zarr(path, encoding={"recording": chunks}, consolidated=False)
    elif name == "classic.nc":
        recording.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT")
    else:
        recording.to_netcdf(path, engine="h5netcdf")
    return path


def _write_in_turn(path: Path, noise: np.ndarray, n_samples: int) -> None:
    """Noise again and again, without all of it in memory."""
    starts = range(0, n_samples, len(noise))
    if path.suffix == ".npy":
        whole = np.lib.format.open_memmap(path, "w+", np.float32, (n_samples, CHANNELS))
        for first in starts:
            whole[first : first + len(noise)] = noise[: n_samples - first]
        return
    with soundfile.SoundFile(path, "w", int(RATE), CHANNELS, "PCM_16") as sound:
        for first in starts:
            sound.write((noise[: n_samples - first] * 3000).astype(np.int16))


def parts(path: Path) -> list[Path]:
    """Files that hold the bytes, in the order of time."""
    found = [path] if path.is_file() else [part for part in path.rglob("*") if part.is_file()]
    return sorted(found, key=lambda part: [int(word) if word.isdigit() else -1 for word in part.parts])


def plain_read(path: Path) -> int:
    """Read all bytes; how many."""
    buffer, total = bytearray(_READ_BYTES), 0
    for part in parts(path):
        with part.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                total += count
    return total


def make_cold(path: Path) -> float:
    """Have the system forget what it keeps of a file; the share that it keeps all the same."""
    gc.collect()  # what is mapped stays
    for part in parts(path):
        with part.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return cached_share(path)


def cached_share(path: Path) -> float:
    """Share of the pages of a file that are in memory."""
    there = total = 0
    libc = ctypes.CDLL(None, use_errno=True)
    for part in parts(path):
        size = part.stat().st_size
        if not size:
            continue
        with part.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
            start = ctypes.c_char.from_buffer(mapped)
            failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), pages)
            del start
            if failed:
                raise OSError(ctypes.get_errno(), f"mincore of {part}")
            there, total = there + sum(page & 1 for page in bytes(pages)), total + len(pages)
    return there / max(total, 1)


def loop(path: Path, name: str = "log_rms") -> np.ndarray:
    """What a careful loop makes of the same samples."""
    return np.concatenate([LOOPS[name](samples) for samples in pieces(path)])


def framed(samples: np.ndarray) -> np.ndarray:
    """Whole frames, in double precision."""
    return samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME, CHANNELS).astype(np.float64)


def levels(samples: np.ndarray) -> np.ndarray:
    """Logarithm of the root mean square of every frame."""
    frames = framed(samples)
    return 0.5 * np.log(np.einsum("ftc,ftc->fc", frames, frames) / FRAME)


def counts(samples: np.ndarray) -> np.ndarray:
    """Histograms of every frame: cells by bisection, counted all at once."""
    n_bins, n_frames = len(EDGES) - 1, len(samples) // FRAME
    cells = np.searchsorted(EDGES[1:-1], samples[: n_frames * FRAME], side="right").reshape(n_frames, FRAME, CHANNELS)
    cells += n_bins * np.arange(n_frames * CHANNELS).reshape(n_frames, 1, CHANNELS)
    counted = np.bincount(cells.ravel(), minlength=n_frames * CHANNELS * n_bins)
    return counted.reshape(n_frames, CHANNELS * n_bins) / FRAME


def magnitudes(samples: np.ndarray) -> np.ndarray:
    """Spectra of every frame."""
    taper = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)
    spectra = np.abs(fft.rfft(np.moveaxis(framed(samples), 1, -1) * taper, axis=-1))
    return spectra.reshape(len(spectra), -1)


LOOPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"log_rms": levels, "histogram": counts, "stft": magnitudes}


def pieces(path: Path) -> Iterator[np.ndarray]:
    """A few megabytes of samples at a time, by the library of the format."""
    step = _READ_BYTES // (4 * CHANNELS) // FRAME * FRAME
    if path.suffix == ".wav":
        with soundfile.SoundFile(path) as sound:
            while len(block := sound.read(step, dtype="int16", always_2d=True)):
                yield block / np.float32(2**15)
        return
    if path.suffix == ".npy":
        whole = np.load(path, mmap_mode="r")
    elif path.suffix == ".zarr":
        import zarr  # noqa: PLC0415

        whole = zarr.open_group(path, mode="r")["recording"]
    else:
        opened = xr.open_dataset(path, engine="scipy" if path.name == "classic.nc" else "h5netcdf", cache=False)
        whole = opened["recording"].variable
    for first in range(0, whole.shape[0], step):
        yield np.asarray(whole[first : first + step])


def ours(path: Path, name: str = "log_rms") -> np.ndarray:
    """The same features by the project: task by task, in the order in which a run hands them out."""
    recording = mo.open_recording(path, **({"sampling_rate": RATE} if path.suffix == ".npy" else {}))
    feature: Callable[..., xr.DataArray] = getattr(mo, name)
    frames = feature(recording, frame=FRAME, **FEATURES[name]).data
    graph = dict(frames.dask)
    keys = [row[0] for row in frames.__dask_keys__()]
    return np.concatenate([dask.get({key: graph[key]}, key) for key in keys])


def bound(n_samples: int) -> float:
    """Numbers a second that NumPy squares and adds up in double precision, from float32 in memory, in its best form."""
    samples = np.ones(min(n_samples, 2**20) * CHANNELS, np.float32)
    wide, ones = np.empty(2**15), np.ones(2**15)

    def squares() -> None:
        for first in range(0, len(samples), len(wide)):
            part = samples[first : first + len(wide)]
            own = wide[: len(part)]
            own[...] = part
            np.dot(np.multiply(own, own, out=own), ones[: len(part)])

    return len(samples) / min(seconds_of(squares, time.process_time) for _ in range(5))


def seconds_of(function: Callable[[], Any], clock: Callable[[], float]) -> float:
    """Seconds of one call."""
    before = clock()
    function()
    return clock() - before


@contextmanager
def one_core() -> Iterator[None]:
    """All threads of this process on one core, and those that they start."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    threads = [int(name) for name in os.listdir("/proc/self/task")]
    try:
        for thread in threads:
            os.sched_setaffinity(thread, {max(before)})
        yield
    finally:
        for name in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(name), before)


def run(
    n_samples: int,
    rounds: int = 3,
    *,
    formats: tuple[str, ...] = FORMATS,
    cold: bool = False,
    names: tuple[str, ...] = tuple(FEATURES),
    folder: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """One row a format, as they are found."""
    with dask.config.set(scheduler="synchronous"), threadpool_limits(1), one_core():
        for name in formats:
            with tempfile.TemporaryDirectory(dir=folder) as own:
                path = write(Path(own), n_samples, name)
                yield cold_row(path, rounds, names) if cold else warm_row(path, rounds)


def ways_of(path: Path) -> dict[str, Callable[[], Any]]:
    """What is timed."""
    ways: dict[str, Callable[[], Any]] = {"read": lambda: plain_read(path)}
    ways |= {f"loop_{name}": lambda name=name: loop(path, name) for name in FEATURES}
    return ways | {name: lambda name=name: ours(path, name) for name in FEATURES}


def warm_row(path: Path, rounds: int) -> dict[str, Any]:
    """CPU seconds of one format, all bytes in memory."""
    ways = ways_of(path)
    differences = {name: float(np.abs(loop(path, name)[:100] - ours(path, name)[:100]).max()) for name in FEATURES}
    taken = [{way: seconds_of(function, time.process_time) for way, function in ways.items()} for _ in range(rounds)]
    row = shares(path, {way: min(each[way] for each in taken) for way in ways})
    itemsize = 2 if path.suffix == ".wav" else 4
    bounded = bound(2**20) * itemsize / 1e9
    both = 1 / (1 / row["read_gb_per_second"] + 1 / bounded) if row["read_gb_per_second"] else 0.0
    row |= {"bound_gb_per_second": round(bounded, 2)}
    row |= {"log_rms_share_of_read_and_bound": round(row["log_rms_gb_per_second"] / both, 3) if both else None}
    return {**row, "difference": max(differences.values())}


def cold_row(path: Path, rounds: int, names: tuple[str, ...]) -> dict[str, Any]:
    """Wall seconds of one format, each from the disk."""
    ways = {way: function for way, function in ways_of(path).items() if way in ("read", "loop_log_rms", *names)}
    kept, taken = 0.0, []
    for function in ways.values():
        function()  # imports
    for _ in range(rounds):
        each = {}
        for way, function in ways.items():
            kept = max(kept, make_cold(path))
            waited = waited_for_core()
            each[way] = seconds_of(function, time.perf_counter), waited_for_core() - waited
        taken.append(each)
    row = shares(path, {way: min(each[way][0] for each in taken) for way in ways})
    own = {way: min(seconds - waited for seconds, waited in (each[way] for each in taken)) for way in ways}
    row |= {f"{name}_share_of_read_own": round(own["read"] / own[name], 3) for name in names}
    others = max(waited / seconds for seconds, waited in (min(each[way] for each in taken) for way in ways))
    return {**row, "cached_before": round(kept, 3), "others_had_the_core": round(others, 3)}


def waited_for_core() -> float:
    """Seconds that this thread has waited for others to leave the core; 0 where the system does not say."""
    told = Path("/proc/thread-self/schedstat")
    return int(told.read_text().split()[1]) / 1e9 if told.exists() else 0.0


def shares(path: Path, taken: dict[str, float]) -> dict[str, Any]:
    """Rates, and shares of the plain read and of the loops."""
    n_bytes, taken = plain_read(path), {way: max(seconds, 1e-9) for way, seconds in taken.items()}
    row: dict[str, Any] = {"file": path.name, "megabytes": round(n_bytes / 1e6, 1)}
    row |= {f"{way}_gb_per_second": round(n_bytes / seconds / 1e9, 3) for way, seconds in taken.items()}
    for name in (name for name in FEATURES if name in taken):
        row[f"{name}_share_of_read"] = round(taken["read"] / taken[name], 3)
        if f"loop_{name}" in taken:
            row[f"{name}_share_of_loop"] = round(taken[f"loop_{name}"] / taken[name], 3)
    return row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2**24, help="of 8 channels; 512 MiB of float32 by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--formats", nargs="*", default=FORMATS)
    parser.add_argument("--features", nargs="*", default=tuple(FEATURES), help="those that are read cold")
    parser.add_argument("--cold", action="store_true", help="from the disk, in wall time")
    parser.add_argument("--folder", type=Path, help="where files are written meanwhile, on the disk that counts")
    given = parser.parse_args()
    chosen: dict[str, Any] = {"formats": tuple(given.formats), "names": tuple(given.features), "cold": given.cold}
    for found in run(given.samples, given.rounds, folder=given.folder, **chosen):
        print(json.dumps(found), flush=True)
