"""Numbers whose digits are grouped are read as their writer meant them, or asked about."""

import numpy as np
import pytest
import xarray as xr

from manifold_observer.datasets.readers.digits import grouping_mark, number


@pytest.fixture
def table(tmp_path):
    def write(text):
        (tmp_path / "a.csv").write_text(text)
        return tmp_path / "a.csv"

    return write


def values(path, **options):
    return xr.open_dataset(path, **options)["recording"].values


@pytest.mark.parametrize(
    ("text", "cell", "line", "mark"),
    [
        ('x,y\n"1,234",5\n"998",6\n', "1,234", 2, ","),
        ("x;y\n1,234;5\n2,345;6\n", "1,234", 2, ","),
        ("x;y\n998;5\n1.234;6\n", "1.234", 3, "."),
        ("x;y\n1.234;5\n5.678;6\n", "1.234", 2, "."),
        ("x\ty\n998\t5\n1.002\t6\n", "1.002", 3, "."),
        ("x;y\n" + "998;5\n" * 5000 + "1.002;6\n", "1.002", 5002, "."),
        ('x,y\n"-1,234",5\n2,6\n', "-1,234", 2, ","),
    ],
)
def test_open__asks_what_a_mark_means(table, text, cell, line, mark):
    must = rf"decimal mark unambiguously; got '{cell}' in column 'x' at line {line}, .*thousands='{mark}'.*decimal="
    with pytest.raises(ValueError, match=must):
        values(table(text))


@pytest.mark.parametrize(
    ("cell", "mark"),
    [
        ("1,234.5", ","),
        ("1.234,5", "."),
        ("1 234", " "),
        ("1 234,5", " "),
        ("1\u00a0234", " "),
        ("1\u202f234.25", " "),
        ("1'234", "'"),
        ("1\u2019234.5", "'"),
        ("1.234.567", "."),
        ("1,234,567", ","),
        ("12 345 678", " "),
    ],
)
def test_open__names_the_option_for_digits_in_groups(table, cell, mark):
    path = table(f"x\ty\n1\t2\n{cell}\t3\n")
    with pytest.raises(ValueError, match="at line 3") as refused:
        values(path)
    assert f"thousands={mark!r}" in str(refused.value)
    plain = (
        cell.replace("\u2019", "'").replace("\u00a0", " ").replace("\u202f", " ").replace(mark, "").replace(",", ".")
    )
    assert values(path, thousands=mark)[1, 0] == float(plain)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("x;y\n1,234;0,5\n2,345;1,5\n", 1.234),  # no group has one digit, so the comma is no group
        ("x;y\n1,2345;5\n2,345;6\n", 1.2345),
        ("x;y\n0,123;5\n2,345;6\n", 0.123),
        ("x,y\n1.234,5.001\n2.345,6.002\n", 1.234),  # as programs print three decimals
        ("x\ty\n1.234\t5\n2.345\t6\n", 1.234),
        ("x;y\n998.5;5\n1.234;6\n", 998.5),
        ("x;y\n1234;5\n2345;6\n", 1234),
    ],
)
def test_open__reads_what_is_clear(table, text, first):
    assert values(table(text))[0, 0] == first


def test_open__is_told(table):
    path = table("x;y\n1,234;5\n2,345;6\n")
    np.testing.assert_array_equal(values(path, decimal=","), [[1.234, 5], [2.345, 6]])
    np.testing.assert_array_equal(values(path, thousands=","), [[1234, 5], [2345, 6]])
    np.testing.assert_array_equal(values(table("x;y\n1.234,5;5\n2,5;6\n"), thousands="."), [[1234.5, 5], [2.5, 6]])


@pytest.mark.parametrize("cell", ["1,23", "12,34", "1,2345", ",123", "1,,234", "1,234,56"])
def test_number__groups_must_be_whole(cell):
    with pytest.raises(ValueError, match=cell):
        number(cell, thousands=",")


@pytest.mark.parametrize(("cell", "mark"), [("1.5", None), ("", None), ("1,5", None), ("a,bcd", None), ("1 234", " ")])
def test_grouping_mark(cell, mark):
    assert grouping_mark(cell) == mark


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"thousands": ";"}, "thousands must be one of"),
        ({"thousands": ",", "decimal": ","}, "and not the decimal mark"),
        ({"decimal": "x"}, r"decimal must be '\.' or ','"),
        ({"channels_first": True}, r"channels_first is for \.npy files"),
    ],
)
def test_options__are_checked(table, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        values(table("x,y\n1,2\n"), **options)
