"""Only what is the corpus's own goes, and only what need not stay."""

import json
from dataclasses import replace

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.corpus import clean, ledger
from manifold_observer.pipeline.corpus.clean import clean_corpus
from manifold_observer.pipeline.jobs.workfolder import holding

pytestmark = pytest.mark.usefixtures("in_this_thread")
RUN = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))


@pytest.fixture(scope="module")
def _finished(tmp_path_factory):
    """A corpus of three results."""
    import dask  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("corpus")
    (folder / "in").mkdir()
    for number, name in enumerate("abc"):
        walk = np.random.default_rng(number).normal(size=(60, 3)).cumsum(axis=0)
        np.save(folder / "in" / f"{name}.npy", walk)
    with dask.config.set(scheduler="synchronous"):
        mo.run_corpus(mo.CorpusConfig(["in/*.npy"], "out", RUN, folder=str(folder)))
    return folder


@pytest.fixture
def folder(_finished, tmp_path):
    """The same, to be changed. A copy has other times, and the same content."""
    import shutil  # noqa: PLC0415

    return shutil.copytree(_finished, tmp_path / "corpus")


@pytest.fixture
def corpus(folder):
    return mo.CorpusConfig(["in/*.npy"], "out", RUN, folder=str(folder))


def results(folder):
    return sorted(path.name for path in (folder / "out").glob("?.zarr"))


@pytest.mark.slow
def test_clean__nothing_goes_where_nothing_need(corpus, folder):
    assert clean_corpus(corpus) == []
    assert results(folder) == ["a.zarr", "b.zarr", "c.zarr"]


@pytest.mark.slow
def test_clean__results_of_recordings_that_are_gone_go_after_they_were_listed(corpus, folder):
    (folder / "in" / "a.npy").unlink()
    (listed,) = clean_corpus(corpus, dry_run=True)
    assert (listed.path.name, listed.why) == ("a.zarr", "its recording is gone")
    assert listed.n_bytes > 10_000
    assert results(folder) == ["a.zarr", "b.zarr", "c.zarr"]
    assert [one.stays for one in clean_corpus(corpus)] == [""]
    assert results(folder) == ["b.zarr", "c.zarr"]
    assert mo.corpus_status(corpus).gone == ()


def test_clean__a_disk_that_is_missing_costs_no_result(corpus, folder):
    (folder / "in").rename(folder / "away")
    with pytest.raises(ValueError, match="a disk may be missing"):
        clean_corpus(corpus)
    assert results(folder) == ["a.zarr", "b.zarr", "c.zarr"]


@pytest.mark.slow
def test_clean__what_is_out_of_retention_goes_and_is_not_computed_again(corpus, folder):
    few = replace(corpus, keep=1)
    assert len(clean_corpus(few)) == 2
    assert len(results(folder)) == 1
    found = mo.run_corpus(few)
    assert found.counts == {"done": 1, "expired": 2}
    assert len(results(folder)) == 1


def test_clean__results_go_by_their_age_in_days(corpus, folder):
    records = ledger.read_ledger(corpus)
    ledger.write_record(corpus, replace(records["b"], finished="2001-01-01T00:00:00+00:00"))
    assert [one.path.name for one in clean_corpus(replace(corpus, keep_days=30.0))] == ["b.zarr"]


def test_clean__a_clock_that_was_set_back_ages_nothing(corpus):
    records = ledger.read_ledger(corpus)
    ledger.write_record(corpus, replace(records["b"], finished="2101-01-01T00:00:00+00:00"))
    assert clean_corpus(replace(corpus, keep_days=30.0)) == []


def test_clean__what_somebody_has_added_or_replaced_stays(corpus, folder):
    for name in "ab":
        (folder / "in" / f"{name}.npy").unlink()
    (folder / "out" / "a.zarr" / "notes.txt").write_text("mine")
    mo.run([folder / "in" / "c.npy"], folder / "out" / "b.zarr", RUN, overwrite=True)
    stays = {one.path.name: one.stays for one in clean_corpus(corpus)}
    assert "holds notes.txt" in stays["a.zarr"]
    assert "not the result that this corpus wrote" in stays["b.zarr"]
    assert results(folder) == ["a.zarr", "b.zarr", "c.zarr"]


def test_clean__a_kill_between_removing_and_telling_computes_nothing_again(corpus, folder, monkeypatch):
    def killed(out):
        raise KeyboardInterrupt

    monkeypatch.setattr("manifold_observer.pipeline.jobs.store.remove_result", killed)
    few = replace(corpus, keep=2)
    with pytest.raises(KeyboardInterrupt):
        clean_corpus(few)
    monkeypatch.undo()
    assert mo.corpus_status(few).counts == {"done": 2, "expired": 1}
    assert [one.why for one in clean_corpus(few)] == ["out of retention"]
    assert len(results(folder)) == 2


def test_clean__work_folders_of_dead_runs_go_and_those_of_live_ones_stay(corpus, folder):
    with holding(folder / "out", "d.zarr", "busy") as work:
        (work.folder / "passes").mkdir()
        (work.folder / "passes" / "pass-001.npz").write_text("1")
        assert clean_corpus(corpus) == []
    assert work.folder.is_dir()  # what a failed run keeps for the next
    (left,) = clean_corpus(corpus, dry_run=True)
    assert left.path == work.folder
    clean_corpus(corpus)
    assert not work.folder.exists()


def test_clean__is_refused_while_a_run_works(corpus):
    from manifold_observer.pipeline.corpus.lease import holding_corpus  # noqa: PLC0415

    with holding_corpus(corpus.state, 60), pytest.raises(ValueError, match="only one run at a time"):
        clean.clean_corpus(corpus)


def test_clean__writes_nothing_when_it_only_looks(corpus, folder):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    clean_corpus(corpus, dry_run=True)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_ledger__a_record_that_a_disk_has_damaged_counts_as_none(corpus, folder):
    for path in (folder / "out" / ".corpus" / "recordings").iterdir():
        if json.loads(path.read_text())["name"] == "a":
            path.write_text('{"name": "a", "inp')
    found = mo.corpus_status(corpus)
    assert found.counts == {"done": 2, "new": 1}
