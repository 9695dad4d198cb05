"""Whether a result that is there already is the one that a run would make."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..stores.address import Address, Place, full_name
from ..stores.objects import exists
from .config import RunConfig
from .fingerprint import files_of, stamp, stamps_of
from .manifest import check_whole


def made_already(recordings: Sequence[Place], out: Place, config: RunConfig) -> bool:
    """Whether a finished result of the same recordings and settings is at a place.

    Recordings count as the same while no file of theirs was changed after the result had been written.

    Parameters
    ----------
    recordings
        What a run would read.
    out
        Where it would write.
    config
        What it would do.

    Returns
    -------
    False where nothing is there.

    Raises
    ------
    ValueError
        Another result is there, or a damaged one, or something else.
    """
    if not exists(out):
        return False
    attrs = check_whole("run", out)
    other = _difference(attrs, recordings, out, config)
    if other is not None:
        raise ValueError(
            f"run: {out} must be a result of the same recordings and settings to be skipped; got {other}. Choose "
            "another name, or give --overwrite."
        )
    return True


def _difference(attrs: dict[str, Any], recordings: Sequence[Place], out: Place, config: RunConfig) -> str | None:
    """What tells a result from the one that a run would make."""
    if attrs.get("source_paths") != [full_name(path) for path in recordings]:
        return f"one of {', '.join(attrs.get('sources', [])) or 'something else'}"
    try:
        there = RunConfig.from_json(attrs["settings"]).flat()
    except (KeyError, TypeError, ValueError):
        return "one of another version"
    here = config.flat()
    changed = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    if changed:
        return f"one with other {', '.join(changed)}"
    if isinstance(out, Address) or not all(isinstance(path, Path) for path in recordings):
        same = attrs.get("source_stamps") == stamps_of(recordings, config)
        return None if same else "one of recordings that have changed since, or of an earlier version"
    written = (out / "zarr.json").stat().st_mtime_ns
    stamps = [one for path in recordings for one in stamp(files_of(str(path), config))]
    newer = [path for path, _, modified, _ in stamps if modified > written]
    return f"one that is older than {newer[0]}" if newer else None
