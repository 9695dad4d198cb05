"""Counts as Prometheus reads them: from a file that outlives runs, and from a scheduler."""

import json
import math
import re
import shutil
import subprocess
import urllib.request

import dask
import numpy as np
import pytest

from manifold_observer.pipeline.jobs.events import Event, emit
from manifold_observer.pipeline.watch import counts as counting
from manifold_observer.pipeline.watch.counts import FAMILIES, PREFIX, Counts, as_text, from_text
from manifold_observer.pipeline.watch.metrics import counted_at, counted_in

IDENTITY = ("--features", "identity", "--n-modes", 2, "--cluster", "none")


def read(file):
    return from_text(file.read_text().splitlines())


def some_counts():
    counts = Counts()
    for event in (
        Event("finished", recording="one", n_frames=80),
        Event("failed", recording="two", sentence="no frames"),
        Event("failed", sentence="of no recording"),
        Event("skipped", recording="three"),
        Event("retried", recording="four", seconds=2),
        Event("stage", recording="one", stage="embed", done=1, total=1, seconds=0.25),
        Event("stage", recording="one", stage="embed", done=1, total=4),
        Event("warned", sentence="look"),
    ):
        counts(event)
    counts.ended(3)
    return counts.values()


def test_counts__are_those_of_the_events():
    values = some_counts()
    outcomes = {label: value for (name, label), value in values.items() if name == "recordings_total"}
    assert outcomes == {"done": 1, "failed": 1, "skipped": 1}
    assert (values["frames_total", ""], values["retries_total", ""], values["warnings_total", ""]) == (80, 1, 1)
    assert values["stage_seconds_total", "embed"] == 0.25
    assert (values["runs_total", "3"], values["running", ""]) == (1, 0)
    assert ("last_success_timestamp_seconds", "") not in values


@pytest.mark.parametrize("corpus", ["nights", 'a"b\\c\nd', "ночь"])
def test_text__is_what_prometheus_reads(corpus):
    parser = pytest.importorskip("prometheus_client.parser")
    values = some_counts() | {("stage_seconds_total", 'x"\\\n'): 1.5}
    text = as_text(values, corpus)
    found = {
        (sample.name.removeprefix(f"{PREFIX}_"), *sample.labels.values()): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }
    wanted = {(name, corpus, *([label] if label else [])): round(value, 3) for (name, label), value in values.items()}
    assert found == wanted
    assert from_text(text.splitlines()) == {sample: round(value, 3) for sample, value in values.items()}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool comes with Debian's prometheus")
def test_text__pleases_promtool():
    text = as_text(some_counts(), "nights")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_names__follow_the_conventions():
    for family in FAMILIES:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter")
        assert family.text.endswith(".")
        assert not {"job", "instance", "corpus"} & {family.label}  # Prometheus's own, and that of all


def test_file__goes_on_from_the_last_run_and_keeps_its_success(tmp_path):
    file = tmp_path / "nights.prom"
    with counted_in(file) as counts:
        emit(Event("finished", recording="one", n_frames=80))
        counts.ended(0)
    first = read(file)
    with counted_in(file) as counts:
        begun = read(file)
        emit(Event("failed", recording="one"))
        counts.ended(3)
    second = read(file)
    assert (begun["running", ""], second["running", ""]) == (1, 0)
    assert begun["last_run_recordings", "done"] == 0
    assert (second["recordings_total", "done"], second["recordings_total", "failed"]) == (1, 1)
    assert (second["last_run_recordings", "done"], second["last_run_recordings", "failed"]) == (0, 1)
    success = ("last_success_timestamp_seconds", "")
    assert first[success] == second[success]
    assert second["last_run_timestamp_seconds", ""] > first["last_run_timestamp_seconds", ""]


def test_file__is_written_at_intervals_in_one_step(tmp_path):
    file = tmp_path / "nights.prom"
    with counted_in(file, every=0.01):
        emit(Event("finished", recording="one", n_frames=80))
        until = 2000
        while read(file)["frames_total", ""] == 0:
            until -= 1
            assert until, "not written"
    assert [path.name for path in tmp_path.iterdir()] == ["nights.prom"]


@pytest.mark.parametrize("text", ["", "a recording", "manifold_observer_frames_total 3\n"])
def test_file__that_is_something_else_stays_as_it_is(tmp_path, text):
    file = tmp_path / "nights.prom"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"metrics-file: .* must be a file that this option wrote"), counted_in(file):
        pass
    assert file.read_text() == text


def test_file__damaged_lines_are_counted_anew(tmp_path):
    file = tmp_path / "nights.prom"
    with counted_in(file) as counts:
        counts.ended(0)
    text = file.read_text()
    text = re.sub(r"(last_success\S+) .*", r"\1 nan", text)
    file.write_text(text + 'manifold_observer_frames_total{corpus="n"} -inf\n')
    with counted_in(file):
        pass
    assert ("last_success_timestamp_seconds", "") not in read(file)
    assert all(math.isfinite(value) for value in read(file).values())


def test_file__whose_folder_goes_costs_one_warning(tmp_path):
    folder = tmp_path / "collector"
    folder.mkdir()
    with pytest.warns(UserWarning, match="metrics: they could not be written") as seen, counted_in(folder / "a.prom"):
        shutil.rmtree(folder)
    assert len(seen) == 1


