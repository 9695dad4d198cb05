"""Recordings in other units are converted or refused where they are joined, never added up as they are."""

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.recording import clock
from manifold_observer.pipeline.frames.units import alike, in_units, power_of_ten, seconds_in
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.run import plan_run, run
from manifold_observer.pipeline.jobs.stream import continue_run, stream_dataset

pytestmark = pytest.mark.usefixtures("in_this_thread")
WALK = np.random.default_rng(0).normal(size=(160, 3)).cumsum(axis=0)
CONFIG = RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2, window=9))


def stored(path, values, units, channels=("a", "b", "c")):
    attrs = {} if units is None else {"units": units}
    recording = xr.DataArray(values, dims=("time", "channel"), coords={"channel": list(channels)}, attrs=attrs)
    recording.to_dataset(name="recording").to_netcdf(path, engine="scipy")
    return path


@pytest.mark.parametrize(
    ("text", "power", "base"),
    [
        ("V", 0, "V"),
        ("mV", -3, "V"),
        ("uV", -6, "V"),
        ("µV", -6, "V"),
        ("μV", -6, "V"),
        ("millivolts", -3, "V"),
        ("ms", -3, "s"),
        ("kHz", 3, "Hz"),
        ("kΩ", 3, "Ohm"),
        ("MΩ", 6, "Ohm"),
    ],
)
def test_power_of_ten(text, power, base):
    assert power_of_ten(text) == (power, base)


@pytest.mark.parametrize("text", ["counts", "1", "degC", "mmHg", "V^2", "mVolt s", ""])
def test_power_of_ten__is_not_guessed(text):
    assert power_of_ten(text) is None


@pytest.mark.parametrize(("text", "seconds"), [("s", 1), ("ms", 1e-3), ("usec", 1e-6), ("min", 60), ("V", None)])
def test_seconds_in(text, seconds):
    assert seconds_in(text) == (None if seconds is None else pytest.approx(seconds, rel=1e-15))


def test_in_units__rounds_once():
    millivolts = xr.DataArray(WALK, attrs={"units": "mV", "source": "a"})
    converted = in_units(millivolts, "V", "run")
    np.testing.assert_array_equal(converted.values, WALK / 1000)
    assert converted.attrs == {"units": "V", "source": "a"}
    assert in_units(millivolts, "mV", "run") is millivolts
    assert in_units(millivolts, None, "run") is millivolts
    assert in_units(xr.DataArray(WALK), "V", "run").attrs == {}


def test_in_units__another_spelling_leaves_integers():
    found = in_units(xr.DataArray(np.arange(3), attrs={"units": "uV"}), "µV", "run")
    assert found.dtype == np.int64
    assert found.attrs["units"] == "µV"


def test_alike__takes_the_first_unit_that_is_told():
    parts = [xr.DataArray([[1.0]], dims=("time", "channel"), attrs={"units": u}) for u in ("unknown", "mV", "V")]
    assert [float(part[0, 0]) for part in alike(parts, "run")] == [1.0, 1.0, 1000.0]


@pytest.mark.slow
def test_run__joins_millivolts_and_microvolts_as_one_recording(tmp_path):
    parts = [stored(tmp_path / "a.nc", WALK[:80], "mV"), stored(tmp_path / "b.nc", WALK[80:] * 1000, "uV")]
    frames = run(parts, tmp_path / "out.zarr", CONFIG)["frames/frames"]
    np.testing.assert_allclose(frames.values, WALK, rtol=1e-12)
    assert frames.attrs["units"] == "mV"
    assert plan_run(parts, CONFIG).n_frames == 160


@pytest.mark.parametrize("units", ["degC", "mA", "1"])
def test_run__refuses_units_that_measure_something_else(tmp_path, units):
    parts = [stored(tmp_path / "a.nc", WALK[:80], "mV"), stored(tmp_path / "b.nc", WALK[80:], units)]
    with pytest.raises(ValueError, match=rf"units of the same quantity; got 'mV' and '{units}' in .*b\.nc"):
        run(parts, tmp_path / "out.zarr", CONFIG)
    assert not (tmp_path / "out.zarr").exists()


