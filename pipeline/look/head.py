"""The beginning of a long table: rows have no fixed length, so that the reader of tables would read all of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

HEAD_BYTES = 2**20
"""Bytes of a table that are looked at."""
_TABLES = (".csv", ".tsv", ".txt")
_WIDE = (b"\xff\xfe", b"\xfe\xff")


class Head(NamedTuple):
    """What is looked at in place of a file."""

    path: Path
    """Where it is."""
    share: float
    """How much of the file it is, from 0 to 1."""


@contextmanager
def head_of(path: Path, engine: str | None = None) -> Iterator[Head]:
    r"""The whole file, or of a long table a copy of its first rows, which is gone after the block.

    Parameters
    ----------
    path
        An ordinary file or a folder.
    engine
        Of xarray, where the user names it.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "long.csv")
    ...     _ = table.write_text("t,x\n" + "0,1\n" * 500_000)
    ...     with head_of(table) as head:
    ...         head.path.name, head.share < 0.6, head.path.read_bytes().endswith(b"0,1\n")
    ('long.csv', True, True)
    """
    size = path.stat().st_size if path.is_file() else 0
    table = path.suffix.lower() in _TABLES if engine is None else engine == "manifold-csv"
    if not table or size <= HEAD_BYTES:
        yield Head(path, 1.0)
        return
    with tempfile.TemporaryDirectory(prefix="manifold-observer-") as folder:
        copy = Path(folder, path.name)
        with path.open("rb") as file:
            rows = _whole_lines(file.read(HEAD_BYTES))
        copy.write_bytes(rows)
        os.utime(copy)
        yield Head(copy, len(rows) / size)


def _whole_lines(text: bytes) -> bytes:
    """The lines of a text that are whole; all of it where there is no line end."""
    if not text.startswith(_WIDE):
        return text[: text.rfind(b"\n") + 1] or text
    end = "\n".encode("utf-16-le" if text.startswith(_WIDE[0]) else "utf-16-be")
    at = text.rfind(end)
    while at % 2 and at > 0:  # half of one letter and half of the next
        at = text.rfind(end, 0, at + 1)
    return text[: at + 2] if at > 0 else text
