"""The sample that a map is fitted on: stretches of frames of all recordings, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import xarray as xr

from manifold_observer.tasks.arrays import Integers, first_not_finite
from manifold_observer.tasks.corpus.stretches import allotted, spread_out, stretches

from ..engine.cuts import run_numbers
from ..frames.alike import aligned, meaning_of
from ..frames.edges import Range, edges_over, ranges_of
from ..frames.join import shared_labels
from ..frames.labels import segment_of
from ..graph.progress import Progress
from ..graph.spans import Span
from ..jobs.config import RunConfig
from ..jobs.run import features_of
from ..stores.address import Place
from .map_config import MapConfig
from .members import Sensors, common_sensors, open_member, standardised, with_sensors

Value = TypeVar("Value")
_CLOCK = "recorded"
"""Coordinate of sampled frames: their time in their own recording. They have no common clock."""


class Sample(NamedTuple):
    """Frames of a sample with their ``recording``, and what is known of each recording."""

    frames: xr.DataArray
    paths: list[Place]
    """Of the recordings that can be read by the map, by name."""
    n_frames: Integers
    """Frames that each of them has."""
    n_sampled: Integers
    """Frames of each in the sample."""
    refused: dict[str, str]
    """Why others cannot be, by path."""
    sensors: Sensors
    config: RunConfig
    """With the edges of histograms, where there are any."""


class _Member(NamedTuple):
    """A recording and its frames, not yet computed."""

    path: Place
    frames: xr.DataArray


def draw(paths: Sequence[Place], config: RunConfig, how: MapConfig, progress: Progress) -> Sample:
    """Draw the sample of a map; this computes the frames in it.

    Parameters
    ----------
    paths
        Recordings in the order of their names.
    config
        How they are opened, and what describes a frame.
    how
        How many frames, and from where.
    progress
        Told of the recordings as they are read.

    Returns
    -------
    The sample. A recording that cannot be read, or differs from most, is in ``refused`` and costs no other.

    Raises
    ------
    ValueError
        None can be read.
    """
    refused: dict[str, str] = {}
    opened = _each(paths, refused, lambda path: open_member(path, config))
    sensors = common_sensors(list(opened.values()))
    alike = _each(opened, refused, lambda path: _prepared(opened[path], sensors, how))
    ranges = _each(alike, refused, lambda path: ranges_of([alike[path]])[0]) if _needs_edges(config) else {}
    config = with_edges(config, list(ranges.values()))
    readable = [path for path in alike if not _needs_edges(config) or path in ranges]
    framed = _each(readable, refused, lambda path: features_of([alike[path]], config))
    members = [_Member(path, framed[path]) for path in framed]
    return _joined(members, how, refused, sensors, config, progress)


def with_edges(config: RunConfig, ranges: Sequence[Range]) -> RunConfig:
    """Settings with the bins that all recordings share, where there are ranges to choose them over.

    Samples of later recordings that lie outside are counted in the end bins.
    """
    if not ranges:
        return config
    edges = edges_over(ranges, config.features.bins)
    return replace(config, features=replace(config.features, edges=edges, bins=None, outside="clip"))


def prepared(path: Place, config: RunConfig, sensors: Sensors, how: MapConfig) -> xr.DataArray:
    """Open a recording as those of a map were.

    Raises
    ------
    ValueError, OSError
        It cannot be opened, or its sensors are others.
    """
    return _prepared(open_member(path, config), sensors, how)


def _prepared(recording: xr.DataArray, sensors: Sensors, how: MapConfig) -> xr.DataArray:
    """A recording with the sensors of its corpus, standardised by itself if that is asked for."""
    alike = with_sensors(recording, sensors)
    return standardised(alike) if how.standardise == "recording" else alike


def _needs_edges(config: RunConfig) -> bool:
    """Whether bins have to be chosen over all recordings."""
    return config.features.name == "histogram" and config.features.edges is None


def _each(paths: Iterable[Place], refused: dict[str, str], function: Callable[[Place], Value]) -> dict[Place, Value]:
    """A function of every recording; those for which it fails are refused by its sentence."""
    found: dict[Place, Value] = {}
    for path in paths:
        try:
            found[path] = function(path)
        except ConnectionError:  # of the cluster, which is no recording's fault
            raise
        except (ValueError, TypeError, OSError) as error:
            refused[str(path)] = str(error)
    if not found:
        first = next(iter(refused.values()), "there are none")
        raise ValueError(f"map: recordings must hold at least 1 that can be read; got none. The first: {first}")
    return found


def _joined(
    members: Sequence[_Member],
    how: MapConfig,
    refused: dict[str, str],
    sensors: Sensors,
    config: RunConfig,
    progress: Progress,
) -> Sample:
    """Stretches of all recordings, computed one recording after the other."""
    chosen = spread_out(len(members), max(1, how.frames // how.stretch))
    counts = [members[k].frames.sizes["frame"] for k in chosen]
    given = dict(zip(chosen.tolist(), allotted(counts, how.frames, equal=how.allotment == "equal"), strict=True))
    meaning = meaning_of(members[0].frames)

    def drawn(path: Place) -> xr.DataArray:
        number = places[path]
        progress("sample", number, len(members))
        frames = aligned("map: frames", meaning, members[number].frames, "the corpus")
        return _stretches(frames, int(given.get(number, 0)), how, path.name)

    places = {member.path: number for number, member in enumerate(members)}
    parts = _each(places, refused, drawn)
    progress("sample", len(members), len(members))
    paths = list(parts)
    frames = _one_after_the_other(list(parts.values()))
    n_sampled = np.array([part.sizes["frame"] for part in parts.values()])
    n_frames = np.array([members[places[path]].frames.sizes["frame"] for path in paths])
    return Sample(frames, paths, n_frames, n_sampled, refused, sensors, config)


def _stretches(frames: xr.DataArray, wanted: int, how: MapConfig, name: str) -> xr.DataArray:
    """The stretches of one recording, computed, each a segment or several."""
    spans: list[Span] = stretches(frames.sizes["frame"], wanted, how.stretch, name, how.seed)
    taken = np.concatenate([np.zeros(0, np.int64), *(np.arange(*span) for span in spans)])
    segment = run_numbers(segment_of(frames), spans) if spans else np.zeros(0, np.int64)
    part = frames.isel(frame=taken).compute()
    bad = first_not_finite(np.asarray(part.values, np.float64))
    if bad is not None:
        raise ValueError(
            f"map: frames must be finite; frame {taken[bad]} holds NaN or infinity. Open the recording with gaps='nan' "
            "to leave such samples out."
        )
    clock = part["time"].values.astype(np.float64) if "time" in part.coords else taken.astype(np.float64)
    labelled = part.drop_vars("time", errors="ignore").assign_coords(segment=("frame", segment))
    return labelled.assign_coords({_CLOCK: ("frame", clock, {"units": "s", "long_name": "time in the recording"})})


def _one_after_the_other(parts: Sequence[xr.DataArray]) -> xr.DataArray:
    """Frames of all recordings, with the labels that all of them have and the number of the recording."""
    segment, number = 0, []
    moved = []
    for place, part in enumerate(shared_labels("map", parts)):
        own = part["segment"].values
        moved.append(part.assign_coords(segment=("frame", own + segment)))
        segment += int(own.max(initial=-1)) + 1
        number.append(np.full(len(own), place, np.int64))
    joined = xr.concat(moved, "frame", coords="minimal", compat="override", combine_attrs="override")
    return joined.assign_coords(recording=("frame", np.concatenate(number)))
