"""The command run: what it prints, bad input, what is there already, warnings."""

import json
import shlex

import numpy as np
import pytest
import soundfile
import xarray as xr
from walks import IDENTITY, walk, with_nan

from manifold_observer.pipeline.cli.commands import main

pytestmark = pytest.mark.usefixtures("in_this_thread")


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
    "no frame length": ("a.npy", walk, (), "stft features need a frame length; got none. Give --frame 23ms"),
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


@pytest.mark.slow
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


def test_run__recordings_without_a_name_for_the_result_are_told_where_it_goes(call, tmp_path):
    one, other = walk(tmp_path / "a.npy"), walk(tmp_path / "b.npy", seed=1)
    code, _, err = call("run", one, other, *IDENTITY)
    assert code == 1
    assert err.endswith("b.npy already exists, and is a file. Name the result last, as a folder that is new.\n")
    assert sorted(tmp_path.iterdir()) == [one, other]


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


@pytest.mark.slow
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


@pytest.mark.usefixtures("in_this_process")
def test_run__below_dask_the_command_to_repeat_is_dasks(monkeypatch, tmp_path, capsys):
    def fail(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("manifold_observer.pipeline.jobs.run.observe", fail)
    words = list(map(str, ("run", walk(tmp_path / "a.npy"), tmp_path / "out.zarr", *IDENTITY, "--home", "recomputed")))
    with pytest.raises(SystemExit):
        main(words, "dask manifold-observer")
    said = capsys.readouterr().err.strip().partition("Type it again: ")[2]
    assert said == f"dask manifold-observer {shlex.join(words)}"


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_run__warnings_are_one_line_each_and_in_the_summary(call, tmp_path):
    np.save(tmp_path / "noise.npy", np.random.default_rng(0).normal(size=(200, 3)))
    code, text, err = call("run", tmp_path / "noise.npy", tmp_path / "out.zarr", *IDENTITY, "--json")
    assert code == 0
    lines = err.splitlines()
    assert lines
    assert all(line.startswith("Warning: ") and "warn(" not in line for line in lines)
    assert json.loads(text)["warnings"] == [line.removeprefix("Warning: ") for line in lines]
