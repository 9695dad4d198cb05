"""The command parses, prints one JSON object, and ends every error in one sentence that leaves nothing behind."""

import json
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
import soundfile
import xarray as xr
from click.testing import CliRunner

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.cli import commands as command
from manifold_observer.pipeline.cli.computing import paying
from manifold_observer.pipeline.paper.experiment import Claim, Experiment, Work
from reference import dense

pytestmark = pytest.mark.usefixtures("in_this_thread")

SCRIPT = Path(sys.executable).parent / "manifold-observer"
IDENTITY = ("--features", "identity", "--n-modes", 2)
KINDS = ("none", "auto")


def walk(path, n=80, seed=0):
    np.save(path, np.random.default_rng(seed).normal(size=(n, 3)).cumsum(axis=0))
    return path


@pytest.fixture
def call(in_this_process, console):
    """The console, with commands that compute in this process."""
    return console


def every_command(group=command.cli, words=()):
    yield words, group
    if isinstance(group, click.Group):
        for name, inner in group.commands.items():
            yield from every_command(inner, (*words, name))


# ------------------------------------------------------------------------------------------------ parsing


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


# ----------------------------------------------------------------------------------------------------- run


def test_run__prints_one_json_object_and_nothing_else(call, tmp_path):
    out = tmp_path / "out.zarr"
    code, text, err = call("run", walk(tmp_path / "a.npy"), out, *IDENTITY, "--json")
    assert (code, err) == (0, "")
    assert text.count("\n") == 1
    summary = json.loads(text)
    tree = xr.open_datatree(out)
    assert summary["out"] == str(out)
    assert summary["n_frames"] == 80
    assert summary["n_modes"] == 2
    np.testing.assert_allclose(summary["eigenvalues"], tree["embedding/eigenvalue"], atol=1e-6)
    np.testing.assert_allclose(summary["residuals"], tree["embedding/residual"])
    assert {"features", "embed", "observe", "total"} <= set(summary["seconds"])
    assert summary["settings"].items() >= {"features": "identity", "n_modes": 2, "gamma": 0.85}.items()


def test_run__says_where_the_result_is(call, tmp_path):
    out = tmp_path / "out.zarr"
    code, text, err = call("run", walk(tmp_path / "a.npy"), out, *IDENTITY)
    assert (code, err) == (0, "")
    assert text.startswith("80 frames, 2 modes, eigenvalues 0.")
    assert "features: every sensor is divided by its standard deviation\n" in text
    assert "% towards " in text
    assert "of the features a few frames later; in random order at most " in text
    assert f"xr.open_datatree({str(out)!r})" in text


def test_run__two_recordings_are_two_segments(call, tmp_path):
    parts = [walk(tmp_path / f"{seed}.npy", seed=seed) for seed in (1, 2)]
    assert call("run", *parts, tmp_path / "out.zarr", *IDENTITY)[0] == 0
    segment = xr.open_datatree(tmp_path / "out.zarr")["state/segment"]
    assert segment.values.tolist() == [0] * 80 + [1] * 80


def empty(path):
    path.touch()


def constant(path):
    np.save(path, np.full((80, 3), 0.5))


def with_nan(path):
    values = np.random.default_rng(0).normal(size=(80, 3))
    values[33, 1] = np.nan
    np.save(path, values)


def one_sample(path):
    walk(path, n=1)


def silence(path):
    soundfile.write(path, np.zeros((8000, 1)), 8000, subtype="PCM_16")


