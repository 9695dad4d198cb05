"""Reader of EDF, EDF+, BDF and BDF+ files: the xarray engine ``manifold-edf``.

The header and the asked records are read, nothing else. Values are physical, in float64. Gaps of EDF+D stay in the
clock. No library is needed: those there are read a file whole, or take its gaps away.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import xarray as xr
from xarray.backends import BackendEntrypoint

from .contract import CHUNK_BYTES, check_channels, has_suffix, refusal
from .edf_header import READER, Header, Signal, read_header
from .edf_notes import record_stretches
from .mixed_rates import Channel, chosen_channels, held, listed, of_rate
from .sampled import Samples, Source, distinct_labels, sampled_dataset, stretch_time, told
from .sniff import BDF, EDF, holds

# The trigger channel of BioSemi: what was presented, no measurement.
_TRIGGERS = ("Status",)


@dataclass(frozen=True)
class EdfSource(Source):
    """Some signals of a file; slower ones hold each value up to the next."""

    header: Header
    """Of the file."""
    signals: tuple[Signal, ...]
    """Those that are read."""
    samples: int
    """Of each in a record."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and channels."""
        return self.header.n_records * self.samples, len(self.signals)

    def read(self, start: int, stop: int) -> Samples:
        """Physical values, from the records that hold them."""
        answer = np.empty((stop - start, len(self.signals)))
        at_once = max(1, CHUNK_BYTES // self.header.record_bytes)
        with open(self.header.path, "rb") as file:
            for record in range(start // self.samples, -(-stop // self.samples), at_once):
                first = record * self.samples
                last = min(self.header.n_records, record + at_once) * self.samples
                low, high = max(first, start), min(last, stop)
                n_records = -(-high // self.samples) - record
                block = self._records(file, record, n_records, low - first, high - first)
                answer[low - start : high - start] = block
        return answer

    def _records(self, file: BinaryIO, record: int, n_records: int, low: int, high: int) -> Samples:
        """Some samples of consecutive records: one read, or one a signal where a record is large."""
        header = self.header
        at = header.n_bytes + record * header.record_bytes
        block = np.empty((high - low, len(self.signals)))
        if n_records > 1 or header.record_bytes <= CHUNK_BYTES:
            raw = _exactly(file, header.path, at, n_records * header.record_bytes).reshape(n_records, -1)
            for column, signal in enumerate(self.signals):
                part = raw[:, signal.offset : signal.offset + signal.samples * header.width]
                block[:, column] = self._physical(signal, part.reshape(-1), low, high)
            return block
        for column, signal in enumerate(self.signals):
            repeat = self.samples // signal.samples
            first, last = low // repeat, -(-high // repeat)
            n_bytes = (last - first) * header.width
            part = _exactly(file, header.path, at + signal.offset + first * header.width, n_bytes)
            block[:, column] = self._physical(signal, part, low - first * repeat, high - first * repeat)
        return block

    def _physical(self, signal: Signal, raw: Samples, low: int, high: int) -> Samples:
        """Bytes of one signal as physical values, each as often as the fastest has samples meanwhile."""
        digital = _integers(raw, self.header.width)
        repeat = self.samples // signal.samples
        digital = held(digital, repeat)[low:high]
        if not signal.scaled:
            return digital.astype(np.float64)
        gain = (signal.high - signal.low) / (signal.top - signal.bottom)
        return (digital - signal.bottom) * gain + signal.low


class EdfBackend(BackendEntrypoint):
    """Opens EDF and BDF files as lazy recordings with ``xr.open_dataset``."""

    description = "Open EDF, EDF+, BDF and BDF+ files as recordings, lazily, in physical units and with their gaps"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "channels", "drop_channels", "labels", "rates")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim files by their name or their signature."""
        return has_suffix(filename_or_obj, {".edf", ".bdf", ".rec"}) or self.recognises(filename_or_obj)

    def recognises(self, filename_or_obj: Any) -> bool:
        """Claim files by their signature alone."""
        return holds(filename_or_obj, EDF, BDF)

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        channels: Sequence[str] | None = None,
        drop_channels: Sequence[str] = (),
        labels: Sequence[str] = (),
        rates: str | float | None = None,
    ) -> xr.Dataset:
        """Open one file; its samples are read when they are used.

        Parameters
        ----------
        filename_or_obj
            Path of the file.
        drop_variables
            Names to leave out.
        channels
            Labels of the signals to take, in this order. By default all, but for the trigger channel of BDF.
        labels
            Labels of channels that are wanted even if they hold triggers.
        drop_channels
            Labels of the signals to leave out.
        rates
            What to do where signals differ in rate: None refuses; a number takes the signals of that rate in Hz;
            "hold" repeats the values of slower ones, whose rates must divide the highest.

        Returns
        -------
        Dataset with the variable ``recording``, dims (time, channel), in float64.
        """
        header = read_header(filename_or_obj)
        chosen = of_rate(READER, header.path, _chosen(header, channels, drop_channels, labels), header.seconds, rates)
        signals = tuple(header.signals[channel.number] for channel in chosen)
        samples = max(signal.samples for signal in signals)
        source = EdfSource(header, signals, samples)
        bare = [channel.label for channel, signal in zip(chosen, signals, strict=True) if not signal.scaled]
        if bare:
            told(READER, header.path, f"{listed(bare)}: no calibration is given; their values are digital counts.")
        stretches = record_stretches(header, samples)
        rate = samples / header.seconds
        return sampled_dataset(
            source,
            path=header.path,
            channels=[channel.label for channel in chosen],
            units=[signal.units if signal.scaled else "1" for signal in signals],
            time=stretch_time(source.shape[0], rate, stretches, header.start_time),
            sampling_rate=rate,
            drop_variables=drop_variables,
        )


def _chosen(
    header: Header, channels: Sequence[str] | None, dropped: Sequence[str], wanted: Sequence[str]
) -> list[Channel]:
    """The signals that are wanted, by their labels."""
    if not header.signals or not header.seconds:
        got = "annotations only" if not header.signals else "records without duration"
        remedy = "Open it beside its recording, with mo.open_labels(path) or --labels"
        raise refusal(READER, header.path, "hold signals", got, remedy)
    check_channels(READER, header.path, len(header.signals))
    labels = distinct_labels([signal.label for signal in header.signals])
    numbers = chosen_channels(READER, header.path, labels, channels, dropped)
    unwanted = {*_TRIGGERS} - {*wanted}
    triggers = [number for number in numbers if header.width == 3 and labels[number] in unwanted]
    if channels is None and triggers and len(numbers) > len(triggers):
        names = listed([labels[number] for number in triggers])
        told(READER, header.path, f"{names} holds triggers and is left out. Take it with channels=.")
        numbers = [number for number in numbers if number not in triggers]
    return [Channel(labels[number], number, header.signals[number].samples) for number in numbers]


def _exactly(file: BinaryIO, path: str, at: int, n_bytes: int) -> Samples:
    """So many bytes of a file, which may have shrunk since it was opened."""
    file.seek(at)
    raw = np.frombuffer(file.read(n_bytes), np.uint8)
    if len(raw) < n_bytes:
        must = f"hold {n_bytes} bytes at byte {at}"
        raise refusal(READER, path, must, f"{len(raw)}", "It shrank while it was read; copy it again")
    return raw


def _integers(raw: Samples, width: int) -> Samples:
    """Little-endian integers of 2 or 3 bytes."""
    if width == 2:
        return np.ascontiguousarray(raw).view("<i2").astype(np.int32)
    parts = raw.reshape(-1, 3).astype(np.int32)
    return parts[:, 0] | parts[:, 1] << 8 | parts[:, 2].astype(np.int8).astype(np.int32) << 16
