"""BrainVision: values in their units, pauses in the clock, markers as labels, and no file from elsewhere."""

import os
import pickle
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.recording import clock
from strategies import examples

VALUES = np.random.default_rng(0).integers(-900, 900, (40, 3))
GAIN = np.array([0.5, 1.0, 0.1])
FIRST = "Mk1=New Segment,,1,1,0,20131113161403794232"


def written(folder, form="INT_16", orientation="MULTIPLEXED", data="a.eeg", order="NO", markers=(FIRST,), extra=()):
    """A recording of three channels at 200 Hz."""
    dtype = {"INT_16": "i2", "UINT_16": "u2", "INT_32": "i4", "IEEE_FLOAT_32": "f4"}[form]
    stored = (np.abs(VALUES) if form == "UINT_16" else VALUES).astype((">" if order == "YES" else "<") + dtype)
    (folder / "a.eeg").write_bytes((stored if orientation == "MULTIPLEXED" else stored.T).tobytes())
    lines = [
        "Brain Vision Data Exchange Header File Version 1.0", "; made", "", "[Common Infos]", "Codepage=UTF-8",
        f"DataFile={data}", "MarkerFile=a.vmrk", "DataFormat=BINARY", f"DataOrientation={orientation}",
        "NumberOfChannels=3", "SamplingInterval=5000", *extra, "[Binary Infos]", f"BinaryFormat={form}",
        f"UseBigEndianOrder={order}", "[Channel Infos]", "Ch1=Fz,,0.5,µV", "Ch2=A\\1B,,,", "Ch3=Fz,,0.1,mV",
        "[Comment]", "Ch9=nothing",
    ]  # fmt: skip
    (folder / "a.vhdr").write_text("\n".join(lines) + "\n", encoding="utf-8")
    head = ["Brain Vision Data Exchange Marker File, Version 1.0", "[Common Infos]", "DataFile=a.eeg", "[Marker Infos]"]
    (folder / "a.vmrk").write_text("\n".join([*head, *markers]) + "\n", encoding="utf-8")
    return folder / "a.vhdr", (np.abs(VALUES) if form == "UINT_16" else VALUES) * GAIN


@pytest.mark.parametrize("form", ["INT_16", "UINT_16", "INT_32", "IEEE_FLOAT_32"])
@pytest.mark.parametrize("orientation", ["MULTIPLEXED", "VECTORIZED"])
@pytest.mark.parametrize("order", ["NO", "YES"])
def test_open__has_values_units_labels_and_clock(tmp_path, form, orientation, order):
    path, expected = written(tmp_path, form, orientation, order=order)
    recording = mo.open_recording(path)
    np.testing.assert_allclose(recording, expected)
    assert recording.channel.values.tolist() == ["Fz", "A,B", "Fz_2"]
    assert recording.channel_units.values.tolist() == ["µV", "µV", "mV"]
    assert recording.time.attrs["start_time"] == "2013-11-13T16:14:03.794232"
    np.testing.assert_allclose(recording.time, np.arange(40) / 200)
    lazy = xr.open_dataset(path, engine="manifold-brainvision")["recording"]
    for key in (np.s_[3:9], np.s_[2:31:7, ::-1], np.s_[5], np.s_[[1, 4, 2], 1]):
        np.testing.assert_allclose(lazy[key], expected[key])
        np.testing.assert_allclose(pickle.loads(pickle.dumps(lazy))[key], expected[key])


