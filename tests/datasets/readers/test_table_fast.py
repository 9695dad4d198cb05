"""Blocks of a table by pandas against the same cells read one by one: values, times and errors are the same."""

import csv
import itertools
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.datasets.readers import table_cells, table_fast, table_layout
from strategies import examples, share

NUMBERS = ["1", "-2.5", "3e5", "0.1", "12345.678901234567", "1e-310", "4.9e-324", "2.2250738585072011e-308", "7."]
WHOLE = ["0", "7", "-12", "+5", "999999999999999", "-0", "00012"]
AWKWARD = [
    *["", " ", "\t", "nan", "NaN", "NA", "n/a", "#N/A", "null", "None", "-nan", "+NaN", "nAn ", "NA ", "naN(1)"],
    *["inf", "-Infinity", "+iNf", "infinit", "1e400", "-1e400", "1e-400", "0x1p3", "0x10", "1_000", "1,5", "1.5.2"],
    *["1,234", "1.234", "12.345", "1 234", "1'234", "1,234.5", "1.234,5", "TRUE", "true", "False", "yes", "t"],
    *[
        "1234567890123456",
        "0000000000000001",
        "9007199254740993",
        "123456789012345678901234567890",
        "18446744073709551616",
    ],
    *[
        "\u0661\u0662",
        "\uff11",
        "\u2212" + "1",
        "1\u00a0",
        "\u00a01",
        "1\x0b",
        "1\x0c",
        "1\x1c",
        "1\x00",
        "\x005",
        "\ufeff1",
    ],
    *[" 5", "5 ", "  5  ", "\t5", "5\t", '"5"', '" 5"', '"5 "', '5"', '"5""', '""', '"1\n2"', "'5'", "#5", "5d", "(5)"],
    *[
        "1e5",
        "1E+05",
        "1e",
        "e5",
        ".5",
        "5.",
        ".",
        "-",
        "+",
        "--5",
        "+-5",
        "- 5",
        "$5",
        "5%",
        "\u00bd",
        "x",
        "1\r",
        "5\\",
    ],
]
SECONDS = ["{}", "{}.5", "{}e0", " {}", "0{}"]
DATES = [
    *["2020-03-09 10:14:{:02d}", "2020-03-09T10:14:{:02d}", "2020-03-09T10:14:{:02d}.5", "2020-03-09 10:14:{:02d},25"],
    *["2020-03-09T10:14:{:02d}.123456789", "2020-03-09T10:14:{:02d}.1234567891", "2020-03-09 10:{:02d}"],
    *["20200309T1014{:02d}", "20200309 10:14:{:02d}", " 2020-03-09 10:14:{:02d}", "1600-03-09 10:14:{:02d}"],
    *["2500-03-09 10:14:{:02d}", "2020-02-{:02d}", "2020-03-09 {:02d}", "2020-02-29 24:00:{:02d}"],
    *["2020-03-09 10:14:{:02d}Z", "2020-03-09 10:14:{:02d}+01:00", "2020-03-09 10:14:{:02d} UTC"],
    *["2020-03-09 10:14:{:02d}-0130", "2020-03-09 10:14:{:02d}+05", "2020-03-09 10:14:{:02d} +01:00"],
    *["2020-03-09 10:14:{:02d}+05:60", "2020-03-09 10:14:{:02d}+23:59", "2020-03-09 10:14:{:02d}-24:00"],
]
ODD_DATES = [
    "2020-02-30 10:14:33",
    "2020-13-01 00:00",
    "2020-3-9",
    "2020/03/09",
    "now",
    "NaT",
    "",
    "2020-03-09 10:14:60",
]
FORMATS = {
    "%d.%m.%Y %H:%M:%S": "09.03.2020 10:14:{:02d}",
    "%d.%m.%Y %H:%M:%S.%f": "09.03.2020 10:14:{:02d}.25",
    "%Y%m%d%H%M%S": "20200309101{:03d}",
    "%m/%d/%Y %H:%M": "3/9/2020 10:{:02d}",
    "%Y-%m-%d %H:%M:%S": "2020-03-09 10:14:{:02d}",
    "%Y-%m-%dT%H:%M:%S%z": "2020-03-09T10:14:{:02d}+0100",
    "%d %b %Y %H:%M:%S": "09 Mar 2020 10:14:{:02d}",
    "%d.%m.%y %H:%M:%S": "09.03.20 10:14:{:02d}",
    "%H:%M:%S": "10:14:{:02d}",
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(table_layout, "_FIRST_BLOCK", 1)
    monkeypatch.setattr(table_layout, "_BLOCK", 60)
    monkeypatch.setattr(table_fast, "_LEAST_ROWS", 1)


@pytest.fixture
def readings(monkeypatch):
    """Counts of blocks by pandas, and of those that it left."""
    counts = {True: 0, False: 0}
    read = table_cells.read_block

    def counted(*arguments, **options):
        block = read(*arguments, **options)
        counts[block is not None] += 1
        return block

    monkeypatch.setattr(table_cells, "read_block", counted)
    return counts


def outcome(path, **options):
    """Everything that can be seen of an opened table: bits, labels, warnings, or the error."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            dataset = xr.open_dataset(path, engine="manifold-csv", **options)
        except Exception as error:
            return type(error), str(error)
    found = {
        name: (str(each.dtype), each.shape, np.ascontiguousarray(each).tobytes())
        for name, each in dataset.variables.items()
    }
    return found, str(dataset["recording"].attrs), [str(warning.message) for warning in heard]


def both(path, **options):
    """The outcome by blocks, and cell by cell."""
    with pytest.MonkeyPatch.context() as patch:
        by_blocks = outcome(path, **options)
        patch.setattr(table_cells._Reading, "by_blocks", lambda self: None)
        return by_blocks, outcome(path, **options)


@st.composite
def clocks(draw):
    """Cells of a clock as a format string, and options."""
    if draw(st.booleans()):
        return draw(st.sampled_from(SECONDS + DATES)), {}
    written = draw(st.sampled_from(list(FORMATS)))
    return FORMATS[written], {"time_format": written}


@st.composite
def tables(draw):
    """Text of a table that is good for the most part, and options to open it."""
    n_rows, n_columns = draw(st.integers(1, 20)), draw(st.integers(1, 3))
    delimiter, decimal = draw(st.sampled_from([",", ";", "\t", "|"])), draw(st.sampled_from([".", ".", ","]))
    options = draw(st.sampled_from([{}, *[{"decimal": decimal}] * 3]))
    options |= {} if delimiter != "|" else {"delimiter": "|"}
    options |= draw(
        st.sampled_from([*[{}] * 8, {"growing": True}, {"growing": True}, {"thousands": ","}, {"thousands": "."}])
    )
    pools = [draw(st.sampled_from([NUMBERS, WHOLE, WHOLE + NUMBERS])) for _ in range(n_columns)]
    rows = [[draw(st.sampled_from(pool)).replace(".", decimal) for pool in pools] for _ in range(n_rows)]
    clock, more = draw(clocks())
    header = [f"x{column}" for column in range(n_columns)]
    if has_clock := draw(st.booleans()):
        header, options = ["time", *header], options | more
        rows = [[clock.format(row), *cells] for row, cells in enumerate(rows)]
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        row = draw(st.integers(0, n_rows - 1))
        odd = draw(st.sampled_from(AWKWARD + ODD_DATES if has_clock else AWKWARD))
        rows[row][draw(st.integers(0, len(header) - 1))] = odd
    if draw(st.integers(0, 9)) == 0:
        rows[-1] = draw(st.sampled_from([rows[-1][:-1], [*rows[-1], "1"], [], ["", *rows[-1]]]))
    return written(draw, [header, *rows], delimiter), options


def written(draw, rows, delimiter):
    """Text of some rows, in one of the ways that programs have."""
    end, quoted = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"])), draw(st.sampled_from([False, False, True]))
    ends_empty = draw(st.sampled_from(["", "", "", delimiter, delimiter + " "]))
    padding = draw(st.sampled_from(["", "", " "]))
    text = ""
    for cells in rows:
        as_written = [f'"{cell}"' if quoted and '"' not in cell else cell for cell in cells]
        text += (delimiter + padding).join(as_written) + ends_empty + end
    return text[: len(text) - draw(st.sampled_from([0, 0, 0, 1]))]


def test_read__by_blocks_is_as_cell_by_cell(tmp_path, readings):
    path = tmp_path / "table.csv"

    @examples(200)
    @given(tables())
    def holds(drawn):
        text, options = drawn
        path.write_text(text, encoding="utf-8", newline="")
        by_blocks, by_cells = both(path, **options)
        assert by_blocks == by_cells

    holds()
    assert readings[True] > 3
    assert readings[False] > 10


@pytest.mark.parametrize(("cell", "decimal"), share(itertools.product([*AWKWARD, *NUMBERS, *WHOLE], ".,"), 3))
def test_read__an_awkward_cell_among_good_ones(tmp_path, cell, decimal):
    path = tmp_path / "table.csv"
    for among in ("1", "2.5"):
        rows = [[among.replace(".", decimal), "3"]] * 8
        rows[5] = [cell, "3"]
        text = "\n".join(";".join(row) for row in [["x", "y"], *rows]) + "\n"
        path.write_text(text, encoding="utf-8", newline="")
        by_blocks, by_cells = both(path, decimal=decimal)
        assert by_blocks == by_cells


CLOCKS = [*[({}, cell) for cell in SECONDS + DATES], *[({"time_format": f}, c) for f, c in FORMATS.items()]]
AMONG = itertools.product(CLOCKS, [None, *ODD_DATES, "1", "2020-03-09 10:14:00Z"])


@pytest.mark.parametrize(("clocked", "odd"), share(AMONG, 4))
def test_read__times_among_those_of_other_kinds(tmp_path, clocked, odd):
    options, clock = clocked
    path = tmp_path / "table.csv"
    cells = [clock.format(row) for row in range(1, 13)]
    cells[8] = cells[8] if odd is None else odd
    path.write_text("time;x\n" + "".join(f"{cell};1\n" for cell in cells), encoding="utf-8")
    by_blocks, by_cells = both(path, **options)
    assert by_blocks == by_cells


@pytest.mark.parametrize("clock", ["{}", DATES[0], DATES[1], DATES[4], DATES[15], DATES[16]])
def test_read__usual_times_are_read_by_pandas(tmp_path, readings, clock):
    path = tmp_path / "table.csv"
    path.write_text("time;x\n" + "".join(f"{clock.format(row)};1.5\n" for row in range(60)), encoding="utf-8")
    outcome(path)
    assert readings[True] > 5
    assert readings[False] == 0


@pytest.mark.parametrize("written", ["%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S"])
def test_read__times_of_a_given_format_are_read_by_pandas(tmp_path, readings, written):
    path = tmp_path / "table.csv"
    cells = [FORMATS[written].format(row) for row in range(60)]
    path.write_text("time;x\n" + "".join(f"{cell};1.5\n" for cell in cells), encoding="utf-8")
    outcome(path, time_format=written)
    assert readings[True] > 10
    assert readings[False] == 0


def test_read__random_numbers_have_the_bits_of_python(tmp_path, readings, monkeypatch):
    monkeypatch.setattr(table_layout, "_BLOCK", 2**21)
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    cells = [
        format(value, rng.choice([".3f", ".9g", ".17g", ".25e"])) if rng.random() > 0.5 else repr(float(value))
        for value in values
    ]
    path = tmp_path / "numbers.csv"
    path.write_text("x\n" + "".join(f"{cell}\n" for cell in cells if "nan" not in cell))
    read = xr.open_dataset(path, engine="manifold-csv", decimal=".")["recording"].values[:, 0]
    assert read.tobytes() == np.array([float(cell) for cell in cells if "nan" not in cell]).tobytes()
    assert readings[True] > 0
    assert readings[False] == 0


def test_read__a_quoted_row_over_two_blocks(tmp_path, readings):
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["x", "note"], *([["1.5", "a\nb"]] * 40), *([["x", "a\nb"]] * 1)])
    by_blocks, by_cells = both(path, drop_channels=["note"])
    assert by_blocks == by_cells
    assert "at line 83" in by_cells[1]
    assert readings == {True: 0, False: 0}
