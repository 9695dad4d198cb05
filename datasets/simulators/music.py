"""Two pieces of music with known notes, for the music experiment of the paper: a solo and a duet.

They are played by sampled instruments where the command ``fluidsynth`` and Debian's General MIDI soundfont are
installed, and by the project's own additive synthesis (that of the melody) otherwise.
"""

from __future__ import annotations

import csv
import dataclasses
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
import xarray as xr
from numpy.typing import NDArray

from .melody import INSTRUMENTS, Instrument, hertz, play, wander
from .simulated import check_counts, generator

Array = NDArray[Any]

SOUNDFONT = Path("/usr/share/sounds/sf2/FluidR3_GM.sf2")
SCALE = (72, 74, 76, 79, 81)
"""The notes that recur, as MIDI numbers: C5, D5, E5, G5, A5."""
RAPID_SECONDS = 0.07
"""Length of a note of the rapid run, three frames of 23 ms."""

_LENGTH, _STEP, _BREATH = range(4, 7)
_CHORDS = ((48, 55, 64), (45, 52, 60), (41, 48, 57), (43, 50, 59))
_CHORD_SECONDS, _PEAK = 2.4, 0.6
# A local covariance spans 0.5 s: silence at the end must stay shorter.
_TAIL_SECONDS = 0.2


@dataclasses.dataclass(frozen=True)
class _Voice:
    """One part of a piece, and how either sound plays it."""

    name: str
    program: int
    """General MIDI, from 0."""
    additive: Instrument
    velocity: int = 105
    """MIDI; the strength of the sound goes with its square."""


class _Note(NamedTuple):
    """Times in s, a MIDI number, and the number of the voice."""

    onset: float
    offset: float
    pitch: int
    voice: int


_PAD = Instrument(harmonics={k: k**-1.5 for k in range(1, 9)}, attack=0.15, release=0.25)
_OBOE, _STRINGS = _Voice("oboe", 68, INSTRUMENTS["reed"]), _Voice("strings", 48, _PAD, velocity=30)
_FLUTE, _CLARINET = _Voice("flute", 73, INSTRUMENTS["flute"]), _Voice("clarinet", 71, INSTRUMENTS["reed"])


def solo(
    *, seed: int = 0, n_phrases: int = 8, n_rapid: int = 32, sampling_rate: int = 44_100, sound: str = "auto"
) -> xr.Dataset:
    """An oboe over quiet strings: phrases of eight notes that recur, and one rapid run halfway.

    Parameters
    ----------
    seed
        Chooses notes, lengths and breath.
    n_phrases
        Phrases of eight notes of 0.3 to 0.55 s and a rest of 0.4 s, in which the strings are alone.
    n_rapid
        Notes of the run, of 0.07 s each, up and down the same scale.
    sampling_rate
        In Hz, whole, 8,000 or more.
    sound
        ``"sampled"``, ``"additive"``, or ``"auto"``: sampled where :func:`has_sampler`.

    Returns
    -------
    ``recording(time, channel)`` in [-1, 1]; the solo's ``onset(note)`` and ``offset(note)`` in s, ``pitch(note)`` as
    MIDI numbers, ``instrument(note)``; the same of the accompaniment, ``chord_onset(chord_note)`` and so on. The
    attributes say the ``instruments`` by number and the ``sound``.

    Examples
    --------
    >>> music = solo(n_phrases=2, n_rapid=4, sampling_rate=8_000, sound="additive")
    >>> music.sizes["note"], music.attrs["instruments"], music.attrs["sound"]
    (20, ['oboe', 'strings'], 'additive synthesis')
    """
    check_counts("solo", {"n_phrases": n_phrases}, at_least=1)
    check_counts("solo", {"seed": seed, "n_rapid": n_rapid}, at_least=0)
    phrases = _phrases(seed, n_phrases, n_notes=8, seconds=(0.3, 0.55))
    run = [(SCALE[_up_and_down(k, len(SCALE))], RAPID_SECONDS) for k in range(n_rapid)]
    half = n_phrases // 2
    parts = [*phrases[:half], *([run] if run else []), *phrases[half:]]
    notes = _in_turn(parts, [0] * len(parts), rest=0.4)
    chords = _chords(notes[-1].offset, voice=1)
    return _perform("solo", (_OBOE, _STRINGS), notes, chords, seed, sampling_rate, sound)


def duet(*, seed: int = 0, n_phrases: int = 12, sampling_rate: int = 44_100, sound: str = "auto") -> xr.Dataset:
    """A flute and a clarinet that take turns on the same notes.

    Parameters
    ----------
    seed
        Chooses notes, lengths and breath.
    n_phrases
        Phrases of seven notes of 0.25 to 0.5 s and a rest of 0.25 s; the flute begins.
    sampling_rate
        In Hz, whole, 8,000 or more.
    sound
        ``"sampled"``, ``"additive"``, or ``"auto"``: sampled where :func:`has_sampler`.

    Returns
    -------
    As :func:`solo`, without accompaniment.

    Examples
    --------
    >>> music = duet(n_phrases=2, sampling_rate=8_000, sound="additive")
    >>> music.instrument.values
    array([0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1], dtype=int8)
    """
    check_counts("duet", {"n_phrases": n_phrases}, at_least=1)
    check_counts("duet", {"seed": seed}, at_least=0)
    phrases = _phrases(seed, n_phrases, n_notes=7, seconds=(0.25, 0.5))
    notes = _in_turn(phrases, [number % 2 for number in range(n_phrases)], rest=0.25)
    return _perform("duet", (_FLUTE, _CLARINET), notes, [], seed, sampling_rate, sound)


