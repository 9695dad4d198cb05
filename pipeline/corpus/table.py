"""The manifest of a corpus: its ledger as a table that xarray and pandas open."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from manifold_observer.tasks import atomic

from ..stores.objects import exists
from .config import CorpusConfig
from .departures import QUANTITIES, Departures, write_departures
from .ledger import Record, shown

_NOTE = "manifest.json"
_TEXTS = ("input", "outcome", "sentence", "version", "settings", "content", "started", "finished")
_NUMBERS = {
    "seconds": "s", "n_bytes": "byte", "attempts": "1", "n_frames": "1", "n_features": "1", "n_modes": "1",
    "residual": "1", "foretold": "1", "by_chance": "1", "map_version": "1", "outside_share": "1",
    "outside_distance_ratio": "1", "outside_refit_due": "1",
}  # fmt: skip


def write_table(config: CorpusConfig, records: Mapping[str, Record]) -> bool:
    """Write the manifest anew where the ledger has changed since; whether it did.

    Raises
    ------
    ValueError, OSError
        It cannot be written, or something else lies at its place; the earlier one stays.
    """
    rows = [records[name] for name in sorted(records) if records[name].outcome]
    state = hashlib.sha256(json.dumps([asdict(row) for row in rows], sort_keys=True).encode()).hexdigest()
    note = config.state / _NOTE
    if not rows or (note.exists() and note.read_text() == state and exists(config.manifest / "zarr.json")):
        return False
    from ..jobs.manifest import MARK  # noqa: PLC0415 - slow, and seldom needed
    from ..jobs.store import write_group, writing  # noqa: PLC0415
    from .departing import departing  # noqa: PLC0415

    departed = departing(rows)
    with writing(config.manifest, overwrite=exists(config.manifest)) as folder:
        marked = {MARK: version("manifold-observer"), "corpus": shown(str(config.root)), "complete": False}
        write_group(folder, "", _dataset(rows, departed).assign_attrs(marked))
    write_departures(config, departed)
    atomic.write(note, state.encode())
    return True


def _dataset(rows: list[Record], departed: Departures) -> Any:
    """Records as variables along ``recording``."""
    import numpy as np  # noqa: PLC0415
    import xarray as xr  # noqa: PLC0415

    def texts_of(values: Iterable[str]) -> Any:
        return "recording", np.array([shown(value) for value in values], dtype=object)

    texts = {name: texts_of(getattr(row, name) for row in rows) for name in _TEXTS}
    texts["warnings"] = texts_of("\n".join(row.warnings) for row in rows)
    numbers = {
        name: ("recording", np.array([_number(row, name) for row in rows]), {"units": unit})
        for name, unit in _NUMBERS.items()
    }
    for quantity in QUANTITIES:
        values = [departed.get(row.name, {}).get(quantity, np.nan) for row in rows]
        meaning = {"long_name": f"departure of {quantity} from the recordings before; above 1 is more than chance"}
        numbers[f"departure_{quantity}"] = ("recording", np.array(values), {"units": "1", **meaning})
    return xr.Dataset({**texts, **numbers}, coords={"recording": texts_of(row.name for row in rows)})


def _number(row: Record, name: str) -> float:
    """A number of a record; NaN where a recording has none."""
    value = getattr(row, name) if hasattr(row, name) else row.facts.get(name)
    return float("nan") if value is None else float(value)
