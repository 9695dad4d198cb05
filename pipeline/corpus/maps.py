"""The maps of a corpus: where they lie, which one is current, and when another one is fitted.

A map lies in the state of the corpus, ``.corpus/maps/000001.zarr``, and one that is fitted later beside it: results
name the map that they were read by.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from manifold_observer.tasks import atomic

from ..jobs.config import RunConfig
from .config import CorpusConfig
from .ledger import Record
from .listing import Item
from .map_config import MapConfig

STALE = "none yet"
"""Stands for the fingerprint of a map that is still to be fitted: no result was read by it."""
_DRIFT = "drift.json"
_PLACE = re.compile(r"\d{6}\.zarr")


class Current(NamedTuple):
    """The newest map of a corpus, from its root alone."""

    path: Path
    version: int
    fingerprint: str
    request: str
    """Settings that it was fitted with."""
    sources: frozenset[str]
    """Recordings that there were then and could be read."""
    refused: dict[str, str]
    """Those that could not, and why."""
    alignment: tuple[float, ...]
    """Correlations of its coordinates with those of the map before."""


def request_of(run: RunConfig, how: MapConfig) -> str:
    """What makes a map another one: all settings but when it is fitted again, and when that is due.

    Examples
    --------
    >>> request_of(RunConfig(), MapConfig()) == request_of(RunConfig(), MapConfig(refit="due"))
    True
    """
    fitted = {name: value for name, value in asdict(how).items() if name not in ("refit", "most_outside")}
    return json.dumps({"run": run.to_json(), "map": fitted}, sort_keys=True)


def current_map(config: CorpusConfig) -> Current | None:
    """The newest map of a corpus; None where there is none that is whole."""
    for place in sorted(_places(config), reverse=True):
        attrs = _root(place)
        if attrs.get("complete") and attrs.get("map_fingerprint"):
            return Current(
                place,
                int(attrs["map_version"]),
                str(attrs["map_fingerprint"]),
                str(attrs["map_request"]),
                frozenset(attrs["source_paths"]),
                json.loads(attrs["refused"]),
                tuple(attrs.get("map_alignment", ())),
            )
    return None


def is_stale(config: CorpusConfig, records: Iterable[Record], *, refit: bool = False) -> bool:
    """Whether the next run fits a map: there is none with these settings, it is asked for, or due where that is enough.

    A refit is due for recordings outside the map that were not there when it was fitted: with others it would be the
    same map again.
    """
    how, current = config.shared, current_map(config)
    if how is None:
        return False
    if refit or current is None or current.request != request_of(config.run, how):
        return True
    return how.refit == "due" and any(_is_read_by(one, current) and one.facts["outside_refit_due"] for one in records)


def wanted_fingerprint(config: CorpusConfig, records: Iterable[Record], *, refit: bool = False) -> str:
    """Of the map that results must have been read by; empty where there is no map."""
    if config.shared is None:
        return ""
    current = current_map(config)
    return STALE if current is None or is_stale(config, records, refit=refit) else current.fingerprint


def fit_for(config: CorpusConfig, items: Iterable[Item]) -> Path:
    """Fit the next map of a corpus on all its recordings; this computes.

    Raises
    ------
    ValueError, OSError
        No recording can be read, or the sample cannot be embedded.
    """
    from .shared_map import fit_map, read_map  # noqa: PLC0415 - Dask starts slowly, and often nothing is due

    current, folder = current_map(config), _folder(config)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [int(place.stem) for place in _places(config)]
    out = folder / f"{max(numbers, default=0) + 1:06d}.zarr"
    earlier = None if current is None else read_map(current.path)
    fit_map([item.path for item in items], out, config.run, config.shared, earlier=earlier)
    return out


def map_status(config: CorpusConfig, records: Mapping[str, Record]) -> dict[str, Any] | None:
    """What there is to say of the map of a corpus, from its root and the ledger; None where there is none."""
    current = current_map(config)
    if config.shared is None or current is None:
        return None
    failed = {one.input for one in records.values() if one.outcome == "failed"}  # which says why already
    read = {name: one for name, one in sorted(records.items()) if _is_read_by(one, current)}
    return {
        "path": str(current.path),
        "version": current.version,
        "fingerprint": current.fingerprint,
        "recordings": len(current.sources),
        "refused": {path: why for path, why in current.refused.items() if path not in failed},
        "alignment": list(current.alignment),
        "outside": {name: one.facts["outside_share"] for name, one in read.items()},
        "refit_due": [name for name, one in read.items() if one.facts.get("outside_refit_due")],
        "drift": _drift(config, read, current),
    }


def _is_read_by(record: Record, current: Current) -> bool:
    """Whether a result was read by the current map."""
    return record.outcome == "done" and record.facts.get("map_fingerprint") == current.fingerprint


def note_drift(config: CorpusConfig, records: Mapping[str, Record]) -> None:
    """Keep the line about drift, for whoever asks for the status."""
    current = current_map(config)
    if config.shared is None or current is None:
        return
    read = {name: one for name, one in sorted(records.items()) if _is_read_by(one, current)}
    key = _drift_key(read, current)
    if _noted(config).get("key") != key:
        atomic.write(_folder(config) / _DRIFT, json.dumps({"key": key, "line": _judged(read, current)}).encode())


def _drift(config: CorpusConfig, read: Mapping[str, Record], current: Current) -> str:
    """The line about drift, as it was kept, if nothing has changed since."""
    noted = _noted(config)
    return str(noted["line"]) if noted.get("key") == _drift_key(read, current) else _judged(read, current)


def _judged(read: Mapping[str, Record], current: Current) -> str:
    """The line about drift, made anew."""
    from .drift import Told, judged  # noqa: PLC0415 - xarray and SciPy's statistics load slowly

    told = [
        Told(name, current.fingerprint, one.facts.get("time"), one.facts["quantities"]) for name, one in read.items()
    ]
    return str(judged(told).attrs["line"])


def _drift_key(read: Mapping[str, Record], current: Current) -> str:
    """What the line depends on."""
    told = [[name, one.facts.get("time"), one.facts["quantities"]] for name, one in read.items()]
    return hashlib.sha256(json.dumps([current.fingerprint, told], sort_keys=True).encode()).hexdigest()


def _noted(config: CorpusConfig) -> dict[str, Any]:
    """What was kept."""
    try:
        noted = json.loads((_folder(config) / _DRIFT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) and {"key", "line"} <= noted.keys() else {}


def _folder(config: CorpusConfig) -> Path:
    """Where maps lie."""
    return config.state / "maps"


def _places(config: CorpusConfig) -> list[Path]:
    """All maps."""
    folder = _folder(config)
    return [path for path in folder.iterdir() if _PLACE.fullmatch(path.name)] if folder.is_dir() else []


def _root(place: Path) -> dict[str, Any]:
    """Attributes of a map; nothing where it cannot be read."""
    try:
        attrs = json.loads((place / "zarr.json").read_text(encoding="utf-8"))["attributes"]
    except (OSError, ValueError, KeyError):
        return {}
    return attrs if isinstance(attrs, dict) else {}