def has_sampler() -> bool:
    """Whether sampled instruments can play here: ``fluidsynth`` and the soundfont of ``fluid-soundfont-gm``."""
    return shutil.which("fluidsynth") is not None and SOUNDFONT.is_file()


def read_notes(path: str | PathLike[str]) -> xr.Dataset:
    r"""Read the notes of a recording from a table with columns onset_s, offset_s, midi_pitch and instrument.

    Parameters
    ----------
    path
        CSV file with a header; the instruments are names.

    Returns
    -------
    The table of notes as :func:`solo` gives it, and the attribute ``instruments``, in the order of their names.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "n.csv").write_text("onset_s,offset_s,midi_pitch,instrument\n0.5,1.0,72,flute\n")
    ...     notes = read_notes(Path(folder, "n.csv"))
    >>> notes.pitch.values, notes.attrs["instruments"]
    (array([72], dtype=int16), ['flute'])
    """
    columns = ("onset_s", "offset_s", "midi_pitch", "instrument")
    with open(path, newline="", encoding="utf-8") as file:
        table = csv.DictReader(file)
        if not {*columns} <= {*(table.fieldnames or ())}:
            raise ValueError(
                f"read_notes: {path} must have the columns {', '.join(columns)}; got {table.fieldnames}. Rename them."
            )
        rows = [[row[column] for column in columns] for row in table]
    names = sorted({name for *_, name in rows})
    notes = [_Note(float(on), float(off), int(pitch), names.index(name)) for on, off, pitch, name in rows]
    return xr.Dataset(_table(sorted(notes), "", "note"), attrs={"instruments": names})


def _phrases(seed: int, n_phrases: int, n_notes: int, seconds: tuple[float, float]) -> list[list[tuple[int, float]]]:
    """Pitch and length in s of every note; the melody wanders over the scale, never staying."""
    n = n_phrases * n_notes
    pitches = np.array(SCALE)[wander(generator(seed, _STEP, 0).random(n), len(SCALE))]
    lengths = generator(seed, _LENGTH, 0).uniform(*seconds, n).round(3)
    notes = [(int(pitch), float(length)) for pitch, length in zip(pitches, lengths, strict=True)]
    return [notes[start : start + n_notes] for start in range(0, n, n_notes)]


def _up_and_down(k: int, n_places: int) -> int:
    """Place of the k-th note of a run: 0 1 2 ... 2 1 0 1 2."""
    return n_places - 1 - abs(n_places - 1 - k % (2 * n_places - 2))


def _in_turn(parts: Sequence[Sequence[tuple[int, float]]], voices: Sequence[int], rest: float) -> list[_Note]:
    """Notes one after another, with a rest in s after every part."""
    notes, now = [], 0.0
    for part, voice in zip(parts, voices, strict=True):
        for pitch, length in part:
            notes.append(_Note(round(now, 3), round(now + length, 3), pitch, voice))
            now += length
        now += rest
    return notes


def _chords(seconds: float, voice: int) -> list[_Note]:
    """Accompaniment of the whole piece, a chord after the other."""
    starts = np.arange(0, seconds, _CHORD_SECONDS).round(3)
    ends = np.minimum(starts + _CHORD_SECONDS, seconds).round(3)
    return [
        _Note(float(start), float(end), pitch, voice)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True))
        for pitch in _CHORDS[number % len(_CHORDS)]
    ]


def _perform(
    name: str,
    voices: Sequence[_Voice],
    notes: list[_Note],
    chords: list[_Note],
    seed: int,
    sampling_rate: int,
    sound: str,
) -> xr.Dataset:
    """Play a score, and label it."""
    check_counts(name, {"sampling_rate": sampling_rate}, at_least=8_000)
    sampled = _is_sampled(name, sound)
    score = sorted([*notes, *chords])
    wave = _sampled(voices, score, sampling_rate) if sampled else _additive(voices, score, seed, sampling_rate)
    length = round((max(note.offset for note in score) + _TAIL_SECONDS) * sampling_rate)
    wave = np.pad(wave, (0, max(0, length - len(wave))))[:length]
    wave = (_PEAK / np.abs(wave).max() * wave).astype(np.float32)
    attrs = {"sampling_rate": sampling_rate, "units": "1", "long_name": "sound pressure, full scale 1"}
    music = xr.Dataset(
        {"recording": (("time", "channel"), wave[:, None], attrs), **_table(notes, "", "note")}
        | _table(chords, "chord_", "chord_note"),
        coords={"time": ("time", np.arange(length) / sampling_rate, {"units": "s"}), "channel": ["mono"]},
    )
    played = f"sampled: fluidsynth, {SOUNDFONT.name}" if sampled else "additive synthesis"
    return music.assign_attrs(piece=name, seed=seed, sound=played, instruments=[voice.name for voice in voices])


