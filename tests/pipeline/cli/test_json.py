"""What ``--json`` prints is one line, and is as the schemas of the package say, field by field."""

import importlib.util
import json
import math
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

import click
import jsonschema
import numpy as np
import pytest

from manifold_observer.pipeline.cli import commands as command
from manifold_observer.pipeline.cli.outcome import CODES
from manifold_observer.pipeline.paper.experiment import Claim

pytestmark = pytest.mark.usefixtures("in_this_thread", "in_this_process")

FOLDER = files("manifold_observer.pipeline.cli") / "schemas"
SCHEMAS = {path.name.removesuffix(".json"): json.loads(path.read_text("utf-8")) for path in FOLDER.iterdir()}
ROOT = Path(__file__).parents[3]
OPTIONS = ("--features", "identity", "--n-modes", "2", "--cluster", "none")


def page_of_the_docs():
    """The module that writes the page; docs/ is no package, and its names are those of others."""
    spec = importlib.util.spec_from_file_location("json_page", ROOT / "docs" / "json_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refuse(name):
    raise AssertionError(f"{name} is not JSON")


def read(text, name):
    """The one object on standard output, checked."""
    assert text.count("\n") == 1
    assert text.isascii()
    found = json.loads(text, parse_constant=refuse)
    jsonschema.validate(found, SCHEMAS[name])
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for seed, name in enumerate(("walk", "in/monday", "in/tuesday")):
        np.save(f"{name}.npy", np.random.default_rng(seed).normal(size=(90, 3)).cumsum(axis=0))
    rows = "".join(f"{k},{math.sin(k / 9):.3f},{math.cos(k / 7):.3f},{k // 100}\n" for k in range(300))
    Path("emg.csv").write_text(f"time,a,b,class\n{rows}")
    return tmp_path


def every_command(group=command.cli, words=()):
    for name, one in group.commands.items():
        if isinstance(one, click.Group):
            yield from every_command(one, (*words, name))
        else:
            yield (*words, name), one


def test_schemas__are_strict_and_every_command_with_json_has_one():
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)
        for one in objects(schema):
            assert "additionalProperties" in one, one
            assert all("description" in field for field in one.get("properties", {}).values()), one
    with_json = {
        "-".join(words)
        for words, one in every_command()
        if not one.hidden and any("--json" in option.opts for option in one.params)
    }
    demos = {name for name in with_json if name.startswith("demo-")}
    same = {"corpus-run", "corpus-retry"}
    assert with_json - demos - same | {"demo", "error"} == set(SCHEMAS)
    without = {" ".join(words) for words, one in every_command()} - {name.replace("-", " ") for name in with_json}
    assert without <= {"completion", "extend"}


