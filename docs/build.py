"""Build the site: ``python docs/build.py [FOLDER]`` writes it to ``build/site``.

Pages are plain Markdown that a forge shows as well, with links that are right in both. They are laid out in
``build/pages`` as they lie in the project, the references are generated beside them, Sphinx makes HTML of all, and
every link of the HTML is checked. A warning of Sphinx or a broken link ends the build.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from links import broken_links
from references import api_pages, command_reference

ROOT = Path(__file__).resolve().parents[1]
# Folders with pages, and single ones. Other files come along where a page links to them.
FOLDERS = ("docs", "deploy")
PAGES = ("pipeline/DESIGN.md", "CHANGELOG.md", "tests/recordings/README.md", "tests/benchmarks/README.md")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_HOME = '<!doctype html>\n<meta charset="utf-8">\n<title>manifold-observer</title>\n'
_HOME += '<meta http-equiv="refresh" content="0; url=docs/index.html">\n<a href="docs/index.html">Documentation</a>\n'


def main(site: Path) -> None:
    """Lay the pages out, make HTML of them, and check its links."""
    pages = site.parent / "pages"
    _lay_out(pages)
    shutil.rmtree(site, ignore_errors=True)
    words = ["-q", "-W", "--keep-going", "-b", "html", "-c", ROOT / "docs", "-d", site.parent / "doctrees", pages, site]
    if subprocess.run([sys.executable, "-m", "sphinx", *map(str, words)], check=False).returncode:
        sys.exit("docs: Sphinx warned of what stands above.")
    (site / "index.html").write_text(_HOME, encoding="utf-8")
    if broken := broken_links(site):
        sys.exit("docs: links lead nowhere:\n" + "\n".join(broken))


def _lay_out(pages: Path) -> None:
    """Copy pages and what they link to, and generate the references; only what has changed is written."""
    made = dict(_sources())
    made["docs/index.md"] = _without_empty_lists(made["docs/index.md"])
    made |= api_pages(made["docs/api.md"])
    made["docs/commands.md"] += command_reference()
    _mirror({name: text.encode() for name, text in made.items()} | _linked(made) | _notebooks(), pages)


def _sources() -> list[tuple[str, str]]:
    """Name and text of every page."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.md"))]
    found += [ROOT / name for name in PAGES]
    return [(path.relative_to(ROOT).as_posix(), _without_folders(path)) for path in found]


def _without_folders(path: Path) -> str:
    """The text of a page, in which links to folders are words: a forge lists folders, a site does not."""

    def plain(found: re.Match[str]) -> str:
        return found[1] if (path.parent / found[2]).is_dir() else found[0]

    return _LINK.sub(plain, path.read_text(encoding="utf-8"))


def _without_empty_lists(index: str) -> str:
    """The index without patterns of pages that there are none of, which Sphinx would warn of."""
    lines = index.splitlines()
    kept = [line for line in lines if not line.endswith("*") or any((ROOT / "docs").glob(f"{line}.[mi][dp]*"))]
    return "\n".join(kept) + "\n"


def _linked(made: dict[str, str]) -> dict[str, bytes]:
    """Files that pages link to or show: pictures, scripts, settings."""
    linked = {}
    for name, text in made.items():
        for _, target, _ in _LINK.findall(text):
            path = (ROOT / name).parent.joinpath(target).resolve()
            if path.is_file() and path.is_relative_to(ROOT) and path.relative_to(ROOT).as_posix() not in made:
                linked[path.relative_to(ROOT).as_posix()] = path.read_bytes()
    return linked


def _notebooks() -> dict[str, bytes]:
    """Tutorials, as they were executed."""
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in (ROOT / "docs").rglob("*.ipynb")}


def _mirror(files: dict[str, bytes], folder: Path) -> None:
    """Make a folder hold these files and no others; those that are the same keep their times, so Sphinx skips them."""
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve())
