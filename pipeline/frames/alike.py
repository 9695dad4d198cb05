"""Whether new frames have the features of known ones, feature by feature, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..graph.warn import warn
from .labels import channels_of, in_order, in_rows
from .units import power_of_ten

MEANING = ("features", "window", "units", "recording_units", "frame_period", "frame_samples", "hop_samples")
"""Attributes of frames without which their numbers mean something else; an embedding keeps them as ``frames_...``."""
# Relative difference of frame periods and durations that clocks of two files may show.
_CLOCKS_AGREE = 0.01
_UNKNOWN = ("unknown", "1", "", "none")
_MOST_NAMED = 5


@dataclass(frozen=True)
class Meaning:
    """What features mean: channel of each, frequency or bin of each, and how they were made; None where unknown."""

    n_features: int
    channels: list[str] | None
    positions: dict[str, NDArray[np.float64]]
    attrs: dict[str, Any]

    @property
    def keys(self) -> list[tuple[str, int]]:
        """Channel of every feature, and the number of the feature within it."""
        seen: dict[str, int] = {}
        found = []
        for channel in self.channels or [""] * self.n_features:
            found.append((channel, seen.get(channel, 0)))
            seen[channel] = seen.get(channel, 0) + 1
        return found

    @property
    def duration(self) -> float | None:
        """Seconds that a frame spans."""
        if not {"frame_period", "frame_samples", "hop_samples"} <= self.attrs.keys():
            return None
        return float(self.attrs["frame_samples"]) * float(self.attrs["frame_period"]) / float(self.attrs["hop_samples"])


def meaning_of(labelled: xr.DataArray | xr.Dataset) -> Meaning:
    """What the features of frames, or of an embedding, mean.

    Examples
    --------
    >>> from manifold_observer.pipeline import log_rms
    >>> level = xr.DataArray(np.ones((4, 2)), dims=("time", "channel"), coords={"channel": ["C3", "C4"]})
    >>> meaning_of(log_rms(level, frame=2)).keys
    [('C3', 0), ('C4', 0)]
    """
    prefix = "frames_" if isinstance(labelled, xr.Dataset) else ""
    attrs = {name: labelled.attrs[prefix + name] for name in MEANING if prefix + name in labelled.attrs}
    channels = channels_of(labelled)
    positions = {
        name: np.asarray(labelled[name].values, np.float64)
        for name in ("frequency", "bin")
        if name in labelled.coords and labelled[name].dims == ("feature",)
    }
    names = None if channels is None else [str(name).strip() for name in channels]
    return Meaning(labelled.sizes["feature"], names, positions, attrs)


def frames_like(what: str, embedding: xr.Dataset, frames: xr.DataArray, remedy: str) -> xr.DataArray:
    """Frames with the features of an embedding, in its order.

    Parameters
    ----------
    what
        Begins the sentence, such as "observe: frames".
    embedding
        Whose features are wanted.
    frames
        What the user gave.
    remedy
        What the user can do about other dims, a sentence.

    Raises
    ------
    ValueError, TypeError
        Other dims or features, no frames, no real numbers.

    Examples
    --------
    >>> toy = xr.Dataset({"lift": (("feature", "mode"), [[2.0]])})
    >>> frames_like("observe: frames", toy, xr.DataArray([[0.5]], dims=("feature", "frame")), "").dims
    ('frame', 'feature')
    """
    frames = in_order(what, frames, ("frame", "feature"), remedy)
    if frames.sizes["frame"] == 0:
        raise ValueError(f"{what} must hold at least 1 frame; got 0. Choose a longer stretch, or shorter frames.")
    return aligned(what, meaning_of(embedding), frames)


def aligned(what: str, known: Meaning, frames: xr.DataArray, who: str = "the embedding") -> xr.DataArray:
    """Frames with their features in the known order, or a refusal that names the difference.

    Parameters
    ----------
    what
        Begins the sentence, such as "observe: frames".
    known
        What the features must mean.
    frames
        Dims ``(frame, feature)``.
    who
        Whose features are known.

    Returns
    -------
    The frames; lazily reordered where the channels come in another order.

    Raises
    ------
    ValueError
        Other features: their kind, channels, frequencies, bins, unit, window or timing differ.

    Warns
    -----
    UserWarning
        The known features have names and the new ones have none.

    Examples
    --------
    >>> from manifold_observer.pipeline import identity
    >>> values = xr.DataArray([[1.0, 2.0]], dims=("time", "channel"), coords={"channel": ["x", "y"]})
    >>> swapped = identity(values[:, ::-1])
    >>> aligned("observe: frames", meaning_of(identity(values)), swapped).values
    array([[1., 2.]])
    """
    new = meaning_of(frames)
    _check_kind(what, known, new, who)
    _check_channels(what, known, new, who)
    if known.n_features != new.n_features:
        _refuse_number(what, known, new, who)
    ordered = _ordered(known, new, frames)
    _check_positions(what, known, meaning_of(ordered), who)
    _check_timing(what, known, new, who)
    if known.channels is not None and new.channels is None:
        warn(f"{what} have no channel names; they are taken in the order of {who}'s. Give them a 'channel' coordinate.")
    return ordered


def with_channels(what: str, recording: xr.DataArray, wanted: list[str]) -> xr.DataArray:
    """A recording with the wanted channels, lazily reordered where they come in another order.

    Parameters
    ----------
    what
        Begins the sentence, such as "continue: night.wav".
    recording
        Dims ``(time, channel)``; channels without names are numbered from 0.
    wanted
        Names of the channels.

    Raises
    ------
    ValueError
        Channels are missing, or there are others.

    Examples
    --------
    >>> swapped = xr.DataArray([[2.0, 1.0]], dims=("time", "channel"), coords={"channel": ["y", "x"]})
    >>> with_channels("continue: a.csv", swapped, ["x", "y"]).values
    array([[1., 2.]])
    """
    named = channels_of(recording)
    names = [str(name).strip() for name in (range(recording.sizes["channel"]) if named is None else named)]
    if names == wanted:
        return recording
    if sorted(names) != sorted(wanted) or len(set(names)) != len(names):
        raise ValueError(
            f"{what} must have the channels of the result, {_named(wanted)}; got {_named(names)}. "
            "Choose or rename the recording's channels."
        )
    return in_rows(recording.isel(channel=[names.index(name) for name in wanted]))


def _ordered(known: Meaning, new: Meaning, frames: xr.DataArray) -> xr.DataArray:
    """Features in the known order, by channel."""
    if known.channels is None or new.channels is None or known.keys == new.keys:
        return frames
    place = {key: k for k, key in enumerate(new.keys)}
    return in_rows(frames.isel(feature=[place[key] for key in known.keys]))


def _check_kind(what: str, known: Meaning, new: Meaning, who: str) -> None:
    """The same kind of features, window and unit."""
    for name, words, remedy in (
        ("features", "kind", "Make them in the same way"),
        ("window", "STFT window", "Make them in the same way"),
        ("units", "unit", "Convert the recording, as in recording / 1000, and correct its attribute 'units'"),
        ("recording_units", "unit", "Convert the recording, as in recording / 1000, and correct its attribute 'units'"),
    ):
        wanted, got = (str(one.attrs.get(name, "unknown")) for one in (known, new))
        if not {wanted, got} & set(_UNKNOWN) and (power_of_ten(wanted) or wanted) != (power_of_ten(got) or got):
            raise ValueError(f"{what} must have the {words} of {who}, {wanted!r}; got {got!r}. {remedy}.")


def _check_channels(what: str, known: Meaning, new: Meaning, who: str) -> None:
    """The same channels, in any order."""
    if known.channels is None or new.channels is None or sorted(known.keys) == sorted(new.keys):
        return
    missing = [name for name in dict.fromkeys(known.channels) if name not in new.channels]
    added = [name for name in dict.fromkeys(new.channels) if name not in known.channels]
    if not (missing or added):
        return
    parts = [f"{_named(missing)} missing"] * bool(missing) + [f"{_named(added)} added"] * bool(added)
    raise ValueError(
        f"{what} must have the channels of {who}; got {' and '.join(parts)}. Choose or rename the recording's channels."
    )


def _refuse_number(what: str, known: Meaning, new: Meaning, who: str) -> None:
    """Another number of features."""
    raise ValueError(
        f"{what} must have the {known.n_features} features of {who}; got {new.n_features}. Make them with the same "
        "options (frame=, edges=), from recordings with the same channels and sampling rate."
    )


def _check_positions(what: str, known: Meaning, new: Meaning, who: str) -> None:
    """The same frequencies or bins."""
    for name, values in known.positions.items():
        got = new.positions.get(name)
        step = float(np.ptp(values)) / max(len(values) - 1, 1)
        if got is None or np.allclose(values, got, rtol=1e-3, atol=1e-3 * step):
            continue
        plural, unit = ("frequencies", " Hz") if name == "frequency" else ("bins", "")
        remedy = (
            "Take frames of the same duration at the same sampling rate"
            if name == "frequency"
            else "Give the edges= of the embedded frames"
        )
        raise ValueError(
            f"{what} must have the {plural} of {who}, {_range(values)}{unit}; got {_range(got)}{unit}. {remedy}."
        )


def _check_timing(what: str, known: Meaning, new: Meaning, who: str) -> None:
    """The same duration of frames, and time from one to the next."""
    for words, wanted, got in (
        ("frame period", known.attrs.get("frame_period"), new.attrs.get("frame_period")),
        ("frame duration", known.duration, new.duration),
    ):
        if wanted is None or got is None or np.isclose(float(wanted), float(got), rtol=_CLOCKS_AGREE, atol=0):
            continue
        raise ValueError(
            f"{what} must have the {words} of {who}, {float(wanted):g} s; got {float(got):g} s. Give frame= and hop= "
            "as durations, and check the sampling rate."
        )


def _named(names: Sequence[str]) -> str:
    """A few names."""
    return ", ".join(map(repr, names[:_MOST_NAMED])) + (", ..." if len(names) > _MOST_NAMED else "")


def _range(values: NDArray[np.float64]) -> str:
    """From where to where."""
    return f"{values.min():g} .. {values.max():g} ({len(np.unique(values))})"
