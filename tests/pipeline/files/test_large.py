"""Files of several gigabytes that are not stored in chunks open at once, and a slice reads its part alone."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.graph.slabs import SLAB_BYTES
from strategies import share

N, P, RATE = 20_000_000, 64, 256.0
AT = 12_345_678
PART = (np.arange(100 * P, dtype=np.float32) + 1).reshape(100, P)

# Opens a file, reads a slice, and takes frames of a part, in a process whose memory is watched from then on.
PROGRAM = """
import json, sys, time, warnings
import numpy as np
import manifold_observer.pipeline as mo


def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

path, first, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[4])
mo.log_rms(mo.open_recording(sys.argv[3]), frame=10, floor=1e-6).compute()
before = peak()
began = time.perf_counter()
recording = mo.open_recording(path, **options)
seconds = time.perf_counter() - began
part = recording[first : first + 100].values
opened = peak() - before
frames = mo.log_rms(recording[: 2_000_000], frame=256, floor=1e-6).compute(scheduler="sync")
print(json.dumps({"seconds": seconds, "sum": float(part.sum()), "opened": opened, "frames": peak() - before}))
"""


def write_hdf5(path, names=("volts",)):
    """A contiguous file with a hole, and a part that is stored."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.CONTIGUOUS)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        for name in names:
            space = h5py.h5s.create_simple((N, P))
            made = h5py.Dataset(h5py.h5d.create(file.id, name.encode(), h5py.h5t.IEEE_F32LE, space, plist))
            made[AT : AT + len(PART)] = PART
            made.attrs["sampling_rate"] = RATE
    return path


def write_netcdf4(path):
    """The same with dimensions that have names."""
    h5py, h5netcdf = pytest.importorskip("h5py"), pytest.importorskip("h5netcdf")
    write_hdf5(path)
    with h5netcdf.File(path, "a") as file:
        file.dimensions = {"time": N, "channel": P}
    with h5py.File(path, "r+") as file:
        for axis, name in enumerate(("time", "channel")):
            file["volts"].dims[axis].attach_scale(file[name])
    return path


def write_netcdf3(path):
    """Classic NetCDF whose records have a hole: its header counts more than were written."""
    values = np.zeros((2, P), np.float32)
    small = xr.Dataset({"volts": (("time", "channel"), values, {"sampling_rate": RATE})})
    small.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT", unlimited_dims=["time"])
    content = path.read_bytes()
    start = len(content) - values.nbytes
    with path.open("r+b") as file:
        file.seek(4)
        file.write(N.to_bytes(4, "big"))
        file.seek(start + AT * 4 * P)
        file.write(PART.astype(">f4").tobytes())
        file.truncate(start + N * 4 * P)
    return path


def first_of(path):
    """A small file, so that imports are over before memory is watched."""
    xr.Dataset({"volts": (("time", "channel"), np.ones((40, 2)), {"sampling_rate": RATE})}).to_netcdf(path)
    return path


KINDS = {
    "NetCDF 4": (write_netcdf4, "a.nc", {}),
    "NetCDF 3": (write_netcdf3, "a.nc", {}),
    "HDF5": (write_hdf5, "a.h5", {"time_dim": "phony_dim_0"}),
}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("kind", share(KINDS, 3))
def test_contiguous_file__opens_at_once_and_reads_its_part(tmp_path, kind):
    write, name, options = KINDS[kind]
    path = write(tmp_path / name)
    assert path.stat().st_size > 5e9
    first = first_of(tmp_path / ("first" + path.suffix.replace(".h5", ".nc")))
    command = [sys.executable, "-c", PROGRAM, path, str(AT), first, json.dumps(options)]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sum"] == float(PART.sum())
    assert found["seconds"] < 1
    assert found["opened"] < 40
    assert found["frames"] < 250  # 512 MB are read in slabs


@pytest.mark.parametrize("name", ["a.nc"])
def test_contiguous_labels__are_in_slabs_as_well(tmp_path, name):
    if importlib.util.find_spec("h5netcdf") is None:
        pytest.skip("needs h5netcdf")
    n = 5_000_000
    columns = {"volts": ("time", np.zeros(n, np.float32)), "stage": ("time", np.zeros(n, np.int64))}
    xr.Dataset(columns, attrs={"sampling_rate": RATE}).to_netcdf(tmp_path / name, engine="h5netcdf")
    recording = mo.open_recording(tmp_path / name, labels="stage", channels="volts")
    assert max(recording["stage"].chunks[0]) * 8 <= SLAB_BYTES
    assert max(recording.chunks[0]) * 4 <= SLAB_BYTES