def test_open__agrees_with_mne(tmp_path):
    mne = pytest.importorskip("mne")
    path, _ = written(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("Ch3=Fz", "Ch3=Oz"), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        volts = mne.io.read_raw_brainvision(path, verbose="ERROR").get_data()
    np.testing.assert_allclose(mo.open_recording(path) * [1e-6, 1e-6, 1e-3], volts.T)


def test_pauses__stay_in_the_clock(tmp_path):
    later = "Mk2=New Segment,,21,1,0,20131113161413794232"
    path, expected = written(tmp_path, markers=[FIRST, later, "Mk3=Stimulus,S  1,23,1,0"])
    recording = mo.open_recording(path)
    np.testing.assert_allclose(recording, expected)
    assert clock(recording).segments == [(0, 20), (20, 40)]
    np.testing.assert_allclose(recording.time[[19, 20, 22]], [0.095, 10, 10.01])
    assert mo.open_labels(path).time.values == pytest.approx([10.01])


def test_pauses_of_unknown_length__begin_a_segment(tmp_path):
    path, _ = written(tmp_path, markers=["Mk1=New Segment,,1,1,0", "Mk2=New Segment,,21,1,0"])
    recording = mo.open_recording(path)
    assert clock(recording).segments == [(0, 20), (20, 40)]
    assert "start_time" not in recording.time.attrs


def test_segments_that_go_backwards__are_refused(tmp_path):
    path, _ = written(tmp_path, markers=[FIRST, "Mk2=New Segment,,21,1,0,20131113161403000000"])
    with pytest.raises(ValueError, match="have segments in the order of time"):
        mo.open_recording(path)


def test_markers__are_labels(tmp_path):
    markers = [FIRST, "Mk2=Stimulus,S  1,11,1,0", "Mk3=Comment,eyes\\1 closed,21,10,0", "Mk4=Optic,,31,1,0"]
    path, _ = written(tmp_path, markers=markers)
    for file in (path, tmp_path / "a.vmrk"):
        labels = mo.open_labels(file)
        np.testing.assert_allclose(labels.time, [0.05, 0.1, 0.15])
        np.testing.assert_allclose(labels.stop, [0.05, 0.15, 0.15])
        assert labels.label.values.tolist() == ["S  1", "eyes, closed", "Optic"]


@pytest.mark.parametrize("name", ["../a.eeg", "/etc/passwd", "C:\\a.eeg", "link.eeg", ""])
def test_files_elsewhere__are_never_read(tmp_path, name):
    folder = tmp_path / "recording"
    folder.mkdir()
    (tmp_path / "a.eeg").write_bytes(bytes(600))
    (folder / "link.eeg").symlink_to(tmp_path / "a.eeg")
    path, _ = written(folder, data=name)
    with pytest.raises(ValueError, match="name its DataFile in its own folder"):
        mo.open_recording(path)


def test_faults__are_named(tmp_path):
    path, expected = written(tmp_path, data="b.eeg")
    with pytest.raises(ValueError, match=r"have its DataFile beside it; got no b\.eeg"):
        mo.open_recording(path)
    path, expected = written(tmp_path)
    os.truncate(tmp_path / "a.eeg", 103)
    with pytest.warns(UserWarning, match="it ends within a sample; 1 bytes are left out"):
        np.testing.assert_allclose(mo.open_recording(path), expected[:17])
    os.truncate(tmp_path / "a.eeg", 0)
    with pytest.raises(ValueError, match="hold samples of 6 bytes; got 0 bytes"):
        mo.open_recording(path)
    (tmp_path / "x.vhdr").write_text("<html>")
    with pytest.raises(ValueError, match="got an HTML page. Name the .vhdr"):  # noqa: RUF043
        mo.open_recording(tmp_path / "x.vhdr")


@examples(120)
@given(data=st.data())
def test_mutated_headers__give_values_or_one_sentence(data, tmp_path_factory):
    path, _ = written(tmp_path_factory.mktemp("bv"), markers=[FIRST, "Mk2=New Segment,,21,1,0,20131113161413794232"])
    target = data.draw(st.sampled_from([path, path.with_suffix(".vmrk")]))
    content = bytearray(target.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(30, len(content)))
        new = data.draw(st.binary(max_size=4) | st.sampled_from([b"-1", b"0", b"999999999", b"nan", b"\n", b","]))
        content[at : at + data.draw(st.integers(0, 4))] = new
    target.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            recording = mo.open_recording(path)
            assert recording.values.shape == recording.shape
            clock(recording)
            return
        except ValueError as error:
            said = str(error)
    assert str(path.parent) in said or "recording: time" in said
