"""Features at the rate of the disk: files against a plain read of the same bytes, and against a careful NumPy loop.

All bytes are in the page cache, one core and one thread of everything. What a file is read with is the plain way to
the same samples: ``readinto`` for its bytes, and a loop that reads a few megabytes, squares and adds them up. The
rounds take all ways in turn; times are CPU seconds of the process, the least of the rounds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import soundfile
import xarray as xr
from threadpoolctl import threadpool_limits

import manifold_observer.pipeline as mo

CHANNELS, FRAME, RATE = 8, 200, 2000.0
_READ_BYTES = 2**22


def write(folder: Path, n_samples: int) -> dict[str, Path]:
    """The same noise in every format; WAV holds whole numbers, as recorders do."""
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(2**16, CHANNELS)).astype(np.float32)
    samples = np.tile(samples, (-(-n_samples // len(samples)), 1))[:n_samples]
    recording = xr.Dataset({"recording": (("time", "channel"), samples)}, attrs={"sampling_rate": RATE})
    rows = 2**16
    plain = {"recording": {"chunks": (rows, CHANNELS), "compressors": None}}
    recording.to_zarr(folder / "plain.zarr", encoding=plain, consolidated=False)
    recording.to_zarr(folder / "zstd.zarr", encoding={"recording": {"chunks": (rows, CHANNELS)}}, consolidated=False)
    recording.to_netcdf(folder / "plain.nc", engine="h5netcdf")
    recording.to_netcdf(folder / "classic.nc", engine="scipy", format="NETCDF3_64BIT")
    whole = (samples * 3000).astype(np.int16)
    soundfile.write(folder / "sound.wav", whole, int(RATE), subtype="PCM_16")
    np.save(folder / "plain.npy", samples)
    names = ("plain.zarr", "zstd.zarr", "plain.nc", "classic.nc", "sound.wav", "plain.npy")
    return {name: folder / name for name in names}


def parts(path: Path) -> list[Path]:
    """Files that hold the bytes."""
    return [path] if path.is_file() else sorted(part for part in path.rglob("*") if part.is_file())


def plain_read(path: Path) -> int:
    """Read all bytes; how many."""
    buffer, total = bytearray(_READ_BYTES), 0
    for part in parts(path):
        with part.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                total += count
    return total


def loop(path: Path) -> np.ndarray:
    """What a careful loop makes of the same samples: levels of all frames."""
    return np.concatenate([levels(samples) for samples in pieces(path)])


def levels(samples: np.ndarray) -> np.ndarray:
    """Logarithm of the root mean square of every frame."""
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME, CHANNELS)
    wide = frames.astype(np.float64)
    return 0.5 * np.log(np.einsum("ftc,ftc->fc", wide, wide) / FRAME)


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


def ours(path: Path, name: str = "log_rms", **options: Any) -> np.ndarray:
    """The same features by the project."""
    recording = mo.open_recording(path, **({"sampling_rate": RATE} if path.suffix == ".npy" else {}))
    feature: Callable[..., xr.DataArray] = getattr(mo, name)
    return feature(recording, frame=FRAME, **options).values


OTHERS: dict[str, dict[str, Any]] = {"histogram": {"edges": np.linspace(-4, 4, 11), "outside": "clip"}, "stft": {}}


def seconds_of(function: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    before = time.process_time()
    function()
    return time.process_time() - before


def run(n_samples: int, rounds: int = 3) -> list[dict[str, Any]]:
    """One row a format."""
    with tempfile.TemporaryDirectory() as name, dask.config.set(scheduler="synchronous"), threadpool_limits(1):
        files = write(Path(name), n_samples)
        return [row(path, rounds) for path in files.values()]


def row(path: Path, rounds: int) -> dict[str, Any]:
    """One format."""
    ways: dict[str, Callable[[], Any]] = {"read": lambda: plain_read(path), "loop": lambda: loop(path)}
    ways |= {"log_rms": lambda: ours(path)}
    ways |= {other: lambda other=other: ours(path, other, **OTHERS[other]) for other in OTHERS}
    n_bytes = plain_read(path)
    difference = float(np.abs(loop(path)[:100] - ours(path)[:100]).max())
    taken = {way: min(seconds_of(function) for _ in range(rounds)) for way, function in ways.items()}
    return {
        "file": path.name,
        "megabytes": round(n_bytes / 1e6, 1),
        "read_gb_per_second": round(n_bytes / taken["read"] / 1e9, 2) if taken["read"] else None,
        **{f"{way}_gb_per_second": round(n_bytes / taken[way] / 1e9, 3) for way in ways if way != "read"},
        "log_rms_share_of_read": round(taken["read"] / taken["log_rms"], 3),
        "log_rms_share_of_loop": round(taken["loop"] / taken["log_rms"], 3),
        "difference": difference,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2**22)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for found in run(arguments.samples, arguments.rounds):
        print(json.dumps(found), flush=True)
