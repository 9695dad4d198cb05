"""Every real file of a field's own format: opened with its values, or refused with the wanted sentence."""

import warnings

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.recording import clock

# File, options, (samples, channels), rate in Hz, first label.
OPENED = [
    ("awkward/edf/edfPlusC.edf", {}, (4000, 11), 200, "squarewave"),
    ("awkward/edf/edfPlusD.edf", {}, (2200, 11), 200, "squarewave"),
    ("awkward/edf/bdfPlusC.bdf", {}, (4000, 11), 200, "squarewave"),
    ("awkward/edf/duplicate_channel_labels.edf", {}, (2500, 3), 250, "EEG F1-Ref"),
    ("awkward/edf/edfAnnonC.edf", {"rates": 20_000}, (24_000, 1), 20_000, "Channel 2"),
    ("awkward/edf/test_bdf_stim_channel.bdf", {}, (5000, 3), 500, "C3"),
    ("awkward/edf/test_edf_stim_channel.edf", {}, (1228, 25), 128, "EEG Fp1"),
    (
        "awkward/edf/test_generator_datarec_generator_2.bdf",
        {"channels": ["sine 2.5Hz"]},
        (15_000, 1),
        500,
        "sine 2.5Hz",
    ),
    ("awkward/edf/test_subsecond.edf", {}, (89_344, 1), 128, "Fp1"),
    ("awkward/edf/test_utf8.edf", {}, (89_344, 1), 128, "Fp1"),
    ("awkward/derived/edf_cut_in_record.edf", {"rates": 100}, (15_000, 3), 100, "EEG Fpz-Cz"),
    (
        "awkward/derived/edf_records_minus_one.edf",
        {"rates": "hold", "labels": ["Event marker"]},
        (15_000, 6),
        100,
        "EEG Fpz-Cz",
    ),
    ("eegbci_s001/S001R01_repaired.edf", {}, (9600, 64), 160, "Fc5."),
    ("eegbci_s001/S001R02_repaired.edf", {}, (9600, 64), 160, "Fc5."),
    ("eegbci_s001/S001R03_repaired.edf", {}, (20_000, 64), 160, "Fc5."),
    ("psg_89_channels/subject1.edf", {"rates": 1}, (120, 28), 1, "1 Impédance"),
    ("psg_89_channels/subject1.edf", {"rates": 200, "drop_channels": ["1-F"]}, (24_000, 30), 200, "1"),
    (
        "sleep_edf_sc4001_1hz/short_psg.edf",
        {"rates": 1, "drop_channels": ["Event marker"]},
        (300, 3),
        1,
        "Resp oro-nasal",
    ),
    ("ecg_mitbih_100/100.hea", {}, (650_000, 2), 360, "MLII"),
    ("ecg_mitbih_100/100.dat", {}, (650_000, 2), 360, "MLII"),
    ("ecg_ptb_15ch/s0010_re.hea", {}, (38_400, 15), 1000, "i"),
    ("icu_multisegment_s25047/s25047-2704-05-04-10-44.hea", {}, (517_500, 3), 125, "II"),
    ("icu_multisegment_s25047/s25047-2704-05-04-10-44n.hea", {}, (72, 7), 1 / 60, "HR"),
    ("nelpy_linear_track/spikes.mat", {"bin": 0.25}, (7873, 31), 4, "1-1"),
    ("peyrache_head_direction/dataHD.mat", {"variable": "Qrun", "sampling_rate": 100}, (212_078, 19), 100, "ch1"),
    ("bengalese_finch_gy6or6/gy6or6_baseline_230312_0809.141.cbin", {}, (286_057, 2), 32_000, "ch1"),
    ("awkward/brainvision/test.vhdr", {}, (7900, 32), 1000, "FP1"),
    ("awkward/other/eeglab_single_file.set", {}, (15_360, 15), 256, "Fp1"),
    ("awkward/other/test.xdf", {}, (9520, 8), None, "ch1"),
    ("awkward/other/A8604-211122.nwb", {"bin": 0.5}, (2175, 3), 2, "6"),
]
REFUSED = [
    ("awkward/edf/edfAnnonC.edf", {}, "30000 Hz: Channel 1; 20000 Hz: Channel 2. Choose one with rates=30000"),
    ("awkward/edf/test_uneven_samp.edf", {}, "100 Hz: 3Hz .*; 12.8 Hz"),
    ("psg_89_channels/subject1.edf", {}, "200 Hz: 1, 1-2, 1-F and 28 more; 100 Hz"),
    ("awkward/derived/edf_cut_in_record.edf", {}, "100 Hz: EEG Fpz-Cz, EEG Pz-Oz, EOG horizontal; 1 Hz"),
    ("eegbci_s001/S001R01_crlf_mangled.edf", {}, "Copy it again in binary mode"),
    ("sleep_edf_sc4001_1hz/SC4001EC-Hypnogram.edf", {}, "got annotations only. Open it beside its recording"),
    ("nelpy_linear_track/spikes.mat", {}, "got spike times of 31 units. Give their length in seconds with bin=0.1"),
    ("peyrache_head_direction/dataHD.mat", {}, "Choose one with variable='Qrem'"),
    ("awkward/other/A8604-211122.nwb", {}, "got spike times of 3 units. Give their length"),
    ("awkward/other/test.cnt", {}, "be a recording that MNE can read"),
    ("flute_harmonica_render/ode_flute_harmonica.mid", {}, "is MIDI: notes, no samples. Open it as labels"),
]
LABELS = [
    ("eegbci_s001/S001R03_repaired.edf", {}, 30, 0.0, "T0"),
    ("eegbci_s001/S001R03.edf.event", {}, 30, 0.0, "T0"),
    ("sleep_edf_sc4001_1hz/SC4001EC-Hypnogram.edf", {}, 154, 0.0, "Sleep stage W"),
    ("ecg_mitbih_100/100.atr", {}, 2274, 18 / 360, "(N"),
    ("flute_harmonica_render/ode_flute_harmonica.mid", {}, 39, 0.25, "E5"),
    ("flute_harmonica_render/ode_flute_harmonica_notes.csv", {"label_column": "note"}, 39, 0.25, "E5"),
    ("birdsongrec_bird0/birdsongrec_Bird0_Annotation.csv", {"recording": "1.wav"}, 46, 1.063, "0"),
    ("bengalese_finch_gy6or6/gy6or6_baseline_230312_0809.141.cbin.not.mat", {}, 57, 0.40859375, "i"),
    ("nab/combined_windows.json", {"recording": "machine_temperature_system_failure.csv"}, 4, 0.0, "window"),
    ("awkward/brainvision/test.vhdr", {}, 13, 0.486, "S253"),
    ("awkward/other/eeglab_single_file.set", {}, 55, 0.0, "65517.66796875"),
]


