"""Labels that lie in a file beside a recording: opened, and carried to frames."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..files.ordinary import check_ordinary
from ..files.remote import at_hand
from ..graph.warn import warn
from ..stores.address import Address, place
from .dates import in_seconds, is_dated
from .given import RECORDING_START, array_of
from .join import seconds_between
from .label_place import file_for
from .labels import MAKE_FRAMES

_ENGINE = "manifold-labels"
# Share of a sample's period by which times round.
_NEAR = 1e-3
# Labels of the whole night beside a part of it reach as far beyond the part; in samples they reach further.
_MUCH_LONGER = 5


def open_labels(
    path: str | os.PathLike[str] | Address,
    *,
    label_column: str | None = None,
    recording: str | os.PathLike[str] | None = None,
    sampling_rate: float | None = None,
) -> xr.Dataset:
    r"""Open labels that lie beside a recording, whatever their format.

    Tables (CSV, TSV) with columns of starts and stops, or onsets and durations, or times; label tracks of Audacity;
    annotations of EDF+, BDF+ and WFDB (``.atr`` and others); MIDI notes; windows in JSON.

    Parameters
    ----------
    path
        File of labels, or its address.
    label_column
        Column of a table that holds the labels, where there are several.
    recording
        Name of the recording, where a file has labels of several.
    sampling_rate
        In Hz, for WFDB annotations without a header beside them.

    Returns
    -------
    The variable ``label``, text, along ``time``, when each label starts, with the coordinate ``stop``; both in seconds.
    Instants stop as they start.

    Raises
    ------
    FileNotFoundError
        There is nothing at ``path``.
    ValueError
        The file holds no labels that can be read.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "night.csv"
    >>> _ = path.write_text("start,stop,stage\n0,30,W\n30,90,N1\n")
    >>> labels = open_labels(path)
    >>> labels.label.values.tolist(), labels.time.values, labels.stop.values
    (['W', 'N1'], array([ 0., 30.]), array([30., 90.]))
    """
    given = place(path)
    if isinstance(given, Path):
        check_ordinary(given, "open_labels")
    options: dict[str, Any] = {
        "label_column": label_column,
        "recording": None if recording is None else os.fspath(recording),
    }
    with at_hand(given) as where:
        if isinstance(where, Address):
            raise ValueError(f"open_labels: {given} must be a file of labels; got a Zarr store. Name the file.")
        return xr.open_dataset(where, engine=_ENGINE, sampling_rate=sampling_rate, **options).load()


def label_frames(frames: xr.DataArray, labels: xr.Dataset) -> xr.DataArray:
    """Give every frame the label that covers most of it.

    Parameters
    ----------
    frames
        Of one recording, as :func:`histogram`, :func:`stft`, :func:`log_rms` or :func:`identity` made them.
    labels
        As :func:`open_labels` gave them. Seconds count from the start of the recording; where both tell the date-time
        of their start, from there.

    Returns
    -------
    The frames with the coordinate ``label``, text: the label that covers the largest part; an empty text where the
    largest part has none; the most frequent instant where only instants lie in the frame.

    Raises
    ------
    ValueError
        No label lies in the frames; or labels have dates and the recording has none.

    Examples
    --------
    >>> recording = xr.DataArray(np.ones((8, 1)), dims=("time", "channel"), attrs={"sampling_rate": 1.0})
    >>> labels = xr.Dataset({"label": ("time", ["a", "b"])}, {"time": [0.0, 3.0], "stop": ("time", [3.0, 6.0])})
    >>> from manifold_observer.pipeline import identity
    >>> label_frames(identity(recording), labels).label.values.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b', '', '']
    """
    frames, labels = array_of("label_frames: frames", frames, ("frame", "feature")), _labels_in_order(labels)
    for name in ("frame_samples", "hop_samples", "frame_period"):
        if name not in frames.attrs:
            raise ValueError(f"label_frames: frames must have the attribute {name!r}; it is not there. {MAKE_FRAMES}")
    period = frames.attrs["frame_period"] / frames.attrs["hop_samples"]
    length = frames.attrs["frame_samples"] * period
    # The time of a frame is between its first and its last sample, and the last one lasts a period.
    before = (length - period) / 2
    begin = _seconds(frames, labels, before) - before
    end = begin + length
    names, codes = np.unique(labels["label"].values.astype(str), return_inverse=True)
    start, stop = labels["time"].values.astype(np.float64), labels["stop"].values.astype(np.float64)
    lasting = stop > start
    found = _longest(begin, end, start[lasting], stop[lasting], codes[lasting])
    # An instant at the border of two frames is in the later one, however their times round.
    at = start[~lasting] + _NEAR * period
    instants = _most_frequent(begin, end, at, codes[~lasting])
    found = np.where(found >= 0, found, instants)
    if not (found >= 0).any():
        raise ValueError(
            f"label_frames: labels must lie within the frames, {begin[0]:g} to {end[-1]:g} s; got labels from "
            f"{start.min():g} to {stop.max():g} s. Are they those of this recording?"
        )
    _warn_beyond(begin[0], end[-1], stop)
    text = np.append(names, "").astype(object)[found]
    return frames.assign_coords(label=("frame", text, {"long_name": "label of the frame"}))


def _labels_in_order(labels: Any) -> xr.Dataset:
    """Labels with their times in seconds, or a refusal."""
    lacks = [name for name in ("label", "time", "stop") if not isinstance(labels, xr.Dataset) or name not in labels]
    if lacks:
        got = f"a Dataset without {lacks[0]!r}" if isinstance(labels, xr.Dataset) else f"a {type(labels).__name__}"
        raise TypeError(
            "label_frames: labels must be a Dataset as mo.open_labels gives it, with 'label', 'time' and 'stop'; got "
            f"{got}. Open the file of labels with mo.open_labels."
        )
    if not is_dated(labels):
        return labels
    plain = in_seconds(labels)
    seconds = (labels["stop"].values - labels["time"].values[0]) / np.timedelta64(1, "s")
    return plain.assign_coords(stop=("time", seconds)).assign_attrs(dated=1)


def _warn_beyond(first: float, last: float, stop: NDArray[np.float64]) -> None:
    """Labels that reach far beyond the frames may count something else than seconds."""
    if stop.max() - last > _MUCH_LONGER * (last - first):
        warn(
            f"label_frames: labels reach to {stop.max():g} s, frames from {first:g} to {last:g} s. If the labels count "
            "samples or milliseconds, convert them to seconds, or name their columns so, as in start_ms and stop_ms."
        )


def labels_of(pattern: Any, recording: str | os.PathLike[str], column: str | None = None) -> xr.Dataset:
    """Labels of one recording, by the option ``labels``.

    Parameters
    ----------
    pattern
        File of labels; ``{stem}`` and ``{name}`` stand for the recording's name without and with its suffix.
    recording
        File of the recording.
    column
        Of a table.

    Returns
    -------
    As :func:`open_labels` gives them.
    """
    return open_labels(file_for(pattern, recording), label_column=column, recording=Path(recording).name)


def _seconds(frames: xr.DataArray, labels: xr.Dataset, before: float) -> NDArray[np.float64]:
    """Times of frames in the seconds of the labels; the first sample of a frame is so many seconds before its time."""
    dated = is_dated(frames)
    plain = in_seconds(frames) if dated else frames
    seconds = np.asarray(plain["time"].values, np.float64)
    own, other = plain["time"].attrs.get("start_time"), labels["time"].attrs.get("start_time")
    begun = frames.attrs.get(RECORDING_START) if dated else None
    late = seconds_between(begun, own)
    if late is not None:
        own, seconds, before = begun, seconds + late, 0.0
    if dated and str(other).endswith("Z"):
        own = f"{own}Z"  # NumPy's date-times have no zone
    apart = seconds_between(own, other)
    if apart is None and labels.attrs.get("dated"):
        got = f"{own} for the recording and {other} for the labels" if own else "none for the recording"
        raise ValueError(
            f"label_frames: labels with dates need a recording whose start is known in the same zone; got {got}. "
            "Give the labels in seconds from its start."
        )
    # Where nothing else is known, dated frames count from the first of them, whose first sample begins the recording.
    return seconds - apart if apart is not None else seconds + (before if dated else 0.0)


def _longest(
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    start: NDArray[np.float64],
    stop: NDArray[np.float64],
    codes: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Code of the label that covers the largest part of each frame; -1 where the largest part has none."""
    frame, label = _meeting(begin, end, start, stop, "left")
    part = np.minimum(end[frame], stop[label]) - np.maximum(begin[frame], start[label])
    frame, code, covered = _summed(frame, codes[label], part)
    bare = end - begin - np.bincount(frame, covered, len(begin))
    return _largest(frame, code, covered, bare - 1e-9 * (end - begin))


