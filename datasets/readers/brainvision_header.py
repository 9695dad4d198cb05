"""Headers (.vhdr) and markers (.vmrk) of BrainVision recordings, and the data files beside them."""

import math
import os
import re
from typing import NamedTuple

import numpy as np

from .contract import local_file, refusal
from .sniff import BRAINVISION, describe

READER = "brainvision"
_COPY = "Copy all files of the recording again"
_FORMATS = {"INT_16": "i2", "UINT_16": "u2", "INT_32": "i4", "IEEE_FLOAT_32": "f4"}
_MOST_BYTES = 2**26


class Channel(NamedTuple):
    """A channel: its label, what a count stands for, and in which unit."""

    label: str
    resolution: float
    units: str


class Marker(NamedTuple):
    """A marker: type, text, number of its first sample and how many it has, and its date-time, if it tells one."""

    kind: str
    text: str
    first: int
    n_samples: int
    instant: np.datetime64 | None


class Header(NamedTuple):
    """What a header says: ``data`` and ``markers`` are paths; ``multiplexed``: channels side by side."""

    path: str
    data: str
    markers: str | None
    rate: float
    dtype: np.dtype[np.generic]
    multiplexed: bool
    channels: tuple[Channel, ...]


def read_header(source: object) -> Header:
    """Read a header, and look at the files that it names.

    Parameters
    ----------
    source
        Path of the .vhdr file.
    """
    path = local_file(READER, source)
    if (words := describe(path)) != BRAINVISION:
        raise refusal(READER, path, "be a BrainVision header (.vhdr)", words, "Name the .vhdr file of the recording")
    sections = _sections(path)
    common, binary = sections.get("common infos", {}), sections.get("binary infos", {})
    form = common.get("dataformat", "BINARY").upper()
    name = binary.get("binaryformat", "INT_16").upper()
    if form != "BINARY" or name not in _FORMATS:
        got = form if form != "BINARY" else name
        raise refusal(READER, path, f"hold data of {', '.join(_FORMATS)}", got, "Export it again as binary data")
    orientation = common.get("dataorientation", "MULTIPLEXED").upper()
    if orientation not in ("MULTIPLEXED", "VECTORIZED"):
        raise refusal(READER, path, "be MULTIPLEXED or VECTORIZED", orientation, "Export it again")
    order = ">" if binary.get("usebigendianorder", "NO").upper() == "YES" else "<"
    channels = _channels(path, sections.get("channel infos", {}))
    if common.get("numberofchannels", str(len(channels))) != str(len(channels)):
        got = f"{common['numberofchannels']} in [Common Infos] and {len(channels)} in [Channel Infos]"
        raise refusal(READER, path, "have one number of channels", got, _COPY)
    interval = _number(path, common.get("samplinginterval", ""), "SamplingInterval")
    if not interval > 0:
        raise refusal(READER, path, "tell the SamplingInterval in µs", str(interval), _COPY)
    markers = common.get("markerfile")
    return Header(
        path,
        _beside(path, common.get("datafile", ""), "DataFile"),
        _beside(path, markers, "MarkerFile") if markers else None,
        1e6 / interval,
        np.dtype(order + _FORMATS[name]),
        orientation == "MULTIPLEXED",
        channels,
    )


def read_markers(path: str) -> list[Marker]:
    """Read the markers of a file, in the order of time.

    Parameters
    ----------
    path
        The .vmrk file.
    """
    markers = []
    for key, line in _sections(path).get("marker infos", {}).items():
        if not re.fullmatch(r"mk\d+", key):
            continue
        cells = [cell.replace("\\1", ",").strip() for cell in line.split(",")] + [""] * 6
        if not re.fullmatch(r"\d{1,15}", cells[2]) or not re.fullmatch(r"\d{0,15}", cells[3]):
            got = f"{key.capitalize()}={line[:60]}"
            raise refusal(READER, path, "tell the position of each marker", got, "Correct it, or export it again")
        first, size = max(0, int(cells[2]) - 1), int(cells[3] or 1)
        markers.append(Marker(cells[0], cells[1], first, size, _instant(cells[5])))
    return sorted(markers, key=lambda marker: marker.first)


def _sections(path: str) -> dict[str, dict[str, str]]:
    """Lines of name and value, section by section; names in small letters."""
    if os.path.getsize(path) > _MOST_BYTES:
        raise refusal(READER, path, f"be at most {_MOST_BYTES} bytes", str(os.path.getsize(path)), "Is it a header?")
    with open(path, "rb") as file:
        raw = file.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    sections: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("[") and "]" in line:
            section = sections.setdefault(line[1 : line.index("]")].strip().lower(), {})
        elif "=" in line and not line.startswith(";"):
            name, _, value = line.partition("=")
            section.setdefault(name.strip().lower(), value.strip())
    return sections


def _channels(path: str, section: dict[str, str]) -> tuple[Channel, ...]:
    """The channels, in the order of their numbers."""
    lines = {int(key[2:]): line for key, line in section.items() if re.fullmatch(r"ch\d{1,6}", key)}
    if not lines or sorted(lines) != list(range(1, len(lines) + 1)):
        raise refusal(READER, path, "list its channels from Ch1 on", f"{sorted(lines)[:9]}", _COPY)
    channels = []
    for number in sorted(lines):
        cells = [cell.replace("\\1", ",").strip() for cell in lines[number].split(",")] + [""] * 4
        resolution = _number(path, cells[2], f"resolution of channel {cells[0]!r}") if cells[2] else 1.0
        channels.append(Channel(cells[0], resolution, cells[3] or "µV"))
    return tuple(channels)


def _beside(path: str, name: str, what: str) -> str:
    """The path of a file that a header names, which must lie in its folder."""
    folder, stem = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
    name = name.replace("$b", stem)
    place = os.path.join(folder, name)
    here = name and not re.search(r"[\\/:]", name)
    if not here or os.path.dirname(os.path.realpath(place)) != os.path.realpath(folder):
        got = repr(name) if name else "none"
        raise refusal(READER, path, f"name its {what} in its own folder", got, "Put it there, and correct the name")
    if not os.path.isfile(place):
        got = f"no {name}"
        raise refusal(READER, path, f"have its {what} beside it", got, "Copy it there, or correct its name")
    return place


def _number(path: str, text: str, what: str) -> float:
    """A finite number of the header."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise refusal(READER, path, f"tell the {what} as a number", repr(text), _COPY)
    return value


def _instant(text: str) -> np.datetime64 | None:
    """A date-time of 20 digits, to the microsecond; zeros stand for none."""
    found = re.fullmatch(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{6})", text)
    if found is None or found[1] == "0000":
        return None
    year, month, day, hour, minute, second, micros = found.groups()
    try:
        return np.datetime64(f"{year}-{month}-{day}T{hour}:{minute}:{second}.{micros}", "us")
    except ValueError:
        return None