def quietly(opening, path, **options):
    """What a file opens as, and what was told of it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = opening(path, **options)
    return found, [str(each.message) for each in told]


@pytest.mark.parametrize(("name", "options", "shape", "rate", "label"), OPENED)
def test_file__opens(recordings, name, options, shape, rate, label):
    recording, _ = quietly(mo.open_recording, recordings / name, **options)
    assert recording.shape == shape
    assert rate is None or clock(recording).sampling_rate == pytest.approx(rate)
    assert str(recording.channel.values[0]) == label
    assert recording[:100].values.shape == (min(100, shape[0]), shape[1])


@pytest.mark.parametrize(("name", "options", "sentence"), REFUSED)
def test_file__is_refused_in_a_sentence(recordings, name, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        quietly(mo.open_recording, recordings / name, **options)


@pytest.mark.parametrize(("name", "options", "count", "first", "text"), LABELS)
def test_labels__open(recordings, name, options, count, first, text):
    labels = mo.open_labels(recordings / name, **options)
    assert (labels.sizes["time"], str(labels.label.values[0])) == (count, text)
    assert float(labels.time[0]) == pytest.approx(first, abs=1e-6)


def test_edf_d__is_edf_c_with_gaps(awkward):
    whole, gaps = (mo.open_recording(awkward / "edf" / f"edfPlus{kind}.edf") for kind in "CD")
    assert len(clock(gaps).segments) == 6
    places = np.round(gaps.time.values * 200).astype(int)
    np.testing.assert_array_equal(gaps.values, whole.values[places])


def test_cut_and_unfinished_files__are_told(recordings):
    for name, said in (
        ("edf_cut_in_record", "claims 10 records, and 5 whole"),
        ("edf_records_minus_one", "found 5 whole"),
    ):
        _, told = quietly(mo.open_recording, recordings / f"awkward/derived/{name}.edf", rates=100)
        assert any(said in text for text in told)
    _, told = quietly(mo.open_recording, recordings / "eegbci_s001/S001R01_repaired.edf")
    assert any("claims 61 records, and 60 whole ones are there" in text for text in told)


def test_icu_record__starts_after_its_pause_and_is_nan_where_nothing_was_measured(recordings):
    recording = mo.open_recording(recordings / "icu_multisegment_s25047/s25047-2704-05-04-10-44.hea")
    assert float(recording.time[0]) == 25_740 / 125
    missing = np.isnan(recording.values).mean(axis=0)
    assert missing[2] == pytest.approx(0.82, abs=0.02)
    assert recording.channel_units.values.tolist() == ["mV", "mV", "mmHg"]


def test_wfdb_and_edfio__agree(recordings):
    wfdb, edfio = pytest.importorskip("wfdb"), pytest.importorskip("edfio")
    record = wfdb.rdrecord(str(recordings / "ecg_ptb_15ch/s0010_re"))
    np.testing.assert_array_equal(mo.open_recording(recordings / "ecg_ptb_15ch/s0010_re.hea"), record.p_signal)
    path = recordings / "eegbci_s001/S001R03_repaired.edf"
    signals = np.stack([signal.data for signal in edfio.read_edf(path).signals], axis=1)
    np.testing.assert_allclose(mo.open_recording(path), signals, atol=1e-9)
