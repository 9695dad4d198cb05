"""Files of a wheel and an sdist: ``contents.py WHEEL SDIST`` names those that are missing and those that do not belong.

A wheel has all modules of the three folders and nothing else; an sdist can be built, tested and documented from.
"""

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "manifold_observer"
FOLDERS = ("pipeline", "tasks", "datasets")
INSTALLED = {".py", ".pyi", ".typed", ".js", ".css", ".json"}
# What nobody can do without who has the sdist alone.
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "docs/CITATION.cff", "docs/index.md")
NEEDED += ("docs/conf.py", "tests/conftest.py", "tests/docs/test_pages.py", ".ci/run", "deploy/docker/Dockerfile")


def modules() -> set[str]:
    """Files that a wheel installs, with their installed names."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in INSTALLED]
    return {f"{PACKAGE}/{path.relative_to(ROOT).as_posix()}" for path in found if "__pycache__" not in path.parts}


def of_wheel(names: list[str]) -> list[str]:
    """What is wrong with the files of a wheel, a line each."""
    code = {name for name in names if ".dist-info/" not in name}
    data = [name.partition(".dist-info/")[2] for name in names if ".dist-info/" in name]
    said = [f"wheel: {name} is missing" for name in sorted(modules() - code)]
    said += [f"wheel: {name} does not belong there" for name in sorted(code - modules())]
    return said + [f"wheel: {name} is missing" for name in ("licenses/LICENSE", "entry_points.txt") if name not in data]


def of_sdist(names: list[str]) -> list[str]:
    """What is wrong with the files of an sdist, a line each."""
    inside = {name.partition("/")[2] for name in names}
    needed = set(NEEDED) | {name.removeprefix(f"{PACKAGE}/") for name in modules()}
    said = [f"sdist: {name} is missing" for name in sorted(needed - inside)]
    private = [name for name in inside if name.startswith(("build/", ".venv", "dist/")) or name.endswith(".pyc")]
    return said + [f"sdist: {name} does not belong there" for name in sorted(private)]


def main(wheel: str, sdist: str) -> None:
    """Say what is wrong, and end with 1 where anything is."""
    with zipfile.ZipFile(wheel) as packed, tarfile.open(sdist) as archive:
        said = of_wheel([name for name in packed.namelist() if not name.endswith("/")]) + of_sdist(archive.getnames())
    sys.exit("\n".join(said) if said else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
