"""What helps: a report from run, info, doctor, completion, errors as JSON, and the help in order of use."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

from manifold_observer.pipeline.cli import commands as command
from manifold_observer.pipeline.cli.naming import opening

pytestmark = pytest.mark.usefixtures("in_this_thread", "in_this_process")

SCRIPT = Path(sys.executable).parent / "manifold-observer"
IDENTITY = ("--features", "identity", "--n-modes", 2)


@pytest.fixture
def result(console, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "walk.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    code, text, err = console("run", "walk.npy", *IDENTITY, "--report")
    assert (code, err) == (0, "")
    assert "report in walk.html" in text
    return tmp_path / "walk.zarr"


@pytest.mark.slow
def test_run__names_result_and_report_after_the_recording(console, result):
    page = (result.parent / "walk.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<title>walk.zarr" in page
    code, _, err = console("run", "walk.npy", *IDENTITY, "--report", "walk.npy")
    assert code == 2
    assert "ends in .html" in err


def test_run__a_page_of_others_is_refused_before_anything_is_computed(console, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("walk.npy", np.random.default_rng(0).normal(size=(80, 3)))
    Path("mine.html").write_text("mine")
    code, _, err = console("run", "walk.npy", *IDENTITY, "--report", "mine.html")
    assert code == 1
    assert "mine.html must be an earlier report" in err
    assert Path("mine.html").read_text() == "mine"
    assert not Path("walk.zarr").exists()


@pytest.mark.slow
def test_info__says_what_is_there_and_the_command_that_it_prints_makes_it_again(console, result):
    code, text, err = console("info", "walk.zarr", "--json", "--verify")
    assert (code, err) == (0, "")
    found = json.loads(text)
    assert (found["n_frames"], found["n_features"]) == (80, 3)
    assert found["groups"]["state"]
    assert found["settings"]["features"] == "identity"
    again = shlex.split(found["command"].replace("walk.zarr", "again.zarr"))
    assert console(*again[1:])[0] == 0
    other = json.loads(console("info", "again.zarr", "--json")[1])
    assert other["eigenvalues"] == found["eigenvalues"]
    assert console("info", "walk.zarr")[1].startswith("walk.zarr: a result of manifold-observer")


@pytest.mark.slow
def test_info__damage_is_named(console, result):
    chunk = next(path for path in result.glob("state/state/c/**/*") if path.is_file())
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    assert console("info", "walk.zarr")[0] == 0  # same size: only checksums tell
    code, _, err = console("info", "walk.zarr", "--verify")
    assert code == 1
    assert "state" in err
    chunk.unlink()
    code, _, err = console("info", "walk.zarr")
    assert code == 1
    assert "is missing" in err


def test_doctor__finds_this_installation_sound(console):
    code, text, err = console("doctor", "--json")
    assert (code, err) == (0, "")
    found = json.loads(text)["findings"]
    assert {
        "manifold-observer",
        "packages",
        "cores",
        "BLAS",
        "memory",
        "temporary",
        "[sklearn]",
        "locale",
        "completion",
    } <= {one["name"] for one in found}
    assert all(one["remedy"] for one in found if one["state"] != "ok")


def test_doctor__a_missing_package_is_a_problem_with_a_remedy(console, monkeypatch):
    needed = {"": [Requirement("numpy"), Requirement("no-such-package>=3")], "paper": [Requirement("numpy>=9999")]}
    monkeypatch.setattr("manifold_observer.pipeline.cli.examination.requirements", lambda: needed)
    code, text, _ = console("doctor")
    assert code == 1
    problem, warning = (line for line in text.splitlines() if not line.startswith("ok"))
    assert problem.startswith("problem  packages")
    assert "no-such-package is missing. " in problem
    assert problem.endswith(" install 'no-such-package>=3'")
    assert warning.startswith("warning  [paper]")
    assert console("doctor", "-q")[1].count("\n") == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("run", "none.wav", "--json"), 1, "none.wav does not exist"),
        (("run", "none.wav", "--json", "--gain", "loud"), 2, "'loud' is not one of"),
    ],
)
def test_json__errors_are_one_object_too(console, tmp_path, monkeypatch, words, code, message):
    monkeypatch.chdir(tmp_path)
    found, text, err = console(*words)
    assert found == code
    said = json.loads(text)
    assert said["exit_code"] == code
    assert message in said["error"]
    assert message in err


def test_help__lists_commands_in_the_order_of_use():
    text = CliRunner().invoke(command.cli, ["--help"]).output
    listed = [line.split()[0] for line in text.partition("Commands:\n")[2].splitlines() if line.startswith("  ")]
    assert listed[:4] == ["look", "run", "report", "info"]
    assert text.index("Examples:") < text.index("Options:")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion__prints_a_script(console, shell):
    code, text, err = console("completion", shell)
    assert (code, err) == (0, "")
    assert "_MANIFOLD_OBSERVER_COMPLETE" in text
    assert "%(" not in text


def test_completion__bash_completes_commands_options_and_choices(tmp_path):
    script = subprocess.run([SCRIPT, "completion", "bash"], capture_output=True, text=True, check=True).stdout
    ask = """
    complete -p manifold-observer >/dev/null || exit 9
    offer() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); COMPREPLY=()
      _manifold_observer_completion manifold-observer
      printf '%s ' "${COMPREPLY[@]}"; }
    offer manifold-observer lo
    offer manifold-observer run --fea
    offer manifold-observer run --features lo
    """
    path = f"{SCRIPT.parent}:/usr/bin:/bin"
    found = subprocess.run(
        ["bash", "-c", script + ask], capture_output=True, text=True, cwd=tmp_path, env={"PATH": path}, check=True
    )
    assert found.stdout.split() == ["look", "--features", "log_rms"]


def test_opening__a_result_without_the_suffix_is_opened_by_its_engine():
    assert opening("out") == "xr.open_datatree('out', engine='zarr')"
    assert opening("out.zarr") == "xr.open_datatree('out.zarr')"


def test_extend__warns_within_a_log_of_json(console, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = console("extend", "none.zarr", "none.npy", "out", "--log-format", "json")
    assert code == 1
    events = [json.loads(line) for line in err.splitlines()]
    assert any("extend is now called continue" in json.dumps(one) for one in events)