BAD = {
    "empty": ("a.npy", empty, IDENTITY, "an empty file"),
    "empty sound": ("a.wav", empty, ("--frame", "20ms"), "an empty file"),
    "constant": ("a.npy", constant, IDENTITY, "all 80 frames are equal"),
    "NaN": ("a.npy", with_nan, IDENTITY, "frame 33 is the first of 1 "),
    "one frame": ("a.npy", one_sample, IDENTITY, "must hold at least 3 frames; got 1"),
    "silence": ("a.wav", silence, ("--features", "log_rms", "--frame", "20ms"), "exactly zero"),
    "missing": ("a.npy", lambda path: None, IDENTITY, "does not exist"),
    "gamma": ("a.npy", walk, (*IDENTITY, "--gamma", 1), "gamma must lie in [0, 1)"),
    "too many modes": ("a.npy", walk, ("--features", "identity", "--n-modes", 79), "n_modes must be at most 78"),
    "window": ("a.npy", walk, (*IDENTITY, "--preset", "paper", "--window", 81), "at least window=81 frames; got 80"),
    "no frame length": ("a.npy", walk, (), "stft features need a frame length"),
    "frame too long": ("a.npy", walk, ("--frame", 81), "got 81 samples where the longest holds 80"),
    "frame without unit": ("a.npy", walk, ("--frame", "5 metres"), "duration with unit"),
    "option of other features": ("a.npy", walk, (*IDENTITY, "--frame", 9), "identity features have no frame"),
    "float samples without bins": ("a.npy", walk, ("--features", "histogram", "--frame", 9), "need explicit bins"),
    "variable": ("a.npy", walk, (*IDENTITY, "--variable", "volts"), "has no variable 'volts'"),
    "output in a missing folder": ("a.npy", walk, IDENTITY, "must exist"),
}


@pytest.mark.parametrize("name", BAD)
def test_run__bad_input_ends_in_one_sentence_and_leaves_nothing(call, tmp_path, name):
    file, make, options, message = BAD[name]
    make(tmp_path / file)
    there = sorted(tmp_path.iterdir())
    out = tmp_path / "nowhere" / "out.zarr" if "missing folder" in name else tmp_path / "out.zarr"
    code, text, err = call("run", tmp_path / file, out, *options, "--json")
    assert code == 1
    said = json.loads(text)
    assert said["exit_code"] == 1
    assert err == f"Error: {said['error']}\n"
    assert message in err
    assert "Traceback" not in err
    assert sorted(tmp_path.iterdir()) == there


def test_run__what_is_there_already_is_kept(call, tmp_path):
    recording, out = walk(tmp_path / "a.npy"), tmp_path / "out.zarr"
    assert call("run", recording, out, *IDENTITY)[0] == 0
    code, _, err = call("run", recording, out, *IDENTITY)
    assert code == 1
    assert "already exists" in err
    assert call("run", recording, out, *IDENTITY, "--overwrite")[0] == 0
    code, _, err = call("run", recording, recording, *IDENTITY, "--overwrite")
    assert code == 1
    assert "must not be the recording" in err
    assert np.load(recording).shape == (80, 3)


def test_main__unexpected_errors_end_in_one_sentence_too(call, monkeypatch, tmp_path):
    def fail(*_args, **_options):
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("manifold_observer.pipeline.jobs.run.run", fail)
    code, out, err = call("run", walk(tmp_path / "a.npy"), tmp_path / "out.zarr", *IDENTITY)
    assert (code, out) == (1, "")
    assert err == "Error: ZeroDivisionError: division by zero (--debug shows where)\n"
    with pytest.raises(ZeroDivisionError):
        call("--debug", "run", walk(tmp_path / "a.npy"), tmp_path / "out.zarr", *IDENTITY)


def test_main__an_interrupt_is_no_error_of_the_program(call, monkeypatch, tmp_path):
    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("manifold_observer.pipeline.jobs.run.run", interrupt)
    code, out, err = call("run", walk(tmp_path / "a.npy"), tmp_path / "out.zarr", *IDENTITY)
    assert (code, out) == (130, "")
    assert err.strip() == "Error: interrupted"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [(RuntimeError("no scheduler."), 1, "no scheduler"), (KeyboardInterrupt(), 130, "interrupted")],
)
def test_run__an_error_says_from_where_the_same_command_resumes(call, monkeypatch, tmp_path, error, code, said):
    def fail(*_args, **_options):
        raise error

    words = ("run", walk(tmp_path / "a.npy"), tmp_path / "out.zarr", *IDENTITY, "--home", "recomputed")
    with monkeypatch.context() as patched:
        patched.setattr("manifold_observer.pipeline.jobs.run.observe", fail)
        found, text, err = call(*words)
    assert (found, text) == (code, "")
    assert err.strip().startswith(f"Error: {said}. The same command resumes after pass ")
    assert call(*words)[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "out.zarr"]


