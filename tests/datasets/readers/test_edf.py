"""EDF and BDF: values, clocks with their gaps, labels and units as they were written, and nothing read in vain."""

import os
import pickle
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from edf_files import Edf, physical
from manifold_observer.datasets.readers.edf import EdfSource
from manifold_observer.pipeline.frames.recording import clock
from strategies import examples

RNG = np.random.default_rng(0)
WIDE = (-(2**23), 2**23 - 1)


def two(n_records=4, samples=5, **options):
    """Two signals of one rate."""
    values = RNG.integers(-3000, 3000, (2, n_records, samples))
    return Edf([("EEG Fz", "uV", -500, 500, values[0]), ("EEG Cz", "uV", -100, 100, values[1])], **options)


def values_of(edf):
    """What the file shall read as."""
    return np.stack([physical(values.ravel(), low, high, edf.limits) for _, _, low, high, values in edf.signals], 1)


@pytest.mark.parametrize(("width", "limits"), [(2, (-32768, 32767)), (2, (0, 4095)), (3, WIDE)])
def test_open__has_physical_values_labels_and_clock(tmp_path, width, limits):
    edf = two(width=width, limits=limits, seconds=0.5)
    recording = mo.open_recording(edf.write(tmp_path / "a.edf"))
    np.testing.assert_allclose(recording.values, values_of(edf), rtol=1e-12, atol=1e-9)
    assert recording.channel.values.tolist() == ["EEG Fz", "EEG Cz"]
    assert (recording.attrs["sampling_rate"], recording.attrs["units"]) == (10.0, "uV")
    np.testing.assert_allclose(recording.time, np.arange(20) / 10)
    assert recording.time.attrs["start_time"] == "2031-03-02T04:05:06"


@pytest.mark.parametrize("bdf", [False, True])
def test_open__agrees_with_edfio(tmp_path, bdf):
    edfio = pytest.importorskip("edfio")
    kind = (edfio.Bdf, edfio.BdfSignal, ".bdf") if bdf else (edfio.Edf, edfio.EdfSignal, ".edf")
    walks = RNG.normal(size=(3, 400)).cumsum(1)
    signals = [kind[1](walk, 100, label=name, physical_dimension="mV") for walk, name in zip(walks, "abc", strict=True)]
    path = tmp_path / f"x{kind[2]}"
    kind[0](signals).write(path)
    read = edfio.read_bdf(path) if bdf else edfio.read_edf(path)
    expected = np.stack([signal.data for signal in read.signals], 1)
    np.testing.assert_allclose(xr.open_dataset(path, engine="manifold-edf")["recording"], expected, atol=1e-12)


@pytest.mark.parametrize(
    "key", [np.s_[3:17], np.s_[7:8, 1], np.s_[2:19:4, ::-1], np.s_[11], np.s_[:, [1, 0]], np.s_[5:5]]
)
def test_slices__are_those_of_the_whole(tmp_path, key):
    edf = two(n_records=4, samples=5)
    lazy = xr.open_dataset(edf.write(tmp_path / "a.edf"), engine="manifold-edf")["recording"]
    np.testing.assert_allclose(lazy[key].values, values_of(edf)[key], atol=1e-9)


def test_gaps_of_edf_d__stay_in_the_clock_and_in_the_frames(tmp_path):
    edf = two(n_records=5, samples=4, kind="EDF+D", onsets=[0, 1, 5, 6, 20])
    recording = mo.open_recording(edf.write(tmp_path / "gaps.edf"))
    starts = np.repeat([0, 1, 5, 6, 20], 4)
    np.testing.assert_allclose(recording.time, starts + np.tile(np.arange(4) / 4, 5))
    assert clock(recording).segments == [(0, 8), (8, 16), (16, 20)]
    frames = mo.log_rms(recording, frame=4)
    assert frames.segment.values.tolist() == [0, 0, 1, 1, 2]
    np.testing.assert_allclose(frames.time, [0.375, 1.375, 5.375, 6.375, 20.375])


