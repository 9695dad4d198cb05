"""What users have just works, or ends in one sentence at the call; date-times come back to who gave some."""

import datetime
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.dates import as_calendar, from_calendar, in_dates, in_seconds
from strategies import share, smooth_motion

N = 300
CONFIG = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
START = np.datetime64("2020-03-09T12:00:00.25", "ns")
VALUES = smooth_motion(np.random.default_rng(0), N, 3)
DATES = START + np.arange(N) * np.timedelta64(10, "ms")


def recording(**coords):
    known = {"time": np.arange(N) * 0.01, "channel": ["a", "b", "c"], **coords}
    return xr.DataArray(VALUES, dims=("time", "channel"), coords=known)


FRAMES = mo.identity(recording())
EMBEDDING = mo.embed(FRAMES, n_modes=2)
SESSION = pd.MultiIndex.from_arrays([np.repeat([0, 1], N // 2), np.tile(np.arange(N // 2), 2)], names=("s", "k"))
PROBES = pd.MultiIndex.from_arrays([["p", "p", "q"], [1, 2, 1]], names=("probe", "unit"))


def with_segment(values):
    return FRAMES.assign_coords(segment=("frame", np.repeat(np.array(values), N // 2)))


TAKEN = {
    "numpy": lambda: VALUES,
    "dask": lambda: da.from_array(VALUES, chunks=(70, 3)),
    "transposed": FRAMES.transpose,
    "text segments": lambda: with_segment(["night", "day"]),
    "float segments": lambda: with_segment([2.0, 1.0]),
    "dated": lambda: FRAMES.assign_coords(time=("frame", DATES)),
    "timedeltas": lambda: FRAMES.assign_coords(time=("frame", DATES - START)),
    "MultiIndex of frames": lambda: FRAMES.drop_vars("time").assign_coords(
        xr.Coordinates.from_pandas_multiindex(SESSION, "frame")
    ),
    "MultiIndex of features": lambda: FRAMES.drop_vars("channel").assign_coords(
        xr.Coordinates.from_pandas_multiindex(PROBES, "feature")
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*no channel names")
@pytest.mark.parametrize("name", share(TAKEN, 3))
def test_frames__what_users_have_is_embedded_observed_and_stored(tmp_path, name):
    frames = TAKEN[name]()
    embedding = mo.embed(frames, n_modes=2)
    one_segment = "segment" not in name
    if one_segment:
        np.testing.assert_array_equal(embedding["coordinate"], EMBEDDING["coordinate"])
    state = mo.observe(embedding, frames)
    for result in (embedding, state, mo.smooth(embedding, frames), mo.extend(embedding, frames[:60])):
        result.to_zarr(tmp_path / "a.zarr", mode="w", zarr_format=3, consolidated=False)
        result.to_netcdf(tmp_path / "a.nc")


def test_frames__text_segments_are_numbered_in_their_order():
    state = mo.observe(EMBEDDING, with_segment(["night", "day"]))
    assert np.unique(state["segment"]).tolist() == [0, 1]
    assert state["segment"].attrs["names"] == ["night", "day"]
    expected = mo.observe(EMBEDDING, with_segment([0, 1]))
    np.testing.assert_array_equal(state["state"], expected["state"])


REFUSED = {
    "Dataset": (lambda: FRAMES.to_dataset(name="x"), r"got a Dataset with x\. Choose a variable, as in dataset\['x'\]"),
    "DataFrame": (lambda: pd.DataFrame(VALUES), r"got a pandas\.DataFrame\. Choose its columns of numbers"),
    "list": (lambda: [1, 2], r"got list\. Wrap it: xr\.DataArray"),
    "one dimension": (lambda: VALUES[:, 0], r"got an array of shape \(300,\)"),
    "joined by hand": (
        lambda: xr.concat([FRAMES, FRAMES], "frame"),
        r"got 2\.99 and 0 s at frames 299 and 300.*mo\.concat",
    ),
    "text times": (lambda: FRAMES.assign_coords(time=("frame", list("abc" * 100))), "numbers of seconds or date-times"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize(
    "call", [mo.embed, mo.tune, mo.plan, lambda f: mo.observe(EMBEDDING, f), lambda f: mo.extend(EMBEDDING, f)]
)
def test_frames__what_cannot_be_is_one_sentence(name, call):
    make, message = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=message):
        call(make())


@pytest.mark.parametrize("call", [mo.observe, mo.smooth, mo.extend])
def test_embedding__swapped_arguments_are_told(call):
    with pytest.raises(
        TypeError, match=r"embedding must be the Dataset that mo\.embed or mo\.read_embedding gives; got a DataArray"
    ):
        call(FRAMES, EMBEDDING)


@pytest.mark.parametrize(
    "frame", [np.timedelta64(100, "ms"), datetime.timedelta(milliseconds=100), pd.Timedelta("100ms")]
)
def test_frame__may_be_a_timedelta(frame):
    np.testing.assert_array_equal(mo.log_rms(recording(), frame=frame), mo.log_rms(recording(), frame="100ms"))


# ------------------------------------------------------------------------------------------------------- date-times


def test_dates__in_and_out_of_every_function():
    dated, plain = recording(time=DATES), recording()
    for make in (mo.identity, lambda r: mo.log_rms(r, frame=2), lambda r: mo.stft(r, frame=4, hop=2)):
        frames, expected = make(dated), make(plain)
        ticks = np.rint(expected["time"].values * 1e9).astype("timedelta64[ns]")
        np.testing.assert_array_equal(frames["time"], START + ticks)
    frames = mo.identity(dated)
    embedding = mo.embed(frames, n_modes=2)
    results = [
        embedding,
        mo.observe(embedding, frames),
        mo.smooth(embedding, frames),
        mo.extend(embedding, frames[:50]),
    ]
    results.append(mo.innovations(embedding, frames, results[1]))
    results += mo.baselines(embedding, frames).values()
    for result in results:
        np.testing.assert_array_equal(result["time"], frames["time"][: result.sizes["frame"]])
    np.testing.assert_array_equal(embedding["coordinate"], EMBEDDING["coordinate"])


@pytest.mark.slow
def test_dates__go_on_from_a_carry():
    frames = mo.identity(recording(time=DATES))
    embedding = mo.embed(frames[:200], n_modes=2)
    first = mo.observe(embedding, frames[:250])
    second = mo.observe(embedding, frames[250:], carry=first["carry"])
    whole = mo.observe(embedding, frames)
    np.testing.assert_array_equal(np.concatenate([first["state"], second["state"]]), whole["state"])
    later = frames[250:].assign_coords(time=("frame", frames["time"].values[250:] + np.timedelta64(1, "D")))
    anew = mo.observe(embedding, later, carry=first["carry"])
    np.testing.assert_array_equal(anew["state"], mo.observe(embedding, later)["state"])


def test_dates__concat_keeps_absolute_time():
    one, other = mo.identity(recording(time=DATES)), mo.identity(recording(time=DATES + np.timedelta64(1, "D")))
    joined = mo.concat([one, other])
    np.testing.assert_array_equal(joined["time"], np.concatenate([one["time"], other["time"]]))
    assert np.unique(joined["segment"]).tolist() == [0, 1]
    with pytest.raises(ValueError, match="must follow each other in time"):
        mo.concat([other, one])


@pytest.mark.parametrize("days", [1, 1000])
def test_dates__there_and_back(days):
    dates = START + np.arange(0, days * 24, 7) * np.timedelta64(3600, "s") + np.timedelta64(123457, "us")
    frames = xr.DataArray(np.zeros((len(dates), 1)), dims=("frame", "feature"), coords={"time": ("frame", dates)})
    np.testing.assert_array_equal(in_dates(in_seconds(frames))["time"], dates)


@pytest.mark.slow
def test_dates__are_cf_on_disk(tmp_path):
    (tmp_path / "a.csv").write_text(
        "time,x,y\n"
        + "\n".join(f"{date},{x!r},{y!r}" for date, (x, y) in zip(DATES, VALUES[:, :2].tolist(), strict=True))
        + "\n"
    )
    config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    result = mo.run([tmp_path / "a.csv"], tmp_path / "a.zarr", config)
    np.testing.assert_array_equal(result["state/time"], DATES)
    opened = xr.open_datatree(tmp_path / "a.zarr", engine="zarr", consolidated=False)["state/time"]
    assert abs(opened.values - DATES).max() <= np.timedelta64(1, "ns")  # xarray cuts where this rounds
    assert mo.read_embedding(tmp_path / "a.zarr")["time"].dtype.kind == "M"
    raw = xr.open_datatree(tmp_path / "a.zarr", engine="zarr", consolidated=False, decode_times=False)["state/time"]
    assert raw.attrs["units"].startswith("seconds since 2020-03-09T12:00:00.25")


def test_calendar__there_and_back():
    time = ("frame", [0.5, 1.5], {"units": "s", "start_time": "2020-03-09T12:00Z", "long_name": "x"})
    plain = xr.Dataset(coords={"time": time})
    assert from_calendar(as_calendar(plain)).identical(plain)
    assert xr.decode_cf(as_calendar(plain))["time"].values[0] == np.datetime64("2020-03-09T12:00:00.5")


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (lambda: mo.embed("frames.zarr"), TypeError, r"got 'frames.zarr'\. Open recordings with mo.open_recording"),
        (lambda: mo.stft(Path("a.wav"), frame=8), TypeError, "stft: recording must be .*; got 'a.wav'"),
        (lambda: mo.load(None), TypeError, r"place: it must be a path, .*; got NoneType\. Name the file"),
        (lambda: mo.open_recording(np.zeros(3)), TypeError, "must be a path, .*; got ndarray"),
        (lambda: mo.run([xr.DataArray(0)], "b.zarr", CONFIG), TypeError, "must be a path, .*; got DataArray"),
        (
            lambda: mo.run("a.npy", "b.zarr", "identity"),
            TypeError,
            r"config must be a RunConfig; got str\. Write mo.Run",
        ),
        (lambda: mo.observe(xr.DataTree(), np.eye(2)), TypeError, r"got a DataTree with the groups \. Give the"),
        (lambda: mo.progress("bar").__enter__(), TypeError, "file must be open for writing, .*; got 'bar'"),
        (
            lambda: mo.reconstruct(xr.Dataset({"lift": ("feature", [0.0])}), [1]),
            TypeError,
            "reconstruct: state must be",
        ),
    ],
)
def test_given__what_is_typed_in_a_notebook_is_refused_in_a_sentence(call, kind, match):
    with pytest.raises(kind, match=match):
        call()


@pytest.mark.slow
def test_given__a_single_recording_needs_no_list(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0))
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npy"):
        mo.run(str(tmp_path / "nowhere.npy"), tmp_path / "b.zarr", CONFIG)
    tree = mo.run(str(tmp_path / "a.npy"), tmp_path / "b.zarr", CONFIG)
    assert tree.attrs["sources"] == [str(tmp_path / "a.npy")]
    np.save(tmp_path / "c.npy", np.random.default_rng(1).normal(size=(60, 2)).cumsum(axis=0))
    assert mo.continue_run(tmp_path / "b.zarr", tmp_path / "c.npy", tmp_path / "more").added == 60
