"""``info`` knows all that this project stores and what it cost, and says what is wrong with what it does not know."""

import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

import manifold_observer.pipeline as mo

pytestmark = [
    pytest.mark.usefixtures("in_this_thread", "in_this_process"),
    pytest.mark.filterwarnings("ignore:embed. the coordinates foretell"),
]
IDENTITY = ("--features", "identity", "--n-modes", 2)


@pytest.fixture
def result(console, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("walk.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    np.save("next.npy", np.random.default_rng(1).normal(size=(50, 3)).cumsum(axis=0))
    assert console("run", "walk.npy", *IDENTITY)[0] == 0
    return tmp_path / "walk.zarr"


def test_info__tells_the_cost_of_each_stage_where_it_ran(console, result):
    code, text, err = console("info", "walk.zarr")
    assert (code, err) == (0, "")
    (cost,) = (line for line in text.splitlines() if line.startswith("  cost "))
    assert all(stage in cost for stage in ("features", "embed", "observe"))
    assert cost.count(" s") >= 3
    (line,) = console("info", "walk.zarr", "-q")[1].splitlines()
    assert line.startswith("walk.zarr: a result of manifold-observer")


@pytest.mark.slow
def test_info__of_a_stream_counts_all_parts(console, result):
    assert console("continue", "walk.zarr", "next.npy", "more")[0] == 0
    code, text, err = console("info", "more", "--verify")
    assert (code, err) == (0, "")
    assert text.startswith("more: a result that continues in parts")
    assert "000000.zarr: 50 frames" in text
    found = json.loads(console("info", "more", "--json")[1])
    assert (found["kind"], found["n_frames"], len(found["parts"])) == ("stream", 50, 1)


def test_info__of_a_folder_lists_results_and_unfinished_ones(console, result):
    Path("half.zarr").mkdir()
    root = json.loads((result / "zarr.json").read_text())
    root["attributes"]["complete"] = False
    Path("half.zarr/zarr.json").write_text(json.dumps(root))
    code, text, err = console("info", ".")
    assert (code, err) == (0, "")
    assert "half.zarr: unfinished" in text
    assert "walk.zarr: 80 frames" in text
    code, _, err = console("info", "half.zarr")
    assert code == 1
    assert "was not finished" in err


@pytest.mark.slow
def test_info__the_command_it_prints_is_typed_with_hostile_names(console, result):
    names = ("left, arm", 'the "x"', " y ")
    Path("a b.csv").write_text(
        "time," + ",".join('"' + name.replace('"', '""') + '"' for name in names) + "\n"
        + "".join(f"{k},{np.sin(k / 9):.4f},{np.cos(k / 7):.4f},{np.sin(k / 5):.4f}\n" for k in range(120))
    )  # fmt: skip
    given = mo.open_recording("a b.csv").channel.values.tolist()
    config = mo.RunConfig(
        mo.FeatureConfig("identity"), mo.OpenConfig(channels=given[:2]), embedding=mo.EmbedConfig(n_modes=2)
    )
    mo.run(["a b.csv"], "one.zarr", config)
    command = json.loads(console("info", "one.zarr", "--json")[1])["command"].replace("one.zarr", "other.zarr")
    code, _, err = console(*shlex.split(command)[1:])
    assert code == 0, err
    one, other = mo.load("one.zarr"), mo.load("other.zarr")
    assert one.attrs["settings"] == other.attrs["settings"]
    np.testing.assert_array_equal(one["state/state"], other["state/state"])


def cut(result):
    chunk = next(path for path in result.glob("state/state/c/**/*") if path.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-1])


DAMAGE = {
    "missing root": (lambda result: (result / "zarr.json").unlink(), "zarr.json is missing"),
    "root that is no JSON": (lambda result: (result / "zarr.json").write_text("{"), "zarr.json cannot be read"),
    "changed root": (
        lambda result: (result / "zarr.json").write_text(
            (result / "zarr.json").read_text().replace("identity", "stft")
        ),
        "zarr.json has been changed",
    ),
    "missing group": (lambda result: shutil.rmtree(result / "state"), "is missing"),
    "cut chunk": (cut, "bytes instead of"),
    "another file": (lambda result: (result / "state" / "zarr.json").write_text("{}"), "bytes instead of"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_info__damage_is_one_sentence_that_names_it(console, result, name):
    damage, said = DAMAGE[name]
    damage(result)
    code, text, err = console("info", "walk.zarr")
    assert (code, text) == (1, "")
    assert said in err
    assert "walk.zarr" in err
    assert err.count("\n") == 1


OTHERS = {
    "walk.npy": "'manifold-observer look walk.npy'",
    "empty": "got a folder of something else",
    "c.toml": "'manifold-observer corpus status c.toml'",
    "none.zarr": "does not exist. Check the path",
    "text.zarr": "got a file",
    "/dev/null": "must be something that manifold-observer wrote",
}


@pytest.mark.parametrize("name", OTHERS)
def test_info__what_is_no_result_is_named_with_what_knows_it(console, result, name):
    Path("empty").mkdir()
    Path("c.toml").write_text("[corpus]\n")
    Path("text.zarr").write_text("not a folder")
    code, text, err = console("info", name)
    assert (code, text) == (1, "")
    assert OTHERS[name] in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_corpus__an_interrupt_says_how_many_are_kept_and_what_goes_on(console, result, monkeypatch):
    Path("in").mkdir()
    for name in ("a", "b", "c"):
        shutil.copy("walk.npy", f"in/{name}.npy")
    words = ("corpus", "init", "c.toml", "--inputs", "in/*.npy", "--output", "out", *IDENTITY)
    assert console(*words)[0] == 0
    Path("c.toml").write_text(Path("c.toml").read_text() + "\n[cluster]\nkind = 'none'\n")
    from manifold_observer.pipeline.corpus import process  # noqa: PLC0415

    run, seen = process.run, []

    def interrupted(*arguments, **options):
        seen.append(arguments)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return run(*arguments, **options)

    monkeypatch.setattr(process, "run", interrupted)
    code, _, err = console("corpus", "run", "c.toml")
    assert code == 130
    last = err.splitlines()[-1]
    assert last == (
        "Error: interrupted. The same command resumes after 2 of 3 recordings. "
        "Type it again: manifold-observer corpus run c.toml"
    )
    monkeypatch.setattr(process, "run", run)
    code, _, err = console("corpus", "run", "c.toml")
    assert code == 0
    assert err.count("frames, ") == 1  # the third alone