def test_records_of_edf_d_without_a_gap__are_a_regular_clock(tmp_path):
    edf = two(n_records=3, kind="EDF+D", onsets=[0.25, 1.25, 2.25])
    recording = mo.open_recording(edf.write(tmp_path / "a.edf"))
    np.testing.assert_allclose(recording.time, 0.25 + np.arange(15) / 5)
    assert clock(recording).counted


@pytest.mark.parametrize(
    ("onsets", "said"),
    [([0, 5, 2, 3], "2 s for record 3 after 5 s"), ([0, 1, 1, 2], "1 s for record 3 after 1 s")],
)
def test_records_out_of_order__are_refused(tmp_path, onsets, said):
    with pytest.raises(ValueError, match=said):
        mo.open_recording(two(kind="EDF+D", onsets=onsets).write(tmp_path / "a.edf"))


def mixed():
    slow, fast = RNG.integers(-9, 9, (3, 2)), RNG.integers(-9, 9, (3, 6))
    return Edf([("Resp", "", -10, 10, slow), ("EEG", "uV", -10, 10, fast), ("EOG", "mV", -10, 10, fast + 1)])


def opened(path, **options):
    return xr.open_dataset(path, engine="manifold-edf", **options)["recording"]


def test_mixed_rates__are_refused_with_what_can_be_done(tmp_path):
    path = mixed().write(tmp_path / "a.edf")
    with pytest.raises(
        ValueError, match=r"6 Hz: EEG, EOG; 2 Hz: Resp\. Choose one with rates=6, repeat .*rates='hold'"
    ):
        opened(path)
    with pytest.raises(ValueError, match="have channels of 3"):
        opened(path, rates=3)
    with pytest.raises(ValueError, match="rates must be 'hold' or a number of Hz; got 'most'"):
        opened(path, rates="most")


def test_mixed_rates__one_rate_some_channels_or_held(tmp_path):
    edf = mixed()
    path = edf.write(tmp_path / "a.edf")
    assert opened(path, rates=6).channel.values.tolist() == ["EEG", "EOG"]
    assert opened(path, rates="2.0").attrs["sampling_rate"] == 2.0
    assert opened(path, channels=["EOG", "EEG"]).channel.values.tolist() == ["EOG", "EEG"]
    held = opened(path, rates="hold")
    expected = physical(np.repeat(edf.signals[0][4].ravel(), 3), -10, 10)
    np.testing.assert_allclose(held.sel(channel="Resp"), expected)
    np.testing.assert_allclose(held.sel(channel="Resp")[4:11], expected[4:11])
    assert held.attrs["units"] == "mixed"
    assert held.channel_units.values.tolist() == ["unknown", "uV", "mV"]


def test_channels__that_are_not_there_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"have the channels that are named; got 'Pz'\. It has EEG Fz, EEG Cz"):
        opened(two().write(tmp_path / "a.edf"), channels=["Pz"])


def test_labels__are_kept_apart_and_in_their_alphabet(tmp_path):
    values = RNG.integers(-9, 9, (2, 3))
    names = ["Impédance", "EEG", "EEG", ""]
    path = Edf([(name, "µV", -1, 1, values) for name in names]).write(tmp_path / "a.edf")
    recording = mo.open_recording(path)
    assert recording.channel.values.tolist() == ["Impédance", "EEG", "EEG_2", "ch4"]
    assert recording.attrs["units"] == "µV"


def test_trigger_channel_of_bdf__is_left_out_and_told(tmp_path):
    values = RNG.integers(-9, 9, (2, 3))
    path = Edf([(name, "uV", -1, 1, values) for name in ("A1", "Status")], width=3, limits=WIDE).write(
        tmp_path / "a.bdf"
    )
    with pytest.warns(UserWarning, match="Status holds triggers and is left out"):
        assert mo.open_recording(path).channel.values.tolist() == ["A1"]
    assert opened(path, channels=["Status"]).shape == (6, 1)


