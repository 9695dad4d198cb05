"""Every benchmark once at a tiny size, so that none can rot."""

import contextlib
import functools
import importlib
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import numpy as np
import pytest

from strategies import seldom


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """The scripts import each other, as they do when they are run from their folder."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    measure = importlib.import_module("measure")
    monkeypatch.setattr(measure, "SIDE", 256)
    monkeypatch.setattr(measure, "SECONDS", 0.05)
    yield
    for script in Path(__file__).parent.glob("*.py"):
        sys.modules.pop(script.stem, None)


@pytest.fixture
def imported(monkeypatch, workers_here):
    """Import a benchmark whose workers may be threads of this process, since it does not watch their memory."""

    def load(name):
        @contextlib.contextmanager
        def connect(cluster, n_workers=None):
            with workers_here(n_workers) as (_, client):
                yield client

        script = importlib.import_module(name)
        monkeypatch.setattr(script, "connect", connect)
        return script

    return load


def test_embed_vs_loop__both_find_the_same_eigenvalues(imported):
    result = imported("embed_vs_loop").compare(n_frames=300, repeats=1, n_workers=None, threads=2)
    assert result["largest_eigenvalue_difference"] < 1e-5
    assert result["ratio"] > 0


@pytest.mark.slow
def test_ten_million__a_recording_is_run_and_its_truth_read(imported, tmp_path):
    script = imported("ten_million")
    script.CHUNK = 300
    script.simulate(tmp_path / "recording.zarr", 1000, n_sensors=6)
    seconds = script.run_once(tmp_path / "recording.zarr", tmp_path / "out.zarr", script.settings("auto", 50, False), 1)
    assert {"features", "embed", "observe"} <= set(seconds)
    assert min(script.correlations(tmp_path / "recording.zarr", tmp_path / "out.zarr")) > 0.5


def test_tiles__rates_are_positive_and_the_span_is_smaller(monkeypatch):
    tiles = importlib.import_module("tiles")
    monkeypatch.setattr(tiles, "SECONDS", 0.05)
    rows = tiles.run([64], n_features_wide=60)
    assert all(row["actual_share_of_sgemm"] > 0 for row in rows[:-1])
    assert rows[1]["axes"] < rows[0]["axes"] == rows[0]["features"]
    assert rows[-1]["window_bytes_per_frame"] < rows[-1]["factor_bytes_per_frame"]


@pytest.mark.slow
def test_exact__residuals_are_as_asked(imported):
    result = imported("exact").run(600, 1, {"home": "recomputed", "residual_tolerance": 1e-3, "tile": 256})
    assert max(result["residuals"]) <= 1e-3
    assert result["passes"] >= 1
    assert result["workers_gib"] > 0


def test_extension__every_way_is_scored_and_the_observer_is_best():
    benchmark = importlib.import_module("extension")
    row = benchmark.run(drift_rate=0.008, seed=1, n_frames=1200, n_new=300)
    (means,) = benchmark.summary([row]).values()
    assert (row["n_references"], row["n_new"]) == (900, 300)
    assert all(min(means["observer"]) > 0.5 and row[method]["far"] < 30 for method in benchmark.METHODS)
    assert sum(means["observer"]) > sum(means["nystrom"])


@seldom
def test_compare_packages__every_way_is_read_and_a_failure_is_a_row():
    benchmark = importlib.import_module("compare_packages")
    pythons = benchmark.interpreters(None) | {"xeofs": "/bin/false"}
    ours, theirs, failed = benchmark.compare("cells", 300, ["observe", "PCA", "EOF"], pythons)
    assert ours["read"]["position"] > 0.8
    assert theirs["modes"] == max(ours["modes"], 8)
    assert theirs["smoothed"]["position"] >= theirs["read"]["position"] > 0.5
    assert all(row["seconds"] > 0 and row["peak_mb"] >= row["before_mb"] > 20 for row in (ours, theirs))
    assert failed == {"case": "cells", "frames": 300, "way": "EOF", "failed": "exit 1"}
    most = benchmark.largest("PCA", pythons, 200, 200, 2**30, 60)
    assert (most["frames"], most["why"]) == (200, "no more were tried")
    assert benchmark.largest("PCA", pythons, 20_000, 20_000, 2**24, 60)["failed_at"] == 20_000


@pytest.mark.slow
def test_planned__memory_is_an_upper_bound():
    result = importlib.import_module("planned").run(600, 1, {"home": "recomputed", "tile": 256})
    assert result["workers_gib"] <= result["predicted_worker_gib"]
    assert result["predicted_seconds"] > 0


@pytest.mark.slow
def test_family__scores_rates_and_coverage_of_one_setting(monkeypatch):
    family = importlib.import_module("family")
    monkeypatch.setattr(family, "LocalCluster", functools.partial(family.LocalCluster, processes=False))
    (result,) = family.run([1], [(0.024, 0.1)], n_frames=1500, n_workers=1)
    assert len(result["claims"]) == 6
    assert np.min(result["smoother"]) > np.min(result["observer"]) > np.min(result["diffusion_maps"])
    assert 0.5 < result["rate_over_truth"][0] < 2
    assert 0.8 < result["coverage_kalman"][0] < 1


@pytest.mark.slow
def test_landmarks__memory_and_time_are_compared():
    rows = list(importlib.import_module("landmarks").run([300, 600], 1, 50))
    assert [row["n_frames"] for row in rows[:-1]] == [300, 600]
    assert 0.5 < rows[-1]["peak_worker_ratio"] < 2
    assert rows[-1]["seconds_per_frame_ratio"] > 0


def test_overhead__plain_loop_and_engine_are_timed(imported, monkeypatch):
    overhead = imported("overhead")
    monkeypatch.setattr(overhead, "ProcessPoolExecutor", lambda number, _: ThreadPoolExecutor(number))
    result = overhead.run(600, rounds=1)
    assert result["plain_loop_seconds"] > 0
    assert result["one_worker_over_two"] > 0


@seldom
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_interrupted__goes_on_from_the_pass_that_was_kept():
    options = {"method": "exact", "home": "recomputed", "tile": 256, "residual_tolerance": 1e-8}
    result = importlib.import_module("interrupted").run(900, 1, options)
    assert result["passes_found"] >= 1
    assert result["passes"] > result["passes_found"] or max(result["residuals"]) <= 1e-8


def test_window_landmarks__time_a_frame_is_compared(imported):
    rows = list(imported("window_landmarks").run([400, 800], 12, 20, 1, 1))
    assert [row["n_frames"] for row in rows[:-1]] == [400, 800]
    assert rows[-1]["largest_over_smallest"] >= 1


@seldom
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_sound_memory__peaks_are_within_the_plan():
    options = ["--n-modes", "2", "--method", "landmarks", "--landmarks", "40"]
    (row,) = importlib.import_module("sound_memory").run(4_000_000, ["stft"], [1], 2**31, options)
    assert row["n_frames"] == 1972
    assert len(row["workers_gib"]) == 1
    assert row["measured_over_planned"] < 1.15
    assert row["caller_gib"] < 1.15 * row["planned_caller_gib"]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux") or shutil.which("gcc") is None, reason="compiles an injector")
def test_faults__prints_a_table_and_finds_nothing():
    # As a program: it bears the name of the package that it drives.
    options = [
        "--scenarios",
        "reproduce",
        "--sample",
        "2",
        "--last",
        "1",
        "--twice",
        "0",
        "--between",
        "0",
        "--damage",
        "0",
    ]
    command = [sys.executable, str(Path(__file__).with_name("faults.py")), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("| reproduce | ")
    assert done.stdout.splitlines()[-1].endswith("| 0 |")


@seldom
def test_one_map__states_agree_across_recordings_where_separate_ones_do_not(monkeypatch):
    one_map = importlib.import_module("one_map")
    monkeypatch.setattr(one_map, "SENSORS", 10)
    monkeypatch.setattr(one_map, "LONG", (300, 400))
    with dask.config.set(scheduler="synchronous"):
        table, outside, _ = one_map.compare("curves", 6, one_map.mo.MapConfig(frames=500), noise=0.2)
    read = {way: scores["all", "neighbours"] for way, scores in table.items()}
    assert read["one map"] > 0.85
    assert read["one map"] > read["separate embeddings"] + 0.2
    assert read["one map"] > read["pooled PCA, smoothed"] - 0.1
    assert max(share for kind, shares in outside.items() if kind != "gain" for share in shares) < 0.1


@seldom
def test_large_files__open_at_once_and_stay_small():
    pytest.importorskip("h5netcdf")
    large = importlib.import_module("large_files")
    rows = list(large.run(list(large.KINDS), share=0.002))
    assert [row["n_frames"] for row in rows] == [1972, 172, 305]
    assert all(row["on_disk_megabytes"] < 1 for row in rows)
    assert all(row["workers_gib"] < 1 for row in rows)
    assert large.table(rows).count("\n") == 4


@pytest.mark.slow
def test_object_store__counts_what_a_result_takes(monkeypatch, tmp_path):
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "MANIFOLD_OBSERVER_CACHE"):
        monkeypatch.setenv(name, "")  # and as it was in the end
    found = importlib.import_module("object_store").measure(100, repeats=1)
    assert found["objects"] == 65
    assert found["requests of a write"] < 400


def test_tuning__what_is_picked_is_judged_against_all_that_was_tried(monkeypatch):
    tuning, simulations = importlib.import_module("tuning"), importlib.import_module("yardstick.simulations")
    few = {"default": {}, "twice the scale": {"epsilon_factor": 2.0}}
    monkeypatch.setattr(tuning, "CANDIDATES", few)
    monkeypatch.setattr("manifold_observer.pipeline.embedding.tune.CANDIDATES", few)
    (row,) = tuning.run([simulations.gestures(length=150)])
    assert row["picked"] == "default"
    row |= {"picked": "default", "scores": {"default": [0.5, 0.9], "twice the scale": [0.51, 0.95]}}
    picked, default, twice = tuning.summary([row])
    assert "within .02 of the best on 1 of 2 truths, 50 %, and on 0 of 1 recordings" in picked
    assert picked.removeprefix("picked") == default.removeprefix("default")
    assert "mean 0.730 (best of all 0.730)" in twice


@pytest.mark.slow
def test_promised__residuals_are_as_promised_and_errors_fall_with_them(tmp_path):
    with dask.config.set(scheduler="synchronous"):
        frames, truth = importlib.import_module("measure").sphere_frames(tmp_path, 1200)
        rows = list(importlib.import_module("promised").compared(frames.compute(), truth, [1e-3]))
    exact, plain, *promised = rows
    assert exact["true_residual"] < 1e-5
    for row in promised:
        assert row["true_residual"] <= row["at_most"] <= row["asked"]
        assert row["true_residual"] < plain["true_residual"] or plain["n_landmarks"] == 1200
        assert row["coordinate_error"] < 0.02
        assert row["state_error"] < 0.02


@pytest.mark.slow
def test_hour__a_quarter_of_a_minute_of_sound_is_read_from_the_command():
    hour = importlib.import_module("hour")
    result = hour.run(0.25, None, ["--cluster", "none"])
    assert result["n_frames"] == 652
    assert result["method"] == "exact"
    assert set(result["stages"]) >= {"features", "embed", "observe"}
    assert min(result["correlation"]) > 0.3


@pytest.mark.slow
def test_exact__spectra_of_513_bins_take_the_quadratic_form_in_their_leading_axes(imported):
    options = {"home": "recomputed", "residual_tolerance": 1e-3, "tile": 256, "max_axes": 24}
    result = imported("exact").run(600, 1, options, "tones", "auto")
    assert (result["n_features"], result["n_axes"], result["form"]) == (513, 24, "quadratic")
    assert result["multiplications_a_pair"] == 2 * 25 * 26 // 2
    assert min(result["correlation"]) > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(("method", "n_frames"), [("exact", 20_000), ("landmarks", 20_000)])
def test_thousand_workers__a_pass_is_one_of_the_real_graph(method, n_frames):
    script = importlib.import_module("thousand_workers")
    row = script.run(method, n_frames, 12, passes=1, hasten=0.02)
    expected = {"exact": 55 + 10 + 10, "landmarks": 16}  # panels, pieces of the vectors, and blocks; spans
    assert row["tasks"] >= expected[method]
    assert row["scheduler_cpu"] > 0
    assert row["megabytes_from_peers_per_worker"] > 0
    assert row["megabytes_of_results"] > 0


@seldom
def test_thousand_workers__many_panels_are_added_up_by_the_workers(monkeypatch):
    script = importlib.import_module("thousand_workers")
    few = script.run("exact", 20_000, 12, passes=1, hasten=0.02)
    assert few["megabytes_of_results"] == pytest.approx(10 * 20_000 * 21 * 4 / 1e6, rel=0.01)
    monkeypatch.setattr(importlib.import_module("manifold_observer.pipeline.engine.tiling"), "MANY_PANELS", 40)
    many = script.run("exact", 20_000, 12, passes=1, hasten=0.02)
    assert many["megabytes_of_results"] == pytest.approx(20_000 * 21 * 4 / 1e6, rel=0.01)


@pytest.mark.slow
def test_versions__a_run_and_all_its_processes_are_timed():
    words = ["--frames", "120", "--cluster", "none", "--repeats", "1", "--with=--n-modes 2"]
    script = Path(__file__).with_name("versions.py")  # it waits for all processes that it has
    told = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, timeout=120, check=True)
    result = json.loads(told.stdout)
    assert 0.5 < result["new"]["cpu"] < 60
    assert set(result["new"]["stages"]) >= {"features", "embed", "observe"}


def test_versions__take_turns_and_the_best_of_each_counts(monkeypatch):
    versions, ran = importlib.import_module("versions"), []

    def once(python, words, folder):
        assert Path(words[0]).is_dir()
        ran.append(python)
        return {"cpu": 8.0 - len(ran), "wall": float(len(ran)), "stages": {"embed": float(len(ran))}}

    monkeypatch.setattr(versions, "once", once)
    monkeypatch.setattr(versions, "_adopt_orphans", lambda: None)
    result = versions.compare({"old": "a", "new": "b"}, "sphere", 5, "local", 2, [])
    assert ran == ["a", "b", "a", "b"]
    assert result["old"] == {"cpu": 5.0, "wall": 1.0, "stages": {"embed": 1.0}}
    assert result["ratio"] == {"cpu": 0.8, "wall": 2.0}


def test_read_rate__every_format_gives_the_same_features():
    script = importlib.import_module("read_rate")
    rows = list(script.run(2000, rounds=1))
    assert [row["file"] for row in rows] == list(script.FORMATS)
    assert max(row["difference"] for row in rows) < 1e-12
    assert all(row[f"{name}_share_of_loop"] > 0 for row in rows for name in script.FEATURES)


def test_read_rate__what_is_read_cold_was_not_in_memory(tmp_path):
    script = importlib.import_module("read_rate")
    path = script.write(tmp_path, 100_000, "plain.npy")
    script.plain_read(path)
    assert script.cached_share(path) == 1
    if script.make_cold(path) == 1:
        pytest.skip("the file system of this folder is memory")
    (row,) = script.run(20_000, rounds=1, formats=("plain.zarr",), cold=True, folder=tmp_path)
    assert row["cached_before"] < 0.1
    assert row["log_rms_share_of_read"] > 0


def test_fft_rate__single_precision_costs_digits():
    double, single = importlib.import_module("fft_rate").run(4096, rounds=1, frames=(200,))
    assert double["error"] == 0
    assert single["error"] > 1e-6
    assert single["cpu_tasks_2_workers_1"] > 0