def _is_sampled(name: str, sound: str) -> bool:
    """Which sound it is to be; refuse samples that are not there."""
    if sound not in ("auto", "sampled", "additive"):
        raise ValueError(f"{name}: sound must be 'auto', 'sampled' or 'additive'; got {sound!r}.")
    if sound == "sampled" and not has_sampler():
        raise ValueError(
            f"{name}: sound='sampled' needs the command fluidsynth and {SOUNDFONT}, which are not here. Install them "
            "with: apt-get install fluidsynth fluid-soundfont-gm, or take sound='additive'."
        )
    return sound == "sampled" or (sound == "auto" and has_sampler())


def _table(notes: Sequence[_Note], prefix: str, dim: str) -> dict[str, Any]:
    """The notes as variables; none is a table too."""
    columns: list[tuple[Any, ...]] = list(zip(*notes, strict=True)) or [()] * 4
    names = [("onset", "s", "start of the note"), ("offset", "s", "end of the note")]
    names += [("pitch", "1", "MIDI number of the note"), ("instrument", "1", "number of the instrument")]
    kinds = (np.float64, np.float64, np.int16, np.int8)
    return {
        prefix + name: (dim, np.array(column, kind), {"units": units, "long_name": long_name})
        for (name, units, long_name), column, kind in zip(names, columns, kinds, strict=True)
    }


def _additive(voices: Sequence[_Voice], score: Sequence[_Note], seed: int, sampling_rate: int) -> Array:
    """Add up the notes, each with a breath of its own; shape (samples,)."""
    sound = np.zeros(round((max(note.offset for note in score) + _TAIL_SECONDS) * sampling_rate))
    for number, note in enumerate(score):
        start, stop = round(note.onset * sampling_rate), round(note.offset * sampling_rate)
        breath = generator(seed, _BREATH, number).standard_normal(stop - start)
        voice = voices[note.voice]
        own = play(voice.additive, hertz(note.pitch), breath, sampling_rate)
        sound[start:stop] += (voice.velocity / 127) ** 2 * own
    return sound


def _sampled(voices: Sequence[_Voice], score: Sequence[_Note], sampling_rate: int) -> Array:
    """Let fluidsynth play, without reverberation and chorus, which would blur the ends of notes; shape (samples,)."""
    with tempfile.TemporaryDirectory(prefix="manifold-observer-") as folder:
        midi, wave = Path(folder) / "piece.mid", Path(folder) / "piece.wav"
        midi.write_bytes(midi_bytes([voice.program for voice in voices], _events(voices, score)))
        command = ["fluidsynth", "-ni", "-q", "-R", "0", "-C", "0", "-F", wave, "-r", sampling_rate, SOUNDFONT, midi]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        if done.returncode or not wave.is_file():
            raise RuntimeError(f"pieces: fluidsynth failed, code {done.returncode}: {done.stderr.strip()[-300:]}")
        samples, _ = soundfile.read(wave, always_2d=True)
    return samples.mean(axis=1)


def _events(voices: Sequence[_Voice], score: Sequence[_Note]) -> list[tuple[int, int, int, int]]:
    """Milliseconds, channel, pitch and velocity (0 ends the note), in time; an end before the start that it meets."""
    events = []
    for note in score:
        events.append((round(1000 * note.onset), note.voice, note.pitch, voices[note.voice].velocity))
        events.append((round(1000 * note.offset), note.voice, note.pitch, 0))
    return sorted(events, key=lambda event: (event[0], event[3] > 0))


def midi_bytes(programs: Sequence[int], events: Sequence[tuple[int, int, int, int]]) -> bytes:
    r"""A standard MIDI file of one track, its tick a millisecond.

    Parameters
    ----------
    programs
        General MIDI number, from 0, of every channel.
    events
        (millisecond, channel, pitch, velocity) in the order of time; velocity 0 ends a note.

    Examples
    --------
    >>> midi_bytes([73], [(0, 0, 72, 100), (500, 0, 72, 0)])[:14]
    b'MThd\x00\x00\x00\x06\x00\x00\x00\x01\x03\xe8'
    """
    track = b"\x00\xff\x51\x03" + (1_000_000).to_bytes(3, "big")  # a beat of 1 s, of 1,000 ticks
    for channel, program in enumerate(programs):
        track += bytes([0, 0xC0 | channel, program])
    now = 0
    for tick, channel, pitch, velocity in events:
        track += _variable_length(tick - now) + bytes([0x90 | channel, pitch, velocity])
        now = tick
    track += b"\x00\xff\x2f\x00"
    return b"MThd" + struct.pack(">IHHH", 6, 0, 1, 1000) + b"MTrk" + struct.pack(">I", len(track)) + track


def _variable_length(value: int) -> bytes:
    """Seven bits a byte, the highest bit set in all but the last."""
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(0x80 | value & 0x7F)
    return bytes(reversed(groups))
