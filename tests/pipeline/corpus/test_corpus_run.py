"""What is due is computed once; every recording has an outcome of its own, and the ledger knows it."""

import os
import shutil
from dataclasses import replace

import dask
import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.corpus import process
from manifold_observer.pipeline.jobs.events import listen
from strategies import share

pytestmark = pytest.mark.usefixtures("in_this_thread")
RUN = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))


def walk(path, n=40, seed=0):
    path.parent.mkdir(exist_ok=True)
    np.save(path, np.random.default_rng(seed).normal(size=(n, 3)).cumsum(axis=0))


def made(folder):
    """A corpus of two recordings, and a broken one."""
    walk(folder / "in" / "a.npy", seed=1)
    walk(folder / "in" / "b.npy", seed=2)
    (folder / "in" / "broken.npy").write_bytes(b"not an array")
    return mo.CorpusConfig(["in/*.npy"], "out", RUN, backoff=0.0, folder=str(folder))


@pytest.fixture
def corpus(tmp_path):
    return made(tmp_path)


@pytest.fixture(scope="module")
def _finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    with dask.config.set(scheduler="synchronous"):
        mo.run_corpus(made(folder))
    return folder


@pytest.fixture
def finished(_finished, tmp_path):
    """A corpus that was run; its recordings are copies, of another time and the same content."""
    shutil.copytree(_finished, tmp_path, dirs_exist_ok=True)
    return mo.CorpusConfig(["in/*.npy"], "out", RUN, backoff=0.0, folder=str(tmp_path))


def computed(config, **options):
    """Names of the recordings that a call computes, by what became of them."""
    seen = []
    with listen(seen.append):
        mo.run_corpus(config, **options)
    return {kind: [e.recording for e in seen if e.kind == kind] for kind in ("finished", "failed", "retried")}


@pytest.mark.slow
def test_run_corpus__a_failing_recording_costs_no_other(corpus, tmp_path):
    found = mo.run_corpus(corpus)
    assert found.counts == {"done": 2, "failed": 1}
    assert found.exit_code == 3
    (broken,) = [one for one in found.recordings if one["outcome"] == "failed"]
    assert "must be a NumPy .npy array" in broken["sentence"]
    mo.run([tmp_path / "in" / "a.npy"], tmp_path / "alone.zarr", RUN)
    alone, among = xr.open_datatree(tmp_path / "alone.zarr"), xr.open_datatree(tmp_path / "out" / "a.zarr")
    xr.testing.assert_identical(alone, among)


@pytest.mark.slow
@pytest.mark.parametrize("large", share([False, True], 2))
def test_run_corpus__the_bits_are_the_same_on_a_cluster(corpus, tmp_path, workers_here, monkeypatch, large):
    if large:  # all workers have each recording, one after the other
        monkeypatch.setattr(process, "_LARGE_BYTES", 0)
    with workers_here(2):
        assert mo.run_corpus(corpus).counts == {"done": 2, "failed": 1}
    alone = replace(corpus, output=str(tmp_path / "alone"))
    mo.run_corpus(alone)
    for name in "ab":
        here, there = (tmp_path / out / f"{name}.zarr" for out in ("alone", "out"))
        files = sorted(path.relative_to(here) for path in here.rglob("*") if path.is_file())
        assert files == sorted(path.relative_to(there) for path in there.rglob("*") if path.is_file())
        assert all((here / path).read_bytes() == (there / path).read_bytes() for path in files)


@pytest.mark.slow
def test_run_corpus__names_that_are_no_text_are_computed_and_shown(corpus, tmp_path, workers_here):
    walk(tmp_path / "in" / os.fsdecode(b"night\xff.npy"))
    with workers_here(1):
        assert mo.run_corpus(corpus).counts == {"done": 3, "failed": 1}
    assert "night\\xff" in xr.open_zarr(tmp_path / "out" / "corpus.zarr")["recording"].values


@pytest.mark.slow
def test_run_corpus__events_tell_what_happens_and_how_far_it_is(corpus, workers_here):
    seen = []
    with workers_here(1), listen(seen.append):
        mo.run_corpus(corpus)
    told = [(event.kind, event.recording, event.done) for event in seen if event.kind != "stage"]
    assert told[0] == ("begun", "", 0)
    assert told[-1] == ("ended", "", 3)
    assert ("finished", "a", 1) in told
    assert ("failed", "broken", 3) in told
    assert {"embed", "observe"} <= {event.stage for event in seen if event.recording == "a"}


