"""Commands: what is parsed, demonstrations, reproductions."""

import json
import re
import shlex
import sys

import click
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from walks import walk

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.cli import commands as command
from manifold_observer.pipeline.paper.experiment import Claim, Experiment, Work
from reference import dense

pytestmark = pytest.mark.usefixtures("in_this_thread")


def every_command(group=command.cli, words=()):
    yield words, group
    if isinstance(group, click.Group):
        for name, inner in group.commands.items():
            yield from every_command(inner, (*words, name))


@pytest.mark.parametrize("words", [words for words, _ in every_command()], ids=" ".join)
def test_help__is_there_for_every_command(words):
    result = CliRunner().invoke(command.cli, [*words, "--help"])
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")


def test_version__is_told():
    result = CliRunner().invoke(command.cli, ["--version"])
    assert result.output.startswith("manifold-observer, version ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sing"], "No such command 'sing'"),
        (["run"], "Missing argument"),
        (["run", "a.npy", "out.zarr", "--loud"], "No such option"),
        (["run", "a.npy", "out.zarr", "--features", "waves"], "is not one of 'histogram'"),
        (["run", "a.npy", "out.zarr", "--n-modes", "2.5"], "'2.5' is not a valid integer"),
        (["run", "a.npy", "out.zarr", "--epsilon", "mean"], "'mean' must be median, local, or a number"),
        (["run", "a.npy", "out.zarr", "--max-axes", "many"], "'many' must be auto, or a whole number"),
        (["run", "a.npy", "out.zarr", "--max-axes", "0"], "0 must be auto, or at least 1"),
        (["run", "a.npy", "out.zarr", "--workers", "0"], "0 is not in the range"),
        (["run", "a.npy", "out.zarr", "--config", "no.toml"], "does not exist"),
        (["demo", "torus"], "No such command 'torus'"),
        (["demo", "sphere", "--samples", "0"], "0 is not in the range"),
    ],
)
def test_usage__errors_say_what_and_exit_with_2(call, words, message):
    code, out, err = call(*words)
    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err


@pytest.fixture
def configs(monkeypatch):
    """What the command would run."""
    seen = []

    def run(_recordings, _out, config, **_options):
        seen.append(config)
        raise ValueError("seen")

    monkeypatch.setattr("manifold_observer.pipeline.jobs.run.check", lambda *_args, **_options: [])
    monkeypatch.setattr("manifold_observer.pipeline.jobs.run.frames_in", lambda *_: 0)
    monkeypatch.setattr("manifold_observer.pipeline.jobs.run.run", run)
    return seen


def test_run__options_reach_the_stage_they_belong_to(call, configs):
    call(
        *("run", "a.wav", "out.zarr", "--frame", "23ms", "--hop", 100, "--n-modes", 4, "--epsilon", "local"),
        *("--gamma", 0.1, "--step", "euler", "--substeps", 9, "--sampling-rate", 8000, "--seed", 3),
    )
    (config,) = configs
    assert config == mo.RunConfig(
        mo.FeatureConfig("stft", frame="23ms", hop=100),
        mo.OpenConfig(sampling_rate=8000.0),
        mo.EmbedConfig(n_modes=4, epsilon="local", seed=3),
        mo.ObserverConfig(gamma=0.1, step="euler", substeps=9),
    )


def test_run__epsilon_may_be_a_number(call, configs):
    call("run", "a.wav", "out.zarr", "--epsilon", "2.5")
    assert configs[0].embedding.epsilon == 2.5


@pytest.mark.parametrize(("text", "axes"), [("auto", "auto"), ("40", 40)])
def test_run__axes_may_be_a_whole_number_on_the_command_line_and_in_a_file(call, configs, tmp_path, text, axes):
    (tmp_path / "run.toml").write_text(f"max-axes = {axes!r}\n")
    call("run", "a.wav", "out.zarr", "--max-axes", text)
    call("run", "a.wav", "out.zarr", "--config", tmp_path / "run.toml")
    call("run", "a.wav", "out.zarr")
    assert [config.embedding.max_axes for config in configs] == [axes, axes, "auto"]


def test_run__rates_and_edges_may_be_rows_of_numbers(call, configs, tmp_path):
    (tmp_path / "run.toml").write_text("rates = [0.1, 0.25]\n")
    words = ("run", "a.wav", "out.zarr", "--features", "histogram", "--edges", "-1,0,0.5")
    for more in (("--rates", "0.1,0.25"), ("--config", tmp_path / "run.toml")):
        call(*words, *more)
        assert configs[-1].features.edges == (-1, 0, 0.5)
        assert configs[-1].observer.rates == (0.1, 0.25)


