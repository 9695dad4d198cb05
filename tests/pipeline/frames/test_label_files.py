"""Frames get the label that covers most of them, by the clock that recording and labels share."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.label_place import file_for, names_file
from strategies import examples


def recorded(n, rate=1.0, start=0.0, start_time=None):
    """A recording whose seconds count from a start."""
    note = {} if start_time is None else {"start_time": start_time}
    time = xr.Variable("time", start + np.arange(n) / rate, {"units": "s", **note})
    return xr.DataArray(np.ones((n, 1)), dims=("time", "channel"), coords={"time": time}, attrs={"sampling_rate": rate})


def labelled(start, stop, text, start_time=None, dated=0):
    note = {} if start_time is None else {"start_time": start_time}
    return xr.Dataset(
        {"label": ("time", np.array(text, str))},
        {"time": ("time", np.array(start, float), note), "stop": ("time", np.array(stop, float))},
        {"dated": dated},
    )


def by_hand(begin, end, start, stop, text):
    """The rule, one frame after the other."""
    answer = []
    for a, b in zip(begin, end, strict=True):
        covered, instants = {}, {}
        for x, y, name in zip(start, stop, text, strict=True):
            if y > x and min(b, y) > max(a, x):
                covered[name] = covered.get(name, 0) + min(b, y) - max(a, x)
            if y == x and a <= x < b:
                instants[name] = instants.get(name, 0) + 1
        bare = (b - a) - sum(covered.values())
        best = min(covered, key=lambda name: (-covered[name], name), default="")
        if not covered or covered[best] < bare:
            best = min(instants, key=lambda name: (-instants[name], name), default="")
        answer.append(best)
    return answer


@examples(150)
@pytest.mark.filterwarnings("ignore:label_frames. labels reach to")
@given(data=st.data())
def test_label_frames__is_the_largest_part(data):
    frame, hop = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    n = frame + hop * data.draw(st.integers(0, 12))
    count = data.draw(st.integers(1, 8))
    start = [data.draw(st.integers(-4, n)) for _ in range(count)]
    stop = [a + data.draw(st.integers(0, 9)) for a in start]
    text = [data.draw(st.sampled_from("abc")) for _ in range(count)]
    frames = mo.log_rms(recorded(n), frame=frame, hop=hop)
    begin = np.arange(frames.sizes["frame"]) * hop
    expected = by_hand(begin, begin + frame, start, stop, text)
    if not any(expected):
        with pytest.raises(ValueError, match="labels must lie within the frames"):
            mo.label_frames(frames, labelled(start, stop, text))
        return
    assert mo.label_frames(frames, labelled(start, stop, text)).label.values.tolist() == expected


def test_gaps__do_not_shift_labels():
    time = np.r_[0:4, 100:104].astype(float)
    recording = recorded(8).assign_coords(time=("time", time))
    frames = mo.log_rms(recording, frame=2)
    labels = labelled([0, 2, 102], [2, 101, 104], ["a", "b", "c"])
    assert mo.label_frames(frames, labels).label.values.tolist() == ["a", "b", "b", "c"]


@pytest.mark.parametrize(
    ("own", "other", "shift"),
    [
        ("2020-01-01T00:00:00", "2020-01-01T00:00:03", 3),
        ("2020-01-01T00:00:03Z", "2020-01-01T00:00:01Z", -2),
        (None, "2020-01-01T00:00:03", 0),
        ("2020-01-01T00:00:00", None, 0),
    ],
)
def test_starts__are_compared_where_both_are_known(own, other, shift):
    frames = mo.identity(recorded(8, start_time=own))
    labels = mo.label_frames(frames, labelled([3], [5], ["x"], other)).label.values
    assert np.flatnonzero(labels == "x").tolist() == [3 + shift, 4 + shift]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_frames_with_dates__are_labelled_alike(zone):
    stamps = np.datetime64("2020-01-01T00:00:10", "ns") + np.arange(12).astype("timedelta64[s]")
    note = {} if zone is None else {"timezone": zone}
    dated = recorded(12).assign_coords(time=("time", stamps, note))
    frames = mo.log_rms(dated, frame=3)
    start = "2020-01-01T00:00:10" + ("" if zone is None else "Z")
    for labels in (labelled([3], [6], ["x"]), labelled([0], [3], ["x"], start.replace(":10", ":13"), dated=1)):
        assert mo.label_frames(frames, labels).label.values.tolist() == ["", "x", "", ""]


def test_dates__need_a_recording_with_one():
    frames = mo.identity(recorded(8))
    with pytest.raises(ValueError, match="labels with dates need a recording whose start is known"):
        mo.label_frames(frames, labelled([3], [5], ["x"], "2020-01-01T00:00:03", dated=1))


def test_coordinate__goes_through_everything():
    rng = np.random.default_rng(0)
    recording = xr.DataArray(
        rng.normal(size=(300, 3)).cumsum(0), dims=("time", "channel"), attrs={"sampling_rate": 1.0}
    )
    frames = mo.label_frames(mo.identity(recording), labelled([0, 150], [150, 300], ["a", "b"]))
    state = mo.observe(mo.embed(frames, n_modes=2), frames)
    assert state.label.values.tolist() == ["a"] * 150 + ["b"] * 150


def test_names_file__and_places(tmp_path):
    (tmp_path / "x.csv").write_text("a")
    assert names_file(str(tmp_path / "x.csv"))
    assert names_file((str(tmp_path / "x.csv"),))
    assert not names_file(("a", "b"))
    assert not names_file("stage")
    assert file_for("l/{stem}-{name}.csv", "r/n1.edf") == "l/n1-n1.edf.csv"


@pytest.mark.parametrize("start", [0.0, 1000.0, 1.6e9])
def test_label_frames__an_instant_at_a_border_is_in_the_later_frame_however_times_round(start):
    frames = mo.log_rms(recorded(2000, 100.0, start), frame="0.5s")
    at = start + np.arange(1, 19)
    found = mo.label_frames(frames, labelled(at, at, [str(k) for k in range(1, 19)]))
    places = np.flatnonzero(found["label"].values != "")
    assert places.tolist() == [2 * k for k in range(1, 19)]


def test_label_frames__date_times_in_a_dataset_count_from_the_recording():
    day = np.datetime64("2020-03-09T12:00", "ns")
    second = np.timedelta64(1, "s")
    labels = xr.Dataset(
        {"label": ("time", ["a", "b"])},
        {"time": day + np.array([1, 3]) * second, "stop": ("time", day + np.array([3, 4]) * second)},
    )
    dated = recorded(6, start_time="2020-03-09T12:00:00")
    assert mo.label_frames(mo.identity(dated), labels)["label"].values.tolist() == ["", "a", "a", "b", "", ""]


@pytest.mark.parametrize(
    ("labels", "got"),
    [
        ("labels.csv", "got a str. Open the file"),
        (xr.Dataset({"label": ("time", ["a"])}, {"time": [0.0]}), "got a Dataset without 'stop'"),
    ],
)
def test_label_frames__what_is_no_labels_is_refused_in_words(labels, got):
    with pytest.raises(TypeError, match=f"label_frames: labels must be a Dataset as mo.open_labels gives it.*{got}"):
        mo.label_frames(mo.identity(recorded(6)), labels)


def test_label_frames__labels_that_reach_far_beyond_the_frames_are_told():
    with pytest.warns(UserWarning, match="labels reach to 4000 s, frames from 0 to 40 s. If the labels count samples"):
        mo.label_frames(mo.identity(recorded(40)), labelled([0, 1000], [1000, 4000], ["a", "b"]))


@pytest.mark.parametrize("dated", [False, True])
def test_label_frames__seconds_count_from_the_recording_for_some_of_its_frames_too(dated):
    recording = recorded(40)
    if dated:
        dates = np.datetime64("2020-03-09T12:00", "ns") + np.arange(40) * np.timedelta64(1, "s")
        recording = recording.drop_vars("time").assign_coords(time=dates)
    frames = mo.log_rms(recording, frame=4)
    whole = mo.label_frames(frames, labelled([0.0, 12.0], [12.0, 40.0], ["a", "b"]))
    some = mo.label_frames(frames[2:], labelled([0.0, 12.0], [12.0, 40.0], ["a", "b"]))
    assert whole["label"].values.tolist() == ["a"] * 3 + ["b"] * 7
    assert some["label"].values.tolist() == ["a"] + ["b"] * 7
