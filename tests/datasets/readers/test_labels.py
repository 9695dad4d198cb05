"""Labels beside recordings come out with the starts, stops and texts that were written, in every format."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.io
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from edf_files import Edf
from manifold_observer.datasets.readers.label_table import read_label_table
from strategies import examples

START, STOP, TEXT = [0.5, 30.0, 90.25], [30.0, 90.0, 91.0], ["W", "N1", "REM, late"]


def is_right(labels, start=START, stop=STOP, text=TEXT):
    np.testing.assert_allclose(labels.time, start, atol=1e-9)
    np.testing.assert_allclose(labels.stop, stop, atol=1e-9)
    assert labels.label.values.tolist() == list(text)


def table(path, header, rows, sep=","):
    def cell(value):
        return f'"{value}"' if sep in str(value) else str(value)

    lines = [sep.join(header)] + [sep.join(map(cell, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


ROWS = list(zip(START, STOP, TEXT, strict=True))


@pytest.mark.parametrize("sep", [",", ";", "\t"])
@pytest.mark.parametrize(
    "header",
    [
        ("start", "stop", "label"),
        ("onset_s", "offset_s", "note"),
        ("Begin Time (s)", "End Time (s)", "Species"),
        ("tmin", "tmax", "text"),
    ],
)
def test_tables_of_intervals__by_the_names_of_their_columns(tmp_path, sep, header):
    is_right(mo.open_labels(table(tmp_path / "a.csv", header, ROWS, sep)))


def test_tables_of_durations__and_of_instants(tmp_path):
    rows = [(a, b - a, text) for a, b, text in ROWS]
    is_right(mo.open_labels(table(tmp_path / "a.tsv", ("onset", "duration", "trial_type"), rows, "\t")))
    instants = [(a, text) for a, _, text in ROWS]
    is_right(mo.open_labels(table(tmp_path / "a.csv", ("time", "event"), instants)), stop=START)
    some = [(0.5, "n/a", "W"), (2, 3, "N1")]
    is_right(
        mo.open_labels(table(tmp_path / "b.csv", ("onset", "duration", "label"), some)), [0.5, 2], [0.5, 5], ["W", "N1"]
    )


def test_units_in_the_header__are_converted(tmp_path):
    rows = [(1000 * a, 1000 * b, text) for a, b, text in ROWS]
    is_right(mo.open_labels(table(tmp_path / "a.csv", ("start (ms)", "stop_ms", "label"), rows)))
    rows = [(str(a).replace(".", ","), str(b).replace(".", ","), text) for a, b, text in ROWS]
    is_right(mo.open_labels(table(tmp_path / "b.csv", ("start [s]", "stop [s]", "label"), rows, ";")))


def test_order_and_other_columns__do_not_matter(tmp_path):
    rows = [(k, text, 100 * b, b, 7, a) for k, (a, b, text) in enumerate(ROWS)][::-1]
    header = ("index", "label", "stop_sample", "stop", "confidence", "start")
    is_right(mo.open_labels(table(tmp_path / "a.csv", header, rows)))


def test_dates__count_from_the_first(tmp_path):
    rows = [("2020-03-09 10:00:00.5", "2020-03-09T10:01:00", "a"), ("2020-03-09 09:59:00", "2020-03-09 10:00:00", "b")]
    labels = mo.open_labels(table(tmp_path / "a.csv", ("start", "end", "label"), rows))
    is_right(labels, [0, 60.5], [60, 120], ["b", "a"])
    assert (labels.time.attrs["start_time"], labels.attrs["dated"]) == ("2020-03-09T09:59:00.000000", 1)
    zoned = [("2020-03-09T10:00:00+01:00", "x")]
    assert (
        mo.open_labels(table(tmp_path / "z.csv", ("time", "label"), zoned))
        .time.attrs["start_time"]
        .startswith("2020-03-09T09:00")
    )
    assert mo.open_labels(tmp_path / "z.csv").time.attrs["start_time"].endswith("Z")


def test_several_columns_of_labels__are_asked_about(tmp_path):
    rows = [(0, 1, "E5", "flute"), (1, 2, "F5", "harmonica")]
    path = table(tmp_path / "a.csv", ("onset", "offset", "pitch", "instrument"), rows)
    with pytest.raises(
        ValueError, match=r"have one column of labels; got pitch, instrument\. Choose it with label_column='pitch'"
    ):
        mo.open_labels(path)
    assert mo.open_labels(path, label_column="instrument").label.values.tolist() == ["flute", "harmonica"]
    with pytest.raises(ValueError, match="have the column 'note'; got onset, offset, pitch, instrument"):
        mo.open_labels(path, label_column="note")


def test_labels_of_several_recordings__are_told_apart(tmp_path):
    rows = [("day/a.wav", 0, 1, "x"), ("day/b.wav", 0, 1, "y"), ("day/b.wav", 2, 3, "z")]
    path = table(tmp_path / "a.csv", ("filename", "start", "stop", "label"), rows)
    with pytest.raises(ValueError, match=r"be labels of one recording; got labels of 2 recordings, a\.wav, b\.wav"):
        mo.open_labels(path)
    assert mo.open_labels(path, recording="/other/b.wav").label.values.tolist() == ["y", "z"]
    with pytest.raises(ValueError, match=r"have labels of c\.wav"):
        mo.open_labels(path, recording="c.wav")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "hold labels; got an empty file"),
        ("\n\n", "hold labels; got no lines"),
        ("0.5,1.5,a\n2,3,b\n", "have a column of starts; got 0.5, 1.5, a"),
        ("start,stop,label\n3,2,a\n", "stop after they start; got 3 to 2 s for 'a'"),
        ("start,stop,label\nx,2,a\n", "have numbers or dates .* in 'start'; got 'x'"),
        ("start,stop,label\n1,2020-01-01,a\n", "have starts and stops of one kind"),
        ("start,stop,label\n1,2,a,b\n", "have as many cells in its rows as in its header"),
        ("start,stop,label\n", "hold labels; got none"),
        ("start,stop\n1,2\n", "have one column of labels; got none"),
        ("just words\n", "be a table of labels; got 'just words'"),
        ("<html><body>404", "hold labels; got an HTML page"),
    ],
)
def test_faults__are_named(tmp_path, text, said):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=said):
        mo.open_labels(tmp_path / "a.csv")


def test_missing_file__is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"open_labels: .*a\.csv does not exist"):
        mo.open_labels(tmp_path / "a.csv")


def test_audacity__with_frequencies_and_without(tmp_path):
    lines = [f"{a:.6f}\t{b:.6f}\t{text}\n\\\t100.0\t2000.0\n" for a, b, text in ROWS]
    (tmp_path / "Label Track.txt").write_text("".join(lines))
    is_right(mo.open_labels(tmp_path / "Label Track.txt"))
    (tmp_path / "b.txt").write_text("".join(line.split("\n")[0] + "\n" for line in lines).replace(".", ","))
    is_right(mo.open_labels(tmp_path / "b.txt"))


@pytest.mark.parametrize("width", [2, 3])
def test_edf_annotations__in_all_records_and_alphabets(tmp_path, width):
    notes = [(0, 0.5, 29.5, "W"), (1, 2.25, None, "µ burst"), (1, -1, 0.5, "before")]
    edf = Edf(
        [("a", "uV", -1, 1, np.zeros((2, 3), int))], onsets=[0, 30], seconds=30, kind="EDF+D", notes=notes, width=width
    )
    labels = mo.open_labels(edf.write(tmp_path / "a.edf"))
    is_right(labels, [-1, 0.5, 2.25], [-0.5, 30, 2.25], ["before", "W", "µ burst"])
    assert labels.time.attrs["start_time"] == "2031-03-02T04:05:06"
    alone = Edf([], onsets=[0], seconds=0, kind="EDF+C", notes=[(0, 10, 5, "x")])
    is_right(mo.open_labels(alone.write(tmp_path / "hypnogram.edf")), [10], [15], ["x"])
    with pytest.raises(ValueError, match="hold labels; got none"):
        mo.open_labels(Edf([("a", "uV", -1, 1, np.zeros((2, 3), int))]).write(tmp_path / "b.edf"))


def test_wfdb_annotations__agree_with_wfdb(tmp_path):
    wfdb = pytest.importorskip("wfdb")
    samples = np.array([0, 5, 77, 5000, 70_000, 40_000_000])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # wfdb calls pandas as it once was
        wfdb.wrann("a", "atr", samples, list("NVNA+N"), aux_note=["", "", "", "", "(AFIB", ""], write_dir=str(tmp_path))
    (tmp_path / "a.hea").write_text("a 1 360/10(0) 50000000\na.dat 16\n")
    expected = ["N", "V", "N", "A", "(AFIB", "N"]
    is_right(mo.open_labels(tmp_path / "a.atr"), samples / 360, samples / 360, expected)
    (tmp_path / "a.hea").unlink()
    with pytest.raises(ValueError, match=r"tell its sampling rate; got sample numbers"):
        mo.open_labels(tmp_path / "a.atr")
    is_right(mo.open_labels(tmp_path / "a.atr", sampling_rate=100), samples / 100, samples / 100, expected)


def test_wfdb_notes__tell_rate_and_duration(tmp_path):
    """As PhysioNet writes them for EDF+: wfdb loses the one at the first sample."""

    def note(step, text):
        body = text.encode().ljust(len(text) + len(text) % 2, b"\0")
        return (22 << 10 | step).to_bytes(2, "little") + (63 << 10 | len(text)).to_bytes(2, "little") + body

    raw = note(0, "## time resolution: 160") + note(0, "T0 duration: 4.2") + note(672, "T2 duration: 4.1") + bytes(2)
    (tmp_path / "a.edf.event").write_bytes(raw)
    is_right(mo.open_labels(tmp_path / "a.edf.event"), [0, 4.2], [4.2, 8.3], ["T0", "T2"])


def test_midi__are_notes(tmp_path):
    mido = pytest.importorskip("mido")
    song = mido.MidiFile(ticks_per_beat=100)
    tempo, notes = mido.MidiTrack(), mido.MidiTrack()
    tempo += [mido.MetaMessage("set_tempo", tempo=500_000), mido.MetaMessage("set_tempo", tempo=1_000_000, time=200)]
    notes += [
        mido.Message("note_on", note=60, velocity=9, time=100),
        mido.Message("note_on", note=64, velocity=9, time=50),
        mido.Message("note_on", note=60, velocity=0, time=50),
        mido.Message("note_off", note=64, time=100),
        mido.Message("note_on", note=70, velocity=9, time=0),
        mido.MetaMessage("end_of_track", time=100),
    ]
    song.tracks += [tempo, notes]
    song.save(tmp_path / "a.mid")
    is_right(mo.open_labels(tmp_path / "a.mid"), [0.5, 0.75, 2], [1, 2, 3], ["C4", "E4", "A#4"])
    (tmp_path / "b.mid").write_bytes((tmp_path / "a.mid").read_bytes()[:40])
    with pytest.raises(ValueError, match=r"be MIDI|hold labels"):
        mo.open_labels(tmp_path / "b.mid")


def test_midi__is_no_recording(tmp_path):
    (tmp_path / "a.mid").write_bytes(b"MThd\0\0\0\6\0\0\0\1\0\x60")
    with pytest.raises(ValueError, match=r"a\.mid is MIDI: notes, no samples\. Open it as labels"):
        mo.open_recording(tmp_path / "a.mid")


def test_syllables_of_evsonganaly__in_seconds(tmp_path):
    scipy.io.savemat(
        tmp_path / "a.not.mat", {"onsets": [[500.0], [2000.0]], "offsets": [[700.0], [2500.0]], "labels": "ab"}
    )
    is_right(mo.open_labels(tmp_path / "a.not.mat"), [0.5, 2], [0.7, 2.5], ["a", "b"])
    scipy.io.savemat(tmp_path / "b.mat", {"x": [[500.0]]})
    with pytest.raises(ValueError, match="hold variables onsets, offsets and labels"):
        mo.open_labels(tmp_path / "b.mat")


def test_windows_in_json__by_the_name_of_the_recording(tmp_path):
    path = tmp_path / "windows.json"
    path.write_text(json.dumps({"x/a.csv": [["2020-01-01 00:00:10", "2020-01-01 00:00:20"]], "x/b.csv": []}))
    is_right(mo.open_labels(path, recording="a.csv"), [0], [10], ["window"])
    for recording, said in (
        ("b.csv", "got none"),
        ("c.csv", "hold labels of c.csv"),
        (None, "hold labels of one recording"),
    ):
        with pytest.raises(ValueError, match=said):
            mo.open_labels(path, recording=recording)


@examples(120)
@given(data=st.data())
def test_mutated_labels__give_labels_or_one_sentence(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    atr = (
        b"".join((k << 10 | n).to_bytes(2, "little") for k, n in [(22, 0), (63, 3)])
        + b"abc\0"
        + b"\x05\x04" * 9
        + bytes(2)
    )
    kind, content = data.draw(
        st.sampled_from([
            ("csv", b"start,stop,label\n0,1,a\n1,2,b\n"), ("txt", b"0\t1\ta\n1.5\t2\tb\n"), ("atr", atr),
            ("json", b'{"a.csv": [["2020-01-01", "2020-01-02"], [1, 2]]}'),
            ("csv", b"time;event\n2020-01-01T00:00;x\n"),
        ])
    )  # fmt: skip
    content = bytearray(content)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = folder / f"a.{kind}"
    path.write_bytes(content)
    try:
        labels = mo.open_labels(path, sampling_rate=10)
        assert (labels.stop >= labels.time).all()
        assert np.isfinite(labels.time).all()
        return
    except ValueError as error:
        said = str(error)
    assert str(path) in said


def test_reader__and_engine_are_one(tmp_path):
    path = table(tmp_path / "a.csv", ("start", "stop", "label"), ROWS)
    found = read_label_table(str(path), None, None)
    xr.testing.assert_equal(mo.open_labels(path), xr.open_dataset(path, engine="manifold-labels"))
    assert found.text == TEXT


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_tables_of_columns__are_read_like_those_of_text(tmp_path, suffix):
    pytest.importorskip("pyarrow")

    def stored(name, **columns):
        path = tmp_path / f"{name}.{suffix}"
        frame = pd.DataFrame(columns)
        frame.to_parquet(path) if suffix == "parquet" else frame.to_feather(path)
        return path

    plain = mo.open_labels(stored("a", start=[0.0, 30.0], stop=[30.0, np.nan], stage=pd.Categorical(["W", "N1"])))
    assert plain.label.values.tolist() == ["W", "N1"]
    assert plain.stop.values.tolist() == [30.0, 30.0]
    when = pd.to_datetime(["2020-03-09T12:00:00", "2020-03-09T12:00:30"]).tz_localize("Europe/Berlin")
    dated = mo.open_labels(stored("b", onset=when, duration=pd.to_timedelta([30, 5], unit="s"), stage=["W", "N1"]))
    assert dated.time.attrs["start_time"].startswith("2020-03-09T11:00:00")
    assert (dated.time.values.tolist(), dated.stop.values.tolist()) == ([0.0, 30.0], [30.0, 35.0])
    with pytest.raises(ValueError, match="have a column of starts; got stage"):
        mo.open_labels(stored("c", stage=["W"]))


def test_times_in_samples__are_refused_with_what_to_do(tmp_path):
    path = table(tmp_path / "a.csv", ("start_sample", "stop_sample", "label"), [("0", "250", "W")])
    with pytest.raises(ValueError, match="label. Divide sample numbers by the sampling rate".replace(".", "[.]")):
        mo.open_labels(path)
