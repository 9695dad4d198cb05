"""A melody of two synthetic instruments that take turns, with the table of its notes.

Sound is made note by note, each note and the rest after it with random generators of their own, so the
values depend on the seed alone and an hour of music never sits in memory.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np
import xarray as xr
import zarr
from numpy.typing import ArrayLike, NDArray

from .simulated import check_counts, check_numbers, finish_store, generator, open_simulation, rebatched, write_labels

Array = NDArray[Any]

_LENGTH, _STEP, _BREATH, _NOISE = range(4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Instrument:
    """What tells one sound from another; times in s."""

    harmonics: dict[int, float]
    attack: float
    release: float
    breath: float = 0.0
    tremolo: float = 0.0

    @property
    def loudest(self) -> float:
        """Bound of the sum of all harmonics; the breath adds to it."""
        return (1 + self.tremolo) * sum(self.harmonics.values())


INSTRUMENTS = {
    "flute": Instrument(harmonics={1: 1.0, 2: 0.35, 3: 0.12, 4: 0.04}, attack=0.06, release=0.05, breath=0.03),
    "reed": Instrument(
        harmonics={1: 1.0, 2: 0.1} | {k: k**-0.6 for k in range(3, 16, 2)}, attack=0.008, release=0.02, tremolo=0.12
    ),
}
_PEAK, _TREMOLO_HZ = 0.6, 6.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Settings:
    """Every number of the piece, checked once."""

    n_notes: int
    seed: int
    sampling_rate: float
    note_seconds: tuple[float, float]
    rest_seconds: float
    phrase_notes: int
    pitches: tuple[int, ...]
    noise: float

    def __post_init__(self) -> None:
        check_counts("melody", {"n_notes": self.n_notes, "phrase_notes": self.phrase_notes}, at_least=1)
        check_counts("melody", {"seed": self.seed}, at_least=0)
        check_numbers("melody", {"sampling_rate": self.sampling_rate}, positive=True)
        check_numbers("melody", {"rest_seconds": self.rest_seconds, "noise": self.noise}, positive=False)
        span = self.note_seconds
        if len(span) != 2 or not 16 / self.sampling_rate <= span[0] <= span[1] < math.inf:
            raise ValueError(
                f"melody: note_seconds must be the shortest and the longest note, 16 samples or more; "
                f"got {span}. Try note_seconds=(0.25, 0.5)."
            )
        check_counts("melody", {f"pitches[{k}]": pitch for k, pitch in enumerate(self.pitches)}, at_least=0)
        if len(self.pitches) < 2 or hertz(max(self.pitches)) >= 0.45 * self.sampling_rate:
            raise ValueError(
                f"melody: pitches must be two or more MIDI numbers below 0.45 sampling_rate; got {self.pitches} "
                f"at {self.sampling_rate} Hz. Try pitches=(72, 74, 76, 79, 81) at sampling_rate=22_050."
            )


def write_melody(
    path: str | PathLike[str],
    *,
    n_notes: int = 240,
    seed: int = 0,
    sampling_rate: float = 22_050,
    note_seconds: tuple[float, float] = (0.25, 0.5),
    rest_seconds: float = 0.25,
    phrase_notes: int = 8,
    pitches: tuple[int, ...] = (72, 74, 76, 79, 81),
    noise: float = 0.0,
    chunk_samples: int = 262_144,
) -> xr.Dataset:
    """Compose, write chunk by chunk, and open a melody in which a flute and a reed take turns.

    The piece is made for the music experiment of the paper [1]_: a few notes that recur, in two timbres.
    The flute has four harmonics, a slow attack and breath; the reed has mostly odd harmonics, a fast attack
    and a tremolo of 6 Hz.

    Parameters
    ----------
    path
        The Zarr store to make; it must not exist yet.
    n_notes
        Length of the piece, in notes. A longer piece begins with the same ones.
    seed
        Chooses notes, lengths, breath and noise, each independently of the others.
    sampling_rate
        In Hz. Harmonics at or above 0.45 of it are left out.
    note_seconds
        Shortest and longest note, in s; lengths are uniform between them.
    rest_seconds
        Silence after each phrase, in s.
    phrase_notes
        Notes until the other instrument takes over.
    pitches
        The scale, as MIDI numbers. The melody wanders on it by one or two places, never staying.
    noise
        Root mean square of white noise over everything, full scale being 1. What leaves [-1, 1] is clipped.
    chunk_samples
        Samples in one chunk of the store; changes no value.

    Returns
    -------
    The opened store, nothing loaded: ``recording(time, channel)`` in [-1, 1], ``time`` in s; the notes
    ``onset(note)`` and ``offset(note)`` in s, ``pitch(note)`` as MIDI numbers, and ``instrument(note)``,
    0 the flute and 1 the reed. Every setting is in ``attrs``. :func:`label_frames` turns the notes into labels.

    Notes
    -----
    Memory: the table of notes, 100 bytes each, one note's sound, and 24 bytes for each sample of a chunk.

    References
    ----------
    .. [1] T. Shnitzer, R. Talmon, J.-J. Slotine, "Manifold Learning with Contracting Observers for
       Data-driven Time-series Analysis", IEEE Trans. Signal Processing (2017).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     melody = write_melody(f"{folder}/melody.zarr", n_notes=12, sampling_rate=8_000).load()
    >>> str(melody.recording.dtype), melody.instrument.values
    ('float32', array([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1], dtype=int8))
    """
    settings = _Settings(
        n_notes=n_notes,
        seed=seed,
        sampling_rate=sampling_rate,
        note_seconds=note_seconds,
        rest_seconds=rest_seconds,
        phrase_notes=phrase_notes,
        pitches=pitches,
        noise=noise,
    )
    check_counts("melody", {"chunk_samples": chunk_samples}, at_least=1)
    group = zarr.create_group(path, zarr_format=3)
    bounds, pitch = _compose(settings)
    _write_notes(group, settings, bounds, pitch)
    recording = _create_recording(group, int(bounds[-1, 2]), sampling_rate, chunk_samples)
    for number, (sound,) in enumerate(rebatched(_sounds(settings, bounds, pitch), chunk_samples)):
        recording[number * chunk_samples : number * chunk_samples + len(sound)] = sound
    finish_store(group, "melody", sampling_rate, dataclasses.asdict(settings))
    return open_simulation(path)


def label_frames(notes: xr.Dataset, frame_times: ArrayLike) -> tuple[Array, Array]:
    """Tell which note sounds at given times.

    Parameters
    ----------
    notes
        What :func:`write_melody` returns, or any Dataset with ``onset``, ``offset`` (in s, rising),
        ``pitch`` and ``instrument`` along ``note``.
    frame_times
        Times, best the centres of frames, in s; any shape.

    Returns
    -------
    Pitches (MIDI numbers) and instruments, each of the shape of ``frame_times``; -1 for silence.

    Examples
    --------
    >>> columns = {"onset": [0.0, 1.0], "offset": [0.5, 2.0], "pitch": [72, 74], "instrument": [0, 1]}
    >>> notes = xr.Dataset({name: ("note", values) for name, values in columns.items()})
    >>> label_frames(notes, [0.1, 0.7, 1.0, 3.0])
    (array([72, -1, 74, -1]), array([ 0, -1,  1, -1]))
    """
    number = sounding_note(notes, frame_times)
    pitch, instrument = (np.where(number >= 0, notes[name].values[number], -1) for name in ("pitch", "instrument"))
    return pitch, instrument


def sounding_note(notes: xr.Dataset, frame_times: ArrayLike) -> Array:
    """Tell which note of a table sounds at given times, by its number in the table; -1 for silence.

    Parameters
    ----------
    notes
        ``onset`` and ``offset`` along one dimension, in s, rising. Where two overlap, the later counts.
    frame_times
        Times in s, any shape.

    Examples
    --------
    >>> notes = xr.Dataset({"onset": ("note", [0.0, 1.0]), "offset": ("note", [0.5, 2.0])})
    >>> sounding_note(notes, [0.1, 0.7, 1.0])
    array([ 0, -1,  1])
    """
    times = np.asarray(frame_times, dtype=float)
    last = np.searchsorted(notes.onset.values, times, side="right") - 1
    return np.where((last >= 0) & (times < notes.offset.values[last]), last, -1)


def hertz(pitch: float) -> float:
    """Hz of a MIDI number."""
    return 440.0 * 2 ** ((pitch - 69) / 12)


def _compose(settings: _Settings) -> tuple[Array, Array]:
    """Choose onset, offset and end of the rest (in samples, shape (note, 3)), and pitch of each note."""
    shortest, longest = settings.note_seconds
    n_notes = settings.n_notes
    seconds = generator(settings.seed, _LENGTH, 0).uniform(shortest, longest, n_notes)
    lengths = np.maximum(np.rint(seconds * settings.sampling_rate), 1).astype(int)
    closes = np.arange(1, n_notes + 1) % settings.phrase_notes == 0
    rests = closes * round(settings.rest_seconds * settings.sampling_rate)
    ends = np.cumsum(lengths + rests)
    bounds = np.stack([ends - rests - lengths, ends - rests, ends], axis=1)
    choices = generator(settings.seed, _STEP, 0).random(n_notes)
    return bounds, np.array(settings.pitches)[wander(choices, len(settings.pitches))]


def wander(choices: Sequence[float] | Array, n_places: int) -> Array:
    """Turn numbers in [0, 1) into a walk by one or two places, within bounds and never staying."""
    place, places = n_places // 2, []
    for choice in choices:
        near = [place + step for step in (-2, -1, 1, 2) if 0 <= place + step < n_places]
        place = near[int(choice * len(near))]
        places.append(place)
    return np.array(places)


def _write_notes(group: zarr.Group, settings: _Settings, bounds: Array, pitch: Array) -> None:
    """Write the table of notes."""
    instrument = np.arange(len(pitch)) // settings.phrase_notes % len(INSTRUMENTS)
    flags = {"flag_values": list(range(len(INSTRUMENTS))), "flag_meanings": " ".join(INSTRUMENTS)}
    columns = [
        ("onset", bounds[:, 0] / settings.sampling_rate, {"units": "s", "long_name": "start of the note"}),
        ("offset", bounds[:, 1] / settings.sampling_rate, {"units": "s", "long_name": "end of the note"}),
        ("pitch", pitch.astype("int16"), {"units": "1", "long_name": "MIDI number of the note"}),
        ("instrument", instrument.astype("int8"), {"units": "1", "long_name": "instrument"} | flags),
    ]
    for name, values, attributes in columns:
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, dimension_names=("note",), attributes=attributes
        )
        array[:] = values


def _create_recording(group: zarr.Group, n_samples: int, sampling_rate: float, chunk_samples: int) -> Any:
    """Make an empty array for the sound."""
    write_labels(group, "channel", ["mono"], "audio channel")
    attributes = {"sampling_rate": sampling_rate, "units": "1", "long_name": "sound pressure, full scale 1"}
    return group.create_array(
        "recording",
        shape=(n_samples, 1),
        chunks=(min(chunk_samples, n_samples), 1),
        dtype="float32",
        fill_value=math.nan,
        dimension_names=("time", "channel"),
        attributes=attributes,
    )


def _sounds(settings: _Settings, bounds: Array, pitch: Array) -> Iterator[tuple[Array, ...]]:
    """Play note after note, each with the rest that follows it, shape (sample, 1)."""
    instruments = list(INSTRUMENTS.values())
    for note, (onset, offset, end) in enumerate(bounds):
        instrument = instruments[note // settings.phrase_notes % len(instruments)]
        sound = np.zeros(end - onset)
        breath = generator(settings.seed, _BREATH, note).standard_normal(offset - onset)
        sound[: offset - onset] = play(instrument, hertz(pitch[note]), breath, settings.sampling_rate)
        sound += settings.noise * generator(settings.seed, _NOISE, note).standard_normal(len(sound))
        yield (np.clip(sound, -1, 1).astype("float32")[:, None],)


def play(instrument: Instrument, frequency: float, breath: Array, sampling_rate: float) -> Array:
    """Add the harmonics of one note under its envelope; white ``breath`` sets its length."""
    time = np.arange(len(breath)) / sampling_rate
    sound = instrument.breath * breath
    for number, strength in instrument.harmonics.items():
        if number * frequency < 0.45 * sampling_rate:
            sound += strength * np.sin(2 * np.pi * number * frequency * time)
    sound *= 1 + instrument.tremolo * np.sin(2 * np.pi * _TREMOLO_HZ * time)
    # Short notes keep their shape: no more than a third of them is attack, or release.
    length = len(breath) / sampling_rate
    attack, release = min(instrument.attack, length / 3), min(instrument.release, length / 3)
    rise, fall = np.clip(time / attack, 0, 1), np.clip((length - time) / release, 0, 1)
    return _PEAK / instrument.loudest * sound * np.sin(np.pi / 2 * rise) ** 2 * np.sin(np.pi / 2 * fall) ** 2
