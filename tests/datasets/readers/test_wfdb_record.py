"""WFDB: values, units, pauses and missing values as they were written, through files that lie beside the header."""

import os
import pickle
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.datasets.readers.wfdb_record import WfdbSource
from manifold_observer.pipeline.frames.recording import clock
from strategies import examples

wfdb = pytest.importorskip("wfdb")
RNG = np.random.default_rng(0)


def wrsamp(name, **options):
    """A record by wfdb, which calls pandas as it once was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wfdb.wrsamp(name, **options)


def written(folder, name="a", values=None, fmt="16", units=("mV", "mmHg"), labels=("II", "ABP"), **options):
    """A record of two signals, by wfdb."""
    values = np.random.default_rng(1).integers(-90, 90, (40, 2)) if values is None else values
    n = values.shape[1]
    wrsamp(
        name,
        fs=options.pop("fs", 100),
        units=list(units[:n]),
        sig_name=list(labels[:n]),
        d_signal=values.astype(np.int64),
        fmt=[fmt] * n,
        adc_gain=[200.0, 5.0][:n],
        baseline=[10, -3][:n],
        write_dir=str(folder),
        **options,
    )
    return values


def physical(values):
    """What digital values stand for."""
    return (values - np.array([10, -3])[: values.shape[1]]) / np.array([200.0, 5.0])[: values.shape[1]]


def opened(path, **options):
    return xr.open_dataset(path, engine="manifold-wfdb", **options)["recording"]


@pytest.mark.parametrize("fmt", ["16", "24", "32", "80", "212", "508", "516", "524"])
def test_formats__have_the_values_that_were_written(tmp_path, fmt):
    values = written(tmp_path, fmt=fmt)
    recording = mo.open_recording(tmp_path / "a.hea")
    np.testing.assert_array_equal(recording, physical(values))
    np.testing.assert_array_equal(opened(tmp_path / "a.hea")[7:31:3, ::-1], physical(values)[7:31:3, ::-1])
    assert recording.channel.values.tolist() == ["II", "ABP"]
    assert recording.channel_units.values.tolist() == ["mV", "mmHg"]
    assert recording.attrs["sampling_rate"] == 100.0


def test_differences__add_up_wherever_reading_begins(tmp_path):
    steps = RNG.integers(-9, 9, 50)
    (tmp_path / "a.dat").write_bytes(steps.astype("i1").tobytes())
    (tmp_path / "a.hea").write_text("a 1 100 50\na.dat 8 200 12 0 7 0 0 II\n")
    expected = (7 + steps.cumsum() - 0) / 200
    lazy = opened(tmp_path / "a.hea")[:, 0]
    np.testing.assert_allclose(lazy, expected)
    np.testing.assert_allclose(lazy[30:33], expected[30:33])


def test_sentinels__are_missing_values(tmp_path):
    values = RNG.integers(-90, 90, (40, 2))
    values[5:9, 1] = -32768
    written(tmp_path, values=values)
    expected = physical(values)
    expected[5:9, 1] = np.nan
    np.testing.assert_array_equal(mo.open_recording(tmp_path / "a.hea"), expected)


def segments(folder, lengths, layout=None):
    """Records of some lengths joined by a header; None is a pause of 50 samples."""
    parts, lines, rng = [], [], np.random.default_rng(2)
    for number, length in enumerate(lengths):
        if length is None:
            parts.append(np.full((50, 2), np.nan))
            lines.append("~ 50")
            continue
        values = rng.integers(-90, 90, (length, 2))
        only_second = layout is not None and number % 2 == 1
        shown = values[:, 1:] if only_second else values
        labels = ("ABP",) if only_second else ("II", "ABP")
        gains = [5.0] if only_second else [200.0, 5.0]
        wrsamp(
            f"s{number}",
            fs=100,
            units=["mmHg"] if only_second else ["mV", "mmHg"],
            sig_name=list(labels),
            d_signal=shown,
            fmt=["16"] * len(labels),
            adc_gain=gains,
            baseline=[0] * len(labels),
            write_dir=str(folder),
        )
        whole = values / [200.0, 5.0]
        whole[:, 0] = np.nan if only_second else whole[:, 0]
        parts.append(whole)
        lines.append(f"s{number} {length}")
    if layout is not None:
        (folder / "layout.hea").write_text("layout 2 100 0\n~ 0 200/mV 16 0 0 0 0 II\n~ 0 5/mmHg 16 0 0 0 0 ABP\n")
        lines.insert(0, "layout 0")
    total = sum(length or 50 for length in lengths)
    (folder / "a.hea").write_text(f"a/{len(lines)} 2 100 {total} 10:20:30 01/02/2021\n" + "\n".join(lines) + "\n")
    return np.concatenate(parts)


@pytest.mark.parametrize("layout", [None, "variable"])
def test_pauses__stay_in_the_clock_and_missing_signals_are_nan(tmp_path, layout):
    whole = segments(tmp_path, [None, 30, 20, None, 25, None], layout)
    recording = mo.open_recording(tmp_path / "a.hea")
    there = np.r_[50:100, 150:175]
    np.testing.assert_allclose(recording.time, there / 100)
    np.testing.assert_array_equal(recording, whole[there])
    assert clock(recording).segments == [(0, 50), (50, 75)]
    assert recording.time.attrs["start_time"] == "2021-02-01T10:20:30"
    lazy = opened(tmp_path / "a.hea", channels=["ABP"])
    np.testing.assert_array_equal(lazy[20:60, 0], whole[there][20:60, 1])


def several_rates(folder):
    """Two signals, one with 4 samples in each of 30 frames."""
    fast, slow = RNG.integers(-9, 9, (30, 4)), RNG.integers(-9, 9, (30, 1))
    (folder / "a.dat").write_bytes(np.hstack([fast, slow]).astype("<i2").tobytes())
    (folder / "a.hea").write_text("a 2 50 30\na.dat 16x4 10 16 0 0 0 0 ECG\na.dat 16 10 16 0 0 0 0 RESP\n")
    return fast.ravel() / 10, slow.ravel() / 10


def test_several_rates__are_refused_chosen_or_held(tmp_path):
    fast, slow = several_rates(tmp_path)
    path = tmp_path / "a.hea"
    with pytest.raises(ValueError, match=r"have one sampling rate; got 200 Hz: ECG; 50 Hz: RESP"):
        mo.open_recording(path)
    ecg = opened(path, rates=200)
    assert ecg.attrs["sampling_rate"] == 200
    np.testing.assert_allclose(ecg[:, 0], fast)
    np.testing.assert_allclose(ecg[5:27, 0], fast[5:27])
    np.testing.assert_allclose(opened(path, channels=["RESP"])[:, 0], slow)
    np.testing.assert_allclose(opened(path, rates="hold")[3:99], np.stack([fast, np.repeat(slow, 4)], 1)[3:99])


def test_signals_file__opens_by_its_header(tmp_path):
    values = written(tmp_path)
    np.testing.assert_array_equal(mo.open_recording(tmp_path / "a.dat"), physical(values))


@pytest.mark.parametrize(
    "name", ["../secret.dat", "/etc/passwd", "s3://bucket/a.dat", "link.dat", "memory::a", "no.dat"]
)
def test_files_elsewhere__are_never_read(tmp_path, name):
    folder = tmp_path / "record"
    folder.mkdir()
    (tmp_path / "secret.dat").write_bytes(bytes(400))
    (folder / "link.dat").symlink_to(tmp_path / "secret.dat")
    (folder / "a.hea").write_text(f"a 1 100 100\n{name} 16 200 12 0 0 0 0 II\n")
    with pytest.raises(
        ValueError, match=r"name files in its own folder|have the files beside it|header of a WFDB record"
    ):
        mo.open_recording(folder / "a.hea")


def test_cut_signals__are_told(tmp_path):
    values = written(tmp_path)
    os.truncate(tmp_path / "a.dat", 101)
    with pytest.warns(UserWarning, match="it claims 40 samples, and its files hold 25"):
        recording = mo.open_recording(tmp_path / "a.hea")
    np.testing.assert_array_equal(recording, physical(values)[:25])


def test_no_length__is_that_of_the_file(tmp_path):
    values = written(tmp_path)
    text = (tmp_path / "a.hea").read_text()
    (tmp_path / "a.hea").write_text(text.replace("a 2 100 40", "a 2 100"))
    np.testing.assert_array_equal(mo.open_recording(tmp_path / "a.hea"), physical(values))


def test_twenty_gigabytes__are_read_in_part(tmp_path, monkeypatch):
    n = 5_000_000_000
    with (tmp_path / "a.dat").open("wb") as file:
        file.seek(4 * 10**9)
        file.write(np.arange(200, dtype="<i2").tobytes())
        file.truncate(4 * n)
    (tmp_path / "a.hea").write_text(f"a 2 1000 {n}\na.dat 16 10 16 0 0 0 0 x\na.dat 16 10 16 0 0 0 0 y\n")
    asked = []
    plain = WfdbSource.read
    monkeypatch.setattr(WfdbSource, "read", lambda self, a, b: asked.append(b - a) or plain(self, a, b))
    recording = mo.open_recording(tmp_path / "a.hea")
    assert recording.shape == (n, 2)
    lazy = xr.open_dataset(tmp_path / "a.hea", engine="manifold-wfdb", create_default_indexes=False)["recording"]
    np.testing.assert_allclose(lazy[10**9 : 10**9 + 100], np.arange(200).reshape(100, 2) / 10)
    assert sum(asked) == 100


def test_source__can_be_sent_to_another_process(tmp_path):
    values = written(tmp_path)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(opened(tmp_path / "a.hea"))), physical(values))


@examples(90)
@given(data=st.data())
def test_mutated_headers__give_values_or_one_sentence(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wfdb")
    if data.draw(st.booleans()):
        segments(folder, [None, 30, 20], data.draw(st.sampled_from([None, "variable"])))
    else:
        written(folder)
    path = folder / data.draw(st.sampled_from(sorted(file.name for file in folder.glob("*.hea"))))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        new = data.draw(
            st.binary(max_size=4) | st.sampled_from([b"-1", b"0", b"999999999999", b"nan", b"\n", b" ~ ", b"/3"])
        )
        content[at : at + data.draw(st.integers(0, 4))] = new
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            recording = mo.open_recording(folder / "a.hea")
            if recording.size < 10**6:
                assert recording.values.shape == recording.shape
            clock(recording)
            return
        except ValueError as error:
            said = str(error)
    assert str(folder) in said or "recording: time" in said
