"""Drift over the recordings of a corpus: means of each, put in order of time, and a line that says what moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from manifold_observer.tasks.arrays import Floats
from manifold_observer.tasks.corpus.trend import LEAST_RECORDINGS, trends

from ..jobs.manifest import check_whole
from ..jobs.run import Given
from ..jobs.store import open_group
from ..stores.address import place
from .members import in_order_of_name

FEATURE = "mean of feature"
"""What the names of quantities begin with that are means of features."""
_LEVEL = 0.05
_DAY = 86400.0


class Told(NamedTuple):
    """What one result says: its name, map, time (seconds from 1970, or None) and quantities by their names."""

    name: str
    fingerprint: str
    time: float | None
    quantities: dict[str, float]


def drift(results: Sequence[Given]) -> xr.Dataset:
    """Whether the recordings of a corpus drift, from results that were read by the same map; this computes.

    Parameters
    ----------
    results
        As :func:`apply_map` stored them, in any order.

    Returns
    -------
    ``value(recording, quantity)``: mean state, mean of every feature in deviations of the map's, share outside, and
    what is foretold; ``slope(quantity)`` by Theil and Sen, a day where all recordings are dated and else from one
    recording to the next by name; ``correlation(quantity)`` with time by rank, and ``p(quantity)``, the share of random
    orders in which any quantity would show as much. The attribute ``line`` says it in a sentence.

    Raises
    ------
    ValueError, FileNotFoundError
        A result is damaged, was not read by a map, or was read by another one than the first.

    Notes
    -----
    Recordings are taken to be independent of one another but for the trend. A quantity that wanders, each night from
    where the last one left it, shows a trend more often than p says.

    Examples
    --------
    >>> drift([]).attrs["line"]
    'drift: 0 recordings are too few to tell; it takes 5'
    """
    return judged([told_by(path) for path in in_order_of_name(results)])


def told_by(result: Given) -> Told:
    """What one result says."""
    where = place(result)
    attrs = check_whole("drift", where)
    if "outside_share" not in attrs:
        raise ValueError(f"drift: {result} must be read by a map; got another result. Make it with mo.apply_map.")
    summary = open_group(where, "summary").load()
    means = zip(summary["reads"].values, summary["state_mean"].values, strict=True)
    quantities = {f"mean of {name}": float(value) for name, value in means}
    shifts = zip(_feature_names(summary), summary["feature_shift"].values, strict=True)
    quantities |= {f"{FEATURE} {name}": float(value) for name, value in shifts}
    quantities |= {"share outside": float(attrs["outside_share"]), "foretold": float(attrs["foretold"])}
    return Told(where.name, str(attrs["map_fingerprint"]), _time_of(attrs), quantities)


def judged(told: Sequence[Told]) -> xr.Dataset:
    """Trends of what results say, and the line.

    Raises
    ------
    ValueError
        They were read by different maps.
    """
    for one in told[1:]:
        if one.fingerprint != told[0].fingerprint:
            raise ValueError(
                f"drift: results must be read by one map; got {told[0].name} and {one.name}, which were read by "
                "different ones. Read all of them by the same map."
            )
    times = [one.time for one in told]
    dated = bool(told) and all(time is not None for time in times)
    order = np.argsort(np.array(times, np.float64), kind="stable") if dated else np.arange(len(told))
    told = [told[k] for k in order]
    when = np.array([one.time for one in told], np.float64) / _DAY if dated else np.arange(len(told), dtype=np.float64)
    names = list(told[0].quantities) if told else []
    values = np.array([[one.quantities[name] for name in names] for one in told]).reshape(len(told), len(names))
    found = trends(values, when - when[:1] if dated else when)
    table = xr.Dataset(
        {
            "value": (("recording", "quantity"), values),
            "slope": ("quantity", found.slopes),
            "correlation": ("quantity", found.correlations),
            "p": ("quantity", found.p),
        },
        coords={"recording": [one.name for one in told], "quantity": names, "when": ("recording", when)},
    )
    return table.assign_attrs(per="day" if dated else "recording", line=_line(table, dated))


def _feature_names(summary: xr.Dataset) -> list[str]:
    """Names of the features: channel, and frequency or bin where there is one."""
    n = summary.sizes["feature"]
    channels = summary["channel"].values if "channel" in summary.coords else range(n)
    places = next((summary[name].values for name in ("frequency", "bin") if name in summary.coords), None)
    return [str(name) if places is None else f"{name} {places[k]:g}" for k, name in enumerate(channels)]


def _time_of(attrs: dict[str, Any]) -> float | None:
    """Seconds from 1970 to the start of a recording, where its clock is dated."""
    if "began_from" not in attrs:
        return None
    try:
        start = np.datetime64(str(attrs["began_from"]).removesuffix("Z"))
    except ValueError:
        return None
    return float((start - np.datetime64(0, "s")) / np.timedelta64(1, "s")) + float(attrs.get("began_after", 0.0))


def _line(table: xr.Dataset, dated: bool) -> str:
    """One line for a report."""
    n, p = table.sizes["recording"], table["p"].values
    if n < LEAST_RECORDINGS:
        return f"drift: {n} recordings are too few to tell; it takes {LEAST_RECORDINGS}"
    known: Floats = np.nan_to_num(p, nan=2.0)
    best = int(np.argmin(np.where(known <= 1, known - np.abs(np.nan_to_num(table["correlation"].values)) * 1e-6, 2.0)))
    if known[best] > 1:
        return f"drift: nothing varies over {n} recordings"
    order, per = ("in order of time", "a day") if dated else ("in order of their names", "from one to the next")
    chance = f"p = {known[best]:.3f}, {np.count_nonzero(known <= 1)} quantities looked at"
    name, slope = table["quantity"].values[best], float(table["slope"].values[best])
    if known[best] > _LEVEL:
        return f"drift: none found over {n} recordings {order} ({chance}; the most likely: {name})"
    others = np.count_nonzero(known <= _LEVEL) - 1
    more = f", and {others} more" if others else ""
    return f"drift over {n} recordings {order}: {name} changes by {slope:+.3g} {per} ({chance}){more}"
