"""Wide and odd tables are read in a time that grows with their size, or refused."""

import time

import numpy as np
import pytest
import xarray as xr

from manifold_observer.datasets.readers.table_layout import unique_labels


def write(path, rows):
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def test_labels__3000_that_are_equal_take_no_time(tmp_path):
    began = time.process_time()
    path = write(tmp_path / "a.csv", [["x"] * 3000, *np.arange(6000).reshape(2, 3000)])
    recording = xr.open_dataset(path)["recording"]
    assert time.process_time() - began < 5
    assert recording["channel"].values[[0, 1, -1]].tolist() == ["x", "x_2", "x_3000"]
    np.testing.assert_array_equal(recording.values, np.arange(6000).reshape(2, 3000))


def test_labels__that_collide_again_and_again():
    labels = ["x"] * 2000 + [f"x_{k}" for k in range(2, 2000)]
    began = time.process_time()
    found = unique_labels(labels)
    assert time.process_time() - began < 5
    assert len(set(found)) == len(labels)
    assert found[0] == "x"
    assert found[2000:] == tuple(labels[2000:])


@pytest.mark.parametrize("n", [5_000, 30_000])
def test_columns__many_are_read(tmp_path, n):
    values = np.arange(3 * n).reshape(3, n)
    path = write(tmp_path / "a.csv", [[f"sensor_{k}" for k in range(n)], *values])
    np.testing.assert_array_equal(xr.open_dataset(path)["recording"].values, values)


def test_columns__far_more_than_rows_without_names_are_asked_about(tmp_path):
    values = np.arange(3 * 5000).reshape(3, 5000)
    path = write(tmp_path / "a.csv", values)
    with pytest.raises(
        ValueError, match=r"3 samples of 5000 channels, which looks like \(channel, time\): transpose the table"
    ):
        xr.open_dataset(path)
    np.testing.assert_array_equal(xr.open_dataset(path, channels_first=False)["recording"].values, values)
