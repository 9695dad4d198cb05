"""The Ode to Joy, played line by line by two synthetic instruments that take turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.datasets.regular import uniform_time

from .melody import INSTRUMENTS, hertz, play
from .simulated import check_counts, check_numbers, generator

Array = NDArray[Any]

PITCHES = {"G3": 55, "C4": 60, "D4": 62, "E4": 64, "F4": 65, "G4": 67}
"""Notes of the melody, as MIDI numbers."""

_FIRST = "E4 E4 F4 G4 G4 F4 E4 D4 C4 C4 D4 E4"
_THIRD = "D4:1 D4:1 E4:1 C4:1 D4:1 E4:.5 F4:.5 E4:1 C4:1 D4:1 E4:.5 F4:.5 E4:1 D4:1 C4:1 D4:1 G3:2"
_LINES = (
    f"{_FIRST} E4:1.5 D4:.5 D4:2",
    f"{_FIRST} D4:1.5 C4:.5 C4:2",
    _THIRD,
    f"{_FIRST} D4:1.5 C4:.5 C4:2",
)
_REST = "rest"
_BREATH, _NOISE = range(2)


def ode(*, seed: int = 0, verses: int = 2, beat: float = 0.5, sampling_rate: int = 11_025) -> xr.DataArray:
    """Beethoven's melody by a flute and a reed that take turns from line to line; notes are coordinates.

    Parameters
    ----------
    seed
        Chooses breath and noise.
    verses
        How often the four lines are played; the instruments swap lines in every other verse.
    beat
        Seconds of a quarter note; the last tenth of each note is silent.
    sampling_rate
        In Hz, whole.

    Returns
    -------
    Dims ``(time, channel)``, in [-1, 1], float32, with ``note`` and ``instrument`` along ``time``: names, and "rest"
    where none sounds.

    Examples
    --------
    >>> music = ode(verses=1, sampling_rate=4_000)
    >>> music.sizes["time"] / 4_000, sorted(set(music.note.values.tolist()))
    (32.0, ['C4', 'D4', 'E4', 'F4', 'G3', 'G4', 'rest'])
    """
    check_counts("ode", {"verses": verses}, at_least=1)
    check_counts("ode", {"seed": seed}, at_least=0)
    check_counts("ode", {"sampling_rate": sampling_rate}, at_least=1_000)
    check_numbers("ode", {"beat": beat}, positive=True)
    sound, notes, players = [], [], []
    for number, (name, beats, player) in enumerate(_score(verses)):
        n, held = round(beats * beat * sampling_rate), round(0.9 * beats * beat * sampling_rate)
        sound.append(_played(seed, number, name, player, (n, held), sampling_rate))
        notes += [np.repeat([name, _REST], [held, n - held])]
        players += [np.repeat([player, _REST], [held, n - held])]
    samples = np.concatenate(sound).astype(np.float32)[:, None]
    labels = {"note": _along(notes, "note that sounds"), "instrument": _along(players, "instrument that sounds")}
    return xr.DataArray(
        samples,
        dims=("time", "channel"),
        coords=uniform_time(len(samples), sampling_rate).assign({**labels, "channel": ["mono"]}),
        name="recording",
        attrs={"units": "1", "long_name": "sound pressure, full scale 1", "sampling_rate": float(sampling_rate)},
    )


def _score(verses: int) -> list[tuple[str, float, str]]:
    """Name, beats and player of every note."""
    players = list(INSTRUMENTS)
    return [
        (name, float(beats or 1), players[(line + verse) % len(players)])
        for verse in range(verses)
        for line, notes in enumerate(_LINES)
        for name, _, beats in (note.partition(":") for note in notes.split())
    ]


def _played(seed: int, number: int, name: str, player: str, lengths: tuple[int, int], sampling_rate: int) -> Array:
    """Samples of one note and the silence after it."""
    n, held = lengths
    sound = 0.003 * generator(seed, _NOISE, number).standard_normal(n)
    breath = generator(seed, _BREATH, number).standard_normal(held)
    sound[:held] += play(INSTRUMENTS[player], hertz(PITCHES[name]), breath, sampling_rate)
    return sound


def _along(parts: list[Array], long_name: str) -> tuple[str, Array, dict[str, str]]:
    """A label of every sample."""
    return "time", np.concatenate(parts), {"long_name": long_name}
