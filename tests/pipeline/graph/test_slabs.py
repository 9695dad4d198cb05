"""Stored samples and frames are read by the tasks that use them: few tasks, little memory, the same bits."""

import functools
import itertools
import pickle

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from dask.delayed import Delayed
from distributed import Client
from numpy.testing import assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames import runs as runs_of_frames
from manifold_observer.pipeline.graph import compute as graph
from manifold_observer.pipeline.graph import slabs
from manifold_observer.pipeline.graph.limits import Workers
from manifold_observer.pipeline.graph.slabs import Reading, chunks_of, rows_of, source_of
from manifold_observer.pipeline.jobs import filling, store
from strategies import share

soundfile = pytest.importorskip("soundfile")
N = 1500
VALUES = np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32).clip(-4, 4)
SECONDS = np.arange(N) / 100.0


def labelled(values=VALUES):
    coords = {"time": SECONDS[: len(values)], "channel": np.arange(values.shape[1])}
    return xr.Dataset({"volts": (("time", "channel"), values)}, coords=coords)


def zarr_of(dataset, chunks):
    return lambda path: dataset.to_zarr(
        path, zarr_format=3, consolidated=False, encoding={name: {"chunks": chunks} for name in dataset.data_vars}
    )


def netcdf_of(chunks):
    return lambda path: labelled().to_netcdf(path, engine="h5netcdf", encoding={"volts": {"chunksizes": chunks}})


def columns():
    return xr.Dataset({name: ("time", VALUES[:, k]) for k, name in enumerate(("a", "b"))}, coords={"time": SECONDS})


