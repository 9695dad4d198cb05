"""What a run would do is said from headers, and nothing is written for it."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.corpus import check, room
from manifold_observer.pipeline.corpus.check import check_corpus
from manifold_observer.pipeline.corpus.ledger import Record, write_record

pytestmark = pytest.mark.usefixtures("in_this_thread")
SCRIPT = Path(sys.executable).parent / "manifold-observer"
RUN = mo.RunConfig(mo.FeatureConfig("log_rms", frame=10), embedding=mo.EmbedConfig(n_modes=2))


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "in").mkdir()
    for number, n in enumerate((600, 1200)):
        walk = np.random.default_rng(number).normal(size=(n, 3)).cumsum(axis=0)
        np.save(tmp_path / "in" / f"night{number}.npy", walk)
    (tmp_path / "in" / "broken.npy").write_bytes(b"no array")
    return mo.CorpusConfig(["in/*.npy", "more/*.npy"], "out", RUN, at_once=2, folder=str(tmp_path))


def test_check__counts_frames_from_headers_and_names_what_cannot_be_read(corpus, tmp_path):
    found = check_corpus(corpus)
    assert found.counts == {"new": 3}
    assert found.n_frames == 180
    assert list(found.unreadable) == ["broken"]
    assert "must be a NumPy .npy array" in found.unreadable["broken"]
    assert found.exit_code == 3
    assert found.by.startswith("a plan of night")
    assert 0 < found.seconds < 60
    assert 10_000 < found.n_bytes < 10_000_000
    assert found.unmatched == (str(tmp_path / "more" / "*.npy"),)
    assert not (tmp_path / "out").exists()


def test_check__takes_seconds_and_bytes_of_finished_recordings(corpus, monkeypatch):
    monkeypatch.setattr(check, "plan_run", None)
    (corpus.state / "recordings").mkdir(parents=True)
    write_record(
        corpus,
        Record("old", "/gone", outcome="done", seconds=30.0, n_bytes=6_000_000, facts={"n_frames": 60}),
    )
    found = check_corpus(corpus)
    assert found.by == "1 finished recordings"
    # 60 frames as before, 120 with four times the pairs, two at once.
    assert found.seconds == pytest.approx((30 + 120) / 2)
    assert found.n_bytes == pytest.approx(6e6 + 12e6)


@pytest.mark.slow
def test_check__its_prediction_of_sizes_is_of_the_right_order(corpus, tmp_path):
    (tmp_path / "in" / "broken.npy").unlink()
    predicted = check_corpus(corpus).n_bytes
    mo.run_corpus(corpus)
    places = [path for path in (tmp_path / "out").glob("night*.zarr") for path in path.rglob("*") if path.is_file()]
    actual = sum(path.stat().st_size for path in places)
    assert actual / 3 < predicted < actual * 3


def test_room__a_full_disk_is_refused_before_anything_is_computed(corpus, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(room.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OSError, match=r"must have room for one result, about 1\.0 MiB; got 0\.0 MiB free"):
        mo.run_corpus(corpus)


def test_room__what_may_not_fit_is_warned_of(corpus, monkeypatch):
    records = [Record("a", "/a", outcome="done", n_bytes=2**21)]
    usage = type("Usage", (), {"free": 2**22})
    monkeypatch.setattr(room.shutil, "disk_usage", lambda _: usage)
    with pytest.warns(UserWarning, match="10 results may need"):
        room.check_room(corpus, records, 10)
    room.check_room(corpus, records, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[corpus]\ninputs = []\noutput = 'out'\n", "inputs in [corpus] must be a list of patterns"),
        ("[corpus]\ninputs = ['*']\noutput = 'out'\nretrys = 3\n", "unknown settings in [corpus]: retrys"),
        ("[corpus]\ninputs = ['*']\noutput = 'out'\nretries = -1\n", "retries"),
        ("[corpus]\ninputs = ['*']\noutput = 'out'\nnames = 'nick'\n", "is not one of 'stem', 'name', 'folder'"),
        ("[corpus]\ninputs = ['*']\noutput = 'out'\n[run]\nframes = 3\n", "unknown settings in [run]: frames"),
        ("[corpus]\ninputs = ['*']\noutput = 'out'\n[run]\nn-modes = 2.5\n", "n-modes"),
        ("[corpsu]\ninputs = ['*']\n", "unknown sections: corpsu"),
        ("inputs = ['*']\n", "unknown sections: inputs"),
        ("[run]\nframe = 3\n", "must have a section [corpus]"),
        ("[corpus\n", "is not valid TOML"),
    ],
)
def test_file__what_is_wrong_with_it_is_one_sentence(tmp_path, console, text, said):
    (tmp_path / "corpus.toml").write_text(text)
    code, _, errors = console("corpus", "status", tmp_path / "corpus.toml")
    assert code in (1, 2)
    assert said in errors
    assert errors.count("Error: ") == 1


def test_init__never_writes_over_a_file(tmp_path, console):
    place = tmp_path / "corpus.toml"
    words = ("corpus", "init", place, "--inputs", "in/*.npy", "--output", "out", "--features", "log_rms", "--frame", 10)
    assert console(*words)[0] == 0
    before = place.read_text()
    code, _, errors = console(*words)
    assert (code, place.read_text()) == (1, before)
    assert "must not exist" in errors


@pytest.mark.slow
def test_run__nothing_to_do_imports_nothing_heavy(corpus, tmp_path):
    (tmp_path / "in" / "broken.npy").unlink()
    mo.run_corpus(corpus)
    (tmp_path / "corpus.toml").write_text(
        '[corpus]\ninputs = ["in/*.npy", "more/*.npy"]\noutput = "out"\nat-once = 2\n'
        '[run]\nfeatures = "log_rms"\nframe = 10\nn-modes = 2\n'
    )
    program = (
        "import sys; from manifold_observer.pipeline.cli.commands import main\n"
        "try: main()\nexcept SystemExit as left: print(left.code)\n"
        "print(sorted({'dask', 'xarray', 'zarr', 'pandas', 'scipy', 'distributed'} & set(sys.modules)))"
    )
    words = [sys.executable, "-c", program, "corpus", "run", str(tmp_path / "corpus.toml"), "--json"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert json.loads(said[0])["counts"] == {"done": 2}
    assert said[1:] == ["0", "[]"]


def test_config__places_are_absolute_wherever_the_command_is_started(tmp_path, monkeypatch):
    labelled = mo.RunConfig(mo.FeatureConfig("identity"), mo.OpenConfig(labels="labels/{stem}.csv"))
    config = mo.CorpusConfig(["in/*.npy"], "out", labelled, folder=str(tmp_path))
    monkeypatch.chdir("/")
    assert config.inputs == (str(tmp_path / "in" / "*.npy"),)
    assert config.output == str(tmp_path / "out")
    assert config.run.opening.labels == (str(tmp_path / "labels" / "{stem}.csv"),)
    assert replace(config, retries=1).run == config.run
