"""What a folder holds, to the bit, and copies of it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

Content = dict[str, str]


def content(folder: Path) -> Content:
    """Kind, permissions, and content or target of everything below a folder, by its path in it."""
    return dict(_entries(folder, "")) if folder.is_dir() else {}


def _entries(folder: Path, prefix: str) -> Iterator[tuple[str, str]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            path = prefix + entry.name
            yield path, described(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(Path(entry.path), path + "/")


def described(path: str | os.PathLike[str]) -> str:
    """Kind, permissions, and content or target of one file or folder."""
    found = os.lstat(path)
    kind, mode = stat.S_IFMT(found.st_mode), f"{stat.S_IMODE(found.st_mode):o}"
    if kind == stat.S_IFLNK:
        return f"link to {os.readlink(path)}"
    if kind == stat.S_IFDIR:
        return f"folder {mode}"
    if kind == stat.S_IFREG:
        return f"file {mode} {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
    return f"special {kind:o} {mode}"


def outline(folder: Path) -> set[tuple[str, int]]:
    """Names and sizes of all files and folders, without the random part of a name."""
    paths = [*folder.rglob("*")]
    sizes = [path.lstat().st_size if path.is_file() and not path.is_symlink() else -1 for path in paths]
    names = [re.sub(r"[0-9a-f]{16,}", "*", str(path.relative_to(folder))) for path in paths]
    return set(zip(names, sizes, strict=True))


def differences(before: Content, after: Content) -> list[str]:
    """What of the first is missing or other in the second; what was added does not count."""
    return [f"{path} is {'changed' if path in after else 'gone'}" for path in before if after.get(path) != before[path]]


def restored(template: Path, folder: Path) -> None:
    """Make a folder what the template is."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(template, folder, symlinks=True)
