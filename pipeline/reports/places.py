"""Where reports may be written: only an earlier report is ever replaced."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .html import MARK


def check_report(path: Path) -> None:
    """Refuse a place where something else lies, before anything is read.

    Raises
    ------
    ValueError, OSError
        Something else is there, or the folder is not.

    Examples
    --------
    >>> check_report(Path("nowhere/report.html"))
    Traceback (most recent call last):
    FileNotFoundError: report: nowhere does not exist. Make that folder, or name another place.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"report: the page must end in .html; got {path}. Name it so.")
    if not os.path.lexists(path):
        if not path.parent.is_dir():
            raise FileNotFoundError(f"report: {path.parent} does not exist. Make that folder, or name another place.")
        return
    if not stat.S_ISREG(os.lstat(path).st_mode) or not _is_report(path):
        raise ValueError(f"report: {path} must be an earlier report or nothing; got something else. Name another file.")


def _is_report(path: Path) -> bool:
    """Whether a file ends as reports do."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - len(MARK) - 2))
        return file.read().strip().endswith(MARK.encode())
