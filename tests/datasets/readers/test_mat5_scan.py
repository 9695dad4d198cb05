"""Whatever SciPy writes passes the look at its structure; damage is refused before SciPy reads it."""

import contextlib
import warnings

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.datasets.readers.mat5_scan import scan_mat5
from strategies import examples

CELLS = np.empty((2, 2), object)
CELLS[:] = [[np.arange(3.0), "text"], [np.zeros((0, 0)), np.array([[1 + 2j]])]]
VALUES = {
    "table": np.random.default_rng(0).normal(size=(5, 3)),
    "whole": np.arange(4, dtype="i2"),
    "flag": np.array([True, False]),
    "cube": np.zeros((2, 3, 4), "f4"),
    "text": "words",
    "texts": np.array(["a", "bcd"]),
    "cells": CELLS,
    "struct": {"x": 1.0, "inner": {"y": np.arange(9)}},
    "many": np.array([(1, 2.0), (3, 4.0)], [("a", "O"), ("b", "O")]),
    "sparse": scipy.sparse.csc_array(np.eye(4)),
    "waves": scipy.sparse.csc_array(np.eye(4) * 1j),
    "nothing": np.zeros((0, 5)),
}


def written(folder, names, compressed):
    path = folder / "a.mat"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scipy.io.savemat(path, {name: VALUES[name] for name in names}, do_compression=compressed)
    return path


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", [*VALUES])
def test_scan__passes_what_scipy_writes(tmp_path, compressed, name):
    path = written(tmp_path, [name], compressed)
    scan_mat5("mat", str(path))
    scan_mat5("mat", str(path), name)


@examples(300)
@given(data=st.data())
def test_scan__passes_nothing_that_ends_the_process(data, tmp_path_factory):
    """What it lets through, SciPy reads or refuses; a crash would end the tests."""
    names = data.draw(st.lists(st.sampled_from([*VALUES]), min_size=1, unique=True))
    path = written(tmp_path_factory.mktemp("scan"), names, False)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(124, len(content) - 1))
        new = data.draw(st.binary(min_size=1, max_size=4))
        content[at : at + len(new)] = new
    path.write_bytes(content)
    refused = ""
    try:
        scan_mat5("mat", str(path))
    except ValueError as error:
        refused = str(error)
    if refused:
        assert "be a MATLAB file that adds up" in refused
        return
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        scipy.io.loadmat(path)


def test_compressed_data_that_grow__are_refused(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"x": np.zeros(40_000_000, "u1")}, do_compression=True)
    raw = (tmp_path / "a.mat").read_bytes()
    (tmp_path / "b.mat").write_bytes(raw[:-5])
    with pytest.raises(ValueError, match=r"adds up; got an element of type 15"):
        scan_mat5("mat", str(tmp_path / "b.mat"))
    scan_mat5("mat", str(tmp_path / "a.mat"))


def test_places_of_sparse_matrices__are_looked_at(tmp_path):
    path = written(tmp_path, ["sparse"], False)
    raw = bytearray(path.read_bytes())
    at = raw.index(np.arange(4, dtype="<i4").tobytes())
    raw[at : at + 4] = (10**6).to_bytes(4, "little")
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="places beyond those of a sparse matrix"):
        scan_mat5("mat", str(path))
