"""Imports follow the arrows between folders and between the rooms inside them, and every room is packaged."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = ("tasks", "pipeline", "datasets")
STDLIB = set(sys.stdlib_module_names)
LIBRARIES = {
    "tasks": {"numpy", "scipy"},
    "datasets": {"numpy", "scipy", "xarray", "zarr", "soundfile", "pandas", "numcodecs", "h5py"},
}
# The rooms that a room may import, besides itself. A room that is missing here may import nothing.
ARROWS = {
    "tasks": {
        "frames": set(),
        "engine": set(),
        "observers": {"engine"},
        "comparison": {"engine", "observers"},
        "corpus": {"engine"},
        "plot": set(),
    },
    "datasets": {"readers": set(), "simulators": set()},
    "pipeline": {
        "graph": set(),
        "stores": set(),
        "files": {"graph", "stores"},
        "frames": {"graph", "files", "stores"},
        "clusters": {"graph", "frames"},
        "engine": {"graph", "frames"},
        "embedding": {"graph", "frames", "engine"},
        "observers": {"graph", "frames", "embedding"},
        "comparison": {"graph", "frames", "observers"},
        "estimator": {"frames", "embedding", "observers"},
        "jobs": {"graph", "stores", "files", "frames", "clusters", "engine", "embedding", "observers", "comparison"},
        "corpus": {
            "graph",
            "stores",
            "files",
            "frames",
            "clusters",
            "engine",
            "embedding",
            "observers",
            "comparison",
            "jobs",
        },
        "look": {"files", "frames", "stores"},
        "paper": {
            "graph",
            "stores",
            "frames",
            "clusters",
            "engine",
            "embedding",
            "observers",
            "comparison",
            "jobs",
            "plot",
        },
        "plot": {"graph", "frames", "observers", "comparison"},
        "reports": {
            "graph",
            "stores",
            "frames",
            "engine",
            "observers",
            "comparison",
            "jobs",
            "plot",
        },
        "session": {"graph", "frames", "jobs"},
        "watch": {"graph", "jobs"},
        "cli": {
            "graph",
            "stores",
            "files",
            "frames",
            "clusters",
            "engine",
            "embedding",
            "observers",
            "comparison",
            "jobs",
            "corpus",
            "look",
            "paper",
            "plot",
            "reports",
            "watch",
        },
    },
}
# Rooms of pipeline/ that may import simulators or readers.
SIMULATING = {"paper", "cli", "session"}
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
each_file = pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])


def place(path, root=ROOT):
    """Folder and room of a file; the room is empty for a file that lies in no room."""
    folder, *rest = path.relative_to(root).parts
    return folder, rest[0] if len(rest) > 1 else ""


def modules(node, path, root=ROOT):
    """Full names of what an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    package = ["manifold_observer", *path.relative_to(root).parts[:-1]]
    base = package[: len(package) - node.level + 1] if node.level else []
    whole = ".".join([*base, *([node.module] if node.module else [])])
    # `from package import module` names a module where the package is one of ours.
    return [f"{whole}.{alias.name}" for alias in node.names] if whole.startswith("manifold_observer") else [whole]


