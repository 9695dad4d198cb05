"""FIF and EEGLAB through MNE: values, cuts, events, and no file from elsewhere."""

import os
import pickle
import warnings
from datetime import UTC, datetime

import numpy as np
import pytest
import scipy.io
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.recording import clock
from strategies import examples

mne = pytest.importorskip("mne")
VALUES = np.random.default_rng(0).normal(size=(300, 3)).astype("f4")


def fif(folder, kinds=("eeg", "mag", "eeg"), notes=(), begun=None):
    info = mne.create_info(["Fz", "MEG1", "Cz"], 100.0, list(kinds))
    raw = mne.io.RawArray(VALUES.T.astype(float), info, first_samp=50, verbose="ERROR")
    raw.set_meas_date(begun)
    raw.set_annotations(mne.Annotations(*zip(*notes, strict=True)) if notes else None)
    raw.save(folder / "a_raw.fif", fmt="single", verbose="ERROR")
    return folder / "a_raw.fif"


def eeglab(folder, beside=False, events=(), name="a.set"):
    """A file as EEGLAB saves it; positions of events count from 1."""
    places = np.array([[n] for n in ("Fz", "Cz", "Pz")], dtype=[("labels", "O")]).reshape(1, 3)
    made = np.zeros((1, len(events)), [("type", "O"), ("latency", "O"), ("duration", "O")])
    for number, event in enumerate(events):
        made[0, number] = event
    nothing = np.zeros((0, 0))
    eeg = {"nbchan": 3, "srate": 50.0, "pnts": 300, "trials": 1, "xmin": 0.0, "xmax": 299 / 50, "chanlocs": places}
    eeg |= {"event": made if events else nothing, "data": "a.fdt" if beside else VALUES.T}
    eeg |= dict.fromkeys(("epoch", "icawinv", "icaweights", "icasphere", "icachansind"), nothing)
    scipy.io.savemat(folder / name, {"EEG": eeg}, appendmat=False)
    if beside:
        (folder / "a.fdt").write_bytes(VALUES.astype("<f4").tobytes())
    return folder / name


def test_fif__has_si_units_and_its_start(tmp_path):
    path = fif(tmp_path, begun=datetime(2020, 3, 9, 10, 14, 33, tzinfo=UTC))
    recording = mo.open_recording(path)
    np.testing.assert_allclose(recording, VALUES, rtol=1e-6)
    assert recording.channel_units.values.tolist() == ["V", "T", "V"]
    assert recording.time.attrs["start_time"] == "2020-03-09T10:14:33.500000Z"
    np.testing.assert_allclose(recording.time, np.arange(300) / 100)
    lazy = xr.open_dataset(path, engine="manifold-mne")["recording"]
    for key in (np.s_[3:9], np.s_[2:290:70, ::-1], np.s_[5], np.s_[[1, 4, 2], 1]):
        np.testing.assert_allclose(lazy[key], VALUES[key], rtol=1e-6)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(lazy)), VALUES, rtol=1e-6)


@pytest.mark.parametrize("begun", [None, datetime(2020, 3, 9, tzinfo=UTC)])
def test_fif__cuts_are_segments_and_notes_are_labels(tmp_path, begun):
    path = fif(tmp_path, notes=[(1.0, 0.0, "beep"), (1.5, 0.5, "sleep"), (2.0, 0.0, "boundary")], begun=begun)
    assert clock(mo.open_recording(path)).segments == [(0, 200), (200, 300)]
    labels = mo.open_labels(path)
    np.testing.assert_allclose(labels.time, [1.0, 1.5], atol=1e-6)
    np.testing.assert_allclose(labels.stop, [1.0, 2.0], atol=1e-6)
    assert labels.label.values.tolist() == ["beep", "sleep"]


def test_triggers__are_left_out_and_told(tmp_path):
    path = fif(tmp_path, kinds=("eeg", "stim", "eeg"))
    with pytest.warns(UserWarning, match="MEG1 holds triggers and is left out"):
        assert mo.open_recording(path).channel.values.tolist() == ["Fz", "Cz"]


@pytest.mark.parametrize("beside", [False, True])
def test_eeglab__has_values_events_and_boundaries(tmp_path, beside):
    events = [("S1", 51.0, 0.0), ("boundary", 101.0, 0.0), ("S2", 151.0, 25.0)]
    path = eeglab(tmp_path, beside, events)
    recording = mo.open_recording(path)
    np.testing.assert_allclose(recording, VALUES * 1e-6, rtol=1e-6)
    assert recording.channel.values.tolist() == ["Fz", "Cz", "Pz"]
    assert recording.attrs["sampling_rate"] == 50.0
    assert clock(recording).segments == [(0, 100), (100, 300)]
    labels = mo.open_labels(path)
    np.testing.assert_allclose(labels.time, [1, 3])
    np.testing.assert_allclose(labels.stop, [1, 3.5])
    assert labels.label.values.tolist() == ["S1", "S2"]


def test_eeglab__reads_no_file_elsewhere(tmp_path):
    folder = tmp_path / "recording"
    folder.mkdir()
    path = eeglab(folder, True)
    (folder / "a.fdt").rename(tmp_path / "b.fdt")
    (folder / "a.fdt").symlink_to(tmp_path / "b.fdt")
    with pytest.raises(ValueError, match="have its data file in its own folder"):
        mo.open_recording(path)
    os.remove(folder / "a.fdt")
    with pytest.raises(ValueError, match="be a recording that MNE can read"):
        mo.open_recording(path)


def test_changed_files__are_read_anew(tmp_path):
    path = eeglab(tmp_path)
    assert float(mo.open_recording(path)[0, 0]) == pytest.approx(VALUES[0, 0] * 1e-6)
    os.utime(eeglab(tmp_path, events=[("x", 1.0, 0.0)]), ns=(1, 1))
    assert mo.open_labels(path).label.values.tolist() == ["x"]


def test_other_files__are_named(tmp_path):
    for name in ("a.set", "a.fif", "a.cnt"):
        (tmp_path / name).write_text("<html>")
        with pytest.raises(ValueError, match=r"be an EEGLAB, FIF or CNT file; got an HTML page|that MNE can read"):
            mo.open_recording(tmp_path / name)


@examples(60)
@given(data=st.data())
def test_mutated_files__give_values_or_one_sentence(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mne")
    # Not FIF: a damaged one can keep MNE busy without end, or take the process with it.
    path = eeglab(folder, data.draw(st.booleans()))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(12, 3000)) % len(content)
        new = data.draw(st.binary(min_size=1, max_size=4))
        content[at : at + len(new)] = new
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content), 1500]))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            recording = mo.open_recording(path)
            if recording.size < 10**6:
                assert recording.values.shape == recording.shape
            return
        except ValueError as error:
            said = str(error)
    assert str(path) in said
