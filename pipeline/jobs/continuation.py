"""Where a result continues: samples, times and segments of the next frames, bit-identical to one long run."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..frames.alike import with_channels
from ..frames.features import FEATURES
from ..frames.recording import GAP_PERIODS, open_recording
from ..frames.segments import batches, frame_runs
from ..frames.units import UNKNOWN, in_units
from ..graph.limits import LAZY_FRAMES
from ..stores import address
from .config import RunConfig
from .manifest import check_whole, groups_of
from .run import at_hand, with_reference
from .store import open_group
from .timeline import (
    Lay,
    Place,
    Stretch,
    as_opened,
    checked_clock,
    gaps_of,
    joined,
    segments_from,
    times_of,
    without_holes,
)

# What every observer needs of an embedding, read once.
_SMALL = ("lift", "feature_mean", "rate")
Samples = NDArray[np.int64]
Notice = Callable[[str], object]


@dataclass(frozen=True)
class Learnt:
    """What a stored result gives to the frames that follow it."""

    path: address.Place
    config: RunConfig
    embedding: xr.Dataset
    carry: xr.DataArray
    labels: xr.DataArray
    """Frames of the result, for their attributes and coordinates."""
    sources: list[tuple[address.Place, int]]
    """Recordings that it was made from, with their samples."""
    options: dict[str, Any]
    """Of the features, with lengths in samples and the edges that were used."""
    end_time: float
    """Time of the last of their samples."""
    units: str | None
    """Of their values, where they are known."""
    fingerprint: str
    """Of the settings and numbers that the stream depends on."""

    @property
    def frame(self) -> int:
        """Samples in a frame."""
        return int(self.labels.attrs["frame_samples"])

    @property
    def hop(self) -> int:
        """Samples between the starts of two frames."""
        return int(self.labels.attrs["hop_samples"])

    @property
    def frame_period(self) -> float:
        """Seconds between two frames."""
        return float(self.labels.attrs["frame_period"])

    @property
    def period(self) -> float:
        """Seconds between two samples."""
        return self.frame_period / self.hop

    @property
    def half(self) -> float:
        """Seconds from the first sample of a frame to its centre."""
        return (self.frame - 1) / 2 * self.period

    @property
    def channels(self) -> list[str]:
        """Names of the channels, in order."""
        return list(dict.fromkeys(map(str, self.labels["channel"].values)))


def learnt_from(result: address.Place, *, clip: bool = False) -> Learnt:
    """Read what a stored result gives to the frames that follow it; large arrays stay lazy.

    Parameters
    ----------
    result
        As :func:`run` stored it.
    clip
        Count samples outside the histogram's edges in the end bins.

    Raises
    ------
    ValueError, FileNotFoundError
        There is no complete result, or one that does not hold its settings.
    """
    root = check_whole("continue", result)
    if "settings" not in root:
        raise ValueError(
            f"continue: {result} must hold its settings; got a demonstration, or a result of an earlier version. "
            "Make it with manifold-observer run."
        )
    config = RunConfig.from_json(root["settings"])
    if clip and config.features.name != "histogram":
        raise ValueError(
            f"continue: clip only applies to histogram features; got {config.features.name}. Leave it out."
        )
    if "embedding" not in groups_of(result):
        raise ValueError(
            f"continue: {result} must hold an embedding; got a part of a stream. Give the result of manifold-observer "
            "run that it continues."
        )
    labels = open_group(result, "frames")["frames"]
    embedding = with_reference(open_group(result, "embedding"), labels)
    embedding, labels = at_hand(embedding), _labels_at_hand(labels)
    carry = open_group(result, "state")["carry"].load()
    sources = list(zip(map(address.place, root["source_paths"]), root["source_samples"], strict=True))
    options = _feature_options(config, labels) | ({"outside": "clip"} if clip else {})
    units = None if root.get("source_units", "unknown") in UNKNOWN else str(root["source_units"])
    used = [name for name in (*_SMALL, "bank_weights", "principal", "coordinate") if name in embedding]
    mark = _mark(root["settings"], [*(embedding[name] for name in used), carry])
    return Learnt(result, config, embedding, carry, labels, sources, options, float(root["end_time"]), units, mark)


def _labels_at_hand(labels: xr.DataArray) -> xr.DataArray:
    """Frames with their coordinates read, but for those of many frames."""
    small = [name for name, label in labels.coords.items() if label.size <= LAZY_FRAMES]
    return labels.assign_coords(labels.coords.to_dataset()[small].compute().coords)


def _mark(settings: str, numbers: Sequence[xr.DataArray]) -> str:
    """Fingerprint of settings and numbers; a part of long ones is held at a time."""
    found = hashlib.sha256(settings.encode())
    for values in numbers:
        for batch in batches(values) if values.ndim else [values.values]:
            found.update(np.ascontiguousarray(batch).tobytes())
    return found.hexdigest()


def _feature_options(config: RunConfig, frames: xr.DataArray) -> dict[str, Any]:
    """Options that make the features of the result again: lengths in samples, the very edges."""
    known = inspect.signature(FEATURES[config.features.name]).parameters
    options = {name: value for name, value in config.features.options().items() if name != "bins"}
    if "frame" in known:
        options |= {"frame": int(frames.attrs["frame_samples"]), "hop": int(frames.attrs["hop_samples"])}
    if "edges" in known:
        options["edges"] = np.array(frames.attrs["edges"])
    return options


@dataclass(frozen=True)
class Position:
    """Where a stream stands: what the next call must know, kept with every part."""

    next_sample: int
    """First sample of the next frame, as long as no gap comes before it."""
    after: int
    """Sample after the last frame; a gap from here on begins a new segment."""
    n_frames: int
    """Of all parts."""
    segment: int
    """Of the last frame."""
    last_time: float
    """Centre of the last frame, in stream time."""
    named: int
    """Recordings that have been laid."""
    names: str
    """Fingerprint of their paths."""
    places: list[Place]
    """Places of the last of them, from the one that the next frame begins in."""
    lay: Lay
    begun: bool = True
    """Whether the last frame is one of the stream, not of the result before it."""

    def to_json(self) -> str:
        """As an attribute holds it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Position:
        """As it was."""
        values = json.loads(text)
        places = [Place(*place) for place in values["places"]]
        return cls(**{**values, "places": places, "lay": Lay(**values["lay"])})


