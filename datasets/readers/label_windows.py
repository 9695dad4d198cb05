"""Labels in JSON: for each recording a list of windows, as the Numenta Anomaly Benchmark has them."""

import json
import re
from typing import Any

import pandas as pd

from .contract import refusal

READER = "labels"
_WANTED = 'be a JSON object such as {"night.csv": [["2020-03-09 10:00", "2020-03-09 11:00"]]}'


def read_windows(path: str, recording: str | None) -> pd.DataFrame:
    """Read the windows of one recording as a table of labels.

    Parameters
    ----------
    path
        The file.
    recording
        Name of the recording; None where the file has one.

    Returns
    -------
    Columns start, stop and label ("window"), in text.
    """
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        try:
            found = json.load(file)
        except (ValueError, RecursionError) as error:
            raise refusal(READER, path, _WANTED, f"{str(error)[:80]!r}", "Correct it") from None
    if not isinstance(found, dict) or not all(isinstance(windows, list) for windows in found.values()):
        raise refusal(READER, path, _WANTED, "another structure", "Correct it")
    rows = [_row(path, window) for window in _windows_of(path, found, recording)]
    return pd.DataFrame(rows, columns=["start", "stop", "label"], dtype=str)


def _windows_of(path: str, found: dict[str, list[Any]], recording: str | None) -> list[Any]:
    """The windows of one recording."""
    names = {re.split(r"[\\/]", name)[-1]: windows for name, windows in found.items()}
    if recording is None and len(names) == 1:
        return next(iter(names.values()))
    wanted = re.split(r"[\\/]", recording)[-1] if recording else None
    if wanted not in names:
        got = f"those of {len(names)} recordings, {', '.join([*names][:5])}"
        raise refusal(READER, path, f"hold labels of {wanted or 'one recording'}", got, "Give its name with recording=")
    return names[wanted]


def _row(path: str, window: Any) -> list[str]:
    """A window as cells."""
    if not isinstance(window, list) or len(window) != 2 or not all(isinstance(x, str | int | float) for x in window):
        raise refusal(READER, path, "have windows of a start and a stop", f"{str(window)[:80]}", "Correct it")
    return [str(window[0]), str(window[1]), "window"]
