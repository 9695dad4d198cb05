"""Advice on chunks that cost more than twice the reading that others would."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.files import plain_places
from manifold_observer.pipeline.frames import chunking
from manifold_observer.pipeline.graph import slabs

N, P = 20_000, 4
VALUES = np.random.default_rng(0).normal(size=(N, P)).astype(np.float32)


def stored(folder, chunks, kind="zarr", dims=("time", "channel")):
    """A recording with such chunks."""
    dataset = xr.Dataset({"recording": (dims, VALUES)}, attrs={"sampling_rate": 100.0})
    path = folder / f"night.{kind}"
    if kind == "zarr":
        dataset.to_zarr(path, encoding={"recording": {"chunks": chunks}}, consolidated=False)
    else:
        dataset.to_netcdf(path, engine="h5netcdf", encoding={"recording": {"chunksizes": chunks, "zlib": True}})
    return path


def advice(path, **options):
    """What opening says of the chunks."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        mo.open_recording(path, **options)
    return [str(one.message) for one in seen if "stored in chunks" in str(one.message)]


@pytest.fixture
def small_slabs(monkeypatch):
    """As if a few kilobytes were many."""
    monkeypatch.setattr(slabs, "SLAB_BYTES", 2**13)
    monkeypatch.setattr(slabs, "_KEPT_BYTES", 2**16)
    monkeypatch.setattr(plain_places, "MOST_BYTES", 2**12)  # half a slab, as it is
    monkeypatch.setattr(chunking, "_WASTE", 2**10)


CASES = {
    "tiny": ((10, P), "zarr", "10 x 4"),
    "tiny, of one channel": ((20, 1), "zarr", "20 x 1"),
    "tiny, in HDF5": ((4, P), "nc", "4 x 4"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_advice__tiny_chunks(tmp_path, name, monkeypatch):
    monkeypatch.setattr(chunking, "_WASTE", 2**20)
    chunks, kind, shape = CASES[name]
    (sentence,) = advice(stored(tmp_path, chunks, kind))
    assert f"chunks of {shape} samples x channels" in sentence
    assert f".chunk(time={N})" in sentence


@pytest.mark.parametrize("kind", ["zarr", "nc"])
@pytest.mark.parametrize("chunks", [(N, 1), (N // 2, P)])
@pytest.mark.usefixtures("small_slabs")
def test_advice__chunks_longer_than_any_read(tmp_path, kind, chunks):
    (sentence,) = advice(stored(tmp_path, chunks, kind))
    assert f"chunks of {chunks[0]} x {chunks[1]} samples" in sentence


@pytest.mark.usefixtures("small_slabs")
def test_advice__a_dimension_of_another_name(tmp_path):
    assert advice(stored(tmp_path, (N, 1), dims=("t", "channel")), time_dim="t")


@pytest.mark.parametrize("kind", ["zarr", "nc"])
@pytest.mark.parametrize("chunks", [(N, P), (N, 1), (5000, P), (5000, 1)])
def test_advice__there_is_none_for_chunks_that_are_read_once(tmp_path, kind, chunks):
    assert advice(stored(tmp_path, chunks, kind)) == []


@pytest.mark.slow
def test_advice__what_it_says_to_do_ends_it(tmp_path, monkeypatch):
    monkeypatch.setattr(chunking, "_WASTE", 2**20)
    path = stored(tmp_path, (10, P))
    assert advice(path)
    old = xr.open_dataset(path, engine="zarr", consolidated=False)
    old.chunk(time=N).drop_encoding().to_zarr(tmp_path / "new.zarr", consolidated=False)
    assert advice(tmp_path / "new.zarr") == []


@pytest.mark.slow
@pytest.mark.filterwarnings("always:.*stored in chunks")
@pytest.mark.parametrize("command", ["look", "plan", "run"])
def test_advice__is_given_by_look_plan_and_run(tmp_path, monkeypatch, console, command):
    monkeypatch.setattr(chunking, "_WASTE", 2**20)
    path = stored(tmp_path, (40, P))
    features = ["--features", "log_rms", "--frame", "100", "--cluster", "none"]
    words = {
        "look": [str(path), "--json"],
        "plan": [str(path), *features],
        "run": [str(path), str(tmp_path / "out.zarr"), *features],
    }
    code, out, err = console(command, *words[command])
    told = json.loads(out)["files"][0]["warnings"] if command == "look" else [err]
    assert code == 0, err
    assert sum("stored in chunks of 40 x 4" in one for one in told) == 1
