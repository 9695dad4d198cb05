"""A small tile in some forms of the distance: how long it takes, and what single precision costs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.engine import kernel
from manifold_observer.tasks.engine.forms import FORMS, cost
from manifold_observer.tasks.engine.protocols import Block
from manifold_observer.tasks.engine.slab import Metric

# A form that costs this many times the best is not worth timing.
_HOPELESS = 3


class Probe(NamedTuple):
    """Per form, the seconds of a tile and its largest float32 error; and the median distance seen."""

    seconds: dict[str, float]
    float32_error: dict[str, float]
    median: float


def candidates(metric: Metric, n_features: int) -> list[str]:
    """Forms worth timing, the best by counting first: those that need windows where there are some, none hopeless.

    Examples
    --------
    >>> from manifold_observer.tasks.engine.covariance import PseudoInverse
    >>> candidates(Metric(21, PseudoInverse()), 513), candidates(Metric(0, PseudoInverse()), 3)
    (['window'], ['quadratic'])
    """
    windowed = metric.window > 0 and metric.shrinkage is None
    usable = [name for name, form in FORMS.items() if windowed or not form.needs_windows]
    costs = {name: cost(name, n_features, metric.rank(n_features), metric.window) for name in usable}
    return sorted((name for name in usable if costs[name] <= _HOPELESS * min(costs.values())), key=costs.__getitem__)


def probe_forms(exact: Mapping[str, tuple[Block, Block]]) -> Probe:
    """Time one small tile in every form, and measure what single precision costs.

    Parameters
    ----------
    exact
        Two small blocks in float64 for every form to try, best from different times of the recording.

    Returns
    -------
    Timings are in float32, errors against the same form in float64; nothing is timed where there is one form.
    """
    seconds, errors, median = {}, {}, 0.0
    for form, (rows, columns) in exact.items():
        single = rows.astype(np.float32), columns.astype(np.float32)
        tile, truth = kernel.squared_distances(*single), kernel.squared_distances(rows, columns)
        seconds[form] = min(_seconds(*single) for _ in range(2)) if len(exact) > 1 else 0.0
        errors[form] = float(np.abs(tile - truth).max())
        median = float(np.median(truth))
    return Probe(seconds, errors, median)


def _seconds(rows: Block, columns: Block) -> float:
    """Time of one tile."""
    before = time.perf_counter()
    kernel.squared_distances(rows, columns)
    return time.perf_counter() - before
