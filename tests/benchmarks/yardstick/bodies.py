"""Recordings of sleep, brains, muscles and hearts."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d
from scipy.signal import butter, find_peaks, sosfiltfilt

from .case import Case, case, labels_of, recording_of
from .files import read_annotations, read_edf, read_wfdb

Array = NDArray[Any]

_EPOCH, _FIRST_EPOCH, _LAST_EPOCH = 30, 960, 1800
# Stages 3 and 4 are one today.
_STAGES = {"W": 0, "1": 1, "2": 2, "3": 3, "4": 3, "R": 4}
_HEART_STEP = 12


def sleep(folder: Path) -> Case:
    """Logarithm of the deviation of seven signals in epochs of 30 s; five stages, and awake or not."""
    values, rate = soundfile.read(folder / "SC4001E0-PSG.wav", dtype="int16", always_2d=True)
    stage = np.full(len(values), -1)
    for onset, lasting, text in read_annotations(folder / "SC4001EC-Hypnogram.edf"):
        stage[round(onset * rate) : round((onset + lasting) * rate)] = _STAGES.get(text.split()[-1], -1)
    night = slice(_FIRST_EPOCH * _EPOCH * rate, _LAST_EPOCH * _EPOCH * rate)
    epochs = values[night].astype(np.float64).reshape(_LAST_EPOCH - _FIRST_EPOCH, _EPOCH * rate, -1)
    level = (epochs - epochs.mean(axis=1, keepdims=True)).reshape(-1, values.shape[1])
    known = stage[night]
    return case(
        "sleep",
        recording_of(level, rate),
        "log_rms",
        "log deviation of epochs of 30 s (the samples less their epoch's mean)",
        {"stage": known, "awake": np.where(known < 0, -1, known == 0).astype(int)},
        frame="30s",
        floor=0.5,
    )


def eeg_eyes(folder: Path) -> Case:
    """One minute with the eyes open, one with them closed."""
    parts = [read_edf(folder / f"S001R0{number}_repaired.edf") for number in (1, 2)]
    lengths = [len(part.values) for part in parts]
    filtered = np.concatenate([_band(part.values, (8, 30), part.rate) for part in parts])
    return case(
        "eeg_eyes",
        recording_of(filtered, parts[0].rate, parts[0].names, lengths),
        "log_rms",
        "log power at 8-30 Hz in frames of .5 s",
        {"closed": np.repeat([0, 1], lengths)},
        frame="500ms",
    )


def eeg_movement(folder: Path) -> Case:
    """Left fist, right fist or rest: not to be seen in band powers of one subject by any unsupervised means."""
    path = folder / "S001R03_repaired.edf"
    signals = read_edf(path)
    events = [(on, on + lasting, int(text[1])) for on, lasting, text in read_annotations(path) if text[:1] == "T"]
    return case(
        "eeg_movement",
        recording_of(_band(signals.values, (8, 30), signals.rate), signals.rate, signals.names),
        "log_rms",
        "log power at 8-30 Hz in frames of .5 s",
        {"fist": labels_of(len(signals.values), signals.rate, events)},
        controls=["fist"],
        frame="500ms",
    )


def eeg_eye_state(folder: Path) -> Case:
    """Open or closed eyes in a consumer's headset, with 19 rows of outliers left in."""
    with (folder / "eeg-eye-state.csv").open(newline="") as file:
        table = np.array(list(csv.reader(file))[1:], dtype=np.float64)
    return case(
        "eeg_eye_state",
        recording_of(_band(table[:, :-1], (1, 40), 128.0), 128.0),
        "log_rms",
        "log power at 1-40 Hz in frames of .25 s",
        {"closed": table[:, -1].astype(int)},
        controls=["closed"],
        frame="250ms",
    )


def _band(values: Array, hertz: tuple[float, float], rate: float) -> Array:
    """Both ways, so that nothing is delayed."""
    return sosfiltfilt(butter(2, hertz, "bandpass", fs=rate, output="sos"), values, axis=0)


def emg_text(folder: Path) -> Case:
    """Eight muscles and six gestures."""
    return _emg(folder / "s01_1.txt")


def emg_gzip(folder: Path) -> Case:
    """Another subject."""
    return _emg(folder / "s06_2.txt")


def _emg(path: Path) -> Case:
    """A table of text, packed or not; its clock of about 1 kHz jitters, so that a frame may hold a few ms more."""
    text = path.read_text() if path.is_file() else gzip.decompress(path.with_suffix(".txt.gz").read_bytes()).decode()
    rows = [line.split() for line in text.splitlines()[1:]]
    table = np.array([row for row in rows if len(row) == 10], dtype=np.float64)
    gesture = table[:, -1].astype(int)
    return case(
        f"emg_{path.stem}",
        recording_of(table[:, 1:9] / 1e-5, 1000.0),
        "log_rms",
        "log level in frames of 100 ms, in steps of the converter",
        {"gesture": np.where(gesture == 0, -1, gesture)},
        frame="100ms",
        floor=0.5,
    )


def heartbeat(folder: Path) -> Case:
    """Fifteen leads, and where in the beat they are."""
    signals = read_wfdb(folder / "s0010_re.hea")
    filtered = _band(signals.values, (0.5, 40), signals.rate)
    phase = _phase(filtered, signals.rate)
    kept = slice(None, None, _HEART_STEP)
    return case(
        "heartbeat",
        recording_of(filtered[kept], signals.rate / _HEART_STEP, signals.names),
        "identity",
        "sensor values at .5-40 Hz, every 12th",
        {"cos": np.cos(phase)[kept], "sin": np.sin(phase)[kept]},
    )


def _phase(leads: Array, rate: float) -> Array:
    """Angle between R peaks, where the leads together change fastest; NaN before the first and after the last."""
    steep = uniform_filter1d(np.square(np.diff(leads, axis=0, prepend=leads[:1])).sum(axis=1), round(0.08 * rate))
    peaks, _ = find_peaks(steep, distance=round(0.4 * rate), height=0.3 * np.quantile(steep, 0.995))
    return np.interp(np.arange(len(leads)), peaks, 2 * np.pi * np.arange(len(peaks)), left=np.nan, right=np.nan)
