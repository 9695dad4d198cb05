"""Recordings so long that nothing of their length is held in this process: made short, with a low threshold."""

import importlib
import pickle

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.embedding import read
from manifold_observer.pipeline.engine import memory
from manifold_observer.pipeline.frames import segments
from manifold_observer.pipeline.graph import limits
from manifold_observer.pipeline.jobs import filling, store
from manifold_observer.tasks.engine import extension
from strategies import seldom

PACKAGE = "manifold_observer.pipeline"
# Modules that ask from where on a recording is long.
ASKING = (
    "comparison.scores",
    "engine.decide",
    "frames.dates",
    "frames.frame_times",
    "jobs.continuation",
    "jobs.filling",
    "jobs.held",
    "observers.coordinates",
)
N = 1200
# Which is short for the dynamics of a mode to be told from it.
pytestmark = pytest.mark.filterwarnings("ignore:calibrate")


@pytest.fixture
def long_from(monkeypatch):
    """Let recordings count as long from fewer frames on."""

    def lower(n_frames):
        for name in ASKING:
            monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.{name}"), "LAZY_FRAMES", n_frames)
        monkeypatch.setattr(segments, "_READ_TOGETHER", max(n_frames // 3, 1))

    return lower


def walk(n, p=4, seed=0):
    """Sensors that answer to a hidden walk."""
    rng = np.random.default_rng(seed)
    hidden = np.sin(0.1 * rng.normal(size=(n, 2)).cumsum(axis=0))
    return np.tanh(hidden @ rng.normal(size=(2, p))) + 0.1 * rng.normal(size=(n, p))


def stored_recording(path, n, dated=False):
    """A recording with two gaps."""
    time = np.arange(n) / 10.0
    time[n // 3 :] += 100.0
    time[n // 2 :] += 0.3
    if dated:
        time = np.datetime64("2031-03-09T12:00", "ns") + (1e9 * time).astype("timedelta64[ns]")
    made = xr.Dataset({"recording": (("time", "channel"), walk(n))}, coords={"time": time})
    made.to_zarr(path, consolidated=False)
    return path


def config(preset, **options):
    engine = {"method": "landmarks", "landmarks": 60}
    return mo.RunConfig(
        mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=3, preset=preset, **engine), **options
    )


def assert_same(one, other):
    """The same variables, to the bit."""
    assert set(one.children) == set(other.children)
    for name, group in one.children.items():
        assert set(group.variables) == set(other[name].variables)
        for variable in group.variables:
            expected, found = group[variable].values, other[name][variable].values
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f"), f"{name}/{variable}"


def test_every_module_that_asks_is_lowered():
    there = [name for name in ASKING if hasattr(importlib.import_module(f"{PACKAGE}.{name}"), "LAZY_FRAMES")]
    assert there == list(ASKING)
    assert limits.LAZY_FRAMES == 2**19


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "dated"), [("auto", False), ("auto", True), ("paper", False)])
def test_run__a_long_recording_has_the_bits_of_a_short_one(tmp_path, long_from, preset, dated):
    recording = stored_recording(tmp_path / "recording.zarr", N, dated)
    expected = mo.run(recording, tmp_path / "short.zarr", config(preset, smooth=True))
    long_from(300)
    found = mo.run(recording, tmp_path / "long.zarr", config(preset, smooth=True))
    assert_same(expected, found)
    state = found["state"].to_dataset()
    assert not any(state.coords[name].variable._in_memory for name in ("time", "segment"))


@pytest.mark.slow
def test_write_frames__labels_that_are_stored_elsewhere_are_written_too(tmp_path, long_from):
    mo.run(stored_recording(tmp_path / "recording.zarr", N), tmp_path / "result.zarr", config("auto"))
    long_from(300)
    frames = mo.load(tmp_path / "result.zarr")["frames/frames"]
    assert not frames["time"].variable._in_memory
    with store.writing(tmp_path / "again", []) as folder:
        store.start(folder, {})
        found = filling.write_frames(folder, frames)
        np.testing.assert_array_equal(found["time"].values, frames["time"].values)


@pytest.mark.slow
def test_continue__goes_on_from_a_long_result_as_from_a_short_one(tmp_path, long_from):
    recording = stored_recording(tmp_path / "recording.zarr", N)
    later = tmp_path / "later.zarr"
    values = xr.Dataset({"recording": (("time", "channel"), walk(300, seed=1))})
    values.assign_coords(time=1000.0 + np.arange(300) / 10).to_zarr(later, consolidated=False)
    states = []
    for name, threshold in (("short", limits.LAZY_FRAMES), ("long", 200)):
        long_from(threshold)
        mo.run(recording, tmp_path / f"{name}.zarr", config("auto"))
        mo.continue_run(tmp_path / f"{name}.zarr", later, tmp_path / name)
        states.append(mo.load(tmp_path / name))
    assert_same(*states)


@pytest.mark.parametrize(("chunks", "route"), [(N, "nystrom"), (64, "nystrom"), (999, "diffusion")])
def test_embed__lazy_coordinates_have_the_same_bits_in_any_chunks(chunks, route):
    frames = xr.DataArray(walk(N), dims=("frame", "feature"))
    found = []
    for lazy in ("never", "always"):
        engine = mo.Engine(method="landmarks", landmarks=60, landmark_route=route, lazy=lazy)
        found.append(mo.embed(frames.chunk(frame=chunks), n_modes=3, engine=engine))
    eager, lazy = found
    for name in ("coordinate", "degree", "principal"):
        assert eager[name].chunks is None
        assert lazy[name].chunks is not None
    for name in eager.variables:
        np.testing.assert_array_equal(lazy[name].values, eager[name].values)
    np.testing.assert_array_equal(mo.observe(lazy, frames).state.values, mo.observe(eager, frames).state.values)


def test_embed__exact_coordinates_are_lazy_where_that_is_asked_for():
    frames = xr.DataArray(walk(300), dims=("frame", "feature"))
    found = mo.embed(frames, n_modes=2, engine=mo.Engine(lazy="always"))
    assert found.coordinate.chunks is not None
    np.testing.assert_array_equal(found.coordinate.values, mo.embed(frames, n_modes=2).coordinate.values)


def test_embed__lazy_coordinates_outlive_the_stage_on_a_cluster(workers_here):
    frames = xr.DataArray(walk(N), dims=("frame", "feature")).chunk(frame=500)
    options = {"method": "landmarks", "landmarks": 60}
    expected = mo.embed(frames, n_modes=3, engine=mo.Engine(**options))
    with workers_here(2):
        found = mo.embed(frames, n_modes=3, engine=mo.Engine(**options, lazy="always"))
        for name in ("coordinate", "degree", "principal"):
            np.testing.assert_array_equal(found[name].values, expected[name].values)


def graph_bytes(dataset):
    """Bytes that go to the workers for everything in a dataset."""
    return len(
        pickle.dumps([dict(variable.__dask_graph__()) for variable in dataset.variables.values() if variable.chunks])
    )


@seldom
def test_states__what_is_sent_for_them_does_not_grow_with_the_frames(tmp_path, long_from):
    long_from(200)
    sizes, sent = (600, 2400), []
    for n in sizes:
        np.save(tmp_path / f"{n}.npy", walk(n))
        mo.run(tmp_path / f"{n}.npy", tmp_path / f"{n}.zarr", config("auto"))
        embedding = mo.read_embedding(tmp_path / f"{n}.zarr")
        frames = mo.load(tmp_path / f"{n}.zarr")["frames/frames"].chunk(frame=n // 4)
        made = [mo.observe(embedding, frames), mo.smooth(embedding, frames)]
        for labelled in (embedding, *made):
            along = [v for v in labelled.variables.values() if "frame" in v.dims]
            assert along
            assert not any(v._in_memory for v in along)
        sent.append(np.array([graph_bytes(states) for states in made]))
    # Coordinates and ages were 57 bytes a frame.
    assert ((sent[1] - sent[0]) / (sizes[1] - sizes[0]) < 2).all()


@pytest.mark.parametrize("n", [10, 500])
def test_row_sums_below_which_frames_are_far__are_told_piece_by_piece(monkeypatch, n):
    monkeypatch.setattr(read, "_READ_TOGETHER", 7)
    rng = np.random.default_rng(n)
    degree, numbers = rng.uniform(1, 9, n), np.arange(0, n, 3)
    embedding = xr.Dataset({"degree": ("frame", degree)})
    assert read.far_below(embedding, numbers) == extension.far_below(degree, numbers)


def test_scores__of_many_frames_are_those_of_few(long_from):
    rng = np.random.default_rng(0)
    truth = xr.DataArray(1e3 + walk(N, p=2), dims=("frame", "component"))
    truth[100:130] = np.nan
    whole = truth.fillna(0.0)
    noisy = whole.values @ rng.normal(size=(2, 3)) + rng.normal(size=(N, 3))
    near = xr.DataArray(noisy, dims=("frame", "mode"))
    estimates = {"near": near, "twice": xr.concat([near, near], "mode"), "itself": whole, "constant": 0 * near}
    expected = mo.scores(estimates, truth)
    long_from(170)
    found = mo.scores({name: values.chunk(frame=333) for name, values in estimates.items()}, truth)
    for name in ("correlation", "correlation_held_out"):
        np.testing.assert_allclose(found[name][:3], expected[name][:3], atol=1e-7)
    for name in ("nrmse_db", "nrmse_db_held_out"):
        np.testing.assert_allclose(found[name][:2], expected[name][:2], atol=1e-6)
        np.testing.assert_allclose(found[name][3], expected[name][3], atol=1e-6)
        assert (found[name][2] < -100).all()  # what is read exactly has only rounding for an error
    assert (found.correlation[3] == 0).all()
    near[1000] = np.nan
    with pytest.raises(ValueError, match="near must be finite"):
        mo.scores({"near": near}, truth)


def test_plan__counts_what_workers_keep_and_nothing_of_it_here():
    frames = xr.DataArray(walk(N), dims=("frame", "feature"))
    plans = [
        mo.plan(frames, engine=mo.Engine(method="landmarks", landmarks=60, lazy=lazy)) for lazy in ("never", "always")
    ]
    kept = memory.coordinate_bytes(N, 6, plans[0].n_workers, 4)
    assert plans[1].peak_worker_bytes - plans[0].peak_worker_bytes == kept
    assert plans[0].peak_caller_bytes - plans[1].peak_caller_bytes >= 8 * 7 * N
