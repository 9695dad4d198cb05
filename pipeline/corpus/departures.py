"""Which recordings depart from those before them, as the last run found it."""

from __future__ import annotations

import json

from manifold_observer.tasks import atomic

from .config import CorpusConfig

QUANTITIES = ("feature_means", "feature_spreads", "foretold", "eigenvalue")
"""What is compared: features' means and logarithms of their spreads, what is foretold, the largest eigenvalue."""
Departures = dict[str, dict[str, float]]
_PLACE = "departures.json"


def write_departures(config: CorpusConfig, found: Departures) -> None:
    """Keep what departs, by recording and quantity, for whoever asks."""
    beyond = {
        name: {quantity: round(value, 2) for quantity, value in values.items() if value > 1}
        for name, values in found.items()
    }
    content = json.dumps({name: values for name, values in beyond.items() if values}, sort_keys=True)
    atomic.write(config.state / _PLACE, content.encode())


def read_departures(config: CorpusConfig) -> Departures:
    """What the last run found to depart, in units of what chance allows; nothing where there was none."""
    try:
        found: Departures = json.loads((config.state / _PLACE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found