STORES = {
    "one-sample.zarr": zarr_of(labelled(), (1, 2)),
    "ten-samples.zarr": zarr_of(labelled(), (10, 2)),
    "whole.zarr": zarr_of(labelled(), (N, 2)),
    "turned.zarr": zarr_of(labelled().transpose("channel", "time"), (1, 77)),
    "column.zarr": zarr_of(columns()[["a"]], (13,)),
    "columns.zarr": zarr_of(columns(), (13,)),
    "contiguous.nc": netcdf_of(None),
    "chunked.nc": netcdf_of((100, 1)),
    "sound.wav": lambda path: soundfile.write(path, VALUES / 4, 100, subtype="FLOAT"),
    "numbers.npy": lambda path: np.save(path, VALUES),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Paths of the same samples in all kinds of stores."""
    folder = tmp_path_factory.mktemp("stores")
    paths = {}
    for name, write in STORES.items():
        if name.endswith(".nc"):
            pytest.importorskip("h5py")
        write(folder / name)
        paths[name] = folder / name
    return paths


MAKE = {
    "stft": functools.partial(mo.stft, frame=10),
    "stft overlapping": functools.partial(mo.stft, frame=64, hop=7),
    "one frame a run": functools.partial(mo.log_rms, frame=700),  # longer than stored chunks, and than a task's share
    "histogram": functools.partial(mo.histogram, frame=9, edges=np.linspace(-4, 4, 5)),
    "one sample": functools.partial(mo.log_rms, frame=1, floor=1e-6),
    "identity": mo.identity,
}


def n_tasks(array):
    return len(dict(array.__dask_graph__()))


@pytest.mark.filterwarnings("ignore:.* is stored in chunks of 1 x 2")
@pytest.mark.usefixtures("in_this_thread")
@pytest.mark.parametrize(("name", "make"), share(itertools.product(STORES, MAKE), 4))
def test_features__one_task_a_run_whatever_the_chunks_and_the_same_bits(stored, monkeypatch, name, make):
    monkeypatch.setattr("manifold_observer.pipeline.frames.segments.FEATURE_TASK_BYTES", 9000)
    recording = mo.open_recording(stored[name], sampling_rate=100.0 if name.endswith(".npy") else None)
    frames = MAKE[make](recording)
    assert n_tasks(frames.data) == frames.data.npartitions > 1
    here = recording.compute()
    assert_array_equal(frames.values, MAKE[make](here).values)
    expected = {"sound.wav": VALUES / 4, "column.zarr": VALUES[:, :1]}.get(name, VALUES)
    assert_array_equal(here.sortby("channel").values, expected)  # a group's variables come in any order


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_thread")
def test_open_recording__a_store_of_many_chunks_is_few_tasks(tmp_path):
    values = np.arange(10_000.0)
    zarr_of(xr.Dataset({"x": ("time", values)}), (10,))(tmp_path / "tiny.zarr")  # chunks of 80 bytes
    recording = mo.open_recording(tmp_path / "tiny.zarr", sampling_rate=100.0)
    assert recording.chunks == ((10_000,), (1,))
    assert n_tasks(recording.data) <= 3
    assert n_tasks(mo.log_rms(recording, frame=20, floor=1.0).data) == 1
    assert_array_equal(recording.values.ravel(), values)
    # what a user did to it is still few tasks
    assert n_tasks(mo.log_rms(2 * recording, frame=20, floor=1.0).data) <= 8


@pytest.mark.usefixtures("in_this_thread")
def test_features__many_short_segments_are_few_tasks():
    segment = np.repeat(np.arange(N // 75), 75)
    recording = labelled()["volts"].drop_vars("time").assign_coords(segment=("time", segment)).chunk()
    frames = mo.stft(recording.assign_attrs(sampling_rate=1.0), frame=50)
    assert frames.data.npartitions == 1
    expected = np.concatenate([mo.stft(recording[a : a + 75].drop_vars("segment"), frame=50) for a in range(0, N, 75)])
    assert_array_equal(frames.values, expected)
    assert_array_equal(frames["segment"], np.arange(N // 75))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* is stored in chunks of 1 x 2")
def test_open_recording__slabs_are_whole_chunks_of_about_16_megabytes(monkeypatch, tmp_path):
    monkeypatch.setattr(slabs, "SLAB_BYTES", 1000)  # 125 samples of both channels
    for grain, rows in ((1, 125), (10, 120), (60, 120), (125, 125), (500, 500)):
        zarr_of(labelled(), (grain, 2))(tmp_path / f"{grain}.zarr")
        assert mo.open_recording(tmp_path / f"{grain}.zarr").chunks[0][0] == rows
    monkeypatch.setattr(slabs, "_KEPT_BYTES", 2000)  # larger stored chunks are cut
    assert mo.open_recording(tmp_path / "500.zarr").chunks[0][0] == 125


@pytest.mark.usefixtures("in_this_thread")
def test_stored__large_chunks_are_decoded_once_for_the_slabs_that_lie_in_them(stored, monkeypatch):
    monkeypatch.setattr(slabs, "SLAB_BYTES", 1000)
    monkeypatch.setattr("manifold_observer.pipeline.frames.segments.FEATURE_TASK_BYTES", 4000)  # 250 samples of a task
    decoded, read = [], slabs.Stored._read
    monkeypatch.setattr(slabs.Stored, "_read", lambda self, rows: decoded.append(rows) or read(self, rows))
    recording = mo.open_recording(stored["whole.zarr"])
    frames = mo.log_rms(recording, frame=10)
    assert frames.data.npartitions == 6
    expected = np.log(np.sqrt(np.square(VALUES.reshape(-1, 10, 2).astype(float)).mean(axis=1)))
    np.testing.assert_allclose(frames.values, expected)
    assert decoded == [slice(0, N)]
    assert_array_equal(recording.values[5:700:3], source_of(recording.data)[5:700:3, :])
    assert runs_of_frames.task_memory(frames).task >= 2 * VALUES.nbytes


def test_reading__is_small_to_send(stored):
    recording = mo.open_recording(stored["ten-samples.zarr"])  # whose clock alone is 12,000 bytes
    reading = rows_of(recording.data, (5, 9))
    assert isinstance(reading, Reading)
    sent = pickle.dumps(reading)
    assert len(sent) < 8000
    assert_array_equal(pickle.loads(sent).read(), VALUES[5:9])


@pytest.mark.usefixtures("in_this_thread")
def test_rows_of__stored_frames_are_read_by_their_task_and_others_are_not(stored):
    whole = xr.open_zarr(stored["ten-samples.zarr"], consolidated=False)["volts"].data
    task = graph.task(np.sum, rows_of(whole, (3, 50)))
    assert n_tasks(task) == 1
    assert graph.compute([task]) == [VALUES[3:50].sum()]
    for changed in (whole + 1, whole[5:], whole.rechunk(100), da.from_array(VALUES), whole.persist()):
        assert source_of(changed) is None
        assert isinstance(rows_of(changed, (0, 2)), Delayed)
    assert [part.stop - part.start for part in chunks_of(whole)] == [10] * 150


# ------------------------------------------------------------------------------------------- frames are stored


@pytest.fixture
def places(monkeypatch, tmp_path):
    """A place for frames in chunks of 37 frames of two features."""
    monkeypatch.setattr(store, "_CHUNK_NUMBERS", 74)
    with store.writing(tmp_path / "out.zarr") as folder:
        store.start(folder, {})
        yield folder


@pytest.fixture
def runs(monkeypatch):
    """Runs that were computed, in their order; they have 25 frames of two features."""
    monkeypatch.setattr("manifold_observer.pipeline.frames.segments.FEATURE_TASK_BYTES", 4000)
    computed, compute = [], runs_of_frames._compute_run
    monkeypatch.setattr(
        runs_of_frames,
        "_compute_run",
        lambda samples, how, start, *cut: computed.append(start) or compute(samples, how, start, *cut),
    )
    return computed


@pytest.mark.usefixtures("in_this_thread")
def test_write_frames__stores_the_bits_of_the_frames(stored, places, runs):
    frames = mo.log_rms(mo.open_recording(stored["ten-samples.zarr"]), frame=10)
    seen = []
    found = filling.write_frames(places, frames, lambda *step: seen.append(step))
    assert found.chunks[0][:2] == (37, 37)
    assert sorted(runs) == list(range(0, N, 250))
    assert_array_equal(found, frames)
    assert (seen[0], seen[-1]) == (("features", 0, 5), ("features", 5, 5))


def test_write_frames__a_cluster_computes_every_run_once_and_has_few_in_hand(stored, places, runs, monkeypatch):
    ahead, open_array = [], zarr.open_array

    def opening(place, **how):  # once for each chunk of the store
        ahead.append(25 * len(runs) - 37 * len(ahead))
        return open_array(place, **how)

    monkeypatch.setattr(zarr, "open_array", opening)
    frames = mo.log_rms(mo.open_recording(stored["ten-samples.zarr"]), frame=10)
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
        found = filling.write_frames(places, frames)
    assert sorted(runs) == list(range(0, N, 250))
    assert len(ahead) == 5
    assert max(ahead) <= 37 * graph._IN_HAND + 2 * 25
    assert_array_equal(found, frames)


@pytest.mark.usefixtures("in_this_thread")
def test_write_frames__stores_labels_that_are_lazy_too(places):
    lazy = xr.Variable("frame", da.from_array(SECONDS, chunks=100))
    frames = xr.DataArray(da.from_array(VALUES, chunks=(100, -1)), dims=("frame", "feature")).assign_coords(time=lazy)
    assert_array_equal(filling.write_frames(places, frames)["time"], SECONDS)


@pytest.mark.usefixtures("in_this_thread")
def test_write_frames__errors_are_those_of_the_features(tmp_path):
    silent = xr.DataArray(np.zeros((100, 1)), dims=("time", "channel"))

    def stored():
        with store.writing(tmp_path / "out.zarr") as folder:
            store.start(folder, {})
            filling.write_frames(folder, mo.log_rms(silent, frame=10))

    with pytest.raises(ValueError, match=r"log_rms: channel 0 is exactly zero .* at sample 0\. Give the smallest"):
        stored()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_compute")
def test_write_frames__what_does_not_fit_is_refused_before_it_is_computed(places, monkeypatch):
    monkeypatch.setattr(runs_of_frames, "workers", lambda: Workers(1, 2**29))
    wide = xr.DataArray(da.zeros((20_000, 1000), chunks=(5000, -1)), dims=("time", "channel"))
    with pytest.raises(
        ValueError, match=r"log_rms: needs .* per worker, but the limit is .* Take shorter frames or fewer channels"
    ):
        filling.write_frames(places, mo.log_rms(wide, frame=20_000))
