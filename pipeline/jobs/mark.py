"""The name of a work folder and the mark in it, which repeats the name's token: both agree or it is somebody else's."""

from __future__ import annotations

import hashlib
import json
import os
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

MARK_FILE = "mark.json"
NAME = re.compile(r"\.(.*)\.([0-9a-f]{8})([0-9a-f]{8})\.manifold-observer", re.DOTALL)
# Bytes of the output's name that are repeated: some file systems allow 143 in all, most 255.
_LONGEST_STEM = 100


def folder_name(name: str, random: str) -> str:
    """Name of a work folder. The second half of the token checks the first: nobody has such a name by chance."""
    stem = os.fsencode(name)[:_LONGEST_STEM].decode("utf-8", "ignore")
    check = hashlib.sha256(random.encode() + os.fsencode(name)).hexdigest()[:8]
    return f".{stem}.{random}{check}.manifold-observer"


def mark_of(folder: Path, name: str) -> bytes:
    """What a mark says: whose it is, and for those who look into it, what for."""
    mark = {
        "token": NAME.sub(r"\2\3", folder.name),
        "name": name,
        "out": str(folder.parent / name),
        "manifold_observer": version("manifold-observer"),
    }
    return json.dumps(mark).encode()


def write_all(handle: int, content: bytes) -> None:
    """Write all of it: a disk that fills up takes a part without an error."""
    while content:
        content = content[os.write(handle, content) :]


def opened_mark(path: Path) -> int | None:
    """Handle of a mark; None where it is gone."""
    try:
        return os.open(path / MARK_FILE, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None


def read_mark(path: Path) -> dict[str, Any]:
    """What a mark says; nothing where there is none."""
    try:
        mark = json.loads((path / MARK_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return mark if isinstance(mark, dict) else {}
