"""Recordings of instruments, birds and a singer: spectra of 23 ms, and what sounded."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray
from scipy.io import loadmat

from .case import Case, case, labels_of, numbered, recording_of
from .files import read_cbin

Array = NDArray[Any]

_WHY = "magnitudes of spectra of 23 ms"
_BIRD_FILES = ("1", "2", "6", "8")


def melody(folder: Path) -> Case:
    """A harmonica and a flute in turn."""
    sound, rate = soundfile.read(folder / "ode_flute_harmonica.wav")
    notes = _rows(folder / "ode_flute_harmonica_notes.csv")
    spans = [(float(row["onset_s"]), float(row["offset_s"])) for row in notes]
    pitch = [int(row["midi_pitch"]) for row in notes]
    instrument = numbered(row["instrument"] for row in notes)
    truths = {
        "note": labels_of(len(sound), rate, [(*span, p) for span, p in zip(spans, pitch, strict=True)]),
        "instrument": labels_of(
            len(sound),
            rate,
            [(*span, instrument[row["instrument"]]) for span, row in zip(spans, notes, strict=True)],
        ),
    }
    return case("melody", recording_of(sound, rate), "stft", _WHY, truths, frame="23ms")


def finch(folder: Path) -> Case:
    """Two songs of a Bengalese finch: sound or silence, and which syllable."""
    sounds, truths, rate = [], [], 0.0
    marked = [loadmat(f"{path}.not.mat", squeeze_me=True) for path in _songs(folder)]
    number = numbered("".join(str(marks["labels"]) for marks in marked))
    for path, marks in zip(_songs(folder), marked, strict=True):
        sound, rate = read_cbin(path)
        spans = zip(marks["onsets"] / 1000, marks["offsets"] / 1000, str(marks["labels"]), strict=True)
        sounds.append(sound)
        truths.append(labels_of(len(sound), rate, [(on, off, number[name]) for on, off, name in spans]))
    syllable = np.concatenate(truths)
    recording = recording_of(np.concatenate(sounds), rate, lengths=[len(sound) for sound in sounds])
    known = {"sounding": (syllable >= 0).astype(int), "syllable": syllable}
    return case("finch", recording, "stft", _WHY, known, frame="23ms")


def _songs(folder: Path) -> list[Path]:
    """Files of sound."""
    return sorted(folder.glob("*.cbin"))


def bird0(folder: Path) -> Case:
    """Four songs of another bird, and which syllable."""
    rows = _rows(folder / "birdsongrec_Bird0_Annotation.csv")
    number = numbered(row["label"] for row in rows)
    sounds, truths, rate = [], [], 0
    for name in _BIRD_FILES:
        sound, rate = soundfile.read(folder / f"{name}.wav")
        own = [row for row in rows if row["notated_path"] == f"{name}.wav"]
        spans = [(float(row["onset_s"]), float(row["offset_s"]), number[row["label"]]) for row in own]
        sounds.append(sound)
        truths.append(labels_of(len(sound), rate, spans))
    recording = recording_of(np.concatenate(sounds), rate, lengths=[len(sound) for sound in sounds])
    return case("bird0", recording, "stft", _WHY, {"syllable": np.concatenate(truths)}, frame="23ms")


def singer(folder: Path) -> Case:
    """A voice, and its notes to the nearest semitone."""
    sound, rate = soundfile.read(folder / "vocadito_1.wav")
    table = np.loadtxt(folder / "vocadito_1_notesA1.csv", delimiter=",")
    midi = np.round(69 + 12 * np.log2(table[:, 1] / 440)).astype(int)
    spans = [(on, on + lasting, int(note)) for (on, _, lasting), note in zip(table, midi, strict=True)]
    truths = {"note": labels_of(len(sound), rate, spans)}
    return case("singer", recording_of(sound, rate), "stft", _WHY, truths, frame="23ms")


def _rows(path: Path) -> list[dict[str, str]]:
    """A table with a header."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
