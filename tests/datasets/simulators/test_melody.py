"""The melody: same seed same sound, and notes where and as high as the table says."""

import math
import tracemalloc

import numpy as np
import pytest
import xarray as xr

from manifold_observer.datasets.simulators.melody import label_frames, write_melody
from manifold_observer.datasets.simulators.simulated import open_simulation

SMALL = {"n_notes": 20, "sampling_rate": 8_000, "phrase_notes": 4}


@pytest.fixture(scope="module")
def melody(tmp_path_factory):
    return write_melody(tmp_path_factory.mktemp("melody") / "melody.zarr", n_notes=40, seed=4).load()


def played(melody, note):
    rate = melody.attrs["sampling_rate"]
    start, stop = (round(float(melody[name][note]) * rate) for name in ("onset", "offset"))
    return melody.recording.values[start:stop, 0]


def spectrum(sound):
    return np.abs(np.fft.rfft(sound * np.hanning(len(sound)), 1 << 17))


@pytest.mark.parametrize("chunk_samples", [1_000, 7_919, 1_000_000])
def test_melody__same_seed_same_bytes_for_any_chunk(tmp_path, chunk_samples):
    one = write_melody(tmp_path / "one", seed=5, noise=0.01, **SMALL)
    other = write_melody(tmp_path / "other", seed=5, noise=0.01, chunk_samples=chunk_samples, **SMALL)
    assert other.recording.encoding["chunks"][0] == min(chunk_samples, one.sizes["time"])
    xr.testing.assert_identical(one.load(), other.load())


def test_melody__longer_piece_begins_with_the_same_sound_and_seeds_differ(tmp_path):
    short = write_melody(tmp_path / "short", noise=0.01, **SMALL | {"n_notes": 11}).load()
    long = write_melody(tmp_path / "long", noise=0.01, **SMALL).load()
    other = write_melody(tmp_path / "other", seed=1, noise=0.01, **SMALL).load()
    np.testing.assert_array_equal(short.recording, long.recording[: short.sizes["time"]])
    xr.testing.assert_equal(short[["onset", "pitch"]], long[["onset", "pitch"]].isel(note=slice(11)))
    assert not np.array_equal(long.pitch, other.pitch)
    assert not np.array_equal(long.onset, other.onset)


def test_melody__spectrum_of_each_note_peaks_at_its_pitch(melody):
    for note in range(40):
        frequency = 440 * 2 ** ((int(melody.pitch[note]) - 69) / 12)
        peak = spectrum(played(melody, note)).argmax() * 22_050 / (1 << 17)
        assert peak == pytest.approx(frequency, abs=1), f"note {note}"


def test_melody__instruments_differ_in_their_harmonics_and_attack(melody):
    for note in range(40):
        sound = played(melody, note)
        frequency = 440 * 2 ** ((int(melody.pitch[note]) - 69) / 12)
        harmonic = np.rint(np.arange(6) * frequency * (1 << 17) / 22_050).astype(int)
        strengths = spectrum(sound)[harmonic]
        early = np.abs(sound[:300]).max() / np.abs(sound).max()
        if melody.instrument[note] == 0:
            assert strengths[2] > 0.25 * strengths[1] > 5 * strengths[5]
            assert early < 0.2
        else:
            assert strengths[3] > 3 * strengths[2]
            assert strengths[5] > 0.3 * strengths[1]
            assert early > 0.7


