"""Real tables open with no code of one's own: what is asked about, and what the answers give."""

import gzip

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.recording import clock

AWKWARD = "awkward/derived"
ROWS = [
    ("eeg_eye_state/eeg-eye-state.csv", {}, r"'class' looks like a label.*labels=\['class'\]"),
    ("skab/valve1_0.csv", {}, r"labels=\['anomaly', 'changepoint'\]"),
    ("skab/other_11.csv", {"labels": "anomaly"}, r"'changepoint' looks like a label"),
    ("occupancy_uci/datatraining.txt", {}, r"labels=\['Occupancy'\]"),
    ("nab/machine_temperature_system_failure.csv", {}, "goes backwards from 2014-01-07T02:55:00.*order='sort'"),
    ("nab/machine_temperature_system_failure.csv", {"order": "sort"}, "12 repeats in all.*duplicates='first'"),
    (f"{AWKWARD}/csv_gap_dups_nan_sentinel_const.csv", {}, "which repeats.*duplicates='first'"),
    (f"{AWKWARD}/csv_gap_dups_nan_sentinel_const.csv", {"duplicates": "first"}, "'Const' has only the value 1"),
    (f"{AWKWARD}/csv_local_time_dst_fall_back.csv", {}, "time_format='%d.%m.%Y %H:%M'"),
    (f"{AWKWARD}/csv_local_time_dst_fall_back.csv", {"time_format": "%d.%m.%Y %H:%M"}, "goes backwards.*timezone="),
    (f"{AWKWARD}/csv_shuffled_rows.csv", {}, "goes backwards.*order='sort'"),
    ("awkward/other/testmusemonitor.csv", {}, "must have 39 cells in every row.*38 cells at line 2"),
]
SKAB = {"labels": ["anomaly", "changepoint"]}
BERLIN = {"time_format": "%d.%m.%Y %H:%M", "timezone": "Europe/Berlin"}
OPENED = [
    ("eeg_eye_state/eeg-eye-state.csv", {"labels": "class", "sampling_rate": 128}, 14, 128, 1),
    ("skab/valve1_0.csv", SKAB, 8, 0.95477, 1),
    ("skab/valve2_0.csv", SKAB, 8, 0.937, 1),
    ("skab/anomaly-free.csv", {}, 8, 0.943728, 1),
    ("occupancy_uci/datatraining.txt", {"drop_channels": ["ch1", "Light"], "labels": "Occupancy"}, 4, 1 / 60, 1),
    ("nab/machine_temperature_system_failure.csv", {"order": "sort", "duplicates": "first"}, 1, 1 / 300, 1),
    ("nab/ambient_temperature_system_failure.csv", {}, 1, 1 / 3600, 11),
    ("nab/ambient_temperature_system_failure.csv", {"shortest_segment": 21}, 1, 1 / 3600, 10),
    (f"{AWKWARD}/csv_local_time_dst_fall_back.csv", BERLIN, 8, 1 / 60, 1),
    (f"{AWKWARD}/csv_shuffled_rows.csv", {"order": "sort"}, 8, 0.954, 1),
    (
        f"{AWKWARD}/csv_gap_dups_nan_sentinel_const.csv",
        {"duplicates": "first", "drop_channels": "Const", "missing": -200, "gaps": "nan"},
        8,
        0.955168,
        4,
    ),
]


@pytest.mark.parametrize(("name", "options", "sentence"), ROWS)
def test_table__is_asked_about(recordings, name, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        mo.open_recording(recordings / name, **options)


@pytest.mark.parametrize(("name", "options", "n_channels", "rate", "n_segments"), OPENED)
def test_table__opens_as_the_answers_say(recordings, name, options, n_channels, rate, n_segments):
    recording = mo.open_recording(recordings / name, **options)
    ticks = clock(recording)
    assert recording.sizes["channel"] == n_channels
    assert ticks.sampling_rate == pytest.approx(rate, rel=1e-4)
    assert len(ticks.segments) == n_segments
    asked = options.get("labels", [])
    for label in [asked] if isinstance(asked, str) else asked:
        assert recording[label].dims == ("time",)


@pytest.mark.parametrize(("name", "rate"), [("s01_1", 968.523), ("s06_2", 968.1)])
def test_armband__clock_in_ms_that_jitters(recordings, tmp_path, name, rate):
    """Its label is set aside, its unit is asked about, and frames of 100 ms span jitter, but no hole."""
    path = tmp_path / "emg.txt"
    path.write_bytes(gzip.decompress((recordings / f"emg_gestures_uci/{name}.txt.gz").read_bytes()))
    with pytest.raises(ValueError, match=r"labels=\['class'\]"):
        mo.open_recording(path)
    with pytest.raises(ValueError, match="time_unit='ms'"):
        mo.log_rms(mo.open_recording(path, labels="class"), frame="100ms")
    recording = mo.open_recording(path, labels="class", time_unit="ms")
    assert clock(recording).sampling_rate == pytest.approx(rate, rel=1e-4)
    frames = mo.log_rms(recording, frame="100ms", floor=1e-6)
    assert frames.attrs["unused_samples"] < 0.1 * recording.sizes["time"]
    assert set(np.unique(frames["class"])) <= set(np.unique(recording["class"]))


def test_eyes__do_not_leak_into_the_frames(recordings):
    recording = mo.open_recording(recordings / OPENED[0][0], **OPENED[0][1])
    frames = mo.log_rms(recording, frame="0.25s", floor=1e-6)
    assert "class" not in frames["channel"].values
    assert set(np.unique(frames["class"])) == {0, 1}
