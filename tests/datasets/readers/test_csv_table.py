"""Tables give exact values and times, and what is unclear is refused with its line."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.datasets.readers import csv_table
from manifold_observer.datasets.readers.table_layout import unique_labels
from strategies import examples


@pytest.fixture
def table(tmp_path):
    def write(text, encoding="utf-8", name="a.csv"):
        (tmp_path / name).write_bytes(text.encode(encoding))
        return tmp_path / name

    return write


def test_open__labels_a_table_with_a_clock(table):
    dataset = xr.open_dataset(table("time,x,y\n0.5,1.25,-2\n0.75,1e-3,4\n1.0,3,5.5\n"), units="mV")
    recording = dataset["recording"]
    np.testing.assert_array_equal(recording.values, [[1.25, -2], [1e-3, 4], [3, 5.5]])
    assert recording.dtype == np.float64
    assert dataset["time"].values.tolist() == [0.5, 0.75, 1.0]
    assert dataset["time"].attrs["units"] == "s"
    assert dataset["channel"].values.tolist() == ["x", "y"]
    assert recording.attrs == {
        "sampling_rate": 4.0,
        "units": "mV",
        "long_name": "recorded values",
        "source": "a.csv",
    }


@examples(30)
@given(
    values=st.lists(st.floats(allow_nan=True, allow_infinity=False), min_size=1, max_size=9),
    mark=st.sampled_from([(",", "."), (";", "."), (";", ","), ("\t", ","), ("\t", ".")]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_open__gives_back_what_was_written(tmp_path_factory, values, mark, end):
    delimiter, decimal = mark
    cells = [[repr(value).replace(".", decimal), "0" + decimal + "5"] for value in values]
    text = end.join(delimiter.join(row) for row in [["x", "y"], *cells]) + end
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(text.encode())
    np.testing.assert_array_equal(xr.open_dataset(path)["recording"].values, [[value, 0.5] for value in values])


def test_open__keeps_counts_as_integers(table):
    recording = xr.open_dataset(table("a,b\n1,20\n3,-4\n"))["recording"]
    assert recording.dtype == np.int64
    assert recording.values.tolist() == [[1, 20], [3, -4]]


@pytest.mark.parametrize("row", ["5,", "5,6.0", "5,NaN", "5,12345678901234567"])
def test_open__is_float_unless_all_are_integers(table, row):
    assert xr.open_dataset(table(f"a,b\n1,20\n{row}\n"))["recording"].dtype == np.float64


def test_open__makes_missing_cells_nan(table):
    values = xr.open_dataset(table("t,a,b\n0,,NA\n1,null,2\n"))["recording"].values
    np.testing.assert_array_equal(values, [[np.nan, np.nan], [np.nan, 2]])


def test_open__invents_no_clock(table):
    dataset = xr.open_dataset(table("a,b\n1,2\n3,4\n"))
    assert "time" not in dataset.coords
    assert "sampling_rate" not in dataset["recording"].attrs
    timed = xr.open_dataset(table("a,b\n1,2\n3,4\n"), sampling_rate=4)
    assert timed["time"].values.tolist() == [0, 0.25]
    assert timed["recording"].attrs["sampling_rate"] == 4.0


def test_sampling_rate__sets_the_clock_aside(table):
    dataset = xr.open_dataset(table("time,a\n5,1\n5,3\n"), sampling_rate=10)
    assert dataset["channel"].values.tolist() == ["a"]
    np.testing.assert_allclose(dataset["time"], [0, 0.1])


@pytest.mark.parametrize(
    ("text", "labels", "first"),
    [
        ("1,2\n3,4\n", ["ch1", "ch2"], [1, 2]),
        ("x\n1\n2\n", ["x"], [1]),
        ("1\n2\n", ["ch1"], [1]),
        ("speed,0,1\n7,8,9\n1,2,3\n", ["speed", "0", "1"], [7, 8, 9]),
        ("# a,b\n1,2\n", ["a", "b"], [1, 2]),
        ("a,b,\n1,2,\n3,4,\n", ["a", "b"], [1, 2]),
        (' "a, of b" , c\n1, 2\n', ["a, of b", "c"], [1, 2]),
        ("x,x,x_2,x\n1,2,3,4\n", ["x", "x_3", "x_2", "x_4"], [1, 2, 3, 4]),
        ("a,b\n1,2\n\n\n", ["a", "b"], [1, 2]),
    ],
)
def test_header__is_found(table, text, labels, first):
    dataset = xr.open_dataset(table(text))
    assert dataset["channel"].values.tolist() == labels
    assert dataset["recording"].values[0].tolist() == first


def test_header__can_be_told(table):
    path = table("1,2\n3,4\n5,6\n")
    told = xr.open_dataset(path, header=True)
    assert told["channel"].values.tolist() == ["1", "2"]
    assert told.sizes["time"] == 2


def test_labels__are_numbered_from_two():
    assert unique_labels(["x", "y", "x", "x"]) == ("x", "y", "x_2", "x_3")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encoding__is_found(table, encoding):
    dataset = xr.open_dataset(table("Kraft;µV\n1;2,5\n", encoding))
    assert dataset["channel"].values.tolist() == ["Kraft", "µV"]
    assert dataset["recording"].values.tolist() == [[1, 2.5]]


def test_encoding__is_asked_for(table):
    path = table("Kraft;µV\n1;2,5\n", "cp1252")
    with pytest.raises(ValueError, match=r"a\.csv must be text in UTF-8; .* encoding='cp1252'"):
        xr.open_dataset(path)
    assert xr.open_dataset(path, encoding="cp1252")["channel"].values.tolist() == ["Kraft", "µV"]


@pytest.mark.parametrize("name", ["time", "Time", "t", "seconds", "timestamp", "DateTime", "date", "Time (s)"])
def test_clock__is_recognised_by_name(table, name):
    dataset = xr.open_dataset(table(f"x,{name}\n5,1\n6,3\n"))
    assert dataset["time"].values.tolist() == [1, 3]
    assert dataset["channel"].values.tolist() == ["x"]


@pytest.mark.parametrize("name", ["T", "temperature", "timer", "step"])
def test_clock__is_no_other_column(table, name):
    assert "time" not in xr.open_dataset(table(f"x,{name}\n5,1\n6,3\n")).coords


def test_clock__can_be_named(table):
    dataset = xr.open_dataset(table("t,stamp,x\n9,1,5\n8,2,6\n"), time_column="stamp")
    assert dataset["time"].values.tolist() == [1, 2]
    assert dataset["channel"].values.tolist() == ["t", "x"]


def test_clock__listed_as_channel_is_a_channel(table):
    dataset = xr.open_dataset(table("t,x\n9,5\n8,6\n"), channels=["x", "t"])
    assert dataset["recording"].values.tolist() == [[5, 9], [6, 8]]
    assert "time" not in dataset.coords


@pytest.mark.parametrize(("label", "unit"), [("time_ms", None), ("time (ms)", None), ("time", "ms")])
def test_clock__counts_in_its_unit(table, label, unit):
    dataset = xr.open_dataset(table(f"{label},x\n100,1\n350,2\n"), time_unit=unit)
    assert dataset["time"].values.tolist() == [0.1, 0.35]
    assert dataset["recording"].attrs["sampling_rate"] == pytest.approx(4)


@pytest.mark.parametrize(
    ("first", "second", "seconds", "start"),
    [
        ("2020-03-09 10:14:33", "2020-03-09 10:14:35", 2.0, "2020-03-09T10:14:33"),
        ("2020-03-09T10:14:33.1", "2020-03-09T10:14:33.350", 0.25, "2020-03-09T10:14:33.1"),
        ("2020-03-09T10:14:33Z", "2020-03-09T10:15:33Z", 60.0, "2020-03-09T10:14:33Z"),
        ("2020-10-25 02:59+02:00", "2020-10-25 02:00+01:00", 60.0, "2020-10-25T00:59:00Z"),
        ("2020-03-09T00:00:00.000000001", "2020-03-09T00:00:00.000000003", 2e-9, "2020-03-09T00:00:00.000000001"),
        ("2020-03-09", "2020-03-10", 86400.0, "2020-03-09T00:00:00"),
        ("20200309", "20200310", 86400.0, "2020-03-09T00:00:00"),
    ],
)
def test_clock__turns_dates_into_seconds(table, first, second, seconds, start):
    time = xr.open_dataset(table(f"datetime,x\n{first},1\n{second},2\n"))["time"]
    assert time.values.tolist() == [0, seconds]
    assert time.attrs["start_time"] == start
    assert time.dtype == np.float64


def test_clock__keeps_holes(table):
    dataset = xr.open_dataset(table("time,x\n0,1\n1,2\n2,3\n60,4\n"))
    assert dataset["time"].values.tolist() == [0, 1, 2, 60]
    assert dataset["recording"].attrs["sampling_rate"] == 1.0


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("0,1\n1,2\n1,3", r"column 'time'; got 1\.0 at line 4, which repeats"),
        ("0,1\n2,2\n1,3", r"got 1\.0 at line 4, which goes backwards from 2\.0"),
        ("0,1\n,2\n2,3", r"clock column 'time'; got '' at line 3"),
        ("0,1\nnan,2\n2,3", r"got 'nan' at line 3"),
        ("0,1\n1,2\nlater,3", r"got 'later' at line 4"),
        ("2020-01-01,1\n2020-01-02Z,2", r"got '2020-01-02Z' at line 3"),
        ("2020-01-01T00:00Z,1\n2020-01-02T00:00,2", r"with an offset from UTC throughout .* at line 3"),
        ("2020-01-31,1\n2020-02-31,2", r"got '2020-02-31' at line 3"),
        ("1583748873000,1\n1583748874000,2", r"beyond the year 5000\. Say its unit with time_unit="),
    ],
)
def test_clock__is_refused_with_its_line(table, rows, sentence):
    with pytest.raises(ValueError, match=sentence):
        xr.open_dataset(table("time,x\n" + rows + "\n"))


def test_clock__fault_is_found_across_blocks(table, monkeypatch):
    monkeypatch.setattr(csv_table, "_BLOCK_ROWS", 2)
    with pytest.raises(ValueError, match=r"got 1\.0 at line 4, which repeats"):
        xr.open_dataset(table("time,x\n0,1\n1,2\n1,3\n"))
    with pytest.raises(ValueError, match="'c' in column 'x' at line 5"):
        xr.open_dataset(table("time,x\n0,1\n1,2\n2,3\n3,c\n"))
    whole = xr.open_dataset(table("time,x\n0,1\n1,2\n2,3\n"))
    assert whole["recording"].values.tolist() == [[1], [2], [3]]


def test_clock__of_two_is_asked_for(table):
    path = table("date,time,x\n2020-01-01,600,1\n2020-01-02,601,1\n")
    with pytest.raises(ValueError, match=r"must have one clock column; .* \['date', 'time'\]"):
        xr.open_dataset(path)


def test_clock__date_and_time_of_day_are_one(table):
    dataset = xr.open_dataset(table("x,date,time\n1,2020-01-01,10:00\n2,2020-01-01,10:01\n"))
    assert dataset["time"].values.tolist() == [0, 60]
    assert dataset["time"].attrs["start_time"] == "2020-01-01T10:00:00"
    assert dataset["channel"].values.tolist() == ["x"]


def test_time_format__reads_other_dates(table):
    path = table("datetime,x\n25.10.2020 01:58,1\n25.10.2020 02:00,2\n")
    with pytest.raises(ValueError, match=r"'25\.10\.2020 01:58' at line 2\. Give time_format="):
        xr.open_dataset(path)
    time = xr.open_dataset(path, time_format="%d.%m.%Y %H:%M")["time"]
    assert time.values.tolist() == [0, 120]
    assert time.attrs["start_time"] == "2020-10-25T01:58:00"
    with pytest.raises(ValueError, match=r"written '%Y' throughout .* at line 2"):
        xr.open_dataset(path, time_format="%Y")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n3,x\n", r"must hold numbers in every channel; got 'x' in column 'b' at line 3"),
        ("a,b\n1,2\n3,True\n", "'True' in column 'b' at line 3"),
        ("a,b\n1,2\n3,1_000\n", "'1_000' in column 'b' at line 3"),
        ("a;b\n1,5;2\n3;1.234,5\n", "'1.234,5' in column 'b' at line 3"),
        ("a,b\n1,2\n3\n", "must have 2 cells in every row, separated by ','; got 1 cells at line 3"),
        ("a,b\n1,2\n3,4,5\n", "got 3 cells at line 3"),
        ("a,b\n1,2\n\n3,4\n", "got a blank line at line 3"),
        ("a,b\r\n1,2\r\n3,4\r\n5", "got 1 cells at line 4"),
        ("a,b\n", "must hold rows below its header; got a header alone"),
        ("\n\n", "must hold rows; got blank lines only"),
        (",a\n4,5\n9,6\n", "must name every column in its header; got no name for column 1"),
        ("", "must be a text table; got an empty file"),
        ("<html></html>", "must be a text table; got an HTML page"),
        ("time\n1\n", "must hold a channel"),
    ],
)
def test_open__refuses_with_the_line(table, text, sentence):
    with pytest.raises(ValueError, match=r"csv: .*a\.csv must .*") as caught:
        xr.open_dataset(table(text))
    assert caught.match(sentence)


def test_columns__are_dropped_or_chosen(table):
    path = table("note,a,b,c\nE5,1,2,3\nF5,4,5,6\n")
    assert xr.open_dataset(path, drop_channels=["note", "b"])["recording"].values.tolist() == [[1, 3], [4, 6]]
    chosen = xr.open_dataset(path, channels=["c", "a"])
    assert chosen["channel"].values.tolist() == ["c", "a"]
    assert chosen["recording"].values.tolist() == [[3, 1], [6, 4]]
    for option in ("channels", "drop_channels"):
        with pytest.raises(ValueError, match=f"column that {option} names; got 'z' where there are"):
            xr.open_dataset(path, **{option: ["z"]})
    with pytest.raises(ValueError, match="column that time_column names; got 'z'"):
        xr.open_dataset(path, time_column="z")


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a.CSV"])
def test_open__knows_the_endings(table, name):
    dataset = xr.open_dataset(table("time\tx\n0\t5\n1\t6\n", name=name))
    assert dataset["recording"].values.tolist() == [[5], [6]]


def test_delimiter_and_decimal__can_be_told(table):
    path = table("x y\n1 2,5\n")
    values = xr.open_dataset(path, delimiter=" ", decimal=",")["recording"].values
    assert values.tolist() == [[1, 2.5]]


def test_time_unit__is_checked(table):
    with pytest.raises(ValueError, match=r"csv: time_unit must be one of .*; got 'fortnight'"):
        xr.open_dataset(table("t,x\n0,1\n"), time_unit="fortnight")


def test_missing_file__is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"csv: .*a\.csv must be a local file"):
        xr.open_dataset(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("clock", "options"), [("1600-03-09 10:14:33", {}), ("09.03.2500", {"time_format": "%d.%m.%Y"})]
)
def test_clock__a_year_beyond_nanoseconds_is_refused(table, clock, options):
    with pytest.raises(ValueError, match=f"throughout in its clock column 'time'; got '{clock}' at line 2"):
        xr.open_dataset(table(f"time,x\n{clock},1\n"), **options)