def test_config__gives_defaults_that_the_command_line_outranks(call, configs, tmp_path):
    text = 'features = "log_rms"\nframe = 60\nn-modes = 3\nepsilon = 2\ngamma = 0.5\nsampling_rate = 100\njson = true\n'
    (tmp_path / "run.toml").write_text(text)
    call("run", "a.wav", "out.zarr", "--config", tmp_path / "run.toml", "--gamma", 0.25)
    (config,) = configs
    assert config == mo.RunConfig(
        mo.FeatureConfig("log_rms", frame=60),
        mo.OpenConfig(sampling_rate=100.0),
        mo.EmbedConfig(n_modes=3, epsilon=2.0),
        mo.ObserverConfig(gamma=0.25),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gama = 0.5\n", "has unknown settings: gama"),
        ("paths = ['a']\n", "has unknown settings: paths"),
        ("config = 'other.toml'\n", "has unknown settings: config"),
        ("gamma = = 1\n", "is not valid TOML"),
        ("n-modes = 2.5\n", "'2.5' is not a valid integer"),
        ("gamma = 'much'\n", "'much' is not a valid float"),
    ],
)
def test_config__errors_say_what_and_exit_with_2(call, tmp_path, text, message):
    (tmp_path / "run.toml").write_text(text)
    code, out, err = call("run", walk(tmp_path / "a.npy"), tmp_path / "out.zarr", "--config", tmp_path / "run.toml")
    assert code == 2
    assert out == ""
    assert message in err
    assert not (tmp_path / "out.zarr").exists()


DEMOS = {
    "sphere": (("--samples", 24_000, "--seed", 2), 400, ["elevation", "azimuth"]),
    "circle": (("--frames", 250), 250, ["angle"]),
    "melody": (("--notes", 16), None, ["pitch", "instrument"]),
}
BASELINES = ["diffusion_maps", "moving_average_2", "moving_average_3", "moving_average_5", "pca", "smoothed_pca"]
OPTIMAL = {"sphere": ["kalman", "smoother"]}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:embed. the first eigenvalue")
@pytest.mark.parametrize("name", DEMOS)
def test_demo__scores_are_those_of_what_it_stores(call, tmp_path, name):
    options, n_frames, components = DEMOS[name]
    out = tmp_path / "trial" / "result.zarr"
    code, text, err = call("demo", name, tmp_path / "trial", *options, "--json")
    assert (code, err) == (0, "")
    assert text.count("\n") == 1
    result = json.loads(text)
    assert list(result["scores"]) == ["observer", *OPTIMAL.get(name, []), *BASELINES]
    assert sorted(result["components"]) == sorted(components)
    assert {"simulate", "features", "embed", "observe", "scores"} <= set(result["seconds"])
    assert result["settings"]["demo"] == name
    for row in result["scores"].values():
        for score in ("correlation", "nrmse_db", "correlation_held_out", "nrmse_db_held_out"):
            assert len(row[score]) == len(components)
            assert all(isinstance(value, float) for value in row[score])

    tree = xr.open_datatree(out)
    assert set(tree.children) == {"frames", "embedding", "state", "truth"}
    assert result["n_frames"] == tree["state/state"].sizes["frame"]
    assert n_frames in (None, result["n_frames"])
    truth = true_numbers(tree["truth"], result["components"])
    known = np.isfinite(truth).all(axis=1)
    for estimate, values in (("observer", tree["state/state"]), ("diffusion_maps", tree["embedding/coordinate"])):
        correlation, error = dense.regression_scores(values.values[known], truth[known])
        np.testing.assert_allclose(result["scores"][estimate]["correlation"], correlation, atol=6e-5)
        np.testing.assert_allclose(result["scores"][estimate]["nrmse_db"], error, atol=6e-5)
    if name == "melody":
        table = mo.class_scores({"observer": tree["state/state"]}, tree["truth/instrument"])
        expected = float(table["balanced_accuracy"][0])
        assert result["scores"]["observer"]["instrument_accuracy"] == pytest.approx(expected, abs=6e-5)
    if name == "circle":
        embedding = tree["embedding"].to_dataset()
        rates = mo.generator_rates(embedding, result["settings"]["covariance_duration"])
        np.testing.assert_allclose(result["generator_rates"], rates, atol=6e-5)


