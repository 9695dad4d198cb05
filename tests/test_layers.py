"""Imports keep to their layer, and folders stay flat: a subfolder would be missing from the wheel."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = ("tasks", "pipeline", "datasets")
# Modules of pipeline/ that may know datasets/, besides the experiments of the paper, paper_*.py.
DEMONSTRATIONS = {"cli.py", "demo.py", "reproduce.py"}
STDLIB = set(sys.stdlib_module_names)
ALLOWED = {
    "tasks": STDLIB | {"numpy", "scipy", "manifold_observer.tasks"},
    "datasets": STDLIB | {"numpy", "scipy", "xarray", "zarr", "soundfile", "manifold_observer.datasets"},
}
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]
each_file = pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])


def imported(path):
    """Top-level names that a file imports anywhere in it; those of this project with their folder."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inside = f"manifold_observer.{path.parent.name}"
            assert node.level <= 1, f"{path}: {ast.unparse(node)}"
            if node.level:
                names = [inside]
            elif node.module == "manifold_observer":
                names = [f"manifold_observer.{alias.name}" for alias in node.names]
            else:
                names = [node.module]
        else:
            continue
        for name in names:
            parts = name.split(".")
            yield ".".join(parts[:2]) if parts[0] == "manifold_observer" else parts[0]


def test_imported__sees_every_form(tmp_path):
    file = tmp_path / "tasks" / "a.py"
    file.parent.mkdir()
    file.write_text(
        "import os.path\nfrom . import b\nfrom manifold_observer import datasets\n"
        "def f():\n    import dask.array as da\n    from manifold_observer.pipeline.jobs.run import run\n"
    )
    expected = {"os", "manifold_observer.tasks", "manifold_observer.datasets", "dask", "manifold_observer.pipeline"}
    assert set(imported(file)) == expected


def test_folders__hold_modules():
    assert all(any(path.parent.name == folder for path in FILES) for folder in FOLDERS)


@each_file
def test_imports__keep_to_their_layer(path):
    folder, names = path.parent.name, set(imported(path))
    if folder in ALLOWED:
        assert names <= ALLOWED[folder]
    elif path.name not in DEMONSTRATIONS and not path.name.startswith("paper_"):
        assert "manifold_observer.datasets" not in names


@each_file
def test_imports__never_from_tests_or_deploy(path):
    forbidden = {"tests", "deploy", "reference", "strategies", "conftest", "manifold_observer.tests", "pytest"}
    assert not set(imported(path)) & forbidden


@each_file
def test_imports__absolute_across_folders_and_by_the_installed_name(path):
    assert not set(imported(path)) & set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders__are_flat(folder):
    inside = [path.name for path in (ROOT / folder).iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert inside == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders__are_typed(folder):
    assert (ROOT / folder / "py.typed").is_file()


def test_folders__datasets_and_the_namespace_are_no_regular_packages():
    """With an __init__.py they would hide other packages of the same name."""
    assert not (ROOT / "datasets" / "__init__.py").exists()
    assert not (ROOT / "__init__.py").exists()
    import manifold_observer  # noqa: PLC0415

    assert manifold_observer.__file__ is None


def test_pyproject__packages_are_the_folders():
    setuptools = PROJECT["tool"]["setuptools"]
    installed = {f"manifold_observer.{folder}": folder for folder in FOLDERS}
    assert sorted(setuptools["packages"]) == sorted(installed)
    assert setuptools["package-dir"] == installed
    with_modules = {path.parent.name for path in ROOT.glob("*/*.py")} - {"tests", "build", "deploy"}
    assert with_modules == set(FOLDERS)


@pytest.mark.parametrize("group", ["xarray.backends", "dask_cli"])
def test_pyproject__entry_points_name_what_exists(group):
    for target in PROJECT["project"]["entry-points"][group].values():
        module, _, name = target.partition(":")
        found = __import__(module, fromlist=[name])
        assert hasattr(found, name)
