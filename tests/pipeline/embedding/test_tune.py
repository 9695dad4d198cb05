"""A scan finds the settings that a recording needs, and a file repeats them."""

import json

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.cli.commands import main
from strategies import smooth_motion

pytestmark = pytest.mark.usefixtures("in_this_thread")
N = 700
RNG = np.random.default_rng(5)
VALUES = np.column_stack([smooth_motion(RNG, N, 4), 1e4 * RNG.normal(size=(N, 3))])  # three loud sensors of nothing
FRAMES = xr.DataArray(VALUES, dims=("frame", "feature"), coords={"time": ("frame", np.arange(N) * 0.1)})
UNITS = {"as they are": {"condition": "none"}, "over their deviation": {"condition": "standard"}}


def test_tune__takes_the_settings_that_foretell_more():
    found = mo.tune(FRAMES, candidates=UNITS)
    assert (found.name, found.config.condition) == ("over their deviation", "standard")
    table = found.table
    assert table.attrs["chosen"] == "over their deviation"
    assert float(table.foretold.sel(candidate="over their deviation")) > float(table.foretold[0]) + 0.01
    assert "> over their deviation" in str(found)


def test_tune__keeps_the_first_where_nothing_is_better():
    found = mo.tune(FRAMES, candidates={"default": {}, "another seed": {"seed": 1}})
    assert (found.name, found.config) == ("default", mo.EmbedConfig())


def test_tune__settings_that_all_share_stay():
    found = mo.tune(FRAMES, mo.EmbedConfig(n_modes=3), candidates=UNITS)
    assert found.config == mo.EmbedConfig(n_modes=3, condition="standard")


def test_tune__leaves_out_candidates_that_do_not_suit_the_frames():
    found = mo.tune(FRAMES, candidates={"root": {"condition": "root"}, "default": {}})
    assert [*found.said] == ["default"]
    with pytest.raises(ValueError, match=r"no candidate could embed the sampled frames. Embed them with mo.embed"):
        mo.tune(FRAMES, candidates={"root": {"condition": "root"}})


def test_tune__samples_long_recordings_in_runs_and_any_chunks_give_the_same(monkeypatch):
    monkeypatch.setattr("manifold_observer.pipeline.embedding.tune._FRAMES", 300)
    monkeypatch.setattr("manifold_observer.pipeline.embedding.tune._RUN", 100)
    seen = []
    embed = mo.embed
    monkeypatch.setattr(
        "manifold_observer.pipeline.embedding.tune.embed", lambda frames, **o: seen.append(frames) or embed(frames, **o)
    )
    whole, chunked = (mo.tune(frames, candidates=UNITS).said for frames in (FRAMES, FRAMES.chunk(frame=90)))
    assert whole == chunked
    assert seen[0].segment.values.tolist() == [0] * 100 + [1] * 100 + [2] * 100
    np.testing.assert_array_equal(seen[0][:100], FRAMES[:100])
    np.testing.assert_array_equal(seen[0][-100:], FRAMES[-100:])


def command(capsys, *words):
    try:
        main([*map(str, words)])
    except SystemExit as left:
        return left.code or 0, *capsys.readouterr()
    return 0, *capsys.readouterr()


@pytest.mark.slow
def test_command__writes_a_file_that_run_takes(tmp_path, capsys):
    np.save(tmp_path / "a.npy", VALUES)
    words = ("tune", tmp_path / "a.npy", tmp_path / "a.toml", "--features", "identity", "--n-modes", 2)
    code, out, _ = command(capsys, *words)
    assert code == 0
    assert "> default" in out
    assert (tmp_path / "a.toml").read_text() == 'features = "identity"\nn-modes = 2\n'
    run = ("run", tmp_path / "a.npy", tmp_path / "a.zarr", "--config", tmp_path / "a.toml", "--cluster", "none")
    assert command(capsys, *run)[0] == 0
    assert xr.open_datatree(tmp_path / "a.zarr")["embedding"].sizes["mode"] == 2
    code, out, err = command(capsys, *words)
    assert (code, out) == (1, "")
    assert err.endswith("a.toml already exists. Choose another name.\n")


def test_command__prints_one_json_object(tmp_path, capsys):
    np.save(tmp_path / "a.npy", VALUES)
    code, out, _ = command(capsys, "tune", tmp_path / "a.npy", tmp_path / "a.toml", "--features", "identity", "--json")
    said = json.loads(out)
    assert (code, said["chosen"]) == (0, "default")
    assert said["candidates"]["default"]["foretold"] > said["candidates"]["default"]["by_chance"]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["a.toml"], 2, "Name at least one recording before the file to write"),
        (["a.npy", "a.txt"], 1, "a.npy"),  # what does not end in .toml is a recording, and neither is there
    ],
)
def test_command__wants_recordings_and_a_toml(tmp_path, capsys, words, code, sentence):
    found, _, err = command(capsys, "tune", *(tmp_path / word for word in words))
    assert found == code
    assert "Error: " in err
    assert sentence in err
    assert not [*tmp_path.iterdir()]
