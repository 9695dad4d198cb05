"""A corpus whose recordings and results lie in a bucket is the local one."""

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.corpus.clean import clean_corpus
from manifold_observer.pipeline.jobs.events import listen
from manifold_observer.pipeline.stores.address import place
from manifold_observer.pipeline.stores.objects import look, read, remove, sizes, upload, write
from manifold_observer.pipeline.stores.zarrs import zarr_target
from strategies import seldom

pytestmark = pytest.mark.usefixtures("in_this_thread")
RUN = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))


def put(folder, address, seed, n=80):
    """Put a walk into a bucket, and into a folder."""
    values = np.random.default_rng(seed).normal(size=(n, 3)).cumsum(axis=0)
    if address.suffix == ".zarr":
        for at in (zarr_target(address), folder / address.name):
            xr.Dataset({"walk": (("time", "channel"), values)}).to_zarr(at, zarr_format=3, consolidated=False, mode="w")
    else:
        np.save(folder / address.name, values)
        upload(folder / address.name, address)


def computed(config):
    """Names of the recordings that a call computes."""
    seen = []
    with listen(seen.append):
        mo.run_corpus(config)
    return [event.recording for event in seen if event.kind == "finished"]


@pytest.mark.slow
def test_run_corpus__in_a_bucket(bucket, tmp_path):
    (tmp_path / "in").mkdir()
    for seed, name in enumerate(["a.npy", "b.zarr"]):
        put(tmp_path / "in", place(f"{bucket}/in/{name}"), seed)
    write(place(f"{bucket}/in/broken.npy"), b"not an array")
    config = mo.CorpusConfig([f"{bucket}/in/*"], f"{bucket}/out", RUN, backoff=0.0, folder=str(tmp_path))
    found = mo.run_corpus(config)
    assert found.counts == {"done": 2, "failed": 1}
    (sentence,) = [one["sentence"] for one in found.recordings if one["outcome"] == "failed"]
    assert f"{bucket}/in/broken.npy" in sentence
    alone, among = tmp_path / "b.zarr", place(f"{bucket}/out/b.zarr")
    mo.run([tmp_path / "in" / "b.zarr"], alone, RUN)
    chunks = [key for key in sizes(among) if not key.endswith("zarr.json")]  # attributes name the recordings
    assert {key: read(among / key) for key in chunks} == {key: (alone / key).read_bytes() for key in chunks}
    table = xr.open_zarr(zarr_target(place(f"{bucket}/out/corpus.zarr")), consolidated=False)
    assert table.recording.values.tolist() == ["a", "b", "broken"]
    # The same again computes nothing; what has changed, is lost or new is computed.
    assert computed(config) == []
    put(tmp_path / "in", place(f"{bucket}/in/a.npy"), 7)
    remove([place(f"{bucket}/out/b.zarr") / name for name in sizes(place(f"{bucket}/out/b.zarr"))])
    assert computed(config) == ["a", "b"]
    # What is out of retention goes, and nothing else.
    note = place(f"{bucket}/out/a.zarr/note.txt")
    write(note, b"mine")
    went = clean_corpus(replace(config, keep=1))
    assert [(one.path.name, bool(one.stays)) for one in went] == [("a.zarr", True)]
    assert read(note) == b"mine"
    remove([note])
    went = clean_corpus(replace(config, keep=1))
    assert [(one.path.name, one.stays) for one in went] == [("a.zarr", "")]
    assert [look(place(f"{bucket}/out/{name}.zarr/zarr.json")) is None for name in "ab"] == [True, False]


@seldom
def test_run_corpus__a_store_that_is_busy_is_asked_again(bucket, s3, tmp_path):
    put(tmp_path, place(f"{bucket}/in/a.npy"), 1)
    config = mo.CorpusConfig([f"{bucket}/in/a.npy"], f"{bucket}/out", RUN, backoff=0.0, folder=str(tmp_path))
    with s3.app.spoilt(503, "SlowDown", methods=("PUT",), within="/result/state/", times=7):  # 1 and 5 more, and 1
        assert mo.run_corpus(config).counts == {"done": 1}


def test_corpus_config__addresses_hold_no_secrets():
    with pytest.raises(ValueError, match=r"must have no password and no signature.* https://example\.org/a\.npy"):
        mo.CorpusConfig(["https://me:secret@example.org/a.npy"])


@pytest.mark.slow
def test_run__skip_existing_of_a_bucket(bucket, tmp_path):
    from manifold_observer.pipeline.jobs.existing import made_already  # noqa: PLC0415

    recording, out = place(f"{bucket}/a.npy"), place(f"{bucket}/a.zarr")
    put(tmp_path, recording, 1)
    assert not made_already([recording], out, RUN)
    mo.run([recording], out, RUN)
    assert made_already([recording], out, RUN)
    assert json.loads(read(out / "zarr.json"))["attributes"]["sources"] == [str(recording)]
    put(tmp_path, recording, 2)
    with pytest.raises(ValueError, match="recordings that have changed since"):
        made_already([recording], out, RUN)


@seldom
def test_run_corpus__one_map_over_recordings_in_a_bucket(bucket, tmp_path):
    for seed in range(2):
        put(tmp_path, place(f"{bucket}/in/{seed}.npy"), seed, n=150)
    there = mo.CorpusConfig(
        [f"{bucket}/in/*.npy"], f"{bucket}/out", RUN, shared=mo.MapConfig(frames=200), folder=str(tmp_path)
    )
    assert mo.run_corpus(there).counts == {"done": 2}
    here = replace(there, inputs=(str(tmp_path / "*.npy"),), output=str(tmp_path / "out"))
    assert mo.run_corpus(here).counts == {"done": 2}
    name = "state/state/c/0/0"
    for seed in range(2):
        local = tmp_path / "out" / f"{seed}.zarr" / name
        assert read(place(f"{bucket}/out/{seed}.zarr/{name}")) == local.read_bytes()
