"""Which channels of a recording are signals: labels, flags, counters and clocks among them are asked about.

Throughout: a *sample* of a recording is some of its rows, read to see what its channels hold; a *plain* channel is
one that holds measured values, of which many differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..graph.slabs import source_of
from .opening import OpenConfig
from .variables import label_name

ALL = ("all",)

_LABEL_WORDS = (
    "class|classes|label|labels|anomaly|anomalies|is_anomaly|event|events|target|targets|state|states|stage|stages|"
    "sleep_stage|hypnogram|hypno|annotation|annotations|marker|markers|trigger|triggers|stim|stimulus|stimcode|"
    "activity|activity_id|condition|gesture|gestures|changepoint|change_point|outlier|outliers|fault|faults|failure|"
    "truth|ground_truth|groundtruth|occupancy|occupied|category|y_true|is_\\w+|has_\\w+|\\w+_(?:label|labels|class|state|stage|"
    "id|event|trigger|marker|annotation)|eye_detection|eye_state|seizure|arousal|apnea|phase|trial|trial_number|block|fold|"
    "split|subject|subject_id|session|id|attack|regime|mode|behavior|behaviour|sti_\\d+"
)
_FLAG_WORDS = (
    "qc|quality|flag|flags|status|valid|validity|is_valid|artifact|artefact|mask|"
    "\\w+_(?:qc|quality|flag|flags|status|valid|mask)|(?:qc|flag|quality)_\\w+"
)
_COUNTER_WORDS = (
    "index|idx|row|row_number|record|record_number|rn|samples?|sample_(?:index|number|no|id)|packet|packet_number|counter|"
    "seq|sequence|nr|no|number|frame_number|unnamed_\\d+"
)
_CLOCK_WORDS = (
    "(?:\\w+_)?(?:time|timestamp|timestamps|datetime|date|epoch|unix_time|zeit|temps|seconds|millis|milliseconds|ms)"
    "(?:_(?:s|ms|us|ns|min|h|utc|seconds|milliseconds))?|t|t_(?:s|ms|us|ns)"
)
_NAMED = [
    ("looks like a label", re.compile(_LABEL_WORDS)),
    ("looks like a flag", re.compile(_FLAG_WORDS)),
    ("looks like a row number", re.compile(_COUNTER_WORDS)),
    ("looks like a clock", re.compile(_CLOCK_WORDS)),
]
# Values of a label at most, and rows for each of them at least.
_MOST_VALUES, _ROWS_A_VALUE = 24, 8
# Values of a label that are no whole numbers, at most: signals of coarse steps have more.
_FEW_LEVELS = 4
# Rows of a stretch that are read to see what channels hold, and bytes.
_MOST_ROWS, _MOST_BYTES = 4_096, 4_000_000
_MOST_ROWS_READ, _MOST_BYTES_READ = 200_000, 100_000_000
# Rows below which values tell nothing.
_FEW_ROWS = 16
# Rows that a label keeps its value on average, at least, where all channels are whole numbers.
_LASTING = 10


def plain_name(name: Any) -> str:
    """Name of a channel as text: without padding, and decoded where a file holds bytes.

    Examples
    --------
    >>> plain_name(b"C3  "), plain_name(" left")
    ('C3', 'left')
    """
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
    return text.replace("\0", "").strip()


def suspects(names: Sequence[str], sample: NDArray[Any] | None) -> dict[str, str]:
    """Channels that may be no signals, and why.

    Parameters
    ----------
    names
        Of the channels.
    sample
        Some of their values, shape (rows, channels), in the order of time; None where they were not read.

    Returns
    -------
    What each looks like, by its name.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=100)
    >>> suspects(["left", "eye"], np.stack([noise, np.arange(100) > 50], axis=1))
    {'eye': 'has only the values 0, 1'}
    """
    found: dict[str, str] = {}
    kinds = [None] * len(names) if sample is None else _kinds(sample)
    plain = [kind == "plain" for kind in kinds]
    for name, kind, column in zip(names, kinds, range(len(names)), strict=True):
        told = _by_name(name)
        if kind is None:
            found |= {name: told} if told else {}
        elif told and (kind != "plain" or "clock" in told or "row number" in told) and _fits(told, kind):
            found[name] = _with_values(told, kind)
        elif kind not in ("plain", "whole") and sum(plain) > plain[column]:
            found[name] = kind
    return found


def _fits(told: str, kind: str) -> bool:
    """Whether values are such as a name tells: clocks and counters rise."""
    rises = "rises" in kind or "counts" in kind
    return rises if "clock" in told or "row number" in told else True


def _with_values(told: str, kind: str) -> str:
    """What a channel looks like, with its values where they are few."""
    return f"{told}: {kind}" if kind.startswith("has only") else told


def _by_name(name: str) -> str | None:
    """What the name of a channel tells."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", plain_name(name))
    plain = re.sub(r"[\W_]+", "_", split).strip("_").lower()
    return next((told for told, pattern in _NAMED if pattern.fullmatch(plain)), None)


