"""Whether labels lie in a file; light, for the command line asks it before anything is imported."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_PLACES = ("{stem}", "{name}")
# A file that is not there, or no longer, is not a column.
_SUFFIXES = (
    ".csv", ".tsv", ".txt", ".edf", ".bdf", ".atr", ".ecg", ".qrs", ".ann", ".event", ".mid", ".midi", ".json", ".mat",
    ".vmrk", ".parquet", ".feather", ".vhdr", ".set", ".fif", ".xdf",
)  # fmt: skip


def names_file(labels: Any) -> bool:
    """Whether an option ``labels`` names a file of labels, and not a column of the recording.

    Examples
    --------
    >>> names_file("labels/{stem}"), names_file("not there.csv"), names_file("stage"), names_file(None)
    (True, True, False, False)
    """
    one = only(labels)
    if one is None:
        return False
    named = any(place in one for place in _PLACES) or os.path.splitext(one)[1].lower() in _SUFFIXES
    return named or os.path.isfile(one)


def file_for(labels: Any, recording: str | os.PathLike[str]) -> str:
    """The file of labels for one recording.

    Examples
    --------
    >>> file_for("labels/{stem}.csv", "/data/night1.edf")
    'labels/night1.csv'
    """
    beside = Path(recording)
    return (only(labels) or "").replace("{stem}", beside.stem).replace("{name}", beside.name)


def only(labels: Any) -> str | None:
    """The one name that is given, if it is one."""
    one = labels[0] if isinstance(labels, tuple | list) and len(labels) == 1 else labels
    return os.fspath(one) if isinstance(one, str | os.PathLike) else None