def _most_frequent(
    begin: NDArray[np.float64], end: NDArray[np.float64], at: NDArray[np.float64], codes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Code of the instant that is most frequent in each frame; -1 where there is none."""
    frame, label = _meeting(begin, end, at, at, "right")
    return _largest(*_summed(frame, codes[label], np.ones(len(label))), np.ones(len(begin)))


def _meeting(
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    start: NDArray[np.float64],
    stop: NDArray[np.float64],
    side: Literal["left", "right"],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of a frame and a label that meet; a label that stops where a frame begins does on the right side."""
    first = np.searchsorted(end, start, side="right")
    count = np.maximum(np.searchsorted(begin, stop, side=side) - first, 0)
    label = np.repeat(np.arange(len(start)), count)
    return np.arange(len(label)) + np.repeat(first - np.cumsum(count) + count, count), label


def _summed(
    frame: NDArray[np.int64], code: NDArray[np.int64], weight: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Frame, code and summed weight of every pair of them, once each."""
    n_codes = int(code.max(initial=0)) + 1
    keys, where = np.unique(frame * n_codes + code, return_inverse=True)
    summed: NDArray[np.float64] = np.bincount(where, weight, len(keys)).astype(np.float64)
    return keys // n_codes, keys % n_codes, summed


def _largest(
    frame: NDArray[np.int64], code: NDArray[np.int64], weight: NDArray[np.float64], least: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Code of the largest weight of each frame, the first of equal ones; -1 where none reaches the least."""
    found = np.full(len(least), -1, np.int64)
    reaches = weight >= least[frame]
    frame, code, weight = frame[reaches], code[reaches], weight[reaches]
    order = np.lexsort((-code, weight))  # the last one that is written stays
    found[frame[order]] = code[order]
    return found
