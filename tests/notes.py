"""What holds for pieces of music, whatever makes their sound."""

import numpy as np
import pytest
import xarray as xr

from manifold_observer.datasets.simulators.melody import hertz
from manifold_observer.datasets.simulators.music import RAPID_SECONDS, duet, solo

RATE = 22_050


def short(compose, **options):
    return compose(**{"n_phrases": 2, "sampling_rate": RATE, "sound": "additive"} | options)


def peak(music, note):
    """Frequency of the strongest partial of a note, Hz."""
    start, stop = (round(float(music[name][note]) * RATE) for name in ("onset", "offset"))
    sound = music.recording.values[start:stop, 0]
    return np.abs(np.fft.rfft(sound * np.hanning(len(sound)), 1 << 17)).argmax() * RATE / (1 << 17)


def check_spectrum(compose, sound, harmonics):
    """The spectrum of each slow note peaks at its pitch, or at a harmonic."""
    music = short(compose, sound=sound)
    slow = np.flatnonzero((music.offset - music.onset) > 2 * RAPID_SECONDS)
    assert len(slow) == {solo: 16, duet: 14}[compose]
    for note in slow:
        ratio = peak(music, note) / hertz(int(music.pitch[note]))
        assert round(ratio) in harmonics, f"note {note}"
        assert ratio == pytest.approx(round(ratio), rel=0.01), f"note {note}"


def check_seeds(compose, sound):
    """The same seed gives the same piece, another one another."""
    one, again, other = (short(compose, seed=seed, sound=sound) for seed in (3, 3, 4))
    xr.testing.assert_identical(one, again)
    assert not np.array_equal(one.pitch, other.pitch)
    assert not np.array_equal(one.onset, other.onset)
