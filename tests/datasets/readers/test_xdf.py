"""XDF: streams with their labels and clocks, markers in the same time, and faults told."""

import struct
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.recording import clock
from strategies import examples

pytest.importorskip("pyxdf")
VALUES = np.random.default_rng(0).normal(size=(200, 2)).astype("<f4")
TIMES = 1000 + np.arange(200) / 100


def chunk(tag, content):
    return b"\x04" + struct.pack("<IH", len(content) + 2, tag) + content


def header(number, name, kind, form, rate, labels=(), units=""):
    channels = "".join(f"<channel><label>{label}</label><unit>{units}</unit></channel>" for label in labels)
    count = max(1, len(labels))
    text = (
        f"<info><name>{name}</name><type>{kind}</type><channel_count>{count}</channel_count>"
        f"<nominal_srate>{rate}</nominal_srate><channel_format>{form}</channel_format>"
        f"<desc><channels>{channels}</channels></desc></info>"
    )
    return chunk(2, struct.pack("<I", number) + text.encode())


def samples(number, times, rows):
    """Samples with their times; rows are bytes."""
    body = b"".join(b"\x08" + struct.pack("<d", time) + row for time, row in zip(times, rows, strict=True))
    return chunk(3, struct.pack("<I", number) + b"\x04" + struct.pack("<I", len(rows)) + body)


def text(value):
    return b"\x01" + bytes([len(value)]) + value.encode()


def eeg(number=1, name="cap", times=TIMES, values=VALUES):
    return header(number, name, "EEG", "float32", 100, ("Fz", "Cz"), "microvolts") + samples(
        number, times, [row.tobytes() for row in values]
    )


def events(number=2):
    return header(number, "keys", "Markers", "string", 0) + samples(
        number, [1000.5, 1001.25], [text("go"), text("stop")]
    )


def written(folder, *parts, name="a.xdf"):
    first = chunk(1, b'<?xml version="1.0"?><info><version>1.0</version></info>')
    (folder / name).write_bytes(b"XDF:" + first + b"".join(parts))
    return folder / name


@pytest.mark.parametrize("name", ["a.xdf", "a.dat", "a"])
def test_the_only_stream_of_numbers__is_the_recording(tmp_path, name):
    recording = mo.open_recording(written(tmp_path, eeg(), events(), name=name))
    np.testing.assert_array_equal(recording, VALUES)
    np.testing.assert_allclose(recording.time, TIMES, atol=1e-6)
    assert recording.channel.values.tolist() == ["Fz", "Cz"]
    assert recording.attrs["units"] == "microvolts"
    assert clock(recording).sampling_rate == pytest.approx(100)


def test_markers__share_the_time_of_the_recording(tmp_path):
    path = written(tmp_path, eeg(), events())
    labels = mo.open_labels(path)
    np.testing.assert_allclose(labels.time, [1000.5, 1001.25])
    assert labels.label.values.tolist() == ["go", "stop"]
    frames = mo.label_frames(mo.log_rms(mo.open_recording(path), frame=25), labels)
    assert frames.label.values.tolist() == ["", "", "go", "", "", "stop", "", ""]


def test_several_streams__are_listed_and_chosen(tmp_path):
    path = written(tmp_path, eeg(), eeg(5, "arm", values=VALUES + 1), eeg(6, "arm", values=VALUES + 2))
    with pytest.raises(
        ValueError, match=r"hold one stream; got cap \(EEG, 2 channels at 100.* Hz\), arm .*variable='1'"
    ):
        mo.open_recording(path)
    np.testing.assert_array_equal(mo.open_recording(path, variable="cap"), VALUES)
    np.testing.assert_array_equal(mo.open_recording(path, variable="6"), VALUES + 2)


def test_pauses__stay_in_the_clock(tmp_path):
    times = TIMES + 60 * (np.arange(200) >= 120)
    recording = mo.open_recording(written(tmp_path, eeg(times=times)))
    assert clock(recording).segments == [(0, 120), (120, 200)]


def test_cut_files__are_told(tmp_path):
    path = written(tmp_path, eeg(), b"\x04" + struct.pack("<IH", 5000, 3) + b"half of a chunk")
    with pytest.warns(UserWarning, match=r"it ends 4983 bytes before its last chunk does: samples are missing"):
        np.testing.assert_array_equal(mo.open_recording(path), VALUES)


def test_faults__are_named(tmp_path):
    with pytest.raises(ValueError, match=r"hold a stream of numbers; got markers only \(keys\)"):
        mo.open_recording(written(tmp_path, events()))
    with pytest.raises(ValueError, match=r"hold samples in stream 'cap'; got none"):
        mo.open_recording(written(tmp_path, header(1, "cap", "EEG", "float32", 100, ("a",))))
    (tmp_path / "b.xdf").write_text("<html>")
    with pytest.raises(ValueError, match="be an XDF recording; got an HTML page"):
        mo.open_recording(tmp_path / "b.xdf")


@examples(90)
@given(data=st.data())
def test_mutated_files__give_values_or_one_sentence(data, tmp_path_factory):
    path = written(tmp_path_factory.mktemp("xdf"), eeg(), events())
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(4, len(content) - 9))
        new = data.draw(st.binary(min_size=1, max_size=4))
        content[at : at + len(new)] = new
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content) - 70, 500]))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            recording = mo.open_recording(path)
            assert recording.values.shape == recording.shape
            return
        except ValueError as error:
            said = str(error)
    assert str(path) in said
