"""Formats that the project does not read: WFDB 16 and 212, EDF(+), cbin, spikes in MAT cells, a camera's track."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

Array = NDArray[Any]

# Widths in bytes of the fields of an EDF signal header: label, transducer, unit, 4 limits, filter, samples, reserved.
_EDF_FIELDS = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)


class Signals(NamedTuple):
    """Samples (time, channel) in physical units, names of the channels, Hz."""

    values: Array
    names: list[str]
    rate: float


def read_wfdb(header: Path) -> Signals:
    """A record of one segment whose files are in format 16 or 212, files side by side."""
    first, *rest = (line for line in header.read_text().splitlines() if line and not line.startswith("#"))
    _, n_signals, rate, n_samples = first.split()[:4]
    lines = [line.split() for line in rest[: int(n_signals)]]
    parts = []
    for file in dict.fromkeys(line[0] for line in lines):
        own = [line for line in lines if line[0] == file]
        digital = _unpack((header.parent / file).read_bytes(), own[0][1]).reshape(-1, len(own))[: int(n_samples)]
        parts.append((digital - [float(line[4]) for line in own]) / [float(line[2].split("/")[0]) for line in own])
    return Signals(np.concatenate(parts, axis=1), [line[8] for line in lines], float(rate.split("/")[0]))


def _unpack(raw: bytes, form: str) -> Array:
    """Samples of two bytes, or two of twelve bits in three bytes."""
    if form.startswith("16"):
        return np.frombuffer(raw, "<i2").astype(np.float64)
    if not form.startswith("212"):
        raise ValueError(f"read_wfdb: the format must be 16 or 212; got {form}.")
    triple = np.frombuffer(raw[: len(raw) // 3 * 3], np.uint8).reshape(-1, 3).astype(int)
    pairs = np.stack([triple[:, 0] | (triple[:, 1] & 15) << 8, triple[:, 2] | (triple[:, 1] >> 4) << 8], axis=1)
    return np.where(pairs > 2047, pairs - 4096, pairs).ravel().astype(np.float64)


def read_edf(path: Path) -> Signals:
    """Signals that share the rate of the first one, without the annotations."""
    names, values, rates = [], [], []
    for name, samples, rate in _edf_signals(path):
        if name != "EDF Annotations":
            names, values, rates = [*names, name], [*values, samples], [*rates, rate]
    same = [k for k, rate in enumerate(rates) if rate == rates[0]]
    return Signals(np.stack([values[k] for k in same], axis=1), [names[k] for k in same], rates[0])


def read_annotations(path: Path) -> list[tuple[float, float, str]]:
    """(onset s, duration s, text) of every annotation of an EDF+ that lasts."""
    found = re.findall(rb"\+([\d.]+)\x15([\d.]+)\x14([^\x14\x00]+)\x14", path.read_bytes())
    return [(float(onset), float(lasting), text.decode("latin-1")) for onset, lasting, text in found]


def _edf_signals(path: Path) -> Iterator[tuple[str, Array, float]]:
    """Label, physical samples and rate of every signal."""
    raw = path.read_bytes()
    n_bytes, n_records, seconds, n = int(raw[184:192]), int(raw[236:244]), float(raw[244:252]), int(raw[252:256])
    starts = 256 + n * np.cumsum([0, *_EDF_FIELDS])
    fields = [
        [raw[start + k * width : start + (k + 1) * width].decode("latin-1").strip() for k in range(n)]
        for start, width in zip(starts, _EDF_FIELDS, strict=False)
    ]
    counts = [int(text) for text in fields[8]]
    n_records = min(n_records, (len(raw) - n_bytes) // (2 * sum(counts)))
    records = np.frombuffer(raw, "<i2", n_records * sum(counts), n_bytes).reshape(n_records, -1)
    for k, first in enumerate(np.cumsum([0, *counts[:-1]])):
        low, high, digital_low, digital_high = (float(fields[field][k]) for field in (3, 4, 5, 6))
        scale = (high - low) / (digital_high - digital_low)
        samples = records[:, first : first + counts[k]].reshape(-1)
        yield fields[0][k], low + scale * (samples - digital_low), counts[k] / seconds


def read_cbin(path: Path) -> tuple[Array, float]:
    """First channel of a big-endian sound and its rate, as the file beside it tells them."""
    told = path.with_suffix(".rec").read_text(encoding="latin-1")
    rate, channels = (float(re.search(rf"{key}\s*=\s*(\d+)", told)[1]) for key in ("ADFREQ", "Chans"))
    return np.fromfile(path, ">i2").astype(np.float64).reshape(-1, int(channels))[:, 0], rate


def read_spikes(path: Path) -> list[Array]:
    """Spike times in s of every unit that fired, out of nested MATLAB cells."""
    return list(_times(loadmat(path)["spikes"]))


def _times(cell: Array) -> Iterator[Array]:
    """Spike times below a cell."""
    if cell.dtype.names and "time" in cell.dtype.names:
        yield from (times for times in (np.ravel(unit["time"]) for unit in cell.ravel()) if times.size)
    elif cell.dtype == object:
        for inner in cell.ravel():
            yield from _times(inner)


def read_track(path: Path) -> tuple[Array, Array]:
    """Times in s and positions (time, 2) in pixels of a camera that follows a lamp."""
    raw = path.read_bytes()
    end = b"<End settings>\n"
    rate = float(re.search(rb"clockrate: (\d+)", raw)[1])
    fields = [("time", "<u4"), ("x", "<u2"), ("y", "<u2"), ("x2", "<u2"), ("y2", "<u2")]
    table = np.frombuffer(raw[raw.index(end) + len(end) :], np.dtype(fields))
    return table["time"] / rate, np.stack([table["x"], table["y"]], axis=1).astype(np.float64)
