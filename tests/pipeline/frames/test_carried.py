"""What stands beside the samples of a recording stands beside its frames."""

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.join import concat

N = 60
VALUES = np.random.default_rng(0).normal(size=(N, 2))


def recording(**along):
    """Noise, with coordinates along time."""
    coords = {name: ("time", values) for name, values in along.items()}
    return xr.DataArray(VALUES, dims=("time", "channel"), coords=coords, attrs={"sampling_rate": 10.0})


def frames(**along):
    return mo.log_rms(recording(**along), frame=6)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (np.repeat(["W", "N1", "R"], 20), ["W"] * 3 + ["N1"] * 4 + ["R"] * 3),
        (np.repeat([b"W", b"N1", b"R"], 20), ["W"] * 3 + ["N1"] * 4 + ["R"] * 3),
        (np.repeat(np.array(["W", "N1", "R"], object), 20), ["W"] * 3 + ["N1"] * 4 + ["R"] * 3),
        (np.repeat([0, 5, 2], 20), [0] * 3 + [5] * 4 + [2] * 3),
        (np.repeat([0.0, 5.0, 2.0], 20), [0] * 3 + [5] * 4 + [2] * 3),
        (np.arange(N) >= 20, [False] * 3 + [True] * 7),
    ],
    ids=["words", "bytes", "objects", "integers", "whole floats", "flags"],
)
def test_labels__are_carried_by_majority(values, wanted):
    stage = frames(stage=values)["stage"]
    assert stage.dims == ("frame",)
    assert stage.values.tolist() == wanted
    assert stage.attrs["cell_methods"] == "time: majority"


def test_numbers__are_carried_by_mean():
    angle = np.arange(N) + 0.5
    angle[8] = np.nan
    found = frames(angle=angle)["angle"]
    expected = angle.reshape(10, 6).mean(axis=1)
    np.testing.assert_array_equal(found, expected)
    assert found.attrs["cell_methods"] == "time: mean"


def test_labels__of_overlapping_frames_and_of_segments():
    made = recording(stage=np.repeat([1, 2], 30), segment=np.repeat([0, 1], [25, 35]))
    found = mo.log_rms(made, frame=10, hop=5)
    assert found["segment"].values.tolist() == [0] * 4 + [1] * 6
    assert found["stage"].values.tolist() == [1] * 5 + [2] * 5


def test_labels__lazy_ones_give_the_same():
    stage = np.repeat([0, 5, 2], 20)
    lazily = recording(stage=stage).chunk(time=7)
    xr.testing.assert_equal(mo.log_rms(lazily, frame=6)["stage"], frames(stage=stage)["stage"])


def test_labels__outlive_a_store(tmp_path):
    made = frames(stage=np.repeat(["W", "N1", "R"], 20)).compute()
    made.to_dataset(name="frames").to_zarr(tmp_path / "a.zarr", consolidated=False)
    with xr.open_zarr(tmp_path / "a.zarr", consolidated=False) as stored:
        assert stored["stage"].values.tolist() == made["stage"].values.tolist()


def test_labels__of_joined_recordings_follow_each_other():
    first, second = frames(stage=np.full(N, "W")), frames(stage=np.full(N, "R"))
    joined = concat([first, second])
    assert joined["stage"].values.tolist() == ["W"] * 10 + ["R"] * 10


@pytest.mark.parametrize("name", ["state", "mode", "rate", "frame"])
def test_labels__do_not_hide_what_a_result_has(name):
    walked = recording(**{name: ["W"] * N}).cumsum("time").assign_attrs(sampling_rate=10.0)
    made = mo.identity(walked)
    assert name not in made.coords
    state = mo.observe(mo.embed(made, n_modes=2), made)
    assert state["state"].dims == ("frame", "mode")
    assert set(state[f"{name}_label"].values) == {"W"}


@pytest.mark.parametrize("name", ["time", "channel", "recording", "state"])
def test_labels__of_a_table_do_not_hide_what_a_recording_has(tmp_path, name):
    rows = [f"2024-03-01 00:{row:02d}:00,{row % 7 + row / 9},{'WN'[row > 30]}" for row in range(N)]
    (tmp_path / "a.csv").write_text("\n".join([f"date,level,{name}", *rows, ""]))
    opened = mo.open_recording(tmp_path / "a.csv", time_column="date", labels=name)
    assert opened["channel"].values.tolist() == ["level"]
    assert opened["time"].values[-1] == 60 * (N - 1)
    assert opened[f"{name}_label"].values.tolist() == ["W"] * 31 + ["N"] * (N - 31)
