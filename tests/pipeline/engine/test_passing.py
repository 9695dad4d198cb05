"""Spans that pass the landmarks: one a task or several, the same numbers, and one at a time in memory."""

import dask
import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import cuts, passing, windows
from manifold_observer.pipeline.engine.blocks import Part
from manifold_observer.pipeline.graph.limits import Workers
from manifold_observer.pipeline.graph.slabs import Later, Reading
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.slab import Metric

N = 600


@pytest.fixture
def stored(tmp_path):
    """Frames that tasks read themselves."""
    walk = np.random.default_rng(0).normal(size=(N, 3)).cumsum(axis=0)
    frames = xr.Dataset({"frames": (("frame", "feature"), walk)})
    frames.chunk(frame=200).to_zarr(tmp_path / "frames.zarr", consolidated=False)
    return xr.open_zarr(tmp_path / "frames.zarr", consolidated=False, chunks={"frame": 200})["frames"]


def embedded(frames, lazy, route):
    engine = mo.Engine(method="landmarks", landmarks=50, landmark_route=route, lazy=lazy)
    return mo.embed(frames, n_modes=3, engine=engine).compute()


SLOW = [pytest.param("never", route, marks=pytest.mark.slow) for route in ("nystrom", "diffusion")]


@pytest.mark.parametrize(("lazy", "route"), [("always", "nystrom"), *SLOW])
def test_embed__several_spans_a_task_have_the_bits_of_one(stored, monkeypatch, workers_here, lazy, route):
    expected = embedded(stored, lazy, route)
    seen, later = [], passing._later
    monkeypatch.setattr(passing, "_later", lambda rows: seen.append(rows) or later(rows))
    monkeypatch.setattr("manifold_observer.pipeline.engine.blocks._HERE_BYTES", 0)
    monkeypatch.setattr("manifold_observer.pipeline.engine.blocks._KEEP_BYTES", 0)
    monkeypatch.setattr(passing, "spans_together", lambda n_spans, n_workers: 4)
    monkeypatch.setattr(passing, "_MANY_WORKERS", 2)
    with workers_here(2):
        found = embedded(stored, lazy, route)
    assert any(isinstance(rows, Reading) for rows in seen)
    for name in ("coordinate", "degree", "eigenvalue", "residual", "principal"):
        np.testing.assert_array_equal(found[name].values, expected[name].values)


def test_on_spans__each_is_read_when_its_turn_comes():
    done = []

    class Watched:
        shape = (20, 2)

        def __getitem__(self, key):
            done.append(f"read {key[0].start}")
            return np.arange(40.0).reshape(20, 2)[key]

    def function(slab, *others):
        done.append("used")
        return len(slab.frames)

    distance = Distance(Metric(3, PseudoInverse()), Axes(np.zeros(2), None), "quadratic", "float64")
    spans = [(0, 10), (10, 20)]
    pieces = [
        passing.Piece(
            Part(Later(Reading(Watched(), *span)), None, windows.reach(np.zeros(10), 3, (0, 10))), passing.Own(span)
        )
        for span in spans
    ]
    assert passing._on_spans(function, distance, pieces) == [10, 10]
    assert done == ["read 0", "used", "read 10", "used"]


def test_reads_itself__not_where_other_tasks_make_the_frames(stored):
    segment = np.zeros(N, np.int64)
    assert passing._reads_itself(passing.Table(stored.data, segment, None))
    assert passing._reads_itself(passing.Table(np.zeros((N, 3)), segment, None))
    assert not passing._reads_itself(passing.Table(stored.data + 1, segment, None))
    assert not passing._reads_itself(passing.Table(stored.data, segment, dask.array.ones((N, 3, 3))))


def test_embed__large_sums_come_a_span_a_task_and_a_few_at_a_time(stored, monkeypatch):
    seen, stream = {}, passing.stream

    def watching(made, number, stage, *others, at_once):
        seen[stage] = number, at_once
        return stream(made, number, stage, *others, at_once=at_once)

    monkeypatch.setattr(passing, "stream", watching)
    monkeypatch.setattr(passing, "spans_together", lambda n_spans, n_workers: 3)
    monkeypatch.setattr("manifold_observer.pipeline.engine.decide.workers", lambda: Workers(64, 2**33))
    monkeypatch.setattr("manifold_observer.pipeline.engine.landmarks.link_rows", lambda *_: 100)
    embedded(stored.compute(), "never", "diffusion")
    assert seen["links"] == (-(-N // 100), False)
    assert seen["sums"] == (-(-len(cuts.landmark_spans(N, 3)) // 3), True)


def test_spans_a_task__counts_threads_and_groups_nothing_that_others_make(stored):
    read, made = (passing.Table(data, np.zeros(N, np.int64), None) for data in (stored.data, stored.data + 1))
    many = Workers(16, 2**33, threads=4)
    assert passing.spans_a_task(read, 2442, many) == cuts.spans_together(2442, 64) > cuts.spans_together(2442, 16)
    assert passing.spans_a_task(made, 2442, many) == 1
    assert passing.spans_a_task(read, 2442, Workers(1, 2**33, threads=64)) == 1


@pytest.mark.parametrize("n_workers", [1, 2, 8, 16, 64, 256, 1000])
@pytest.mark.parametrize("n_spans", [1, 16, 245, 2442, 24415])
def test_spans_together__leave_every_worker_enough_tasks_and_no_more(n_spans, n_workers):
    together = cuts.spans_together(n_spans, n_workers)
    tasks = -(-n_spans // together)
    assert tasks >= min(n_spans, 4 * n_workers)
    assert together.bit_count() == 1  # a node of the tree that sums are taken in
    assert tasks <= 16 * n_workers or together > 0.5 * n_workers / 8
    assert -(-tasks // n_workers) * together <= 1.05 * -(-n_spans // n_workers)