def test_command__counts_recordings_frames_and_exit_codes(console, tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    file = tmp_path / "nights.prom"
    words = ("run", tmp_path / "a.npy", tmp_path / "night.zarr", *IDENTITY, "--metrics-file", file)
    assert [console(*words)[0], console(*words)[0]] == [0, 1]  # the result is there already
    values = read(file)
    assert (values["recordings_total", "done"], values["recordings_total", "failed"]) == (1, 1)
    assert (values["runs_total", "0"], values["runs_total", "1"]) == (1, 1)
    assert values["frames_total", ""] == 80
    assert values["stage_seconds_total", "embed"] > 0


@pytest.fixture
def corpus(tmp_path):
    """A corpus of a good recording and a broken one, watched by its own file."""
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "good.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    (tmp_path / "in" / "bad.npy").write_text("no array")
    (tmp_path / "corpus.toml").write_text(
        '[corpus]\ninputs = ["in/*.npy"]\noutput = "out"\ncluster = "none"\n[run]\nfeatures = "identity"\nn-modes = 2\n'
        '[watch]\nmetrics-file = "nights.prom"\nlog-file = "nights.log"\nlog-format = "json"\n'
    )
    return tmp_path


def test_corpus__its_file_says_how_it_is_watched(console, corpus):
    code, _, err = console("corpus", "run", corpus / "corpus.toml")
    assert code == 3
    assert "bad failed" in err
    values = read(corpus / "nights.prom")
    assert (values["recordings_total", "done"], values["recordings_total", "failed"]) == (1, 1)
    assert (values["runs_total", "3"], values["corpus_recordings", "failed"]) == (1, 1)
    told = [json.loads(line) for line in (corpus / "nights.log").read_text().splitlines()]
    assert {(one["event"], one.get("recording")) for one in told} >= {("finished", "good"), ("failed", "bad")}


def test_corpus__its_log_advises_settings_as_its_lines_do(console, corpus):
    np.save(corpus / "in" / "bad.npy", np.random.default_rng(0).normal(size=(80, 3)))
    text = (corpus / "corpus.toml").read_text().replace('"identity"', '"histogram"\nframe = 10')
    (corpus / "corpus.toml").write_text(text)
    *_, err = console("corpus", "run", corpus / "corpus.toml")
    told = [json.loads(line) for line in (corpus / "nights.log").read_text().splitlines()]
    sentences = {one["recording"]: one["sentence"] for one in told if one["event"] == "failed"}
    assert "--bins" in sentences["bad"]
    assert sentences["bad"] in err


@pytest.mark.slow
def test_corpus__a_recording_that_failed_stands_until_it_is_mended(console, corpus):
    for _ in range(2):  # the second has nothing to do
        console("corpus", "run", corpus / "corpus.toml")
        assert read(corpus / "nights.prom")["corpus_recordings", "failed"] == 1
    (corpus / "in" / "bad.npy").unlink()
    assert console("corpus", "run", corpus / "corpus.toml")[0] == 0
    values = read(corpus / "nights.prom")
    assert (values["corpus_recordings", "failed"], values["corpus_recordings", "done"]) == (0, 1)


@pytest.mark.parametrize("line", ['log-form = "json"', 'log-format = "xml"', "metrics-file = 3"])
def test_corpus__a_wrong_setting_is_refused(console, corpus, line):
    text = (corpus / "corpus.toml").read_text()
    (corpus / "corpus.toml").write_text(text.partition("[watch]")[0] + f"[watch]\n{line}\n")
    code, _, err = console("corpus", "run", corpus / "corpus.toml")
    assert code in (1, 2)
    assert "Traceback" not in err
    assert line.partition(" ")[0].replace("log-form ", "") in err


@pytest.fixture
def scraped():
    """A scheduler that others see, and what Prometheus reads there."""
    pytest.importorskip("prometheus_client")
    pytest.importorskip("bokeh", reason="Dask serves no page without it")
    from distributed import Client, LocalCluster  # noqa: PLC0415

    loopback = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=0, processes=False, **loopback) as one, Client(one) as client:

        def scrape():
            url = f"http://127.0.0.1:{one.scheduler.http_server.port}/metrics"
            with urllib.request.urlopen(url) as page:
                return page.read().decode()

        yield client, scrape


def test_scheduler__shows_counts_beside_its_own_and_adds_over_commands(scraped):
    client, scrape = scraped
    for name in ("one", "two"):
        with counted_at(client, "nights") as counts:
            emit(Event("finished", recording=name, n_frames=80))
            counts.ended(0)
    text = scrape()
    assert "dask_scheduler_workers" in text
    assert 'manifold_observer_frames_total{corpus="nights"} 160.0' in text
    assert 'manifold_observer_recordings_total{corpus="nights",outcome="done"} 2.0' in text
    assert re.search(r'manifold_observer_last_success_timestamp_seconds\{corpus="nights"\} 1\.\d+e\+09', text)


def test_scheduler__without_the_library_is_refused_in_one_sentence():
    class Bare:
        def run_on_scheduler(self, *_):
            raise ModuleNotFoundError("No module named 'prometheus_client'")

    with pytest.raises(RuntimeError, match="the scheduler must have prometheus_client"), counted_at(Bare(), "nights"):
        pass


def test_scheduler__that_serves_no_pages_is_refused(workers_here):
    bare = dask.config.set({"distributed.scheduler.http.routes": []})
    refused = pytest.raises(RuntimeError, match=r"it serves no pages\. Add --dashboard")
    with bare, workers_here(0) as (_, client), refused, counted_at(client, "nights"):
        pass


def test_counting__every_event_kind_is_known():
    from manifold_observer.pipeline.jobs.events import KINDS  # noqa: PLC0415

    assert set(counting._OUTCOMES) <= set(KINDS)
