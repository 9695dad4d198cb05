"""The music experiment: tiny works run, are joined, judged and drawn."""

import numpy as np
import pytest
import soundfile
import xarray as xr

from manifold_observer.datasets.simulators.music import duet, solo
from manifold_observer.pipeline.paper import music as paper_music
from manifold_observer.pipeline.paper.experiment import reproduce
from manifold_observer.pipeline.paper.music import MUSIC, frame_labels, judge, recorded_piece

RATE = 8_000


@pytest.fixture(scope="module")
def tiny():
    """One solo and two duets, additive, at a low rate."""
    options = {"sampling_rate": RATE, "sound": "additive"}
    made = {"solo-0": solo(n_phrases=3, n_rapid=12, **options)}
    made |= {f"duet-{seed}": duet(seed=seed, n_phrases=4, **options) for seed in (0, 1)}
    return {name: paper_music.analyse_music(music) for name, music in made.items()}


@pytest.fixture(scope="module")
def joined(tiny):
    return MUSIC.join(tiny)


@pytest.fixture(scope="module")
def figures(joined):
    return MUSIC.draw(joined)


@pytest.mark.slow
def test_piece__frames_scores_and_reduced_pictures(tiny):
    piece = tiny["solo-0"]
    n = piece.sizes["frame"]
    for name in ("observer", "diffusion_maps"):
        assert piece[name].shape == (n, 4)
        assert np.isfinite(piece[name]).all()
    np.testing.assert_allclose(np.diff(piece.time), 0.023, atol=1e-4)
    assert set(np.unique(piece.frame_note)) == {-1, 72, 74, 76, 79, 81}
    assert int(piece.frame_rapid.sum()) == pytest.approx(12 * 0.07 / 0.023, abs=2)
    assert piece.sizes["column"] <= 1400
    assert float(piece.spectrogram.max()) == 0
    assert float(piece.spectrogram.min()) >= -80
    assert (piece.wave_low <= piece.wave_high).all()
    accuracy = piece.accuracy.sel(estimate=["observer", "diffusion_maps"])
    assert ((accuracy > 0.5) & (accuracy <= 1)).all()
    assert piece.pace_accuracy.notnull().all()
    assert float(piece.accuracy.sel(estimate="observer", label="note")) > 0.9


@pytest.mark.slow
def test_duet__has_no_rapid_run_and_both_instruments(tiny):
    piece = tiny["duet-0"]
    assert set(np.unique(piece.frame_instrument)) == {-1, 0, 1}
    np.testing.assert_array_equal(piece.frame_note < 0, piece.frame_instrument < 0)
    assert piece.pace_accuracy.sel(pace="rapid").isnull().all()


def test_frame_labels__accompaniment_is_the_instrument_while_the_solo_rests():
    music = solo(n_phrases=2, n_rapid=4, sampling_rate=RATE, sound="additive")
    onset, offset = music.onset.values, music.offset.values
    labels = frame_labels(music, [onset[3] + 0.01, offset[7] + 0.1, onset[8] + 0.01, offset[-1] + 0.1])
    np.testing.assert_array_equal(labels.frame_instrument, [0, 1, 0, -1])
    np.testing.assert_array_equal(labels.frame_note, [music.pitch[3], -1, music.pitch[8], -1])
    np.testing.assert_array_equal(labels.frame_rapid, [False, False, True, False])


