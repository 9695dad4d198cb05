"""Bounds of memory count what runs at once."""

import dask
import numpy as np
import pytest
import xarray as xr
from distributed import Client, LocalCluster

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import memory
from manifold_observer.pipeline.engine.cuts import landmark_spans
from manifold_observer.pipeline.engine.tiling import tiling
from manifold_observer.pipeline.graph.spans import blocks
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.slab import Metric
from strategies import smooth_motion

DISTANCE = Distance(Metric(21, PseudoInverse()), Axes(np.zeros(20), None), "quadratic", "float32")


def _exact(shape):
    return memory.exact_memory(shape, "recomputed", 4, 2)


def _few_landmarks(shape):
    return memory.landmark_memory(shape, 500)


def test_memory__a_worker_runs_a_task_on_each_of_its_threads():
    one, four = (memory.Shape(10**5, DISTANCE, 2048, 21, threads) for threads in (1, 4))
    for bound in (_exact, _few_landmarks):
        assert bound(four).task == bound(one).task
        assert bound(four).worker - bound(one).worker == 3 * bound(one).task


@pytest.mark.parametrize("n_frames", [500, 3000, 20_000])
def test_memory__no_more_tasks_than_a_stage_has_are_counted_and_no_fewer(n_frames):
    one, many = (memory.Shape(n_frames, DISTANCE, 2048, 21, threads) for threads in (1, 500))
    spans = blocks(n_frames, 2048)
    n_tasks = {
        _exact: len(tiling([None] * len(spans), spans, "float32", 2).panels),
        _few_landmarks: len(landmark_spans(n_frames, 20)),
    }
    for bound, number in n_tasks.items():
        assert bound(many).worker - bound(one).worker == (number - 1) * bound(one).task


def test_memory__frames_that_are_kept_as_they_were_computed_are_counted():
    """16,000 spectra of 513 bins: 66 MB, where 20 axes have 3."""
    axes = Axes(np.zeros(513), np.zeros((513, 20)))
    narrow, wide = (memory.Shape(16_000, DISTANCE._replace(axes=own), 2048, 21) for own in (DISTANCE.axes, axes))
    assert wide.n_axes == narrow.n_axes
    more = 8 * 16_000 * (513 - 20)
    assert _exact(wide).worker == _exact(narrow).worker + more


def test_refusal__fewer_threads_are_advice_that_helps():
    frames = xr.DataArray(smooth_motion(np.random.default_rng(1), 3000, 6), dims=("frame", "feature"))
    engine = mo.Engine(form="quadratic", precision="float32")  # what is timed may come out otherwise
    with dask.config.set(num_workers=1):
        enough = mo.plan(frames, n_modes=3, engine=engine).peak_worker_bytes
    with dask.config.set({"num_workers": 6, "manifold-observer.memory": enough}):
        with pytest.raises(ValueError, match=r"or fewer threads .*dask\.config\.set\(num_workers=1\) in Python"):
            mo.plan(frames, n_modes=3, engine=engine)
        with dask.config.set(num_workers=1):
            assert mo.plan(frames, n_modes=3, engine=engine).worker_limit_bytes == enough
    # A worker in this process counts all that the process holds, and would pause.
    held = dict.fromkeys(("target", "spill", "pause", "terminate"), False)
    with (
        dask.config.set({f"distributed.worker.memory.{name}": at for name, at in held.items()}),
        LocalCluster(
            n_workers=1, threads_per_worker=6, processes=False, memory_limit=enough, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster),
        pytest.raises(ValueError, match=r", or workers with fewer threads\.$"),
    ):
        mo.plan(frames, n_modes=3, engine=engine)


def test_plan__counts_the_threads_of_workers():
    frames = xr.DataArray(smooth_motion(np.random.default_rng(1), 3000, 6), dims=("frame", "feature"))
    found = []
    for threads in (1, 3):
        with dask.config.set(scheduler="threads", num_workers=threads):
            found.append(mo.plan(frames, n_modes=3))
    assert found[1].peak_worker_bytes == found[0].peak_worker_bytes + 2 * found[0].bytes_per_task
    with (
        LocalCluster(n_workers=1, threads_per_worker=3, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster),
    ):
        assert mo.plan(frames, n_modes=3).peak_worker_bytes == found[1].peak_worker_bytes