def beginning(learnt: Learnt) -> Position:
    """The position after the frames of the result themselves, before any new recording."""
    times, frames = learnt.labels["time"], learnt.labels
    last = float(times[-1])
    lay = Lay(
        learnt.period,
        end=learnt.end_time,
        first=0,
        shift=float(np.ravel(frames.attrs.get("time_shifts", 0.0))[-1]),
        anchor=float(times[0]) - learnt.half,
        dated=times.attrs.get("start_time"),
    )
    return Position(0, 0, 0, int(frames["segment"][-1]), last, 0, "", [], lay, begun=False)


def laid(
    learnt: Learnt, position: Position, paths: Sequence[address.Place], notice: Notice | None
) -> tuple[list[Stretch], Position]:
    """Open the stretches that are not used up and lay them end to end.

    Parameters
    ----------
    learnt, position
        The result to continue, and from where.
    paths
        All recordings of the stream, from the first.
    notice
        Told of a recording that cannot be opened yet; None raises.

    Returns
    -------
    The open stretches (none, where one that is needed cannot be opened yet), and the position with them.
    """
    _check_names(position, paths)
    stretches: list[Stretch] = []
    lay, used = position.lay, position.named - len(position.places)
    for number, path in enumerate(paths[used:], used):
        recording = _opened(path, learnt, notice, growing=number == len(paths) - 1)
        if recording is None:
            break
        ticks = checked_clock(path, recording, learnt.period)
        if number < position.named:
            place = position.places[number - used]
            _check_length(path, place.samples, recording.sizes["time"], last=number == position.named - 1)
            stretch, lay = lay.again(recording, ticks, place)
        elif number == 0 and address.full_name(path) == str(learnt.sources[-1][0]):
            stretch, lay = lay.grown(recording, ticks)
            position = _after_source(learnt, position, stretch)
        else:
            stretch, lay = lay.place(path, recording, ticks, begins=number == 0)
        stretches.append(as_opened(stretch))
    if len(stretches) < len(position.places):
        return [], position
    named = used + len(stretches)
    if notice is not None:
        stretches = _without_holes(stretches, min(position.next_sample, position.after), notice)
    return stretches, replace(position, lay=lay, named=named, names=_names(paths[:named]))


def _without_holes(stretches: Sequence[Stretch], begin: int, notice: Notice) -> list[Stretch]:
    """What is NaN does not end a stream that is followed: it is left out, as if the clock had a gap there."""
    whole = [without_holes(stretch, begin) for stretch in stretches]
    for stretch in whole:
        if stretch.holes:
            source, first = stretch.recording.attrs["source"], stretch.holes[0][0] - stretch.place.first
            notice(
                f"left out: {source} holds NaN or infinite values from sample {first} on; a new segment begins after "
                "them"
            )
    return whole


def next_frames(learnt: Learnt, position: Position, stretches: Sequence[Stretch], stop: int) -> tuple[Samples, int]:
    """First samples of the new whole frames before ``stop``, and the sample from which they are cut."""
    begin = min([position.next_sample, *(gap for gap in gaps_of(stretches) if gap >= position.after)])
    if not stretches or stop <= begin:
        return np.zeros(0, np.int64), begin
    runs = frame_runs(segments_from(stretches, begin, stop), learnt.frame, learnt.hop, len(learnt.channels))
    starts = [begin + run.first_sample + learnt.hop * np.arange(run.n_frames) for run in runs]
    return np.concatenate([np.zeros(0, np.int64), *starts]), begin


