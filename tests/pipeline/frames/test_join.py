"""Recordings become segments of one, on one clock."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

from manifold_observer.pipeline.frames.join import concat


def part(first=0.5, n=2, start=None, p=1, period=1.0, segment=None):
    attrs = {"start_time": start} if start else {}
    return xr.DataArray(
        da.full((n, p), first, chunks=(1, p)),
        dims=("frame", "feature"),
        attrs={"frame_period": period, "unused_samples": 3, "features": "log_rms"},
        coords={
            "time": ("frame", first + period * np.arange(n), attrs),
            "segment": ("frame", np.zeros(n, np.int64) if segment is None else np.array(segment)),
        },
    )


def test_join__one_is_itself():
    one = part()
    assert concat([one]) is one


@pytest.mark.usefixtures("no_compute")
def test_join__is_lazy_and_keeps_what_the_frames_are():
    joined = concat([part(), part(), part()])
    assert joined.sizes == {"frame": 6, "feature": 1}
    assert joined.attrs["features"] == "log_rms"
    assert joined.attrs["unused_samples"] == 9


def test_join__a_clock_that_starts_over_is_moved_on():
    joined = concat([part(), part(), part()])
    assert joined["time"].values.tolist() == [0.5, 1.5, 3.5, 4.5, 6.5, 7.5]
    assert joined.attrs["time_shifts"] == [0.0, 3.0, 6.0]


def test_join__a_clock_that_goes_on_is_kept():
    joined = concat([part(), part(5.5), part(60.0)])
    assert joined["time"].values.tolist() == [0.5, 1.5, 5.5, 6.5, 60.0, 61.0]
    assert joined.attrs["time_shifts"] == [0.0, 0.0, 0.0]


def test_join__segments_grow_from_part_to_part():
    joined = concat([part(segment=[0, 1]), part(segment=[0, 0]), part(segment=[0, 1])])
    assert joined["segment"].values.tolist() == [0, 1, 2, 2, 3, 4]


@pytest.mark.parametrize("zone", ["", "Z"])
def test_join__date_times_say_how_far_apart(zone):
    starts = [f"2020-03-09T12:00:{second}{zone}" for second in ("00", "10", "25")]
    joined = concat([part(start=start) for start in starts])
    assert joined["time"].values.tolist() == [0.5, 1.5, 10.5, 11.5, 25.5, 26.5]
    assert joined.attrs["time_shifts"] == [0.0, 10.0, 25.0]
    assert joined["time"].attrs["start_time"] == starts[0]


def test_join__date_times_with_and_without_zone_cannot_be_compared():
    joined = concat([part(start="2020-03-09T12:00:00Z"), part(start="2020-03-09T12:00:10")])
    assert joined["time"].values.tolist() == [0.5, 1.5, 3.5, 4.5]


def test_join__date_times_in_the_wrong_order_are_refused():
    parts = [part(start="2020-03-09T12:00:10"), part(start="2020-03-09T12:00:00")]
    with pytest.raises(ValueError, match=r"must follow each other in time; got one from 2020-03-09T12:00:00"):
        concat(parts)
    with pytest.raises(ValueError, match="must follow each other in time"):
        concat([part(start="2020-03-09T12:00:00"), part(start="2020-03-09T12:00:01")])


def test_join__other_features_or_periods_are_refused():
    with pytest.raises(ValueError, match="must have the 1 features of the first; got 2"):
        concat([part(), part(p=2)])
    with pytest.raises(ValueError, match=r"must have the frame period of the first, 1 s; got 2 s"):
        concat([part(), part(period=2.0)])


def test_join__parts_may_come_one_by_one():
    joined = concat(part(start=start) for start in ("2020-03-09T12:00", "2020-03-10T12:00"))
    assert joined.sizes["frame"] == 4
    dated = [
        each.assign_coords(time=("frame", DAYS + np.timedelta64(k, "D"))) for k, each in enumerate((part(), part()))
    ]
    assert concat(each for each in dated)["segment"].values.tolist() == [0, 0, 1, 1]


DAYS = np.array(["2020-03-09T12:00:00", "2020-03-09T12:00:01"], "datetime64[ns]")


@pytest.mark.parametrize(
    ("parts", "error", "sentence"),
    [
        (part(), TypeError, "concat: parts must be a list of the frames of each recording; got a DataA"),
        ([part(), part()[:0]], ValueError, "the frames of recording 2 must hold at least 1 frame; got 0"),
        ([part().rename(frame="time_", feature="channel")] * 2, ValueError, "must have dims .frame, feature.; got"),
        (
            [part().drop_vars("segment"), part()],
            ValueError,
            "recording 1 must have 'time'.*; got no 'segment'",
        ),
    ],
)
def test_join__what_is_no_frames_is_refused_in_words(parts, error, sentence):
    with pytest.raises(error, match=sentence):
        concat(parts)


def test_join__what_only_some_recordings_have_beside_is_left_out_and_told():
    with_stage = part().assign_coords(stage=("frame", ["W", "N"]))
    assert concat([with_stage, with_stage])["stage"].values.tolist() == ["W", "N"] * 2
    with pytest.warns(UserWarning, match="concat: only some recordings have 'stage', which is left out"):
        assert "stage" not in concat([with_stage, part()]).coords
