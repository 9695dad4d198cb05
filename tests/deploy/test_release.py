"""What a release is made of. deploy/release/check builds it; here is what needs no build."""

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "deploy" / "release"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "docs" / "CITATION.cff").read_text(encoding="utf-8"))
RECIPE = yaml.safe_load((ROOT / "deploy" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
# What conda-forge calls what PyPI calls otherwise.
CONDA = {"dask[array]": "dask-core", "soundfile": "pysoundfile", "lazy_loader": "lazy-loader"}
contents = runpy.run_path(str(RELEASE / "contents.py"))
WHEEL = ["m-1.dist-info/licenses/LICENSE", "m-1.dist-info/entry_points.txt", "m-1.dist-info/METADATA"]


def test_contents__the_modules_are_all_of_the_wheel():
    assert "manifold_observer/pipeline/__init__.pyi" in contents["modules"]()
    assert contents["of_wheel"]([*contents["modules"](), *WHEEL]) == []


@pytest.mark.parametrize("name", ["manifold_observer/pipeline/py.typed", "manifold_observer/tasks/arrays.py"])
def test_contents__a_missing_module_is_named(name):
    names = [*contents["modules"]() - {name}, *WHEEL]
    assert contents["of_wheel"](names) == [f"wheel: {name} is missing"]


@pytest.mark.parametrize("name", ["tests/conftest.py", "datasets/x.py", "manifold_observer/pipeline/DESIGN.md"])
def test_contents__what_does_not_belong_in_a_wheel_is_named(name):
    assert contents["of_wheel"]([*contents["modules"](), *WHEEL, name]) == [f"wheel: {name} does not belong there"]


def test_contents__a_wheel_without_its_licence_is_named():
    assert contents["of_wheel"]([*contents["modules"](), *WHEEL[1:]]) == ["wheel: licenses/LICENSE is missing"]


def test_contents__an_sdist_can_be_built_and_tested_from():
    whole = [f"m-1/{path.relative_to(ROOT).as_posix()}" for path in _kept()]
    assert contents["of_sdist"](whole) == []
    assert contents["of_sdist"]([one for one in whole if one != "m-1/LICENSE"]) == ["sdist: LICENSE is missing"]
    assert contents["of_sdist"]([*whole, "m-1/build/x"]) == ["sdist: build/x does not belong there"]


def _kept():
    """Files of the project, without what is made."""
    folders = ("pipeline", "tasks", "datasets", "docs", "deploy", "tests", ".ci")
    made = {"__pycache__", ".pytest_cache"}
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if not made & set(path.parts)]
    return [path for path in [*found, *ROOT.glob("*")] if path.is_file()]


def _version_of(folder, *words):
    shutil.copy(ROOT / "pyproject.toml", folder)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y.z", "-c", "commit.gpgsign=false"]
    for word in words:
        subprocess.run([*git, *word.split()], cwd=folder, check=True, capture_output=True)
    done = subprocess.run(
        [sys.executable, "-m", "setuptools_scm"], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout.split()[-1] if done.returncode == 0 else done.stderr


START = ("init -q", "add -A", "commit -qm first")


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ((), CITATION["version"] + ".dev0"),  # a tarball of the sources; an sdist has its version written down
        (START, "0.1.0.dev1"),  # no tag: before the first release, or a shallow clone
        ((*START, "tag v3.2.1"), "3.2.1"),
        ((*START, "tag v3.2.1", "commit -qm second --allow-empty"), "3.2.2.dev1"),
    ],
    ids=["tarball", "untagged", "tagged", "later"],
)
def test_version__is_that_of_the_latest_tag(tmp_path, words, version):
    pytest.importorskip("setuptools_scm")
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    assert _version_of(tmp_path, *words) == version


def test_citation__is_of_the_version_that_the_changelog_begins_with():
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert CITATION["version"] == first == RECIPE["context"]["version"]
    assert CITATION["license"] == PROJECT["license"] == RECIPE["about"]["license"]


def test_recipe__needs_what_the_package_needs():
    stated = {tuple(re.split(r"\s+", need, maxsplit=1)) for need in RECIPE["requirements"]["run"]}
    wanted = {_split(need) for need in PROJECT["dependencies"]} | {("python", PROJECT["requires-python"])}
    assert stated == {(CONDA.get(name, name), least) for name, least in wanted}


def _split(need):
    name, sign, least = need.partition(">=")
    return name, sign + least


def test_check__pleases_bash():
    assert subprocess.run(["bash", "-n", RELEASE / "check"], capture_output=True, check=False).stderr == b""
