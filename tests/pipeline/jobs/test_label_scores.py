"""Labels in a file are carried through a run to its result, and scored."""

import json

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

from manifold_observer.pipeline.cli.commands import cli
from manifold_observer.pipeline.jobs.label_scores import in_words

N = 240


def written(folder, name, seed, labels):
    """A recording that changes its level where its labels change."""
    rng = np.random.default_rng(seed)
    level = np.repeat(np.tile([0.0, 4.0], 4), N // 8)
    np.save(folder / f"{name}.npy", level[:, None] + rng.normal(size=(N, 3)))
    rows = [f"{k * N // 8},{(k + 1) * N // 8},{'low' if k % 2 == 0 else 'high'}" for k in range(8)]
    (folder / labels).write_text("start,stop,label\n" + "\n".join(rows) + "\n")
    return folder / f"{name}.npy"


def run(*words):
    options = ["--features", "identity", "--sampling-rate", "1", "--cluster", "none"]
    return CliRunner().invoke(cli, ["run", *map(str, words), *options], catch_exceptions=False)


@pytest.mark.slow
def test_run__carries_labels_and_scores_them(tmp_path):
    path = written(tmp_path, "a", 0, "a.csv")
    done = run(path, tmp_path / "a.zarr", "--labels", tmp_path / "a.csv", "--json")
    scored = json.loads(done.output)["labels"]["label"]
    assert scored["frames"] == {"high": N // 2, "low": N // 2}
    assert scored["chance"] == 0.5
    assert scored["balanced_accuracy"]["state"] > 0.9
    expected = np.tile(np.repeat(["low", "high"], N // 8), 4)
    tree = xr.open_datatree(tmp_path / "a.zarr")
    for group in ("frames", "state"):
        assert tree[group]["label"].values.tolist() == expected.tolist()


@pytest.mark.slow
def test_run__has_a_file_for_every_recording(tmp_path):
    (tmp_path / "labels").mkdir()
    paths = [written(tmp_path, name, seed, f"labels/{name}.csv") for seed, name in enumerate("ab")]
    done = run(*paths, tmp_path / "both.zarr", "--labels", tmp_path / "labels" / "{stem}.csv")
    assert f"label: high {N}, low {N} frames; read from state" in done.output
    assert "chance .50" in done.output


@pytest.mark.slow
def test_run__scores_columns_of_labels(tmp_path):
    path = written(tmp_path, "a", 0, "a.csv")
    stage = np.repeat(np.tile([0, 1], 4), N // 8)
    rows = [f"{k},{a},{b},{c},{s}" for k, ((a, b, c), s) in enumerate(zip(np.load(path), stage, strict=True))]
    (tmp_path / "b.csv").write_text("time,a,b,c,stage\n" + "\n".join(rows) + "\n")
    options = ["--features", "identity", "--cluster", "none", "--labels", "stage", "--json"]
    done = CliRunner().invoke(cli, ["run", str(tmp_path / "b.csv"), str(tmp_path / "b.zarr"), *options])
    scored = json.loads(done.output.splitlines()[-1])["labels"]["stage"]
    assert scored["frames"] == {"0": N // 2, "1": N // 2}
    assert scored["balanced_accuracy"]["state"] > 0.9


def test_labels_that_are_not_there__are_refused_before_anything_is_computed(tmp_path):
    path = written(tmp_path, "a", 0, "a.csv")
    with pytest.raises(FileNotFoundError, match=r"labels-a\.csv does not exist"):
        run(path, tmp_path / "a.zarr", "--labels", tmp_path / "labels-{stem}.csv")
    assert not (tmp_path / "a.zarr").exists()


def test_in_words__says_why_nothing_is_scored():
    assert "nothing is scored" in in_words("label", {"frames": {"a": 3}, "balanced_accuracy": {}, "chance": None})
