"""The version, from the latest tag; everything else stands in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
CITATION = ROOT / "docs" / "CITATION.cff"
# setuptools_scm takes the fallback for a tag where git knows none, and would count commits from there.
HAS_GIT = (ROOT / ".git").exists() and shutil.which("git") is not None


def fallback() -> str:
    """The version that is cited: where no tag is known, as in a shallow clone or a tarball."""
    lines = CITATION.read_text(encoding="utf-8").splitlines() if CITATION.is_file() else ["version: 0"]
    return next(line.partition(": ")[2] for line in lines if line.startswith("version: "))


def scheme(found) -> str:
    """1.2.0 at the tag v1.2.0, 1.2.1.dev3 three commits later, whatever is uncommitted."""
    if str(found.tag) in ("0", "0.0"):  # there is none
        return fallback()
    if not found.distance:
        return str(found.tag)
    *first, last = found.tag.release
    return ".".join(map(str, [*first, last + 1])) + f".dev{found.distance}"


setup(
    use_scm_version={
        "version_scheme": scheme,
        # Nothing about commits and days: workers and stored results compare versions, and code by its digest.
        "local_scheme": "no-local-version",
        "fallback_version": None if HAS_GIT else fallback(),
    }
)
