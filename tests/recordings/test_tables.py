"""Real tables, and real faults put into them."""

import numpy as np
import pytest
import xarray as xr


def test_semicolon_file__has_the_values_of_its_source(recordings, awkward):
    ours = xr.open_dataset(awkward / "derived" / "csv_semicolon_decimal_comma.csv")
    source = xr.open_dataset(recordings / "skab/valve1_0.csv").isel(time=slice(300))
    np.testing.assert_array_equal(ours["recording"], source["recording"].sel(channel=ours["channel"]))
    np.testing.assert_array_equal(ours["time"], source["time"])
    assert ours["time"].attrs["start_time"] == "2020-03-09T10:14:33"


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("csv_gap_dups_nan_sentinel_const.csv", {}, "2020-03-09T10:14:43 at line 13, which repeats"),
        ("csv_shuffled_rows.csv", {}, "2020-03-09T10:17:50 at line 3, which goes backwards"),
        ("csv_local_time_dst_fall_back.csv", {}, "'25.10.2020 02:00' at line 2. Give time_format="),
        (
            "csv_local_time_dst_fall_back.csv",
            {"time_format": "%d.%m.%Y %H:%M"},
            "2020-10-25T02:00:00 at line 62, which goes backwards from 2020-10-25T02:59:00",
        ),
    ],
)
def test_awkward_clock__is_refused(awkward, name, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        xr.open_dataset(awkward / "derived" / name, **options)


def test_awkward_table__is_read_without_its_clock(awkward):
    dataset = xr.open_dataset(awkward / "derived" / "csv_gap_dups_nan_sentinel_const.csv", sampling_rate=1.0)
    assert dataset["recording"].isnull().any()
    assert (dataset["recording"] == -200).any()  # a sentinel is a value until the user says otherwise
