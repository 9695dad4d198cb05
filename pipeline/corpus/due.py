"""Which recordings are due, and why the others are not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import NamedTuple

from ..jobs.config import RunConfig
from ..jobs.fingerprint import digest, files_of, stamp
from .config import CorpusConfig
from .ledger import Record, root_digest
from .listing import Item, place_of
from .maps import wanted_fingerprint

DUE = ("new", "changed", "settings", "version", "map", "lost", "again")
"""Reasons to compute: never done, other input, other settings, another version, another map, no result any more, a
passing fault."""


class Due(NamedTuple):
    """A recording, what is known of it, and how it stands: one of ``DUE``, or "done", "failed", "expired"."""

    item: Item
    record: Record
    why: str


def standing(
    config: CorpusConfig,
    items: Iterable[Item],
    ledger: Mapping[str, Record],
    retry: Sequence[str] | None = None,
    *,
    refit: bool = False,
) -> list[Due]:
    """How every recording of a corpus stands now.

    Parameters
    ----------
    config
        The corpus.
    items
        Its recordings, as :func:`.listing.items_of` lists them.
    ledger
        What is known.
    retry
        Names of failed recordings that are due again.
    refit
        Whether the map of the corpus is fitted again.

    Returns
    -------
    One for each of the recordings, in their order.
    """
    found, fingerprint = [], wanted_fingerprint(config, ledger.values(), refit=refit)
    for item in items:
        record = ledger.get(item.name) or Record(item.name, item.path)
        why = _why(config, item, record, fingerprint)
        found.append(Due(item, record, "again" if why == "failed" and item.name in (retry or ()) else why))
    return found


def _why(config: CorpusConfig, item: Item, record: Record, fingerprint: str) -> str:
    """How one recording stands."""
    if not record.outcome:
        return "new"
    if record.outcome == "expired":
        return "changed" if _is_changed(config, item, record) else "expired"
    reasons: dict[str, Callable[[], bool]] = {
        "changed": lambda: _is_changed(config, item, record),
        "settings": lambda: not _same_settings(record.settings, config.run),
        "version": lambda: config.new_version == "recompute" and record.version != version("manifold-observer"),
        "map": lambda: record.outcome == "done" and record.facts.get("map_fingerprint", "") != fingerprint,
        "again": lambda: record.outcome == "failed" and record.passing,
        "lost": lambda: record.outcome == "done" and not _has_result(config, record),
    }
    return next((why for why, holds in reasons.items() if holds()), record.outcome)


def _has_result(config: CorpusConfig, record: Record) -> bool:
    """Whether the result is there that the record tells of."""
    return not record.begun and root_digest(place_of(config, record.name)) == record.result


def _is_changed(config: CorpusConfig, item: Item, record: Record) -> bool:
    """Whether a recording is another than that of the record; its content is read only where its times have changed."""
    files = files_of(item.path, config.run)
    there = stamp(files)
    if there == record.stamp:
        return False
    if record.outcome == "failed" or _sizes(there) != _sizes(record.stamp):
        return True
    try:
        return digest(files) != record.content
    except OSError:
        return True


def _sizes(stamps: list[list[object]]) -> list[tuple[str, object]]:
    """Names below the folder of the recording, and sizes."""
    return [(os.path.basename(str(one[0])), one[1]) for one in stamps]


def _same_settings(stored: str, run: RunConfig) -> bool:
    """Whether settings as they were stored, perhaps by another version, mean the same as these."""
    if stored == run.to_json():
        return True
    try:
        return RunConfig.from_json(stored) == run
    except (KeyError, TypeError, ValueError):
        return False
