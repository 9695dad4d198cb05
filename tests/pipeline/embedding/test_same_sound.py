"""A sound is what it is, however it is written."""

import numpy as np
import pytest
import soundfile

import manifold_observer.pipeline as mo

RATE = 8000


@pytest.fixture(scope="module")
def sound():
    """A glide that swells, in steps of 16 bits."""
    rng, time = np.random.default_rng(0), np.arange(6 * RATE) / RATE
    glide = np.sin(2 * np.pi * (300 + 200 * np.sin(time)) * time) * (0.3 + 0.2 * np.sin(3 * time))
    return np.round((glide + 0.01 * rng.normal(size=len(time))) * 2**14) / 2**15


@pytest.mark.parametrize("subtype", ["PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
def test_embed__the_same_sound_in_any_encoding_has_the_same_coordinates(tmp_path, sound, subtype):
    found = []
    for name in ("PCM_16", subtype):
        soundfile.write(tmp_path / f"{name}.wav", sound, RATE, subtype=name)
        frames = mo.stft(mo.open_recording(tmp_path / f"{name}.wav"), frame="23ms")
        # By default the form is the one that is faster here and now, and two forms differ in the last digits.
        found.append(mo.embed(frames, n_modes=2, engine=mo.Engine(form="factor"))["coordinate"])
    np.testing.assert_array_equal(*found)
