"""On the command line: how files are read, and what is no file."""

import hashlib
import json
import os

import numpy as np
import pytest

WALK = np.random.default_rng(0).normal(size=(3, 400)).cumsum(axis=1)
SMALL = ["--features", "identity", "--n-modes", 2, "--window", 9, "--cluster", "none"]
pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture
def turned(tmp_path):
    np.save(tmp_path / "a.npy", WALK)
    return tmp_path / "a.npy"


@pytest.mark.slow
def test_channels_first__is_asked_for_and_taken(console, turned, tmp_path):
    code, _, said = console("run", turned, tmp_path / "out.zarr", *SMALL)
    assert code == 1
    assert "3 samples of 400 channels, which looks like (channel, time)" in said
    assert "--channels-first" in said
    code, said, _ = console("run", turned, tmp_path / "out.zarr", *SMALL, "--channels-first", "--json")
    assert code == 0
    assert json.loads(said)["n_frames"] == 400
    assert json.loads(said)["settings"]["channels_first"] is True


@pytest.mark.slow
def test_channels_first__in_a_file_of_settings(console, turned, tmp_path):
    (tmp_path / "a.toml").write_text("channels-first = true\n")
    code, said, _ = console("run", turned, tmp_path / "out.zarr", *SMALL, "--config", tmp_path / "a.toml", "--json")
    assert code == 0
    assert json.loads(said)["n_frames"] == 400


@pytest.mark.slow
def test_thousands__are_asked_for_and_taken(console, tmp_path):
    counts = np.abs(1000 * WALK.T).astype(int) + 1000
    rows = [";".join(f"{cell:,}" for cell in row) for row in counts.tolist()]
    (tmp_path / "a.csv").write_text("x;y;z\n" + "\n".join(rows) + "\n")
    code, _, said = console("run", tmp_path / "a.csv", tmp_path / "out.zarr", *SMALL)
    assert code == 1
    assert "use its decimal mark unambiguously" in said
    assert "--thousands ','" in said
    code, _, _ = console("run", tmp_path / "a.csv", tmp_path / "out.zarr", *SMALL, "--thousands", ",")
    assert code == 0


def test_config__that_is_a_fifo_is_refused_at_once(console, turned, tmp_path):
    os.mkfifo(tmp_path / "a.toml")
    code, _, said = console("run", turned, tmp_path / "out.zarr", *SMALL, "--config", tmp_path / "a.toml")
    assert code != 0
    assert "a.toml must be a file or a folder; got a FIFO (named pipe)" in said


@pytest.mark.slow
def test_result__with_a_codec_that_runs_code_is_refused(console, turned, tmp_path):
    assert console("run", turned, tmp_path / "out.zarr", *SMALL, "--channels-first")[0] == 0
    metadata = tmp_path / "out.zarr" / "embedding" / "lift" / "zarr.json"
    array = json.loads(metadata.read_text())
    array["codecs"].append({"name": "numcodecs.pickle", "configuration": {}})
    metadata.write_text(json.dumps(array))
    root = tmp_path / "out.zarr" / "zarr.json"  # who makes such a result makes a list of its files that fits
    group = json.loads(root.read_text())
    listed = group["attributes"]["_nc_manifest"]
    listed["sizes"]["embedding/lift/zarr.json"] = metadata.stat().st_size
    listed["digests"]["embedding/lift/zarr.json"] = hashlib.sha256(metadata.read_bytes()).hexdigest()
    root.write_text(json.dumps(group))
    code, _, said = console("continue", tmp_path / "out.zarr", turned, tmp_path / "more")
    assert code == 1
    assert "must be decoded by known codecs; got 'numcodecs.pickle' for array 'embedding/lift'" in said