def test_melody__wanders_over_the_scale_and_instruments_take_turns(melody):
    places = np.searchsorted([72, 74, 76, 79, 81], melody.pitch.values)
    assert set(melody.pitch.values) == {72, 74, 76, 79, 81}
    assert set(np.abs(np.diff(places))) == {1, 2}
    np.testing.assert_array_equal(melody.instrument, np.arange(40) // 8 % 2)
    lengths = (melody.offset - melody.onset).values
    assert lengths.min() >= 0.25 - 1e-4
    assert lengths.max() <= 0.5 + 1e-4
    gaps = (melody.onset.values[1:] - melody.offset.values[:-1])[7::8]
    np.testing.assert_allclose(gaps, 0.25, atol=1e-4)


def test_melody__is_silent_between_phrases_and_within_full_scale(melody):
    times = melody.time.values
    pitch, _ = label_frames(melody, times)
    sound = melody.recording.values[:, 0]
    assert (sound[pitch == -1] == 0).all()
    assert sound[pitch > 0].std() > 0.05
    assert 0.3 < np.abs(sound).max() <= 1
    edges = [played(melody, note)[[0, 1, -2, -1]] for note in range(40)]
    assert np.abs(edges).max() < 0.01, "no clicks"


def test_melody__noise_has_its_level_and_clips_at_full_scale(tmp_path):
    quiet, noisy, loud = (
        write_melody(tmp_path / f"{noise}", noise=noise, **SMALL).load().recording.values for noise in (0.0, 0.02, 2.0)
    )
    assert (noisy - quiet).std() == pytest.approx(0.02, rel=0.02)
    assert np.abs(loud).max() == 1


def test_label_frames__follows_onsets_and_offsets(melody):
    middle = (melody.onset.values + melody.offset.values) / 2
    pitch, instrument = label_frames(melody, middle)
    np.testing.assert_array_equal(pitch, melody.pitch)
    np.testing.assert_array_equal(instrument, melody.instrument)
    assert label_frames(melody, melody.onset.values[3])[0] == melody.pitch[3]
    assert label_frames(melody, melody.offset.values[7])[0] == -1
    before, after, never = label_frames(melody, [-1.0, 1e6, math.nan])[0]
    assert before == after == never == -1
    assert label_frames(melody, middle[:6].reshape(2, 3))[1].shape == (2, 3)


def test_melody__labels_and_settings_are_complete(tmp_path):
    melody = write_melody(tmp_path / "m", seed=np.int64(3), **SMALL)
    assert melody.recording.dims == ("time", "channel")
    assert melody.recording.dtype == np.float32
    assert not (tmp_path / "m" / "time").exists()
    for name in ("recording", "onset", "offset", "pitch", "instrument", "time"):
        assert {"units", "long_name"} <= melody[name].attrs.keys()
    assert melody.instrument.attrs["flag_meanings"] == "flute reed"
    assert melody.instrument.attrs["flag_values"] == [0, 1]
    assert melody.attrs == {
        "n_notes": 20,
        "seed": 3,
        "sampling_rate": 8_000,
        "note_seconds": [0.25, 0.5],
        "rest_seconds": 0.25,
        "phrase_notes": 4,
        "pitches": [72, 74, 76, 79, 81],
        "noise": 0.0,
        "simulator": "manifold_observer.datasets.simulators.melody",
        "simulator_version": "1",
    }
    xr.testing.assert_identical(open_simulation(tmp_path / "m").load(), melody.load())


def test_melody__memory_does_not_grow_with_the_piece(tmp_path):
    tracemalloc.start()
    try:
        melody = write_melody(tmp_path / "m", n_notes=400, sampling_rate=8_000, chunk_samples=65_536)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert melody.recording.nbytes > 4e6
    assert peak < 24 * 65_536 + 100 * 400 + 500_000, f"{peak} bytes"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_notes": 0}, "melody: n_notes must be a whole number, at least 1; got 0"),
        ({"seed": 1.5}, "melody: seed must be a whole number, at least 0; got 1.5"),
        ({"phrase_notes": 0}, "melody: phrase_notes must be a whole number, at least 1; got 0"),
        ({"chunk_samples": 0}, "melody: chunk_samples must be a whole number, at least 1; got 0"),
        ({"sampling_rate": 0}, "melody: sampling_rate must be finite and positive; got 0"),
        ({"rest_seconds": -0.1}, "melody: rest_seconds must be finite and not negative; got -0.1"),
        ({"noise": math.nan}, "melody: noise must be finite and not negative; got nan"),
        ({"note_seconds": (0.5, 0.25)}, "melody: note_seconds must be the shortest and the longest note"),
        ({"note_seconds": (0.0, 0.25)}, "melody: note_seconds must be .*, 16 samples or more; got"),
        ({"note_seconds": (0.25, math.nan)}, "melody: note_seconds must be the shortest and the longest"),
        ({"pitches": (72,)}, "melody: pitches must be two or more MIDI numbers below 0.45 sampling_rate"),
        ({"pitches": (72, 140)}, "melody: pitches must be two or more MIDI numbers below 0.45 sampling_rate"),
        ({"pitches": (72, 74.5)}, r"melody: pitches\[1\] must be a whole number, at least 0; got 74.5"),
    ],
)
def test_melody__refuses_bad_settings_before_writing(tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        write_melody(tmp_path / "m", **SMALL | options)
    assert not (tmp_path / "m").exists()