@pytest.mark.parametrize("channels", [("a", "b", "d"), ("a", "c", "d")])
def test_run__refuses_other_channels(tmp_path, channels):
    parts = [stored(tmp_path / "a.nc", WALK[:80], "mV"), stored(tmp_path / "b.nc", WALK[80:], "mV", channels)]
    with pytest.raises(ValueError, match=rf"the same channels; got a, b, c and {', '.join(channels)}"):
        run(parts, tmp_path / "out.zarr", CONFIG)


@pytest.mark.slow
def test_run__takes_channels_in_another_order_by_name(tmp_path):
    turned = WALK[80:][:, [2, 0, 1]]
    parts = [stored(tmp_path / "a.nc", WALK[:80], "mV"), stored(tmp_path / "b.nc", turned, "mV", ("c", "a", "b"))]
    frames = run(parts, tmp_path / "out.zarr", CONFIG)["frames/frames"]
    np.testing.assert_array_equal(frames.values, WALK)
    assert frames["channel"].values.tolist() == ["a", "b", "c"]


def mixed(units, values=WALK):
    labels = {"channel": ["a", "b", "c"], "channel_units": ("channel", units)}
    return xr.DataArray(values, dims=("time", "channel"), coords=labels, attrs={"units": "mixed"})


def test_alike__units_that_differ_from_channel_to_channel_are_compared_by_name():
    one, same = mixed(["uV", "mV", "degC"]), mixed(["uV", "mV", "degC"])[:, [1, 2, 0]]
    np.testing.assert_array_equal(alike([one, same], "run")[1], one)
    with pytest.raises(ValueError, match="the same units channel by channel; got a uV; b mV; c degC and a mV; b uV"):
        alike([one, mixed(["mV", "uV", "degC"])], "run")


@pytest.mark.parametrize("make", [mo.identity, lambda recording: mo.log_rms(recording, frame=2)])
def test_observe__units_that_differ_from_channel_to_channel_are_compared_by_name(make):
    one, other = mixed(["uV", "mV", "degC"]), mixed(["mV", "uV", "degC"])
    embedding = mo.embed(make(one), n_modes=2, window=9)
    mo.observe(embedding, make(one[:, ::-1]))
    with pytest.raises(ValueError, match="the unit of the embedding, 'a uV; b mV; c degC'; got 'a mV; b uV; c degC'"):
        mo.observe(embedding, make(other))


@pytest.mark.slow
def test_continue__goes_on_in_the_units_of_the_result(tmp_path):
    run([stored(tmp_path / "a.nc", WALK[:80], "mV")], tmp_path / "out.zarr", CONFIG)
    continue_run(tmp_path / "out.zarr", [stored(tmp_path / "b.nc", WALK[80:] / 1000, "V")], tmp_path / "more")
    np.testing.assert_allclose(stream_dataset(tmp_path / "more").frames.values, WALK[80:], rtol=1e-12)
    with pytest.raises(ValueError, match=r"got 'mV' and 'mA' in .*c\.nc"):
        continue_run(tmp_path / "out.zarr", [stored(tmp_path / "c.nc", WALK[80:], "mA")], tmp_path / "other")


@pytest.mark.parametrize(("units", "period"), [("ms", 1e-3), ("s", 1.0), ("minutes", 60.0), ("1", 1.0)])
def test_clock__is_in_seconds_whatever_its_unit(units, period):
    times = xr.Variable("time", np.arange(5.0), {"units": units})
    ticks = clock(xr.DataArray(np.zeros((5, 1)), dims=("time", "channel"), coords={"time": times}))
    np.testing.assert_array_equal(
        ticks.at(np.arange(5)), np.arange(5) / round(1 / period) if period < 1 else np.arange(5) * period
    )
    assert ticks.sampling_rate == pytest.approx(1 / period)


def test_clock__in_no_unit_of_time_is_refused():
    times = xr.Variable("time", np.arange(5.0), {"units": "ticks"})
    with pytest.raises(ValueError, match="time must be in seconds, or another unit of time; got 'ticks'"):
        clock(xr.DataArray(np.zeros((5, 1)), dims=("time", "channel"), coords={"time": times}))
