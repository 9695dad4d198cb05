"""A corpus as processes: killed at random moments, started twice at once, looked at from another one while it runs."""

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strategies import QUICK, seldom

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    """Import a benchmark; they import each other, as they do when they are run from their folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for script in BENCHMARKS.glob("corpus_*.py"):
        sys.modules.pop(script.stem, None)


@pytest.mark.slow
def test_kills__of_the_driver_end_with_the_same_bits(benchmark, tmp_path):
    kills = benchmark("corpus_kills")
    kills.make(tmp_path, 2, 40, "none")
    found = kills.campaign(tmp_path, kills.kill_driver, 1 if QUICK else 2, "none", seed=1)
    assert found["kills"] == (1 if QUICK else 2)


@seldom
def test_kills__of_workers_end_with_the_same_bits(benchmark, tmp_path):
    kills = benchmark("corpus_kills")
    kills.make(tmp_path, 3, 40, "local")
    assert kills.campaign(tmp_path, kills.kill_workers, 2, "local", seed=2)["kills"] >= 2


@pytest.mark.slow
def test_overlapping_runs__one_is_told_and_nothing_is_written_twice(benchmark, tmp_path):
    kills = benchmark("corpus_kills")
    file = kills.make(tmp_path, 3, 40, "none")
    runs = [kills.started(file) for _ in range(2)]
    said = [run.communicate() for run in runs]
    codes = [run.returncode for run in runs]
    assert sorted(codes) in ([0, 0], [0, 1])  # the second may have begun when the first had finished
    lines = [line for _, errors in said for line in errors.splitlines()]
    assert sum("frames," in line for line in lines) == 3
    for code, (_, errors) in zip(codes, said, strict=True):
        assert (code == 1) == ("only one run at a time may write to" in errors)


@pytest.mark.slow
def test_status__is_told_by_another_process_while_a_run_works(benchmark, tmp_path):
    kills = benchmark("corpus_kills")
    file = kills.make(tmp_path, 3, 40, "none")
    run, until, seen = kills.started(file), time.monotonic() + 120, None
    import manifold_observer.pipeline as mo  # noqa: PLC0415

    config = mo.CorpusConfig(["in/*.npy"], "out", mo.RunConfig(mo.FeatureConfig("identity")), folder=str(tmp_path))
    while run.poll() is None and time.monotonic() < until:
        running = mo.corpus_status(config).running
        if running is not None and running.get("computing"):
            seen = running
            break
        time.sleep(0.02)
    kills.finished(run, file)
    assert seen["lives"] is True
    assert seen["pid"] == run.pid
    assert seen["total"] == 3
    assert next(iter(seen["computing"])).startswith("night")
    assert mo.corpus_status(config).running is None
    said = subprocess.run(
        [*kills.COMMAND[:-1], "status", str(file), "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(said.stdout)["counts"] == {"done": 3}


@pytest.mark.slow
def test_broken__twenty_recordings_cost_twenty_sentences(benchmark, tmp_path):
    broken = benchmark("corpus_broken")
    n = len(broken.BROKEN) + 2
    found = broken.judged(broken.make(tmp_path, n, "none", 40), n)
    assert found["results"] == 2
    assert len(found["sentences"]) == 20
    assert all(found["sentences"].values())


@seldom
def test_rate__can_be_measured(benchmark, tmp_path):
    found = benchmark("corpus_rate").measured(tmp_path, 2, 40, 1, "none")
    assert found["corpus"] > 0