def test_join__keeps_kinds_apart_all_scores_and_the_first_pictures(tiny, joined, tmp_path):
    assert joined.attrs["kinds"] == "solo duet"
    assert joined.sizes["duet_realisation"] == 2
    np.testing.assert_array_equal(joined.duet_observer, tiny["duet-0"].observer)
    np.testing.assert_array_equal(joined.duet_accuracy[1], tiny["duet-1"].accuracy)
    assert joined.attrs["duet_instruments"] == "flute, clarinet"
    joined.to_netcdf(tmp_path / "music.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "music.nc", engine="scipy") as kept:
        assert judge(kept.load()) == judge(joined)


def test_judge__claims_say_what_was_measured(joined):
    claims = judge(joined)
    assert len(claims) == 15 + 13, "the duet has no rapid run"
    for claim in claims:
        assert claim.figure == "V-C"
        assert "additive synthesis" in claim.claim
        assert claim.null
    better = joined.duet_accuracy.sel(label="note", estimate="observer")
    (notes,) = [
        c for c in claims if c.claim.startswith("duet") and "notes are read better from the observer" in c.claim
    ]
    assert f"{float(better.mean()):.3f} against" in notes.measured
    assert "of 2 above" in notes.measured


def test_piece__late_labels_group_less_and_six_coordinates_read_no_less(tiny):
    piece = tiny["duet-0"]
    own, late = (piece[name].sel(estimate="observer", label="note") for name in ("silhouette", "silhouette_null"))
    assert own > late + 0.1
    assert (piece.many_accuracy > 0.5).all()


def test_pieces__quick_is_shorter_and_follows_what_can_sound(monkeypatch):
    monkeypatch.delenv(paper_music.RECORDINGS, raising=False)
    for there, sound in ((True, "sampled"), (False, "additive")):
        monkeypatch.setattr(paper_music, "has_sampler", lambda there=there: there)
        assert {piece.settings["sound"] for piece in MUSIC.works(False)} == {sound}
    quick, full = ({piece.name: piece for piece in MUSIC.works(quick)} for quick in (True, False))
    assert list(quick) == [f"{kind}-{seed}" for kind in ("solo", "duet") for seed in range(3)]
    assert set(quick) < set(full)
    assert quick["duet-0"].settings["n_phrases"] < full["duet-0"].settings["n_phrases"]


def test_recordings__with_notes_beside_them_are_pieces(monkeypatch, tmp_path):
    music = duet(n_phrases=2, sampling_rate=RATE, sound="additive")
    folder = tmp_path / "some" / "folder"
    folder.mkdir(parents=True)
    soundfile.write(folder / "a b.wav", music.recording.values, RATE)
    soundfile.write(folder / "silent.wav", np.zeros((100, 1)), RATE)
    columns = zip(music.onset.values, music.offset.values, music.pitch.values, music.instrument.values, strict=True)
    rows = [f"{onset},{offset},{pitch},{'yx'[player]}" for onset, offset, pitch, player in columns]
    (folder / "a b_notes.csv").write_text("\n".join(["onset_s,offset_s,midi_pitch,instrument", *rows]) + "\n")
    monkeypatch.setenv(paper_music.RECORDINGS, str(tmp_path))
    piece = MUSIC.works(True)[-1]
    assert piece.name == "a b"
    found = recorded_piece(**piece.settings)
    assert found.attrs == {"piece": "a_b", "sound": "recording a b.wav", "instruments": "x, y"}
    assert len(judge(MUSIC.join({"a b": found}))) == 13


def test_pictures__every_panel_has_a_title_and_units(figures):
    assert list(figures) == ["solo-scatter", "solo-time", "duet-scatter", "duet-time"]
    for name, figure in figures.items():
        panels = figure.get_axes()
        assert len(panels) == (6 if name.endswith("scatter") else 7)
        assert tuple(figure.get_size_inches()) == (12.8, 7.2), "a slide of 16:9"
        for panel in panels:
            assert panel.get_title(loc="left"), name
            assert panel.get_ylabel(), name
        assert panels[-1].get_xlabel() in ("time (s)", r"$\psi_1$")
        units = {panel.get_ylabel().partition("(")[2] for panel in panels}
        assert units <= {"deviations)", ""}


def test_pictures__panels_of_a_time_share_it_and_one_legend_names_all_once(figures):
    figure = figures["solo-time"]
    figure.canvas.draw()
    panels = figure.get_axes()
    assert len({panel.get_xlim() for panel in panels}) == 1
    for column in (0, 1):
        edges = [panel.get_position() for panel in panels if (panel.get_position().x0 > 0.5) == bool(column)]
        assert np.ptp([edge.x0 for edge in edges]) < 1e-9
        assert np.ptp([edge.x1 for edge in edges]) < 1e-9
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert len(set(names)) == len(names) >= 4
    box = legend.get_window_extent()
    assert all(panel.get_legend() is None for panel in panels)
    assert all(panel.get_tightbbox().y0 >= box.y1 - 1 for panel in panels)
    (caption,) = (text for text in figure.texts if "n = " in text.get_text())
    assert caption.get_window_extent().y1 <= box.y0


def test_pictures__both_methods_are_on_one_scale(figures):
    for name in ("solo-scatter", "duet-scatter"):
        for panel in (axes for axes in figures[name].axes if axes.name != "3d"):
            spread = np.concatenate([dots.get_offsets() for dots in panel.collections]).std(axis=0)
            np.testing.assert_allclose(spread, 1, atol=1e-6)


@pytest.mark.slow
def test_experiment__runs_through_the_frame(monkeypatch, tmp_path):
    monkeypatch.delenv(paper_music.RECORDINGS, raising=False)
    monkeypatch.setattr(paper_music, "has_sampler", lambda: False)
    claims = reproduce({"music": MUSIC}, tmp_path / "out", quick=True)["music"]
    assert len(claims) == 28
    assert {path.name for path in (tmp_path / "out").glob("*.png")} == {
        f"music-{kind}-{picture}.png" for kind in ("solo", "duet") for picture in ("scatter", "time")
    }