# ------------------------------------------------------------------------------------------ demonstrations


DEMOS = {
    "sphere": (("--samples", 24_000, "--seed", 2), 400, ["elevation", "azimuth"]),
    "circle": (("--frames", 250), 250, ["angle"]),
    "melody": (("--notes", 16), None, ["pitch", "instrument"]),
}
BASELINES = ["diffusion_maps", "moving_average_2", "moving_average_3", "moving_average_5", "pca", "smoothed_pca"]
OPTIMAL = {"sphere": ["kalman", "smoother"]}


@pytest.mark.filterwarnings("ignore:embed. the first eigenvalue")
@pytest.mark.parametrize("name", DEMOS)
def test_demo__scores_are_those_of_what_it_stores(call, tmp_path, name):
    options, n_frames, components = DEMOS[name]
    out = tmp_path / "out.zarr"
    code, text, err = call("demo", name, out, *options, "--json")
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


@pytest.mark.filterwarnings("ignore:embed. the first eigenvalue")
def test_demo__a_truth_that_never_changes_has_no_error_in_db(call):
    code, text, _ = call("demo", "melody", "--notes", 3, "--json")
    assert code == 0
    assert "Infinity" not in text
    assert "NaN" not in text
    result = json.loads(text)
    instrument = result["components"].index("instrument")  # one plays all three notes
    assert result["scores"]["pca"]["nrmse_db"][instrument] is None
    assert result["scores"]["pca"]["correlation"][instrument] == 0.0


def test_demo__prints_a_table_and_keeps_nothing_unless_told(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, text, err = call("demo", "circle", "--frames", 100)
    assert (code, err) == (0, "")
    assert text.startswith("100 frames; correlation with the truth")
    assert "\nobserver " in text
    assert "rates of the hidden diffusion" in text
    assert list(tmp_path.iterdir()) == []


def test_demo__too_few_frames_end_in_one_sentence(call, tmp_path):
    code, text, err = call("demo", "sphere", tmp_path / "out.zarr", "--samples", 60)
    assert (code, text) == (1, "")
    assert err.startswith("Error: embed: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------- the installed command


def installed(*words, cwd):
    return subprocess.run([SCRIPT, *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def test_script__runs_on_a_cluster_of_its_own(tmp_path):
    walk(tmp_path / "a.npy")
    done = installed("run", "a.npy", "out.zarr", *IDENTITY, "--workers", 1, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_frames"] == 80
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "out.zarr"]
    assert np.isfinite(xr.open_datatree(tmp_path / "out.zarr")["state/state"]).all()


def test_script__an_error_on_a_worker_is_one_sentence(tmp_path):
    with_nan(tmp_path / "a.npy")
    failed = installed("run", "a.npy", "out.zarr", *IDENTITY, "--workers", 1, cwd=tmp_path)
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.splitlines()[-1].startswith("Error: embed: frames must be finite; frame 33")
    assert "Traceback" not in failed.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


# ------------------------------------------------------------------------------------------------- reproduce


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
    assert "manifold-observer[paper]" in err
    assert not (tmp_path / "paper").exists()


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


# ------------------------------------------------------------------------------------- warnings


@pytest.mark.filterwarnings("default")
def test_run__warnings_are_one_line_each_and_in_the_summary(call, tmp_path):
    np.save(tmp_path / "noise.npy", np.random.default_rng(0).normal(size=(200, 3)))
    code, text, err = call("run", tmp_path / "noise.npy", tmp_path / "out.zarr", *IDENTITY, "--json")
    assert code == 0
    lines = err.splitlines()
    assert lines
    assert all(line.startswith("Warning: ") and "warn(" not in line for line in lines)
    assert json.loads(text)["warnings"] == [line.removeprefix("Warning: ") for line in lines]