@pytest.mark.slow
def test_run_corpus__the_same_again_computes_nothing(corpus, tmp_path):
    mo.run_corpus(corpus)
    assert computed(corpus) == {"finished": [], "failed": [], "retried": []}
    os.utime(tmp_path / "in" / "a.npy", (1, 1))  # nor for another time of the same content
    assert computed(corpus)["finished"] == []


@pytest.mark.slow
def test_run_corpus__what_is_new_or_has_changed_is_computed(finished, tmp_path):
    walk(tmp_path / "in" / "c.npy", seed=3)
    assert computed(finished)["finished"] == ["c"]
    walk(tmp_path / "in" / "a.npy", seed=4)
    assert computed(finished)["finished"] == ["a"]
    shutil.rmtree(tmp_path / "out" / "b.zarr")
    assert computed(finished)["finished"] == ["b"]
    walk(tmp_path / "in" / "broken.npy")
    assert computed(finished)["finished"] == ["broken"]
    other = replace(finished, run=replace(RUN, embedding=mo.EmbedConfig(n_modes=3)))
    assert mo.corpus_status(other).counts == {"settings": 4}


@pytest.mark.slow
def test_run_corpus__a_result_of_somebody_else_is_not_replaced(corpus, tmp_path):
    (tmp_path / "out").mkdir()
    mo.run([tmp_path / "in" / "b.npy"], tmp_path / "out" / "a.zarr", RUN)
    before = (tmp_path / "out" / "a.zarr" / "zarr.json").read_bytes()
    found = mo.run_corpus(corpus)
    assert found.counts == {"done": 1, "failed": 2}
    assert (tmp_path / "out" / "a.zarr" / "zarr.json").read_bytes() == before


@pytest.mark.slow
def test_run_corpus__deleted_recordings_keep_their_results(finished, tmp_path):
    (tmp_path / "in" / "a.npy").unlink()
    found = mo.run_corpus(finished)
    assert found.gone == ("a",)
    assert (tmp_path / "out" / "a.zarr").is_dir()


def test_run_corpus__retry_tries_what_failed_again(finished):
    assert computed(finished, retry=["broken"])["failed"] == ["broken"]
    assert computed(finished)["failed"] == []


def test_manifest__xarray_and_pandas_open_it(finished, tmp_path):
    table = xr.open_zarr(tmp_path / "out" / "corpus.zarr")
    assert table["recording"].values.tolist() == ["a", "b", "broken"]
    frame = table.to_dataframe()
    assert frame.loc["a", "n_frames"] == 40
    assert frame.loc["broken", "outcome"] == "failed"
    assert "NumPy" in frame.loc["broken", "sentence"]


@pytest.mark.slow
def test_inputs__of_one_name_are_refused_and_told_apart(tmp_path):
    for folder in ("in", "more"):
        walk(tmp_path / folder / "a.npy")
    config = mo.CorpusConfig(["*/a.npy"], "out", RUN, folder=str(tmp_path))
    with pytest.raises(ValueError, match="inputs must have different names"):
        mo.run_corpus(config)
    assert mo.run_corpus(replace(config, names="folder")).counts == {"done": 2}


@pytest.mark.slow
def test_run_corpus__a_result_of_the_same_that_is_there_already_counts_and_is_never_replaced(corpus, tmp_path):
    (tmp_path / "out").mkdir()
    mo.run([tmp_path / "in" / "a.npy"], tmp_path / "out" / "a.zarr", corpus.run)
    before = (tmp_path / "out" / "a.zarr" / "zarr.json").stat()
    assert mo.run_corpus(corpus).counts == {"done": 2, "failed": 1}
    shutil.rmtree(tmp_path / "out" / ".corpus")  # nor is a corpus lost whose ledger is
    assert mo.run_corpus(corpus).counts == {"done": 2, "failed": 1}
    found = mo.run_corpus(replace(corpus, run=replace(RUN, embedding=mo.EmbedConfig(n_modes=3))))
    assert found.counts == {"failed": 3}
    (said,) = [one["sentence"] for one in found.recordings if one["name"] == "a"]
    assert "got something else (one with other n_modes). Move it away." in said
    assert (tmp_path / "out" / "a.zarr" / "zarr.json").stat() == before
