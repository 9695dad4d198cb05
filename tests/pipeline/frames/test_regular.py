"""A regular clock does what a stored one does, without being stored."""

import pickle

import numpy as np
import pytest
import soundfile
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from xarray.indexes import RangeIndex

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.regular import RegularIndex, regular
from strategies import examples

RATE = 8000.0


def recording(n=600, start=0.0):
    ticks = RangeIndex.linspace(start, start + n / RATE, n, endpoint=False, dim="time")
    values = np.random.default_rng(0).normal(size=(n, 2))
    return regular(xr.DataArray(values, dims=("time", "channel"), coords=xr.Coordinates.from_xindex(ticks)))


OURS = recording()
STORED = xr.DataArray(OURS.values, dims=OURS.dims, coords={"time": OURS.time.values})
OPERATIONS = {
    "slice": lambda r: r.sel(time=slice(0.01, 0.02)),
    "slice to": lambda r: r.sel(time=slice(None, 0.02)),
    "slice from": lambda r: r.sel(time=slice(0.02, None)),
    "slice beyond": lambda r: r.sel(time=slice(0.5, None)),
    "slice with a step": lambda r: r.sel(time=slice(0.01, 0.02, 3)),
    "nearest": lambda r: r.sel(time=0.0101, method="nearest"),
    "several": lambda r: r.sel(time=[0.01, 0.02, 0.0725]),
    "one of its own": lambda r: r.sel(time=r.time[3]),
    "where": lambda r: r.where(r.time < 0.02, drop=True),
    "where, some": lambda r: r.where((r.time * RATE).round() % 7 == 0, drop=True),
    "where, odd ones": lambda r: r.where((r.time * RATE).round() % 7 < 2, drop=True),
    "numbers": lambda r: r[[5, 3]],
    "every fourth": lambda r: r.isel(time=slice(None, None, 4)),
    "align": lambda r: xr.align(r, r[100:])[0],
    "align, outer": lambda r: xr.align(r[:200], r[100:], join="outer")[0],
    "add": lambda r: r[:200] + r[100:],
    "concat": lambda r: xr.concat([r[:100], r[100:]], "time"),
    "concat with a hole": lambda r: xr.concat([r[:100], r[200:]], "time"),
    "coarsen": lambda r: r.coarsen(time=4).mean(),
    "rolling": lambda r: r.rolling(time=3).mean(),
    "interp": lambda r: r.interp(time=[0.0101, 0.0102]),
    "groupby_bins": lambda r: r.groupby_bins("time", [0, 0.01, 0.03]).mean(),
    "sortby": lambda r: r.sortby("time", ascending=False),
    "dropna": lambda r: r.dropna("time"),
    "stack": lambda r: r.stack(z=("time", "channel")).drop_vars(["z", "time", "channel"], errors="ignore"),
    "diff": lambda r: r.diff("time"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_regular__does_what_a_stored_clock_does(name):
    found, expected = OPERATIONS[name](OURS), OPERATIONS[name](STORED)
    np.testing.assert_array_equal(found, expected)
    if "time" in expected.coords:
        np.testing.assert_allclose(found.time, expected.time, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["slice", "where", "where, some", "every fourth", "align", "align, outer", "concat"])
def test_regular__stays_regular(name):
    assert isinstance(OPERATIONS[name](OURS).xindexes["time"], RegularIndex)


@examples(60)
@given(a=st.integers(-5, 610), b=st.integers(-5, 610), start=st.sampled_from([0.0, 100.0, -3.7]))
def test_regular__slices_at_its_own_times(a, b, start):
    """Both ends are included, though times round."""
    ours = recording(start=start)
    found = ours.sel(time=slice(start + a / RATE, start + b / RATE))
    np.testing.assert_array_equal(found, ours.values[max(a, 0) : max(b + 1, 0)])


def test_regular__a_time_between_samples_is_not_one():
    with pytest.raises(KeyError, match=r"0\.01006"):
        OURS.sel(time=0.01006)
    with pytest.raises(KeyError):
        OURS.sel(time=0.0101, method="nearest", tolerance=1e-6)


def test_regular__is_pickled_and_copied():
    for again in (pickle.loads(pickle.dumps(OURS)), OURS.copy(deep=True)):
        assert again.identical(OURS)
        assert isinstance(again.xindexes["time"], RegularIndex)


def test_open_recording__of_a_sound_selects_by_time(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.sin(np.arange(8000) / 9)[:, None] * [0.5, 0.25], 8000)
    sound = mo.open_recording(tmp_path / "a.wav")
    part = sound.sel(time=slice(0.25, 0.5))
    assert part.sizes["time"] == 2001
    frames = mo.log_rms(part, frame="10ms")
    assert float(frames.time[0]) == pytest.approx(0.25 + 79 / 2 / 8000)
    np.testing.assert_array_equal(frames, mo.log_rms(sound[2000:4001], frame=80))
    sound.to_netcdf(tmp_path / "a.nc")
    assert mo.open_recording(tmp_path / "a.nc").sizes == sound.sizes