def _kinds(sample: NDArray[Any]) -> list[str]:
    """What the values of every channel look like."""
    values = sample.astype(np.float64)
    whole = [_whole(column[np.isfinite(column)]) for column in values.T]
    kinds = [_kind(column, alone=all(whole)) for column in values.T]
    rising = [kind.startswith("rises") or kind.startswith("counts") for kind in kinds]
    # Where all rise alike, they are ramps.
    return [("plain" if all(rising) and not kind.startswith("has only") else kind) for kind in kinds]


def _kind(column: NDArray[np.float64], *, alone: bool) -> str:
    """What the values of one channel look like; ``alone`` where all channels are whole numbers."""
    known = column[np.isfinite(column)]
    if not len(known):
        return "holds no value"
    values = np.unique(known)
    steps = np.diff(known)
    enough = len(known) >= _FEW_ROWS or (len(known) >= _FEW_ROWS // 2 and _regular(steps))
    if enough and (steps > 0).all():
        return "counts the rows" if (steps == 1).all() else "rises from row to row"
    if len(known) >= _FEW_ROWS and (steps >= 0).all() and np.count_nonzero(steps) >= max(_FEW_ROWS, len(known) // 20):
        return "rises or stays from row to row"
    if len(known) >= _FEW_ROWS and not alone and np.mean(steps == steps[0]) > 0.9 and steps[0] != 0:
        return "counts the rows"
    return _few_kind(known, values, alone=alone)


def _few_kind(known: NDArray[np.float64], values: NDArray[np.float64], *, alone: bool) -> str:
    """What the values of a channel look like that does not rise, by how many there are and how long they last."""
    if len(known) < _FEW_ROWS:
        return "whole" if _whole(known) else "plain"
    few = len(values) <= min(_MOST_VALUES, len(known) // _ROWS_A_VALUE)
    if (len(values) <= 2 or (few and _whole(known))) and (not alone or _lasts(known)):
        return "has only the value " + _shown(values) if len(values) == 1 else "has only the values " + _shown(values)
    if alone:
        return "whole" if few else "plain"
    if few and len(values) <= _FEW_LEVELS and _lasts(known):
        return "has only the values " + _shown(values)
    return "has only whole values that last" if _whole(known) and _lasts(known) else "plain"


def _whole(known: NDArray[np.float64]) -> bool:
    """Whether all values are whole numbers; remainders would take a fifth of the time of opening."""
    return bool((np.floor(known) == known).all())


def _lasts(known: NDArray[np.float64]) -> bool:
    """Whether values other than the usual one last, as labels do and counts do not; dead channels have one alone."""
    bounds = np.flatnonzero(np.diff(known)) + 1
    starts = np.concatenate([[0], bounds])
    lengths = np.diff(np.concatenate([starts, [len(known)]]))
    values, counts = np.unique(known, return_counts=True)
    others = known[starts] != values[np.argmax(counts)]
    return bool(others.any()) and float(np.mean(lengths[others])) >= _LASTING


def _regular(steps: NDArray[np.float64]) -> bool:
    """Whether steps are those of a clock: most are about the usual one."""
    usual = np.median(steps)
    return bool(np.mean(np.abs(steps - usual) <= 0.5 * usual) > 0.8)


def _shown(values: NDArray[np.float64]) -> str:
    """Some values, as a sentence shows them."""
    shown = ", ".join(f"{value:g}" for value in values[:5])
    return f"{shown}, ... ({len(values)} in all)" if len(values) > 5 else shown


def check_signals(
    path: object, names: Sequence[str], sample: NDArray[Any] | None, config: OpenConfig, *, clocked: bool = False
) -> None:
    """Refuse channels that may be no signals, unless the user has named the channels.

    Parameters
    ----------
    path
        Where they come from, for the error.
    names, sample
        As for :func:`suspects`.
    config
        ``channels``.
    clocked
        Whether the recording has a clock, in whose place only one that is called so is offered.

    Raises
    ------
    ValueError
        There are some: which, why, and with which options to say what they are.
    """
    found = {} if config.channels is not None else suspects(names, sample)
    if not found:
        return
    told = "; ".join(f"{name!r} {why}" for name, why in found.items())
    labels = [name for name, why in found.items() if "clock" not in why and "row" not in why]
    others = [name for name in found if name not in labels]
    ways = [f"keep labels with labels={labels!r}"] if labels else []
    clocks = [name for name in others if "counts" not in found[name] and "number" not in found[name]]
    if rising := [name for name in clocks if not clocked or "clock" in found[name]]:
        ways.append(f"make a clock the clock with time_column={rising[0]!r}")
    ways.append(f"leave them out with drop_channels={[*found]!r}")
    ways.append("take all columns with channels='all'" if len(found) < len(names) else "take them with channels='all'")
    sentence = ", ".join(ways[:-1]) + ", or " + ways[-1]
    raise ValueError(
        f"open_recording: {path} must tell which channels are signals; got some that may be labels, flags, counters or "
        f"clocks: {told}. {sentence[0].upper() + sentence[1:]}."
    )


def chosen(recording: xr.DataArray, config: OpenConfig, path: object) -> xr.DataArray:
    """The channels that the user wants, with the labels beside them as coordinates along time.

    Raises
    ------
    ValueError
        There is no channel of such a name.
    """
    names = [str(name) for name in recording["channel"].values] if "channel" in recording.coords else []
    labels = [name for name in config.labels or () if name not in recording.coords]
    dropped = set(_known(path, names, config.drop_channels or (), "drop_channels"))
    dropped |= set(_known(path, names, labels, "labels"))
    wanted = [*names] if config.channels in (None, ALL) else _known(path, names, config.channels or (), "channels")
    kept = [name for name in wanted if name not in dropped]
    if names and not kept:
        raise ValueError(f"open_recording: {path} must keep at least 1 channel; got none of {names}.")
    columns = {label_name(name): recording.sel(channel=name, drop=True).variable for name in labels}
    left = recording if kept == names else recording.isel(channel=[names.index(name) for name in kept])
    return left.assign_coords({name: ("time", values.data) for name, values in columns.items()})


def _known(path: object, names: Sequence[str], asked: Iterable[str], option: str) -> list[str]:
    """Names that were asked for, which must be there."""
    missing = [name for name in asked if name not in names]
    if missing:
        shown = ", ".join(map(repr, names[:20])) + (" ..." if len(names) > 20 else "")
        there = f"the channels {shown}" if names else "channels without names"
        raise ValueError(
            f"open_recording: {option} must name channels of {path}; got {missing[0]!r} where there are {there}. "
            "Check the spelling."
        )
    return list(asked)


def is_real(text: str) -> bool:
    """Whether a text is a number.

    Examples
    --------
    >>> is_real("-200"), is_real("ERROR")
    (True, False)
    """
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def with_names(recording: xr.DataArray) -> xr.DataArray:
    """A recording whose channels have plain names, all different.

    Examples
    --------
    >>> named = xr.DataArray([[1.0, 2.0]], dims=("time", "channel"), coords={"channel": np.array([b"C3  ", b"C3"])})
    >>> with_names(named)["channel"].values.tolist()
    ['C3', 'C3_2']
    """
    if "channel" not in recording.coords or recording["channel"].dtype.kind not in "SUO":
        return recording
    told = recording["channel"].values
    names, taken = [], set[str]()
    for number, padded in enumerate(told, 1):
        name = plain_name(padded) or f"ch{number}"
        unique, count = name, 1
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        taken.add(unique)
        names.append(unique)
    if names == [*told]:
        return recording
    return recording.assign_coords(channel=("channel", np.array(names), recording["channel"].attrs))


def rows_of_sample(recording: xr.DataArray, places: Sequence[int], *, read: bool) -> NDArray[Any] | None:
    """Some rows of some channels, from the beginning, the middle and the end: many where they were read already."""
    n = recording.sizes["time"]
    if not places or recording.dtype.kind not in "iufb":
        return None
    most, many = (_MOST_BYTES_READ, _MOST_ROWS_READ) if read else (_MOST_BYTES, _MOST_ROWS)
    rows = max(1, min(many, most // (recording.dtype.itemsize * recording.shape[1])))
    stretches = [(start, min(start + rows, n)) for start in sorted({0, max(0, n // 2), max(0, n - rows)})]
    spans = [(0, n)] if n <= 3 * rows else stretches
    try:
        parts = [_rows(recording, start, stop) for start, stop in spans]
    except (OSError, ValueError, RuntimeError):
        return None  # what is damaged is told when it is needed
    return np.concatenate(parts)[:, list(places)]


def _rows(recording: xr.DataArray, start: int, stop: int) -> NDArray[Any]:
    """Some rows; those of a file are read without a graph, which would take as long again."""
    source = source_of(recording.data) if isinstance(recording.data, da.Array) else None
    if source is not None:
        return np.asarray(source[start:stop, :])
    return np.asarray(recording.data[start:stop].compute(scheduler=dask.get))
