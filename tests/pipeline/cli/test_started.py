"""The installed command, and which commands start workers."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from walks import IDENTITY, walk, with_nan

from manifold_observer.pipeline.cli.computing import paying

pytestmark = pytest.mark.usefixtures("in_this_thread")
SCRIPT = Path(sys.executable).parent / "manifold-observer"
KINDS = ("none", "auto")


def installed(*words, cwd):
    return subprocess.run([SCRIPT, *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_script__runs_on_a_cluster_of_its_own(tmp_path):
    walk(tmp_path / "a.npy")
    done = installed("run", "a.npy", "out.zarr", *IDENTITY, "--workers", 1, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_frames"] == 80
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "out.zarr"]
    assert np.isfinite(xr.open_datatree(tmp_path / "out.zarr")["state/state"]).all()


@pytest.mark.slow
def test_script__an_error_on_a_worker_is_one_sentence(tmp_path):
    with_nan(tmp_path / "a.npy")
    failed = installed("run", "a.npy", "out.zarr", *IDENTITY, "--workers", 1, cwd=tmp_path)
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.splitlines()[-1].startswith("Error: embed: frames must be finite; frame 33")
    assert "Traceback" not in failed.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


@pytest.fixture
def started(monkeypatch):
    """Clusters that commands start; none comes to be."""
    seen = []

    def connect(config, **_options):
        seen.append(config)
        raise ValueError("started")

    monkeypatch.setattr("manifold_observer.pipeline.clusters.cluster.connect", connect)
    return seen


def test_run__starts_no_cluster_for_a_small_kernel(console, started, tmp_path):
    walk(tmp_path / "a.npy")
    code, _, err = console("run", tmp_path / "a.npy", tmp_path / "a.zarr", *IDENTITY)
    assert (code, err, started) == (0, "", [])
    assert paying(5_000) == "none"
    assert paying(6_000) == "local"


@pytest.mark.parametrize("command", ["run", "plan", "demo", "continue"])
def test_commands__start_the_workers_that_they_are_asked_for(console, started, tmp_path, command):
    walk(tmp_path / "a.npy")
    console("run", tmp_path / "a.npy", tmp_path / "a.zarr", *IDENTITY)
    words = {
        "run": [tmp_path / "a.npy", tmp_path / "b.zarr", *IDENTITY],
        "plan": [tmp_path / "a.npy", *IDENTITY[:2]],
        "demo": ["circle", "--frames", 100],
        "continue": [tmp_path / "a.zarr", tmp_path / "a.npy", tmp_path / "more"],
    }[command]
    asked = [["--workers", 2], ["--dashboard"], *([["--metrics"]] if command in ("run", "continue") else [])]
    for own in asked:
        code, _, err = console(command, *words, *own)
        assert (code, err) == (1, "Error: started\n")
    assert [(config.kind, config.workers, config.dashboard) for config in started] == [
        ("local", 2, False),
        ("local", None, True),
        ("local", None, False),
    ][: len(asked)]


@pytest.mark.parametrize(
    "words",
    [
        ["circle", "--frames", "6000"],
        ["sphere", "--samples", "360000"],
        ["melody", "--notes", "400"],
    ],
)
def test_demo__a_large_one_has_workers(console, started, words):
    assert console("demo", *words)[2] == "Error: started\n"
    assert [config.kind for config in started] == ["local"]


def test_run__what_a_run_would_refuse_is_refused_alike_where_no_cluster_is_named(console, started, tmp_path):
    walk(tmp_path / "a.npy")
    for words in (["--features", "histogram"], ["--features", "stft", "--frame", 500], ["--frame", "1x"]):
        said = {console("run", tmp_path / "a.npy", tmp_path / "b.zarr", *words, "--cluster", kind) for kind in KINDS}
        assert len(said) == 1, said
        assert said.pop()[:2] == (1, "")
    assert started == []
