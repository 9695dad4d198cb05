"""Annotations of WFDB (.atr and others): words of 16 bits, each a type and the samples since the last.

The package wfdb takes some notes at the first sample for definitions, and loses them.
"""

import os
import re

import numpy as np

from .contract import refusal
from .sniff import read_head

READER = "labels"
_SYMBOLS = {
    1: "N", 2: "L", 3: "R", 4: "a", 5: "V", 6: "F", 7: "J", 8: "A", 9: "S", 10: "E", 11: "j", 12: "/", 13: "Q",
    14: "~", 16: "|", 18: "s", 19: "T", 20: "*", 21: "D", 22: '"', 23: "=", 24: "p", 25: "B", 26: "^", 27: "t",
    28: "+", 29: "u", 30: "?", 31: "!", 32: "[", 33: "]", 34: "e", 35: "n", 36: "@", 37: "x", 38: "f", 39: "(",
    40: ")", 41: "r",
}  # fmt: skip
_SKIP, _NUM, _SUB, _CHN, _AUX = 59, 60, 61, 62, 63
_RESOLUTION = re.compile(r"## time resolution: (\d+(?:\.\d+)?)")
_COPY = "Copy it again"

Note = tuple[int, str]


def read_notes(path: str, sampling_rate: float | None) -> list[tuple[float, str]]:
    """Read all annotations of a file.

    Parameters
    ----------
    path
        The file.
    sampling_rate
        Of its sample numbers, in Hz; None to take the one that it tells, or the header beside it.

    Returns
    -------
    Time in s, and the note, or the symbol where there is none.
    """
    notes = _decoded(path)
    told = next((found for sample, text in notes if not sample and (found := _RESOLUTION.match(text))), None)
    rate = sampling_rate or (float(told[1]) if told else _rate_beside(path))
    if not rate:
        got, remedy = "sample numbers, and no header beside it", "Copy its .hea file beside it, or give sampling_rate="
        raise refusal(READER, path, "tell its sampling rate", got, remedy)
    return [(sample / rate, text) for sample, text in notes if sample or not text.startswith("## ")]


def _decoded(path: str) -> list[Note]:
    """Sample number and text of every annotation."""
    with open(path, "rb") as file:
        raw = file.read()
    words = np.frombuffer(raw[: len(raw) // 2 * 2], "<u2")
    kinds, numbers = (words >> 10).tolist(), (words & 0x3FF).tolist()
    notes: list[Note] = []
    at, sample = 0, 0
    while at < len(kinds):
        kind, number = kinds[at], numbers[at]
        at += 1
        if kind == 0 and number == 0:
            return notes
        if kind == _SKIP:
            if at + 2 > len(words):
                break
            sample += int(np.int32(np.uint32(int(words[at]) << 16 | int(words[at + 1]))))
            at += 2
        elif kind == _AUX:
            text = raw[2 * at : 2 * at + number]
            at += -(-number // 2)
            if not notes or at > len(words):
                break
            notes[-1] = (notes[-1][0], _text(text) or notes[-1][1])
        elif kind not in (_NUM, _SUB, _CHN):
            sample += number
            if kind and (kind not in _SYMBOLS or sample < 0):
                break
            if kind:  # else only time goes by
                notes.append((sample, _SYMBOLS[kind]))
    raise refusal(READER, path, "be annotations of WFDB", f"something else after {len(notes)} of them", _COPY)


def _text(raw: bytes) -> str:
    """A note, which may end in a zero."""
    return raw.split(b"\0")[0].decode("utf-8", "replace").strip()


def _rate_beside(path: str) -> float | None:
    """The sampling rate in the header of the record, where it lies beside."""
    header = os.path.splitext(path)[0] + ".hea"
    if not os.path.isfile(header):
        return None
    lines = [line for line in read_head(header).decode("latin-1").splitlines() if line.strip() and line[0] != "#"]
    found = re.match(r"\S+\s+\d+\s+(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)", lines[0]) if lines else None
    # A record that tells none has this one.
    return float(found[1]) if found else 250.0