def test_signals_without_calibration__are_counts_and_told(tmp_path):
    values = RNG.integers(-9, 9, (2, 3))
    path = Edf([("raw", "uV", 0, 0, values)]).write(tmp_path / "a.edf")
    with pytest.warns(UserWarning, match="raw: no calibration is given"):
        recording = mo.open_recording(path)
    np.testing.assert_array_equal(recording[:, 0], values.ravel())
    assert recording.attrs["units"] == "1"


def test_inverted_limits__turn_the_signal(tmp_path):
    values = RNG.integers(-9, 9, (2, 3))
    path = Edf([("turned", "uV", 32767, -32768, values)]).write(tmp_path / "a.edf")
    np.testing.assert_allclose(mo.open_recording(path)[:, 0], -values.ravel() - 1)


@pytest.mark.parametrize(
    ("claimed", "cut", "said", "n_records"),
    [
        (None, 7, "claims 4 records, and 3 whole ones are there", 3),
        (-1, 0, "did not write how many records there are; found 4 whole ones.", 4),
        (-1, 7, "found 3 whole ones; 13 bytes of a cut one are left out", 3),
        (9, 0, "claims 9 records, and 4 whole ones are there", 4),
        (3, 0, "20 bytes follow the 3 records", 3),
    ],
)
def test_sizes_that_do_not_fit__give_whole_records_and_a_warning(tmp_path, claimed, cut, said, n_records):
    edf = two(claimed=claimed)
    path = edf.write(tmp_path / "a.edf")
    os.truncate(path, path.stat().st_size - cut)
    with pytest.warns(UserWarning, match=said):
        recording = mo.open_recording(path)
    np.testing.assert_allclose(recording, values_of(edf)[: 5 * n_records], atol=1e-9)


def test_file_that_was_mangled__is_refused_even_of_the_right_size(tmp_path):
    edf = two(n_records=500)
    path = edf.write(tmp_path / "a.edf")
    size = path.stat().st_size
    path.write_bytes((edf.head() + edf.body().replace(b"\n", b"\r\n"))[:size])
    with pytest.raises(ValueError, match="Copy it again in binary mode"):
        mo.open_recording(path)
    path.write_bytes(edf.head() + edf.body()[:4000] + b"\r\n" * 4000 + edf.body()[12000:])  # a constant 2573 is none
    Edf([("constant", "uV", -32768, 32767, np.full((9, 100), 0x0A0D))]).write(path)
    assert mo.open_recording(path).values.max() == 0x0A0D


@pytest.mark.parametrize(
    ("date", "time", "recording", "start"),
    [
        ("31.12.84", "23.59.59", "", "2084-12-31T23:59:59"),
        ("01.01.85", "00.00.00", "", "1985-01-01T00:00:00"),
        ("31.02.09", "00.00.00", "", None),
        ("yy.mm.dd", "00.00.00", "", None),
        ("01.01.yy", "01.02.03", "Startdate X X X X", None),
        ("02.03.99", "01.02.03", "Startdate 02-MAR-2099 X X X", "2099-03-02T01:02:03"),
    ],
)
def test_start__is_the_date_of_the_header_where_there_is_one(tmp_path, date, time, recording, start):
    path = two(date=date, time=time, recording=recording).write(tmp_path / "a.edf")
    assert mo.open_recording(path).time.attrs.get("start_time") == start


@pytest.mark.parametrize("name", ["a.edf", "a.wav", "a.csv", "a.dat", "a"])
def test_open__goes_by_content_whatever_the_name(tmp_path, name):
    edf = two()
    np.testing.assert_allclose(mo.open_recording(edf.write(tmp_path / name)), values_of(edf), atol=1e-9)


def test_annotations_alone__are_no_recording(tmp_path):
    path = Edf([], onsets=[0], seconds=0, kind="EDF+C").write(tmp_path / "hypnogram.edf")
    with pytest.raises(ValueError, match=r"must hold signals; got annotations only\. Open it beside its recording"):
        mo.open_recording(path)


