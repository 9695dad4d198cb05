"""What a run cost and warned of, kept on the machine that ran it: a result has the same bytes wherever it was made.

Throughout: a *record* lies in the cache folder under the digest of the result's root, wherever the result is moved to.
Runs of the same recordings with the same settings share one, of the later run. Beyond some hundreds the oldest go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from manifold_observer.tasks import atomic

from ..stores.address import Place
from ..stores.copies import cache_folder
from .manifest import root_digest

_MOST_RECORDS = 500


def keep_record(out: Place, record: Mapping[str, Any]) -> None:
    """Keep what is known of a run besides its result; where that cannot be written, nothing is.

    Parameters
    ----------
    out
        The result.
    record
        What JSON can hold, such as ``seconds`` of each stage and ``warnings``.
    """
    with suppress(OSError, ValueError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        if digest := root_digest(out):
            atomic.write(folder / f"{digest[:32]}.json", json.dumps(dict(record)).encode())
        oldest_first = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for old in oldest_first[:-_MOST_RECORDS]:
            old.unlink(missing_ok=True)


def recalled(out: Place) -> dict[str, Any]:
    """What is known of the run that made a result; nothing where it ran elsewhere, or that is gone.

    Examples
    --------
    >>> recalled(Path("nowhere.zarr"))
    {}
    """
    try:
        digest = root_digest(out)
        found = json.loads((_folder() / f"{digest[:32]}.json").read_text(encoding="utf-8")) if digest else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _folder() -> Path:
    """Where records of this machine lie."""
    return cache_folder() / "runs"
