"""Parquet and Feather: columns as they were written, their clock, and no more rows decoded than are asked for."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.datasets.readers import arrow_files
from manifold_observer.pipeline.frames.recording import clock
from strategies import examples

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")
RNG = np.random.default_rng(0)


def written(folder, columns, kind="parquet", name=None, rows=7):
    """A table in groups of seven rows."""
    path = folder / (name or f"a.{kind}")
    table = pa.Table.from_pandas(pd.DataFrame(columns))
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=rows)
    else:
        feather.write_feather(table, path, chunksize=rows)
    return path


KINDS = ("parquet", "feather")
VALUES = {"left": RNG.normal(size=30), "right": RNG.normal(size=30).astype("f4")}
TABLE = np.stack([VALUES["left"], VALUES["right"].astype(float)], axis=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "factor"), [("time", 1), ("t", 1), ("time_ms", 1000), ("timestamp (us)", 1e6), ("time (min)", 1 / 60)]
)
def test_clock_of_numbers__in_its_unit(tmp_path, kind, name, factor):
    seconds = np.arange(30) / 4
    recording = mo.open_recording(written(tmp_path, {name: seconds * factor, **VALUES}, kind))
    np.testing.assert_array_equal(recording, TABLE)
    assert recording.channel.values.tolist() == ["left", "right"]
    np.testing.assert_allclose(recording.time, seconds)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_clock_of_instants__counts_from_the_first(tmp_path, kind, zone):
    stamps = pd.date_range("2021-03-28 00:30", periods=30, freq="250ms", tz=zone)
    stamps = stamps[:15].append(stamps[15:] + pd.Timedelta("1min"))
    recording = mo.open_recording(written(tmp_path, {"when": stamps, **VALUES}, kind))
    np.testing.assert_allclose(recording.time, np.arange(30) / 4 + 60 * (np.arange(30) >= 15))
    expected = "2021-03-28T00:30:00.000000000" if zone is None else "2021-03-27T23:30:00.000000000Z"
    assert recording.time.attrs["start_time"] == expected
    assert clock(recording).segments == [(0, 15), (15, 30)]


@pytest.mark.parametrize("kind", KINDS)
def test_index_of_pandas__is_the_clock_or_left_out(tmp_path, kind):
    table = pd.DataFrame(VALUES, index=pd.date_range("2021-01-01", periods=30, freq="1s"))
    arrow = pa.Table.from_pandas(table)
    path = tmp_path / f"a.{kind}"
    pq.write_table(arrow, path) if kind == "parquet" else feather.write_feather(arrow, path)
    recording = mo.open_recording(path)
    np.testing.assert_allclose(recording.time, np.arange(30))
    shuffled = written(tmp_path, pd.DataFrame(VALUES).iloc[::2], kind, name=f"b.{kind}")
    assert mo.open_recording(shuffled, sampling_rate=1).channel.values.tolist() == ["left", "right"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", [np.s_[5:9], np.s_[3:29:6, ::-1], np.s_[13], np.s_[[2, 9, 4]], np.s_[:, 1]])
def test_slices__are_those_of_the_whole(tmp_path, kind, key):
    path = written(tmp_path, VALUES, kind)
    lazy = xr.open_dataset(path, engine="manifold-arrow")["recording"]
    np.testing.assert_array_equal(lazy[key], TABLE[key])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(lazy))[key], TABLE[key])


@pytest.mark.parametrize("kind", KINDS)
def test_types__are_kept_where_they_can_be(tmp_path, kind):
    whole = {"a": np.arange(30, dtype="i2"), "b": np.arange(30, dtype="u1")}
    assert mo.open_recording(written(tmp_path, whole, kind)).dtype == np.int16
    gaps = pd.array([1, None, 3] * 10, dtype="Int64")
    recording = mo.open_recording(written(tmp_path, {"a": gaps, "b": [True, False, None] * 10}, kind), sampling_rate=1)
    np.testing.assert_array_equal(recording[:3], [[1, 1], [np.nan, 0], [3, np.nan]])


@pytest.mark.parametrize("kind", KINDS)
def test_text__is_no_channel_and_told(tmp_path, kind):
    path = written(tmp_path, {"who": ["x", "y"] * 15, **VALUES}, kind)
    with pytest.warns(UserWarning, match="who hold no numbers and are left out"):
        assert mo.open_recording(path).shape == (30, 2)
    with pytest.raises(ValueError, match="hold numbers in its channels; got text in who"):
        xr.open_dataset(path, engine="manifold-arrow", channels=["who"])
    assert xr.open_dataset(path, engine="manifold-arrow", channels=["right"]).sizes["channel"] == 1
    with pytest.raises(ValueError, match="hold a column of numbers"):
        mo.open_recording(written(tmp_path, {"who": ["x", "y"]}, kind, name=f"b.{kind}"))


def test_clocks__are_asked_about(tmp_path):
    stamps = pd.date_range("2021-01-01", periods=30, freq="1s")
    path = written(tmp_path, {"sent": stamps, "received": stamps, **VALUES})
    with pytest.raises(
        ValueError, match=r"several that look like one, \['sent', 'received'\]\. Choose with time_column"
    ):
        mo.open_recording(path)
    recording = xr.open_dataset(path, engine="manifold-arrow", time_column="sent")["recording"]
    assert recording.channel.values.tolist() == ["left", "right"]
    with pytest.raises(ValueError, match="count its clock 'left' in one of"):
        xr.open_dataset(path, engine="manifold-arrow", time_column="left", time_unit="fortnight")


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_groups_that_are_asked_for__are_decoded(tmp_path, monkeypatch, kind):
    path = written(tmp_path, {f"c{k}": np.arange(70_000) + k for k in range(4)}, kind, rows=7000)
    read = []
    plain = arrow_files._Opened.group
    monkeypatch.setattr(arrow_files._Opened, "group", lambda self, k, c: read.append(k) or plain(self, k, c))
    recording = mo.open_recording(path)
    assert len(read) <= 3  # a few rows are looked at
    read.clear()
    lazy = xr.open_dataset(path, engine="manifold-arrow")["recording"]
    np.testing.assert_array_equal(lazy[20_990:21_010, 2], np.arange(20_990, 21_010) + 2)
    assert read == [2, 3]
    assert recording.shape == (70_000, 4)


@pytest.mark.parametrize("name", ["a.dat", "a.csv", "a"])
def test_content__decides_whatever_the_name(tmp_path, name):
    np.testing.assert_array_equal(mo.open_recording(written(tmp_path, VALUES, "feather", name)), TABLE)


def test_faults__are_named(tmp_path):
    (tmp_path / "a.parquet").write_text("<html>")
    with pytest.raises(ValueError, match="be a Parquet or Feather table; got an HTML page"):
        mo.open_recording(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="hold rows; got none"):
        mo.open_recording(written(tmp_path, {"x": np.zeros(0)}))


@examples(90)
@given(data=st.data())
def test_mutated_files__give_values_or_one_sentence(data, tmp_path_factory):
    kind = data.draw(st.sampled_from(KINDS))
    stamps = pd.date_range("2021-01-01", periods=30, freq="1s")
    path = written(tmp_path_factory.mktemp("arrow"), {"when": stamps, **VALUES}, kind)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 9))
        new = data.draw(st.binary(min_size=1, max_size=8))
        content[at : at + len(new)] = new
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content), 300]))])
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", [["wake", "sleep", None] * 10, pd.Categorical(["wake", "sleep", None] * 10)])
def test_labels__may_be_words_or_categories(tmp_path, kind, words):
    path = written(tmp_path, {"stage": words, **VALUES, "time": np.arange(30) / 10}, kind)
    for chosen in ({}, {"channels": ["right"]}):
        recording = mo.open_recording(path, labels="stage", **chosen)
        assert recording.channel.values.tolist() == chosen.get("channels", ["left", "right"])
        assert recording.stage.values.tolist() == ["wake", "sleep", ""] * 10
    frames = mo.log_rms(mo.open_recording(path, labels="stage"), frame=3, hop=3)
    assert set(frames.stage.values) <= {"wake", "sleep", ""}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations__are_a_clock(tmp_path, kind, unit):
    elapsed = (np.arange(30) * 2000 + 5000).astype("timedelta64[ms]").astype(f"timedelta64[{unit}]")
    recording = mo.open_recording(written(tmp_path, {"elapsed": elapsed, **VALUES}, kind))
    np.testing.assert_allclose(recording.time, 5 + 2.0 * np.arange(30))
    assert recording.channel.values.tolist() == ["left", "right"]
