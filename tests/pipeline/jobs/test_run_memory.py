"""Peak memory of a worker while features are stored: the same for a short recording and a long one."""

from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs.progress import Stages
from manifold_observer.pipeline.jobs.run import store_frames
from manifold_observer.pipeline.jobs.store import start, writing

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


def peak():
    """Largest resident memory of this process so far, bytes."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return 1024 * int(line.split()[1])


def write_recording(path, n_samples):
    """Noise of 4 bytes a sample, written without holding it."""
    place = np.lib.format.open_memmap(path, "w+", np.float32, (n_samples, 1))
    noise = np.random.default_rng(0).normal(size=(2**20, 1)).astype(np.float32)
    for first in range(0, n_samples, 2**20):
        place[first : first + 2**20] = noise


@pytest.mark.slow
def test_store_frames__peak_memory_does_not_grow_with_the_recording(tmp_path):
    peaks = []
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        for megasamples in (8, 16, 64):
            path = tmp_path / f"{megasamples}.npy"
            write_recording(path, megasamples * 2**20)
            frames = mo.log_rms(mo.open_recording(path, sampling_rate=1000.0), frame=1000)
            with writing(tmp_path / f"{megasamples}.zarr") as folder:
                start(folder, {})
                store_frames(folder, frames, Stages())
            path.unlink()
            peaks.append(client.run(peak).popitem()[1])
    # 200 MB more of samples; what is read ahead is less than the two slabs of 16 MB that float64 takes.
    assert peaks[2] - peaks[1] < 2**25
