"""Reader of BrainVision recordings: the xarray engine ``manifold-brainvision``.

Where recording was paused, the markers say "New Segment": with a date the pause stays in the clock, without one
a new segment begins.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendEntrypoint

from .brainvision_header import READER, Header, Marker, read_header, read_markers
from .contract import check_channels, has_suffix, refusal
from .mixed_rates import chosen_channels
from .sampled import Samples, Source, Stretch, distinct_labels, sampled_dataset, segment_numbers, stretch_time, told
from .sniff import BRAINVISION, holds

_NEW = "new segment"


@dataclass(frozen=True)
class BrainVisionSource(Source):
    """Some channels of a recording."""

    header: Header
    """Of the recording."""
    numbers: tuple[int, ...]
    """Of the channels."""
    n_samples: int
    """Of each."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and channels."""
        return self.n_samples, len(self.numbers)

    def read(self, start: int, stop: int) -> Samples:
        """Physical values."""
        stored = self._multiplexed(start, stop) if self.header.multiplexed else self._vectorized(start, stop)
        gain = np.array([self.header.channels[number].resolution for number in self.numbers])
        return stored.astype(np.float64) * gain

    def _multiplexed(self, start: int, stop: int) -> Samples:
        """Samples with all channels side by side."""
        n = len(self.header.channels)
        return self._numbers(start * n, (stop - start) * n).reshape(-1, n)[:, list(self.numbers)]

    def _vectorized(self, start: int, stop: int) -> Samples:
        """Channels one after the other."""
        at = [number * self.n_samples + start for number in self.numbers]
        return np.stack([self._numbers(first, stop - start) for first in at], axis=1)

    def _numbers(self, first: int, count: int) -> Samples:
        """Consecutive numbers of the data file."""
        width = self.header.dtype.itemsize
        with open(self.header.data, "rb") as file:
            file.seek(first * width)
            raw = file.read(count * width)
        if len(raw) < count * width:
            got = f"{len(raw)} bytes of {count * width} at byte {first * width}"
            raise refusal(READER, self.header.path, "keep its data file while it is read", got, "Copy it again")
        return np.frombuffer(raw, self.header.dtype)


class BrainVisionBackend(BackendEntrypoint):
    """Opens BrainVision recordings lazily with ``xr.open_dataset``."""

    description = "Open BrainVision recordings (.vhdr, .eeg, .vmrk), lazily, with their pauses"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "channels", "drop_channels")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim headers by their name or their content."""
        return has_suffix(filename_or_obj, {".vhdr"}) or self.recognises(filename_or_obj)

    def recognises(self, filename_or_obj: Any) -> bool:
        """Claim headers by their content alone."""
        return holds(filename_or_obj, BRAINVISION) and not has_suffix(filename_or_obj, {".vmrk"})

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        channels: Sequence[str] | None = None,
        drop_channels: Sequence[str] = (),
    ) -> xr.Dataset:
        """Open one recording; its samples are read when they are used.

        Parameters
        ----------
        filename_or_obj
            Path of the header.
        drop_variables
            Names to leave out.
        channels
            Labels of the channels to take, in this order. By default all.
        drop_channels
            Labels of the channels to leave out.

        Returns
        -------
        Dataset with the variable ``recording``, dims (time, channel), in float64.
        """
        header = read_header(filename_or_obj)
        check_channels(READER, header.path, len(header.channels))
        labels = distinct_labels([channel.label for channel in header.channels])
        numbers = chosen_channels(READER, header.path, labels, channels, drop_channels)
        source = BrainVisionSource(header, tuple(numbers), _n_samples(header))
        dataset = sampled_dataset(
            source,
            path=header.path,
            channels=[labels[number] for number in numbers],
            units=[header.channels[number].units for number in numbers],
            time=None,
            sampling_rate=header.rate,
            drop_variables=drop_variables,
        )
        return dataset.assign_coords(_time(header, source.n_samples))


def _n_samples(header: Header) -> int:
    """Whole samples of the data file; what is left over is told."""
    row = header.dtype.itemsize * len(header.channels)
    n_samples, rest = divmod(os.path.getsize(header.data), row)
    if not n_samples:
        got = f"{os.path.getsize(header.data)} bytes"
        raise refusal(READER, header.data, f"hold samples of {row} bytes", got, "Copy it again")
    if rest and not header.multiplexed:
        raise refusal(READER, header.data, f"be a multiple of {row} bytes long", f"{rest} more", "Copy it again")
    if rest:
        told(READER, header.data, f"it ends within a sample; {rest} bytes are left out.")
    return n_samples


def _time(header: Header, n_samples: int) -> xr.Coordinates:
    """The clock, with the pauses between segments."""
    markers = read_markers(header.markers) if header.markers else []
    news = [marker for marker in markers if marker.kind.lower() == _NEW and marker.first < n_samples]
    instant = news[0].instant if news and not news[0].first else None
    stretches, unknown = [Stretch(0, 0.0)], False
    for marker in news:
        if not marker.first:
            continue
        expected = stretches[-1].start + (marker.first - stretches[-1].first) / header.rate
        start = _since(marker, instant)
        if start is not None and start < expected - 0.5 / header.rate:
            got = f"{start:g} s at sample {marker.first + 1}, after {expected:g} s"
            raise refusal(READER, header.path, "have segments in the order of time", got, "Correct the marker file")
        unknown |= start is None
        stretches.append(Stretch(marker.first, expected if start is None else start))
    start_time = None if instant is None else str(instant)
    time = stretch_time(n_samples, header.rate, stretches, start_time)
    return time if not unknown else time.merge(segment_numbers(n_samples, stretches)).coords


def _since(marker: Marker, instant: np.datetime64 | None) -> float | None:
    """Seconds from an instant to that of a marker."""
    if marker.instant is None or instant is None:
        return None
    return float((marker.instant - instant) / np.timedelta64(1, "s"))


def marked(header: Header) -> list[tuple[float, float, str]]:
    """Markers but those of new segments: start and stop in s, and text.

    Parameters
    ----------
    header
        Of the recording.
    """
    if header.markers is None:
        return []
    time = _time(header, _n_samples(header))["time"]
    markers = [one for one in read_markers(header.markers) if one.kind.lower() != _NEW and one.first < time.size]
    starts = time[[marker.first for marker in markers]].values.tolist() if markers else []
    lasting = [marker.n_samples / header.rate if marker.n_samples > 1 else 0.0 for marker in markers]
    texts = [marker.text or marker.kind for marker in markers]
    return [(a, a + length, text) for a, length, text in zip(starts, lasting, texts, strict=True)]