def new_frames(
    learnt: Learnt, position: Position, stretches: Sequence[Stretch], firsts: Samples, begin: int
) -> tuple[xr.DataArray, bool]:
    """The new frames, lazily, with the labels of the result's, and whether they begin a new segment."""
    stop = int(firsts[-1]) + learnt.frame
    frames = FEATURES[learnt.config.features.name](joined(stretches, begin, stop, learnt.period), **learnt.options)
    anew = _begins_segment(learnt, position, stretches, int(firsts[0]))
    labels = {name: values for name, values in learnt.labels.coords.items() if values.dims == ("feature",)}
    segment = frames["segment"] + position.segment + anew
    time = ("frame", _centres(learnt, stretches, firsts), learnt.labels["time"].attrs)
    labelled = frames.assign_coords(
        {**labels, "time": time, "segment": ("frame", segment.values, frames["segment"].attrs)}
    )
    labelled.attrs = {name: value for name, value in frames.attrs.items() if name != "unused_samples"}
    return labelled.assign_attrs(frame_period=learnt.frame_period), anew


def moved(learnt: Learnt, position: Position, stretches: Sequence[Stretch], firsts: Samples, segment: int) -> Position:
    """The position after new frames, the last of them in a segment."""
    next_sample, after = int(firsts[-1]) + learnt.hop, int(firsts[-1]) + learnt.frame
    needed = [stretch.place for stretch in stretches[:-1] if stretch.stop > min(next_sample, after)]
    return replace(
        position,
        next_sample=next_sample,
        after=after,
        n_frames=position.n_frames + len(firsts),
        segment=segment,
        last_time=float(_centres(learnt, stretches, firsts[-1:])[0]),
        places=[*needed, stretches[-1].place],
        begun=True,
    )


def _centres(learnt: Learnt, stretches: Sequence[Stretch], firsts: Samples) -> NDArray[np.float64]:
    """Centres of frames, in stream time."""
    return (times_of(stretches, firsts) + times_of(stretches, firsts + learnt.frame - 1)) / 2


def _begins_segment(learnt: Learnt, position: Position, stretches: Sequence[Stretch], first: int) -> bool:
    """Whether a gap lies between the last frame and the one that begins at a sample."""
    gaps = [gap for gap in gaps_of(stretches) if position.after <= gap <= first]
    if position.begun or gaps or not stretches[0].place.told:
        return bool(gaps)
    pause = float(_centres(learnt, stretches, np.array([first]))[0]) - position.last_time
    return pause > GAP_PERIODS * learnt.frame_period


def _after_source(learnt: Learnt, position: Position, stretch: Stretch) -> Position:
    """The position in the recording that the result ends with."""
    path, known = learnt.sources[-1]
    _check_length(path, known, stretch.place.samples, last=True)
    begin = max([0, *(gap for gap in stretch.gaps() if gap < known)])
    n_frames = max(0, (known - begin - learnt.frame) // learnt.hop + 1)
    if not n_frames:  # the last frame lies before the gap
        return replace(position, next_sample=begin, after=begin)
    last = begin + (n_frames - 1) * learnt.hop
    if abs(float(_centres(learnt, [stretch], np.array([last]))[0]) - position.last_time) > learnt.period:
        raise ValueError(
            f"continue: {path} must begin with the samples that {learnt.path} was made from; its clock differs. "
            "Give it under another path to start from its first sample."
        )
    return replace(position, next_sample=last + learnt.hop, after=last + learnt.frame)


def _opened(path: address.Place, learnt: Learnt, notice: Notice | None, *, growing: bool) -> xr.DataArray | None:
    """Open a stretch as the result's recordings were, in their units; None where it has to be waited for."""
    try:
        recording = open_recording(path, **learnt.config.opening.options(), growing=growing)
    except (OSError, ValueError) as error:
        if notice is None:
            raise
        notice(f"waiting for {path}: {error}")
        return None
    recording = with_channels(f"continue: {path}", recording, learnt.channels)
    return in_units(recording, learnt.units, "continue")


def _check_length(path: address.Place, known: int, samples: int, *, last: bool) -> None:
    """A recording may grow while it is the last; it never shrinks."""
    if samples < known:
        raise ValueError(
            f"continue: a recording must not shrink; got {samples} samples in {path}, which had {known}. "
            "Restore it, or start over in another folder."
        )
    if samples > known and not last:
        raise ValueError(
            f"continue: only the last recording may grow; got {samples} samples in {path}, which had {known} when the "
            "next was used. Restore it, or begin anew in another folder."
        )


def _check_names(position: Position, paths: Sequence[address.Place]) -> None:
    """The recordings of earlier calls come first, in their order."""
    if position.named > len(paths) or (position.named and _names(paths[: position.named]) != position.names):
        raise ValueError(
            f"continue: NEW must begin with the {position.named} recordings of earlier calls, in the same order; got "
            "others. Name all recordings from the first, as in new/*.wav, or start over in another folder."
        )


def _names(paths: Sequence[address.Place]) -> str:
    """Fingerprint of paths."""
    return hashlib.sha256("\n".join(address.full_name(path) for path in paths).encode()).hexdigest()
