"""Pieces of music: notes where and as high as the table says, with either sound."""

import numpy as np
import pytest

from manifold_observer.datasets.simulators import music
from manifold_observer.datasets.simulators.music import (
    RAPID_SECONDS,
    SCALE,
    duet,
    has_sampler,
    midi_bytes,
    read_notes,
    solo,
)
from notes import check_seeds, check_spectrum, short

COMPOSERS = [solo, duet]


@pytest.mark.parametrize("compose", COMPOSERS)
def test_pieces__spectrum_of_each_slow_note_peaks_at_its_pitch(compose):
    check_spectrum(compose, "additive", harmonics={1})


@pytest.mark.parametrize("compose", COMPOSERS)
def test_pieces__same_seed_same_piece_and_other_seed_another(compose):
    check_seeds(compose, "additive")


@pytest.mark.parametrize("compose", COMPOSERS)
def test_pieces__notes_follow_each_other_on_the_scale_within_the_sound(compose):
    music = short(compose, n_phrases=4)
    assert music.recording.dims == ("time", "channel")
    assert 0.55 < np.abs(music.recording).max() <= 0.6001
    assert set(music.pitch.values) == set(SCALE)
    assert (music.offset > music.onset).all()
    assert (music.onset.values[1:] >= music.offset.values[:-1] - 1e-9).all()
    assert float(music.offset[-1]) < float(music.time[-1]) < float(music.offset[-1]) + 0.5
    for name in ("recording", "onset", "offset", "pitch", "instrument", "chord_onset"):
        assert {"units", "long_name"} <= music[name].attrs.keys()


def test_solo__run_is_rapid_goes_up_and_down_and_lies_between_the_phrases():
    music = short(solo, n_rapid=10)
    assert music.sizes["note"] == 26
    run = music.isel(note=slice(8, 18))
    np.testing.assert_allclose(run.offset - run.onset, RAPID_SECONDS, atol=1.1e-3)
    np.testing.assert_array_equal(run.pitch, [72, 74, 76, 79, 81, 79, 76, 74, 72, 74])
    assert short(solo, n_rapid=0).sizes["note"] == 16


def test_solo__accompaniment_is_quiet_never_stops_and_is_alone_in_the_rests():
    music = short(solo)
    assert music.attrs["instruments"] == ["oboe", "strings"]
    assert set(music.instrument.values) == {0}
    assert set(music.chord_instrument.values) == {1}
    assert float(music.chord_onset[0]) == 0
    assert float(music.chord_offset[-1]) == float(music.offset[-1])
    rest = (music.time > float(music.offset[7]) + 0.02) & (music.time < float(music.onset[8]))
    quiet = music.recording.values[rest.values]
    assert 0.01 < quiet.std() < 0.5 * music.recording.values.std()


def test_duet__instruments_take_turns_and_sound_unlike():
    music = short(duet, n_phrases=4)
    np.testing.assert_array_equal(music.instrument, np.arange(28) // 7 % 2)
    assert music.attrs["instruments"] == ["flute", "clarinet"]
    assert music.sizes["chord_note"] == 0


@pytest.mark.parametrize("compose", COMPOSERS)
def test_pieces__without_a_sampler_synthesise_or_say_what_is_missing(compose, monkeypatch, tmp_path):
    monkeypatch.setattr(music, "SOUNDFONT", tmp_path / "no.sf2")
    assert not has_sampler()
    assert short(compose, sound="auto").attrs["sound"] == "additive synthesis"
    with pytest.raises(ValueError, match=r"sound='sampled' needs the command fluidsynth .* apt-get install fluidsynth"):
        short(compose, sound="sampled")


def test_pieces__say_when_fluidsynth_fails(monkeypatch, tmp_path):
    (tmp_path / "empty.sf2").write_bytes(b"")
    monkeypatch.setattr(music.shutil, "which", lambda name: "/bin/false")
    monkeypatch.setattr(music, "SOUNDFONT", tmp_path / "empty.sf2")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "fluidsynth").symlink_to("/bin/false")
    with pytest.raises(RuntimeError, match="pieces: fluidsynth failed, code 1"):
        short(duet, sound="sampled")


def test_midi_bytes__by_hand():
    track = midi_bytes([73, 71], [(0, 0, 72, 100), (500, 0, 72, 0), (500, 1, 60, 90)])[14:]
    assert track[:4] == b"MTrk"
    assert int.from_bytes(track[4:8], "big") == len(track) - 8
    tempo, programs, end = b"\x00\xff\x51\x03\x0f\x42\x40", b"\x00\xc0\x49\x00\xc1\x47", b"\x00\xff\x2f\x00"
    notes = b"\x00\x90\x48\x64" + b"\x83\x74\x90\x48\x00" + b"\x00\x91\x3c\x5a"  # 500 = 3 * 128 + 116
    assert track[8:] == tempo + programs + notes + end


@pytest.mark.parametrize(
    ("compose", "options", "sentence"),
    [
        (solo, {"n_phrases": 0}, "solo: n_phrases must be a whole number, at least 1; got 0"),
        (solo, {"n_rapid": -1}, "solo: n_rapid must be a whole number, at least 0; got -1"),
        (duet, {"seed": 0.5}, "duet: seed must be a whole number, at least 0; got 0.5"),
        (duet, {"sampling_rate": 100}, "duet: sampling_rate must be a whole number, at least 8000; got 100"),
        (duet, {"sound": "loud"}, "duet: sound must be 'auto', 'sampled' or 'additive'; got 'loud'"),
    ],
)
def test_pieces__refuse_bad_settings(compose, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        short(compose, **options)


def test_read_notes__sorts_and_names_and_refuses_other_tables(tmp_path):
    (tmp_path / "n.csv").write_text(
        "midi_pitch,onset_s,offset_s,instrument,more\n74,1.0,1.5,flute,0\n72,0.25,0.5,horn,1\n"
    )
    notes = read_notes(tmp_path / "n.csv")
    np.testing.assert_array_equal(notes.onset, [0.25, 1.0])
    np.testing.assert_array_equal(notes.instrument, [1, 0])
    assert notes.attrs["instruments"] == ["flute", "horn"]
    (tmp_path / "n.csv").write_text("onset,offset\n0,1\n")
    with pytest.raises(ValueError, match="must have the columns onset_s, offset_s, midi_pitch, instrument; got"):
        read_notes(tmp_path / "n.csv")