def test_twenty_gigabytes__open_at_once_and_are_read_in_part(tmp_path, monkeypatch):
    """64 channels of a day: a sparse file, of which the tenth hour is written."""
    n_records, samples = 86_400, 1800
    values = RNG.integers(-3000, 3000, (64, 1, samples))
    one = Edf([(f"E{k}", "uV", -500, 500, values[k]) for k in range(64)], claimed=n_records)
    path, body = one.write(tmp_path / "day.edf"), one.body()
    start = len(one.head()) + 36_000 * len(body)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(body)
    os.truncate(path, len(one.head()) + n_records * len(body))
    assert path.stat().st_size > 19e9
    asked = []
    plain = EdfSource.read
    monkeypatch.setattr(EdfSource, "read", lambda self, a, b: asked.append(b - a) or plain(self, a, b))
    recording = mo.open_recording(path)
    assert (recording.sizes["time"], asked) == (n_records * samples, [])
    slab = xr.open_dataset(path, engine="manifold-edf", chunks=None, create_default_indexes=False)["recording"]
    first = 36_000 * samples
    np.testing.assert_allclose(slab[first : first + samples], values_of(one), atol=1e-9)
    assert sum(asked) == samples


def test_large_records__are_read_in_part(tmp_path):
    """A recorder that writes an hour as one record."""
    edf = two(n_records=2, samples=2_100_000)
    lazy = opened(edf.write(tmp_path / "a.edf"))
    expected = values_of(edf)
    for part in (np.s_[5:9], np.s_[2_099_998:2_100_003], np.s_[4_199_990:]):
        np.testing.assert_allclose(lazy[part], expected[part], atol=1e-9)


def test_source__can_be_sent_to_another_process(tmp_path):
    edf = two()
    lazy = opened(edf.write(tmp_path / "a.edf"))
    np.testing.assert_allclose(pickle.loads(pickle.dumps(lazy)).values, values_of(edf), atol=1e-9)


def fair(path):
    """A file opens and reads, or is refused in one sentence that names it."""
    try:
        recording = mo.open_recording(path)
        assert recording.values.shape == recording.shape
        clock(recording)
        return
    except ValueError as error:
        said = str(error)
    assert str(path) in said or "recording: time" in said


@examples(150)
@given(data=st.data())
def test_mutated_headers__give_values_or_one_sentence(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("edf") / "a.edf"
    edf = two(kind=data.draw(st.sampled_from(["", "EDF+C", "EDF+D"])), onsets=[0, 1, 3, 4])
    content = bytearray(edf.head() + edf.body())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(8, len(edf.head()) + 60))
        new = data.draw(
            st.binary(min_size=1, max_size=8) | st.sampled_from([b"-1", b"0", b"99999999", b"nan", b"1e400"])
        )
        content[at : at + len(new)] = new
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content) - 3, 300, 900]))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fair(path)


def test_open_recording__takes_the_options_of_the_reader(tmp_path):
    edf = mixed()
    path = edf.write(tmp_path / "a.edf")
    assert mo.open_recording(path, rates=6).channel.values.tolist() == ["EEG", "EOG"]
    assert mo.open_recording(path, rates="hold").sizes["channel"] == 3
    assert mo.open_recording(path, drop_channels="Resp").channel.values.tolist() == ["EEG", "EOG"]
    recording = mo.open_recording(path, channels="EOG", labels="EEG")
    assert recording.channel.values.tolist() == ["EOG"]
    np.testing.assert_allclose(recording["EEG"], physical(edf.signals[1][4].ravel(), -10, 10))
    with pytest.raises(ValueError, match="have channels of 3"):
        mo.open_recording(path, rates=3)


def test_trigger_channel_of_bdf__can_be_kept_as_labels(tmp_path):
    values = RNG.integers(-9, 9, (2, 3))
    signals = [(name, "uV", -8, 8, values) for name in ("A1", "Status")]
    recording = mo.open_recording(Edf(signals, width=3, limits=WIDE).write(tmp_path / "a.bdf"), labels="Status")
    assert recording.channel.values.tolist() == ["A1"]
    np.testing.assert_allclose(recording["Status"], physical(values.ravel(), -8, 8, WIDE))