def imported(path, root=ROOT):
    """Everything that a file imports anywhere in it, as (folder, room) of ours or (library, "")."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for name in modules(node, path, root):
            parts = name.split(".")
            if parts[0] != "manifold_observer":
                yield parts[0], ""
                continue
            folder = parts[1]
            room = parts[2] if len(parts) > 2 and parts[2] in ARROWS.get(folder, {}) else ""
            yield folder, room


def test_imported__sees_every_form(tmp_path):
    file = tmp_path / "tasks" / "engine" / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "import os.path\nfrom . import b\nfrom .c import d\nfrom ..frames import e\nfrom ..frames.f import g\n"
        "from manifold_observer import datasets\nfrom manifold_observer.pipeline import graph\n"
        "def f():\n    import dask.array as da\n    from manifold_observer.pipeline.jobs.run import run\n"
    )
    assert set(imported(file, tmp_path)) == {
        ("os", ""),
        ("tasks", "engine"),
        ("tasks", "frames"),
        ("datasets", ""),
        ("pipeline", "graph"),
        ("pipeline", "jobs"),
        ("dask", ""),
    }


@pytest.mark.parametrize("folder", FOLDERS)
def test_rooms__are_those_of_the_arrows(folder):
    rooms = {place(path)[1] for path in FILES if path.relative_to(ROOT).parts[0] == folder} - {""}
    assert rooms == set(ARROWS[folder])


def test_arrows__have_no_circle():
    for arrows in ARROWS.values():
        left = dict(arrows)
        while left:
            free = {room for room, needs in left.items() if not needs & set(left)}
            assert free, f"a circle among {sorted(left)}"
            left = {room: needs for room, needs in left.items() if room not in free}


@each_file
def test_imports__follow_the_arrows(path):
    folder, room = place(path)
    found = {other for where, other in imported(path) if where == folder and other not in ("", room)}
    assert found <= ARROWS[folder].get(room, set())


@each_file
def test_imports__keep_to_their_folder(path):
    folder, room = place(path)
    names = {where for where, _ in imported(path)} - STDLIB - {folder}
    if folder in LIBRARIES:
        assert names <= LIBRARIES[folder]
    elif room not in SIMULATING:
        assert "datasets" not in names


@each_file
def test_imports__slow_parts_of_scipy_are_imported_where_they_are_used(path):
    """They take most of a second, and every process that starts would pay it."""
    slow = {f"scipy.{name}" for name in ("signal", "stats", "optimize", "interpolate", "spatial")}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        named = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            named = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        assert not {".".join(name.split(".")[:2]) for name in named} & slow


@each_file
def test_imports__never_from_tests_or_deploy(path):
    forbidden = {"tests", "deploy", "reference", "strategies", "conftest", "pytest"}
    assert not {where for where, _ in imported(path)} & forbidden


@each_file
def test_imports__absolute_across_folders_and_relative_within_pipeline(path):
    folder = path.relative_to(ROOT).parts[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & set(FOLDERS)
        elif isinstance(node, ast.ImportFrom):
            named = node.module or ""
            assert node.level or named.split(".")[0] not in FOLDERS
            assert folder != "pipeline" or not named.startswith("manifold_observer.pipeline")


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders__are_typed(folder):
    assert (ROOT / folder / "py.typed").is_file()


def test_folders__datasets_and_the_namespace_are_no_regular_packages():
    """With an __init__.py they would hide other packages of the same name."""
    assert not (ROOT / "datasets" / "__init__.py").exists()
    assert not (ROOT / "__init__.py").exists()
    import manifold_observer  # noqa: PLC0415

    assert manifold_observer.__file__ is None


def test_pyproject__every_folder_with_modules_is_packaged():
    setuptools = PROJECT["tool"]["setuptools"]
    assert setuptools["package-dir"] == {f"manifold_observer.{folder}": folder for folder in FOLDERS}
    with_modules = {".".join(["manifold_observer", *path.relative_to(ROOT).parts[:-1]]) for path in FILES}
    assert sorted(setuptools["packages"]) == sorted(with_modules | {f"manifold_observer.{name}" for name in FOLDERS})


def test_pyproject__every_extra_brings_what_some_module_uses():
    extras = PROJECT["project"]["optional-dependencies"]
    users = {name: needs for name, needs in extras.items() if name not in {"test", "all", "lint", "docs"}}
    sources = "".join(path.read_text(encoding="utf-8") for path in FILES)
    for needs in users.values():
        for package in (need.partition(">=")[0] for need in needs):
            assert package in sources
    assert extras["all"] == [f"manifold-observer[{','.join(users)}]"]
    # The tests of a newcomer skip nothing for want of a package.
    assert {need for needs in users.values() for need in needs} <= set(extras["test"])


@pytest.mark.parametrize("group", ["xarray.backends", "dask_cli"])
def test_pyproject__entry_points_name_what_exists(group):
    for target in PROJECT["project"]["entry-points"][group].values():
        module, _, name = target.partition(":")
        found = __import__(module, fromlist=[name])
        assert hasattr(found, name)


def test_files__have_at_most_400_lines():
    """Of the package and of what stands beside it, tests too: a file of one subject is found, and read as a whole."""
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for folder in (*FOLDERS, "tests", "docs", "deploy")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > 400} == {}
