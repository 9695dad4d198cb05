"""Drift over nights: which recordings depart from those before them, in the order of their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from manifold_observer.tasks.comparison.departure import departures

from .departures import QUANTITIES, Departures
from .ledger import Record

# Numbers that are kept of the features of a recording; those of more features are means of neighbours.
_NUMBERS = 64


def moments_of(frames: Any) -> dict[str, list[float]]:
    """What drift of features is measured by, of frames ``(frame, feature)``; this computes."""
    mean, spread = (np.asarray(part.values, dtype=float) for part in (frames.mean("frame"), frames.std("frame")))
    least = 1e-12 * np.abs(mean) + np.finfo(float).tiny
    return {"feature_means": _few(mean), "feature_spreads": _few(np.log(np.maximum(spread, least)))}


def departing(records: Iterable[Record]) -> Departures:
    """How far recordings depart from those before them, by name and quantity; above 1 is more than chance.

    Recordings with other settings, or other features, are compared among themselves.
    """
    alike: dict[tuple[str, int], list[Record]] = {}
    for record in sorted(records, key=lambda one: _in_order(one.name)):
        if record.outcome in ("done", "expired") and record.facts:
            key = record.settings, len(record.facts.get("feature_means", ()))
            alike.setdefault(key, []).append(record)
    found: Departures = {}
    for group in alike.values():
        for quantity in QUANTITIES:
            for record, value in zip(group, departures(_rows(group, quantity)), strict=True):
                found.setdefault(record.name, {})[quantity] = float(value)
    return found


def _rows(group: list[Record], quantity: str) -> Any:
    """One quantity of all recordings, as rows."""
    if quantity == "eigenvalue":
        values: list[Any] = [record.facts.get("eigenvalues", [np.nan])[:1] for record in group]
    else:
        values = [np.atleast_1d(record.facts.get(quantity, np.nan)) for record in group]
    return np.array([np.asarray(value, dtype=float) for value in values])


def _few(values: Any) -> list[float]:
    """At most so many numbers."""
    if len(values) <= _NUMBERS:
        return [float(value) for value in values]
    return [float(part.mean()) for part in np.array_split(values, _NUMBERS)]


def _in_order(name: str) -> list[tuple[int, int, str]]:
    """Names in the order of the numbers in them: night 2 before night 10."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]