def objects(schema):
    """All objects that a schema describes."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" or "properties" in schema:
            yield schema
        for one in schema.values():
            yield from objects(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from objects(one)


def test_page__has_the_fields_of_the_schemas():
    made = page_of_the_docs()
    assert made.PAGE.read_text(encoding="utf-8") == made.page()


def test_error__knows_the_codes_that_there_are():
    assert set(SCHEMAS["error"]["properties"]["exit_code"]["enum"]) == set(CODES) - {0}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_json__of_recordings_and_results(console, folder):
    code, text, err = console("look", "walk.npy", "emg.csv", "none.npy", "--json")
    assert code == 1
    assert "none.npy" in err
    assert [one["error"] is None for one in read(text, "look")["files"]] == [True, True, False]
    assert read(console("plan", "walk.npy", *OPTIONS, "--json")[1], "plan")["n_frames"] == 90
    labelled = ("--labels", "class", "--time-unit", "s", "--report")
    assert "labels" in read(console("run", "emg.csv", *OPTIONS, *labelled, "--json")[1], "run")
    assert not read(console("run", "walk.npy", *OPTIONS, "--json")[1], "run")["skipped"]
    assert read(console("run", "walk.npy", *OPTIONS, "--skip-existing", "--json")[1], "run")["skipped"]
    assert read(console("tune", "walk.npy", "--features", "identity", "--json")[1], "tune")["out"] == "walk.toml"
    words = ("walk.zarr", "in/monday.npy", "more", "--json")
    assert read(console("continue", *words)[1], "continue")["added"] == 90
    assert read(console("continue", *words)[1], "continue")["part"] is None
    assert read(console("report", "walk.zarr", "walk.html", "--json")[1], "report")["bytes"] > 1e4
    for place, kind in (("walk.zarr", "result"), ("more", "stream"), (".", "folder")):
        assert read(console("info", place, "--json")[1], "info")["kind"] == kind


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_json__of_a_corpus(console, folder):
    made = ("corpus", "init", "c.toml", "--inputs", "in/*.npy", "--output", "out", *OPTIONS[:4], "--json")
    assert read(console(*made)[1], "corpus-init") == {"out": "c.toml"}
    with Path("c.toml").open("a") as file:
        file.write("\n[map]\n\n[cluster]\nkind = 'none'\n")
    assert read(console("corpus", "check", "c.toml", "--json")[1], "corpus-check")["n_frames"] == 180
    assert read(console("corpus", "status", "c.toml", "--json")[1], "corpus-status")["due"] == 2
    assert read(console("corpus", "run", "c.toml", "--json")[1], "corpus-status")["counts"] == {"done": 2}
    assert read(console("corpus", "retry", "c.toml", "--json")[1], "corpus-status")["due"] == 0
    Path("in/monday.npy").unlink()
    Path("in/tuesday.npy").write_bytes(b"no recording")
    code, text, _ = console("corpus", "run", "c.toml", "--json")
    assert code == 3
    assert read(text, "corpus-status")["counts"]["failed"] == 1
    code, text, _ = console("corpus", "clean", "c.toml", "--dry-run", "--json")
    assert len(read(text, "corpus-clean")["leftovers"]) == 1
    assert read(console("info", "out", "--json")[1], "info")["corpus"]
    (made,) = Path("out/.corpus/maps").glob("*.zarr")
    assert read(console("info", made, "--json")[1], "info")["kind"] == "map"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_json__of_the_rest(console, folder):
    assert read(console("demo", "circle", "--frames", 100, "--json", "--cluster", "none")[1], "demo")["kept"]
    assert read(console("demo", "melody", "--notes", 3, "--json", "--cluster", "none")[1], "demo")["scores"]
    assert read(console("doctor", "--json")[1], "doctor")["findings"]


CLAIM = Claim("1", "it works", "yes", True, p=0.01)


def test_json__of_claims():
    rows = {"theory": [asdict(CLAIM)]}
    jsonschema.validate({"out": "paper", "claims": rows}, SCHEMAS["reproduce"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("run", "none.wav"), 1),
        (("run", "walk.npy", "--n-modes", "many"), 2),
        (("run", "walk.npy", "--cluster", "tcp://127.0.0.1:9", "--wait", "1ms"), None),
        (("info", "walk.npy"), 1),
        (("corpus", "run", "none.toml"), 1),
        (("run", "none.wav", "--log-format", "json"), 1),
    ],
)
def test_json__errors_are_one_object(console, folder, monkeypatch, words, code):
    if code is None:

        def lost(*_arguments, **_options):
            raise KeyboardInterrupt

        monkeypatch.setattr("manifold_observer.pipeline.jobs.run.run", lost)
    found, text, err = console(*words, "--json")
    said = read(text, "error")
    assert said["exit_code"] == found == (130 if code is None else code)
    assert said["error"] in err or "log-format" in " ".join(words)


def test_json__numbers_that_it_does_not_have_are_null():
    from manifold_observer.pipeline.cli.saying import dumped  # noqa: PLC0415

    found = dumped({"a": [np.float64("nan"), np.float32(1.5)], "b": {"c": -math.inf}, "d": np.arange(2), "e": "\udce9"})
    assert json.loads(found, parse_constant=refuse) == {"a": [None, 1.5], "b": {"c": None}, "d": [0, 1], "e": "\udce9"}
