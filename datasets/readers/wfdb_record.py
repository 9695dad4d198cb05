"""Reader of WFDB records: the xarray engine ``manifold-wfdb``, by the package wfdb.

Segments that are pauses hold no samples, and stay as gaps in the clock. A signal that a segment lacks is NaN there.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendEntrypoint

from .contract import check_channels, has_suffix, refusal
from .libraries import library
from .mixed_rates import Channel, chosen_channels, held, of_rate
from .sampled import Samples, Source, distinct_labels, sampled_dataset, stretch_time, stretches_of
from .wfdb_header import READER, Header, Piece, Signal, read_header


@dataclass(frozen=True)
class WfdbSource(Source):
    """Some signals of a record; slower ones hold each value up to the next."""

    path: str
    """The .hea file."""
    pieces: tuple[Piece, ...]
    """What holds samples, in the order of time."""
    signals: tuple[Signal, ...]
    """Those that are read."""
    columns: tuple[tuple[int, ...], ...]
    """Number of each signal in each piece, -1 where it is not there."""
    samples: int
    """Of each signal in a frame."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and channels."""
        return self.samples * sum(piece.n_frames for piece in self.pieces), len(self.signals)

    def read(self, start: int, stop: int) -> Samples:
        """Physical values, from the pieces that hold them."""
        answer = np.full((stop - start, len(self.signals)), np.nan)
        first = 0
        for piece, columns in zip(self.pieces, self.columns, strict=True):
            last = first + piece.n_frames * self.samples
            low, high = max(first, start), min(last, stop)
            if low < high:
                self._fill(answer[low - start : high - start], piece, columns, low - first)
            first = last
        return answer

    def _fill(self, answer: Samples, piece: Piece, columns: Sequence[int], low: int) -> None:
        """Samples of one piece, from ``low`` on; whole frames are read."""
        there = [(column, place) for place, column in enumerate(columns) if column >= 0]
        first, last = low // self.samples, -(-(low + len(answer)) // self.samples)
        begin = first if piece.reads == "slices" else 0
        read = self._frames(piece, begin, last, [column for column, _ in there])
        for values, (_, place) in zip(read, there, strict=True):
            whole = held(values, self.samples // self.signals[place].samples)
            answer[:, place] = whole[low - begin * self.samples :][: len(answer)]

    def _frames(self, piece: Piece, first: int, last: int, columns: list[int]) -> list[Samples]:
        """Some signals of consecutive frames, by wfdb."""
        if not columns:
            return []
        rdrecord = library(READER, self.path, "wfdb").rdrecord
        try:
            record = rdrecord(
                piece.record, first, None if piece.reads == "whole" else last, channels=columns, smooth_frames=False
            )
        except Exception as error:
            said = " ".join(str(error).split()) or type(error).__name__
            must = f"hold samples {first} to {last - 1} in {os.path.basename(piece.record)}"
            raise refusal(READER, self.path, must, f"{said[:200]!r} from wfdb", "Copy the whole record again") from None
        return list(record.e_p_signal)


class WfdbBackend(BackendEntrypoint):
    """Opens WFDB records as lazy recordings with ``xr.open_dataset``."""

    description = "Open WFDB records (.hea, .dat), of several segments too, as recordings, lazily"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "channels", "drop_channels", "rates")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim headers by their name, and signals that have a header beside them."""
        if has_suffix(filename_or_obj, {".dat"}):
            return os.path.isfile(os.path.splitext(os.fspath(filename_or_obj))[0] + ".hea")
        return has_suffix(filename_or_obj, {".hea"})

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        channels: Sequence[str] | None = None,
        drop_channels: Sequence[str] = (),
        rates: str | float | None = None,
    ) -> xr.Dataset:
        """Open one record; its samples are read when they are used.

        Parameters
        ----------
        filename_or_obj
            Path of the header (.hea), or of the signals (.dat) beside it.
        drop_variables
            Names to leave out.
        channels
            Labels of the signals to take, in this order. By default all.
        drop_channels
            Labels of the signals to leave out.
        rates
            What to do where signals differ in rate: None refuses; a number takes the signals of that rate in Hz;
            "hold" repeats the values of slower ones.

        Returns
        -------
        Dataset with the variable ``recording``, dims (time, channel), in float64; missing values are NaN.
        """
        header = read_header(filename_or_obj)
        check_channels(READER, header.path, len(header.signals))
        labels = distinct_labels([signal.label for signal in header.signals])
        numbers = chosen_channels(READER, header.path, labels, channels, drop_channels)
        wanted = [Channel(labels[number], number, header.signals[number].samples) for number in numbers]
        chosen = of_rate(READER, header.path, wanted, 1 / header.rate, rates)
        source = _source(header, chosen)
        rate = header.rate * source.samples
        return sampled_dataset(
            source,
            path=header.path,
            channels=[channel.label for channel in chosen],
            units=[signal.units for signal in source.signals],
            time=_time(source, rate, header.start_time),
            sampling_rate=rate,
            drop_variables=drop_variables,
        )


def _source(header: Header, chosen: Sequence[Channel]) -> WfdbSource:
    """The signals that are chosen, in every piece."""
    names = tuple(signal.label for signal in header.signals)

    def column(piece: Piece, number: int) -> int:
        if piece.labels == names:
            return number
        return piece.labels.index(names[number]) if names[number] in piece.labels else -1

    return WfdbSource(
        header.path,
        header.pieces,
        tuple(header.signals[channel.number] for channel in chosen),
        tuple(tuple(column(piece, channel.number) for channel in chosen) for piece in header.pieces),
        max(channel.samples for channel in chosen),
    )


def _time(source: WfdbSource, rate: float, start_time: str | None) -> xr.Coordinates:
    """The clock, with the pauses between pieces."""
    frames = np.array([piece.n_frames for piece in source.pieces], np.int64)
    firsts = np.concatenate([[0], np.cumsum(frames)[:-1]]) * source.samples
    starts = np.array([piece.frame for piece in source.pieces]) * source.samples / rate
    return stretch_time(source.shape[0], rate, stretches_of(firsts, starts, rate), start_time)
