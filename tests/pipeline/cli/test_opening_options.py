"""Every option of opening is one of the command and of its TOML, and advice names what exists there."""

import dataclasses
import inspect
import json

import numpy as np
import pytest
import xarray as xr
from kinds.rows import BLOCKS, HOLED, SAMPLES, labelled, ms, stored, timed

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.cli.advice import in_options
from manifold_observer.pipeline.cli.commands import cli
from manifold_observer.pipeline.frames.opening import OPTIONS

SMALL = ["--features", "log_rms", "--frame", 8, "--n-modes", 2, "--window", 5, "--floor", 1e-6, "--cluster", "none"]


def test_open_recording__has_every_option_with_its_default():
    parameters = inspect.signature(mo.open_recording).parameters
    assert {*parameters} == {"path", "growing", *OPTIONS}
    assert {name: parameters[name].default for name in OPTIONS} == {
        own.name: own.default for own in dataclasses.fields(mo.OpenConfig) if own.name in OPTIONS
    }


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gaps": "often"}, "gaps must be 'clock', 'nan', 'ignore' or a duration"),
        ({"gaps": "ignore"}, "gaps='ignore' numbers the samples, and needs sampling_rate="),
        ({"order": "backwards"}, "order must be one of 'refuse', 'sort'"),
        ({"duplicates": "all"}, "duplicates must be"),
        ({"rates": "both"}, "rates must be"),
        ({"skip_rows": -1}, "skip_rows must be at least 0"),
    ],
)
def test_open_config__refuses_what_cannot_work(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        mo.OpenConfig(**options)
    with pytest.raises(TypeError, match="labels must be a name or a list of names"):
        mo.OpenConfig(labels=object())


def test_run__labels_are_kept_beside_the_result_and_what_was_done_is_printed(console, tmp_path):
    (tmp_path / "a.csv").write_text(labelled("stage", np.where(BLOCKS, "R", "W")).replace("\n7,", "\n6,", 1))
    words = ["run", tmp_path / "a.csv", tmp_path / "out.zarr", *SMALL, "--labels", "stage"]
    code, _, said = console(*words)
    assert code == 1
    assert "--duplicates first" in said
    code, told, said = console(*words, "--duplicates", "first")
    assert code == 0, said
    assert "a.csv: kept the first of the samples whose times repeat: left out 1" in told
    state = xr.open_dataset(tmp_path / "out.zarr", group="state", engine="zarr", consolidated=False)
    assert set(state["stage"].values.tolist()) == {"R", "W"}
    assert state["stage"].dims == ("frame",)


def test_run__options_of_a_file_are_those_of_the_command(console, tmp_path):
    (tmp_path / "a.csv").write_text(labelled("class", BLOCKS))
    toml = 'labels = ["class"]\nmissing = [-200, "ERR"]\nunits-row = false\nclock-rates = "mean"\ngaps = "5s"\n'
    (tmp_path / "run.toml").write_text(toml)
    config = ["--config", tmp_path / "run.toml", "--json"]
    code, told, said = console("run", tmp_path / "a.csv", tmp_path / "out.zarr", *SMALL, *config)
    assert code == 0, said
    settings = json.loads(told)["settings"]
    assert settings["labels"] == ["class"]
    assert settings["missing"] == ["-200", "ERR"]
    assert settings["units_row"] is False
    assert settings["clock_rates"] == "mean"


def test_run__advice_of_opening_names_options_of_the_command(console, tmp_path):
    (tmp_path / "a.csv").write_text(labelled("class", BLOCKS))
    _, _, said = console("run", tmp_path / "a.csv", tmp_path / "out.zarr", *SMALL)
    assert "--labels class" in said
    assert "--drop-channels class" in said
    assert "labels=" not in said
    (tmp_path / "b.csv").write_text(timed("time", SAMPLES * 4))
    _, _, said = console("run", tmp_path / "b.csv", tmp_path / "out.zarr", *SMALL[:2], "--frame", "100ms")
    assert "--time-unit ms" in said
    stored(dims=("samples", "channel"))(tmp_path / "c.nc")
    _, _, said = console("run", tmp_path / "c.nc", tmp_path / "out.zarr", *SMALL)
    assert "--time-dim samples" in said


def test_run__a_rate_must_fit_the_clock_of_the_file(console, tmp_path):
    (tmp_path / "a.csv").write_text(timed("time (ms)", ms(256, HOLED)))
    code, _, said = console("run", tmp_path / "a.csv", tmp_path / "out.zarr", *SMALL, "--sampling-rate", 250)
    assert code == 1
    assert "runs at 256 Hz" in said
    assert "--gaps ignore" in said


RUN = cli.commands["run"]


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("open_recording: x; got 1. Give rates='mean'.", "Give --clock-rates mean."),
        ("observe: x; got 1. Give rates='generator'.", "Give --rates generator."),
        ("embed: x; got 1. Give window=80.", "Give --window 80."),
        (
            "npy: x; got 1. Give channels_first=False, or channels_first=True.",
            "Give --channels-last, or --channels-first.",
        ),
        (
            "csv: x; got 1. Give labels=['a b', 'c'], or time_format='%d.%m'.",
            "Give --labels 'a b,c', or --time-format '%d.%m'.",
        ),
        ("csv: x; got 1. Give thousands=','.", "Give --thousands ','."),
        ("csv: x; got 1. Give thousands='.'.", "Give --thousands '.'."),
        ("csv: x; got 1. Give drop_channels=['t [ns]', 'b'].", "Give --drop-channels 't [ns],b'."),
        ("csv: x; got 1. Name it in channels=.", "Name it in --channels."),
        ("csv: x; got 1. Give nothing=3.", "Give nothing=3."),
    ],
)
def test_advice__is_spelt_as_options(text, spelt):
    assert in_options(text, RUN).endswith(spelt)
    assert in_options(text, None) == text


def test_plan_and_tune__say_what_was_done_to_the_file(console, tmp_path):
    times = np.r_[np.arange(200), 150]
    rows = "".join(f"{t},{np.sin(t / 9)},{np.cos(t / 7)}\n" for t in times)
    (tmp_path / "a.csv").write_text(f"time,x,y\n{rows}")
    options = ("--features", "identity", "--order", "sort", "--duplicates", "first")
    code, out, _ = console("plan", tmp_path / "a.csv", *options, "--cluster", "none")
    assert code == 0
    assert "because  " in out
    assert "sorted" in out
    code, out, _ = console("tune", tmp_path / "a.csv", tmp_path / "a.toml", *options)
    assert code == 0
    assert "# " in (tmp_path / "a.toml").read_text()
    assert "sorted" in (tmp_path / "a.toml").read_text()
