"""What is in a recording, from its header and a bounded sample of its values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..frames.clock import Clock, start_time
from ..frames.columns import rows_of_sample

_MOST_LABELS = 24
_MOST_NAMES = 12
# Decoders that cannot seek read all that lies before.
_IN_ORDER = (".mp3", ".ogg", ".opus")
_FIRST_ROWS = 2**14


@dataclass(frozen=True)
class Glance:
    """What is in a recording.

    Examples
    --------
    >>> Glance(samples=100, channels=["x"], dtype="float64", seen=1.0, rate=10.0, seconds=10.0).rate
    10.0
    """

    samples: int
    """Samples, about so many where ``seen`` is below 1."""
    channels: list[str]
    """Names of the channels."""
    dtype: str
    """What the values are stored as."""
    seen: float
    """Share of the file that was looked at for its clock and labels: 1 but for long tables."""
    rate: float | None = None
    """Samples a second; None without a clock."""
    seconds: float | None = None
    """From the first sample to the last."""
    start: str | None = None
    """The date-time from which the clock counts."""
    regular: bool = False
    """Whether times follow from the rate alone."""
    gaps: int = 0
    """Gaps in the clock."""
    longest_gap: float = 0.0
    """Seconds of the longest."""
    longest_segment: int = 0
    """Samples of the longest stretch without a gap."""
    unit: str | None = None
    """Unit of the clock, where it was assumed."""
    clock_name: str | None = None
    """Column of the clock, where its unit was assumed."""
    looked_at: int = 0
    """Samples whose values were looked at."""
    least: float | None = None
    """Smallest value that was seen."""
    largest: float | None = None
    """Largest value that was seen."""
    missing: dict[str, float] = field(default_factory=dict)
    """Share of NaN and infinity in channels that have some."""
    constant: dict[str, float] = field(default_factory=dict)
    """Channels that hold one value, and which."""
    counts: bool = False
    """Whether all values are whole, small and not negative, as counts of events are."""
    labels: dict[str, dict[str, int]] = field(default_factory=dict)
    """Labels that were set aside, and in how many of the samples each was seen."""
    opened: str = ""
    """What was done to the file's content as it was opened."""

    def as_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return asdict(self)


def glance(recording: xr.DataArray, ticks: Clock, share: float, suffix: str = "") -> Glance:
    """Look at a recording that is open.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``.
    ticks
        Its clock, or that of its beginning.
    share
        How much of the file it is.
    suffix
        Of the file: some formats are read in order only.

    Examples
    --------
    >>> from ..frames.clock import clock
    >>> walk = xr.DataArray(np.zeros((100, 2)), dims=("time", "channel"), attrs={"sampling_rate": 10.0}).chunk()
    >>> found = glance(walk, clock(walk), 1.0)
    >>> found.samples, found.seconds, found.constant
    (100, 10.0, {'1': 0.0, '2': 0.0})
    """
    names = _names(recording)
    sample = _sample(recording, suffix)
    n = round(recording.sizes["time"] / share) if share else recording.sizes["time"]
    return Glance(
        samples=n,
        channels=names,
        dtype=str(recording.dtype),
        seen=share,
        labels=_labels(recording),
        opened=str(recording.attrs.get("opened", "")),
        start=start_time(recording),
        **_of_clock(recording, ticks, n),
        **_of_values(names, sample),
    )


def _names(recording: xr.DataArray) -> list[str]:
    """Names of the channels, or their numbers."""
    if "channel" in recording.coords:
        return [str(name) for name in recording["channel"].values]
    return [str(number + 1) for number in range(recording.sizes["channel"])]


def _sample(recording: xr.DataArray, suffix: str) -> NDArray[Any] | None:
    """Some of the values."""
    if suffix.lower() in _IN_ORDER:
        recording = recording.isel(time=slice(0, _FIRST_ROWS))
    return rows_of_sample(recording, range(recording.sizes["channel"]), read=False)


def _of_clock(recording: xr.DataArray, ticks: Clock, n: int) -> dict[str, Any]:
    """Rate, length and gaps."""
    lengths = [stop - start for start, stop in ticks.segments]
    found: dict[str, Any] = {"gaps": max(0, len(lengths) - 1), "longest_segment": max(lengths, default=0)}
    if not ticks.known:
        return found
    if len(lengths) > 1:
        ends = ticks.at(np.array([stop - 1 for _, stop in ticks.segments[:-1]]))
        begins = ticks.at(np.array([start for start, _ in ticks.segments[1:]]))
        found["longest_gap"] = float(np.max(begins - ends))
    seen = max((stop for _, stop in ticks.segments), default=1)
    first, last = ticks.at(np.array([0, seen - 1]))
    span = float(last - first) + 1 / ticks.sampling_rate
    time = recording["time"].attrs if "time" in recording.coords else {}
    return found | {
        "rate": float(ticks.sampling_rate),
        "seconds": span * n / seen,
        "regular": ticks.counted,
        "unit": "s" if "unit_assumed" in time else None,
        "clock_name": str(time["unit_assumed"]) if "unit_assumed" in time else None,
    }


def _of_values(names: list[str], sample: NDArray[Any] | None) -> dict[str, Any]:
    """What the values look like."""
    if sample is None or not sample.size:
        return {}
    values = sample.astype(np.float64)
    finite = np.isfinite(values)
    known = np.where(finite, values, np.nan)
    lost = 1 - finite.mean(axis=0)
    some = finite.any(axis=0)
    low, high = np.full(len(names), np.nan), np.full(len(names), np.nan)
    low[some], high[some] = np.nanmin(known[:, some], axis=0), np.nanmax(known[:, some], axis=0)
    found: dict[str, Any] = {
        "looked_at": len(values),
        "missing": {name: float(part) for name, part in zip(names, lost, strict=True) if part > 0},
        "constant": {name: float(a) for name, a, b in zip(names, low, high, strict=True) if a == b and len(values) > 1},
    }
    if some.any():
        found |= {"least": float(np.nanmin(low)), "largest": float(np.nanmax(high)), "counts": _are_counts(values)}
    return found


def _are_counts(values: NDArray[np.float64]) -> bool:
    """Whether values are such as counts of events in short bins."""
    known = values[np.isfinite(values)]
    return bool((known >= 0).all() and (known % 1 == 0).all() and known.max(initial=0) < 1000 and known.mean() < 20)


def _labels(recording: xr.DataArray) -> dict[str, dict[str, int]]:
    """Labels beside the signals, with the samples of each."""
    found = {}
    for name, values in recording.coords.items():
        if name in ("time", "channel", "segment") or values.dims != ("time",):
            continue
        texts, counts = np.unique(values[: 2**18].values.astype(str), return_counts=True)
        order = np.argsort(-counts, kind="stable")[:_MOST_LABELS]
        found[str(name)] = {str(texts[k]): int(counts[k]) for k in order}
    return found
