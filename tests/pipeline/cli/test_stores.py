"""Commands take addresses where they take paths."""

import json

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.cli.commands import main
from manifold_observer.pipeline.jobs.stream import stream_dataset
from manifold_observer.pipeline.stores.address import place
from manifold_observer.pipeline.stores.objects import read, sizes, upload, write
from strategies import seldom

WALK = np.sin(np.arange(400)[:, None] / [5, 7, 9]) + 0.1 * np.random.default_rng(0).normal(size=(400, 3))
OPTIONS = ["--features", "identity", "--n-modes", "2"]


@pytest.fixture
def walk(bucket, tmp_path):
    """Two halves of a recording, in a bucket and in a folder."""
    for name, rows in {"a": WALK[:300], "b": WALK[300:350], "c": WALK[350:]}.items():
        np.save(tmp_path / f"{name}.npy", rows)
        upload(tmp_path / f"{name}.npy", place(f"{bucket}/{name}.npy"))
    return bucket


def said(capsys, *words):
    """Code and output of a command."""
    code = 0
    try:
        main([str(word) for word in words])
    except SystemExit as done:
        code = done.code
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.mark.slow
def test_commands__run_continue_plan_and_tune_of_a_bucket(walk, tmp_path, capsys):
    code, out, _ = said(capsys, "run", f"{walk}/a.npy", f"{walk}/a.zarr", *OPTIONS, "--cluster", "none", "--json")
    assert (code, json.loads(out)["out"]) == (0, f"{walk}/a.zarr")
    mo.run([tmp_path / "a.npy"], tmp_path / "a.zarr", mo.RunConfig.from_json(mo.load(f"{walk}/a.zarr").settings))
    for there in (walk, tmp_path):
        for names in ("b",), ("b", "c"):
            words = [f"{there}/a.zarr", *(f"{there}/{name}.npy" for name in names), f"{there}/more"]
            code, out, err = said(capsys, "continue", *words, "--json")
            assert (code, json.loads(out or "{}").get("added")) == (0, 50), err
    one, other = stream_dataset(f"{walk}/more"), stream_dataset(tmp_path / "more")
    assert one.state.values.tobytes() == other.state.values.tobytes()
    assert sorted({name.split("/")[0] for name in sizes(place(f"{walk}/more"))}) == ["000000.zarr", "000001.zarr"]
    code, out, _ = said(capsys, "continue", f"{walk}/a.zarr", f"{walk}/[bc].npy", f"{walk}/more", "--json")
    assert (code, json.loads(out)["added"]) == (0, 0)
    write(place(f"{walk}/more/note.txt"), b"mine")
    code, _, err = said(capsys, "continue", f"{walk}/a.zarr", f"{walk}/b.npy", f"{walk}/more")
    assert code == 1
    assert "OUT must be a new folder, or hold only parts" in err
    code, out, _ = said(capsys, "plan", f"{walk}/a.npy", *OPTIONS, "--cluster", "none", "--json")
    assert (code, json.loads(out)["n_frames"]) == (0, 300)


def test_commands__tune_writes_to_a_bucket(walk, capsys):
    code, out, err = said(capsys, "tune", f"{walk}/a.npy", f"{walk}/a.toml", *OPTIONS)
    assert code == 0, err
    assert read(place(f"{walk}/a.toml")).decode() in out + "\n"
    code, _, err = said(capsys, "tune", f"{walk}/a.npy", f"{walk}/a.toml", *OPTIONS)
    assert (code, "a.toml already exists. Choose another name." in err) == (1, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{0}/a.npy", "https://example.org/a.zarr"], "the output must be a path, s3:// or gs://"),
        (["{0}/none.npy", "{0}/a.zarr"], "none.npy does not exist. Check the address."),
        (["s3://no-such-bucket/a.npy", "{0}/a.zarr"], "the bucket s3://no-such-bucket does not exist"),
        (["{0}/a.npy", "{0}/a.npy"], "the output must not be the recording or lie within it"),
        (["ftp://example.org/a.npy", "{0}/a.zarr"], "the scheme must be s3, gs, http or https; got ftp://"),
        (["s3://key:secret@b/a.npy", "{0}/a.zarr"], "must be followed by the name of a bucket alone"),
    ],
)
def test_run__refuses_in_one_sentence(walk, capsys, words, sentence):
    code, out, err = said(capsys, "run", *(word.format(walk) for word in words), *OPTIONS, "--cluster", "none")
    assert (code, out) == (1, "")
    assert sentence in err
    assert "secret" not in err
    assert err.startswith("Error: ")
    assert "Traceback" not in err


@seldom
def test_run__on_a_cluster_workers_write_to_the_bucket(walk, workers_here, tmp_path):
    config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    with workers_here(2):
        mo.run([f"{walk}/a.npy"], f"{walk}/a.zarr", config)
    mo.run([tmp_path / "a.npy"], tmp_path / "a.zarr", config)
    there, here = mo.load(f"{walk}/a.zarr"), xr.open_datatree(tmp_path / "a.zarr")
    assert there["state/state"].values.tobytes() == here["state/state"].values.tobytes()