def true_numbers(truth, components):
    """What is known of every frame, a column a component; unknown classes are NaN."""
    if "component" in truth.dims:
        return truth["angle"].sel(component=components).values
    columns = [truth[name].values.astype(float) for name in components]
    classes = [truth[name].dtype.kind == "i" for name in components]
    return np.stack([np.where(c & (x < 0), np.nan, x) for x, c in zip(columns, classes, strict=True)], axis=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:embed. the first eigenvalue")
def test_demo__a_truth_that_never_changes_has_no_error_in_db(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, text, _ = call("demo", "melody", "--notes", 3, "--json")
    assert code == 0
    assert "Infinity" not in text
    assert "NaN" not in text
    result = json.loads(text)
    instrument = result["components"].index("instrument")  # one plays all three notes
    assert result["scores"]["pca"]["nrmse_db"][instrument] is None
    assert result["scores"]["pca"]["correlation"][instrument] == 0.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:embed. the first eigenvalue")
def test_demo__says_what_each_row_means_and_what_is_kept_repeats_it(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, text, err = call("demo", "sphere", "--samples", 18_000)
    assert (code, err) == (0, "")
    assert text.startswith("300 frames; correlation with the truth")
    rows = re.findall(r"^(\w[\w ]+?)  +-?\d", text, re.MULTILINE)
    sentences = re.findall(r"^[A-Z].*: r = -?[\d.]+.*\.$", text, re.MULTILINE)
    assert len(rows) == len(sentences) == 9
    assert {path.name for path in (tmp_path / "demo-sphere").iterdir()} == {
        "recording.zarr",
        "result.zarr",
        "picture.png",
    }
    again, report = (line.strip() for line in text.partition("Next:\n")[2].splitlines())
    assert call(*shlex.split(again)[1:])[0] == 0
    one, other = (xr.open_datatree(tmp_path / "demo-sphere" / name) for name in ("result.zarr", "again.zarr"))
    np.testing.assert_allclose(one["embedding/eigenvalue"], other["embedding/eigenvalue"], atol=1e-9)
    np.testing.assert_allclose(one["state/state"], other["state/state"], atol=1e-6)
    assert call(*shlex.split(report)[1:])[0] == 0
    made = json.loads(call("info", "demo-sphere/result.zarr", "--json")[1])["command"]
    assert shlex.split(made)[4:] == shlex.split(again)[4:]


@pytest.mark.slow
def test_demo__a_second_one_has_a_folder_of_its_own(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("demo", "circle", "--frames", 100, "-q")[1] == "written to demo-circle\n"
    code, text, err = call("demo", "circle", "--frames", 100)
    assert (code, err) == (0, "")
    assert "\nobserver " in text
    assert "rates of the hidden diffusion" in text
    assert "is best here" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo-circle", "demo-circle-2"]
    again = text.partition("Next:\n")[2].splitlines()[0]
    assert call(*shlex.split(again)[1:])[0] == 0


def test_demo__replaces_nothing(call, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note.txt").write_text("mine")
    code, text, err = call("demo", "circle", tmp_path / "mine", "--frames", 100)
    assert (code, text) == (1, "")
    assert "FOLDER must be new or empty" in err
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "note.txt"]


def test_demo__too_few_frames_end_in_one_sentence(call, tmp_path):
    code, text, err = call("demo", "sphere", tmp_path / "out", "--samples", 60)
    assert (code, text) == (1, "")
    assert err.startswith("Error: embed: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def toy_experiment():
    return Experiment(
        lambda quick: [Work("one", xr.Dataset, {"attrs": {"x": 2.0}})],
        lambda parts: parts["one"],
        lambda joined: {},
        lambda joined: [Claim("1", "x is 2", f"x is {joined.x:.0f}", bool(joined.x == 2))],
    )


@pytest.mark.parametrize("name", ["circle", "all"])
def test_reproduce__prints_the_table_and_where_it_is(call, tmp_path, monkeypatch, name):
    monkeypatch.setattr("manifold_observer.pipeline.paper.experiments.EXPERIMENTS", {"circle": toy_experiment()})
    code, text, err = call("reproduce", name, tmp_path / "paper", "--quick")
    assert (code, err) == (0, "")
    assert "| circle | 1 | x is 2 | x is 2 |  |  | yes |" in text
    assert text.rstrip().endswith(str(tmp_path / "paper"))
    code, text, _ = call("reproduce", name, tmp_path / "paper", "--quick", "--json")
    assert json.loads(text)["claims"]["circle"][0]["holds"] is True


def test_reproduce__says_which_extra_is_missing_before_it_starts(call, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, text, err = call("reproduce", "circle", tmp_path / "paper")
    assert (code, text) == (1, "")
    assert "pip install matplotlib" in err
    assert not (tmp_path / "paper").exists()
