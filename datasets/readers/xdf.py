"""Reader of XDF files (Lab Streaming Layer): the xarray engine ``manifold-xdf``, by pyxdf.

A stream is read whole, into memory: its chunks have no index. pyxdf synchronises clocks and frees them of jitter;
streams of one file keep their common time, so that markers fit recordings.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendEntrypoint

from .contract import check_channels, has_suffix, local_file, recording_dataset, refusal
from .libraries import library
from .mixed_rates import listed
from .sampled import distinct_labels, told
from .sniff import XDF, describe, holds

READER = "xdf"
_COPY = "Copy it again"
# What pyxdf says of damage, after which it goes on; it also speaks of clocks.
_DAMAGE = re.compile("chunk|boundary|corrupt|end of file|EOF", re.IGNORECASE)


class XdfBackend(BackendEntrypoint):
    """Opens a stream of an XDF file as a recording with ``xr.open_dataset``."""

    description = "Open streams of XDF files as recordings, read whole, with their synchronised clocks"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "variable")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim files by their name or their signature."""
        return has_suffix(filename_or_obj, {".xdf"}) or self.recognises(filename_or_obj)

    def recognises(self, filename_or_obj: Any) -> bool:
        """Claim files by their signature alone."""
        return holds(filename_or_obj, XDF)

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        variable: str | None = None,
    ) -> xr.Dataset:
        """Read one stream.

        Parameters
        ----------
        filename_or_obj
            Path of the file.
        drop_variables
            Names to leave out.
        variable
            Name of the stream, its type or its number. By default the only one that holds numbers.

        Returns
        -------
        Dataset with the variable ``recording``, or of the name that was asked for, dims (time, channel).
        """
        path = local_file(READER, filename_or_obj)
        if (words := describe(path)) != XDF:
            raise refusal(READER, path, "be an XDF recording", words, "Replace it with the recording")
        stream = _loaded(path, [_chosen(path, variable)])[0]
        info, values = stream["info"], np.asarray(stream["time_series"])
        if values.ndim != 2 or not values.size:
            raise refusal(READER, path, f"hold samples in stream {_first(info, 'name')!r}", "none", "Choose another")
        check_channels(READER, path, values.shape[1])
        labels, units = _channels(info, values.shape[1])
        note = {"units": "s", "long_name": "time"}
        dataset = recording_dataset(
            xr.Variable(("time", "channel"), values),
            path=path,
            channels=distinct_labels(labels),
            time=xr.Coordinates({"time": ("time", np.asarray(stream["time_stamps"], np.float64), note)}),
            sampling_rate=None,
            units=units[0] if len(set(units)) == 1 else "mixed",
            long_name="recorded values",
        )
        dataset = dataset if variable is None else dataset.rename(recording=variable)
        return dataset.drop_vars([] if drop_variables is None else drop_variables, errors="ignore")


def markers(path: str) -> list[tuple[float, str]]:
    """Times in s and texts of all streams of markers.

    Parameters
    ----------
    path
        The file.
    """
    numbers = [int(stream["stream_id"]) for stream in _streams(path) if stream["channel_format"] == "string"]
    found = []
    for stream in _loaded(path, numbers) if numbers else []:
        for time, texts in zip(stream["time_stamps"], stream["time_series"], strict=True):
            found.append((float(time), " ".join(str(text) for text in texts).strip()))
    return sorted(found)


def _streams(path: str) -> list[dict[str, Any]]:
    """What the headers of all streams say."""
    pyxdf = library(READER, path, "pyxdf")
    with _named(path):
        return list(pyxdf.resolve_streams(path))


def _chosen(path: str, variable: str | None) -> int:
    """Number of the stream that is meant."""
    streams = _streams(path)
    numbers = [stream for stream in streams if stream["channel_format"] != "string"]
    fits = [s for s in numbers if variable is None or variable in (s["name"], s["type"], str(s["stream_id"]))]
    if len(fits) == 1:
        return int(fits[0]["stream_id"])
    if not numbers:
        got = f"markers only ({listed([str(stream['name']) for stream in streams])})" if streams else "no streams"
        raise refusal(READER, path, "hold a stream of numbers", got, "Open markers with mo.open_labels")
    told_of = [f"{s['name']} ({s['type']}, {s['channel_count']} channels at {s['nominal_srate']} Hz)" for s in numbers]
    same = len({s["name"] for s in numbers}) < len(numbers)
    example = str(numbers[0]["stream_id"]) if same else str(numbers[0]["name"])
    must = "hold one stream" if variable is None else f"have one stream {variable!r}"
    raise refusal(READER, path, must, ", ".join(told_of), f"Choose one with variable={example!r}")


def _loaded(path: str, numbers: list[int]) -> list[dict[str, Any]]:
    """Streams of some numbers; what pyxdf warns of is told."""
    pyxdf = library(READER, path, "pyxdf")
    with _named(path), _overheard() as said:
        streams, _ = pyxdf.load_xdf(path, select_streams=numbers, verbose=None)
    if missing := _missing_bytes(path):
        told(READER, path, f"it ends {missing} bytes before its last chunk does: samples are missing. Copy it again.")
    damage = [text for text in said if _DAMAGE.search(text)]
    if damage:
        told(READER, path, f"pyxdf says {damage[0]!r}: samples may be missing. Copy the file again if it was cut.")
    return list(streams)


def _missing_bytes(path: str) -> int:
    """How many bytes the last chunk lacks, which pyxdf passes over."""
    size, at = os.path.getsize(path), 4
    with open(path, "rb") as file:
        while at < size:
            file.seek(at)
            width = file.read(1)[0]
            if width not in (1, 4, 8):
                return 0  # damage within, which pyxdf finds
            at += 1 + width + int.from_bytes(file.read(width), "little")
    return at - size


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """What pyxdf logs as warnings, for it goes on after damage."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("pyxdf")
    log.addHandler(handler)
    before, log.propagate = log.propagate, False
    try:
        yield said
    finally:
        log.removeHandler(handler)
        log.propagate = before


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Errors of pyxdf name the file."""
    try:
        yield
    except Exception as error:
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise refusal(READER, path, "be an XDF recording that pyxdf can read", f"{said!r}", _COPY) from None


def _channels(info: Any, n_channels: int) -> tuple[list[str], list[str]]:
    """Labels and units of the channels, as far as they are told."""
    labels, units = [""] * n_channels, ["unknown"] * n_channels
    try:
        told_of = info["desc"][0]["channels"][0]["channel"]
    except (KeyError, IndexError, TypeError):
        return labels, units
    for number, channel in enumerate(told_of[:n_channels]):
        labels[number] = _first(channel, "label")
        units[number] = _first(channel, "unit") or "unknown"
    return labels, units


def _first(table: Any, name: str) -> str:
    """The text of an element, which pyxdf puts into lists."""
    try:
        return str(table[name][0] or "")
    except (KeyError, IndexError, TypeError):
        return ""
