"""What spoils frames is named as what it is, with its frame, by what embeds and by what plans alike."""

import re
import warnings

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo

N, K = 600, 300
RNG = np.random.default_rng(0)
WALK = RNG.normal(size=(N, 4)).cumsum(axis=0)
NAMES = ["left", "right", "top", "bottom"]


def with_values(*values, dtype=float):
    """A walk of which some frames hold something else in the channel 'top'."""
    changed = WALK.astype(dtype)
    changed[K : K + len(values), 2] = values
    return changed


ALTERNATING = np.tile([[0.0, 1.0, 0.0, 2.0], [1.0, 0.0, 2.0, 0.0]], (N // 2, 1))
AT = rf"feature 'top' of frame {K}"
REFUSED = {
    "NaN": (with_values(np.nan), rf"must be finite; frame {K} is the first of 1 "),
    "infinity": (with_values(np.inf, -np.inf), rf"must be finite; frame {K} is the first of 2 "),
    "dead": (np.zeros((N, 4)), "all 600 frames are equal"),
    "constant": (np.full((N, 4), 3.7), "all 600 frames are equal"),
    "outlier": (with_values(1e9), rf"outliers .*; got 1e\+09 in {AT} \(1 such frame\)"),
    "outliers": (
        with_values(1e9, -2e9, 3e9),
        rf"got 3e\+09 in feature 'top' of frame {K + 2} \(3 such frames\)",
    ),
    "CMIP's fill": (with_values(1e20), rf"fill values; got 1e\+20 in {AT} .*missing=1e\+20 "),
    "NetCDF's fill": (
        with_values(*[9.969209968386869e36] * 9, dtype="f4"),
        rf"fill values; got 9\.96921e\+36 in {AT} \(9 such frames\).*missing=9\.96921e\+36 ",
    ),
    "offset in float32": ((WALK + 1e9).astype("f4"), "64 steps of float32; got .* where float32 has steps of 64"),
    "offset in float64": (WALK + 1e17, "64 steps of float64; got .* where float64 has steps of 16"),
    "tiny": (WALK * 1e-200, "must be above 1e-150, for the squares of smaller numbers are 0; got numbers up to"),
    "huge": (WALK * 1e160, r"must be below 1e\+150, .* infinite; got .* in feature 'left' of frame \d+"),
    "one huge": (with_values(1e160), rf"must be below 1e\+150, .* infinite; got 1e\+160 in {AT}"),
    "uint64": (2**63 + np.abs(10 * WALK).astype("u8"), r"steps of 2048 \(uint64 has more digits than float64\)"),
    "int64": (-(2**62) + (10 * WALK).astype("i8"), r"steps of \d+ \(int64 has more digits than float64\)"),
    "period 2": (ALTERNATING, "frames that alternate: every second one is alike"),
    "period 2 in noise": (ALTERNATING + 1e-3 * RNG.normal(size=(N, 4)), "frames that alternate"),
}
WARNED = {
    "-999": (with_values(-999.0), rf"-999 in {AT} .* looks like a fill value.*missing=-999 "),
    "-9999": (
        with_values(*[-9999.0] * 40),
        rf"-9999 in {AT} \(40 such .*looks like a fill value.*missing=-9999 ",
    ),
    "glitch": (with_values(54321.0), rf"54321 in {AT} .* looks like an outlier"),
}
QUIET = {
    "walk": WALK,
    "a dead channel": np.c_[WALK[:, :3], np.zeros(N)],
    "offset of 1e9 in float64": WALK + 1e9,
    "rare counts": np.c_[WALK[:, :3], (np.arange(N) == K).astype(float)],
    "two levels": WALK + 1e4 * (np.arange(N) > K)[:, None],
    "bursts": WALK * np.where(np.arange(N) % 50 < 10, 30.0, 1.0)[:, None],
    "clipped": with_values(*[-150.0] * 5),
    "whole numbers": (100 * WALK).astype("i8"),
}
OPTIONS = [{}, {"preset": "paper"}, {"condition": "standard"}]
DOORS = [mo.embed, mo.plan]


def as_frames(values, chunk=None):
    """Frames with named channels, lazily where a chunk is given."""
    values = values if chunk is None else da.from_array(values, chunks=(chunk, -1))
    return xr.DataArray(values, dims=("frame", "feature"), coords={"channel": ("feature", NAMES)})


def each_door(test):
    options = pytest.mark.parametrize("options", OPTIONS, ids=["defaults", "paper", "standard"])
    return options(pytest.mark.parametrize("door", DOORS, ids=["embed", "plan"])(test))


@each_door
@pytest.mark.parametrize("kind", REFUSED)
def test_fault__is_refused_as_what_it_is(kind, door, options):
    values, sentence = REFUSED[kind]
    with pytest.raises(ValueError, match=sentence) as refused:
        door(as_frames(values), n_modes=2, **settings(options))
    assert re.fullmatch(r"embed: [^\n]+\.", str(refused.value))


@each_door
@pytest.mark.parametrize("kind", WARNED)
def test_fault__is_told_as_what_it_is(kind, door, options):
    values, sentence = WARNED[kind]
    with pytest.warns(UserWarning, match=sentence) as told:
        door(as_frames(values), n_modes=2, **settings(options))
    assert len([one for one in told if "looks like" in str(one.message)]) == 1


@pytest.mark.parametrize("kind", QUIET)
def test_no_fault__is_no_word(kind):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mo.plan(as_frames(QUIET[kind]), n_modes=2)
    assert not told


@pytest.mark.parametrize("chunk", [7, 250])
def test_fault__is_found_in_any_chunk(chunk):
    for kind in ("outlier", "NetCDF's fill", "one huge"):
        values, sentence = REFUSED[kind]
        with pytest.raises(ValueError, match=sentence):
            mo.embed(as_frames(values, chunk), n_modes=2)


@pytest.mark.parametrize("chunk", [None, 1000])
def test_plan__finds_faults_beyond_its_sample(chunk):
    values = RNG.normal(size=(20_000, 4)).cumsum(axis=0)
    values[19_900:19_950, 1] = np.nan
    with pytest.raises(ValueError, match=r"embed: frames must be finite; frame 19900 is the first of 50 "):
        mo.plan(as_frames(values, chunk), n_modes=2)


@pytest.mark.parametrize("door", DOORS)
def test_too_many_modes__are_refused_alike(door):
    with pytest.raises(ValueError, match="embed: n_modes must be at most 598 for 600 frames; got 5000"):
        door(as_frames(WALK), n_modes=5000)


SAMPLES = 20 * RNG.normal(size=(6000, 3))
LEVELS = {
    "outlier": (1e9, 1, r"a level of 3\.162278e\+08 in feature 'b' of frame 300 \(1 such frame\).* an outlier"),
    "-999": (-999.0, 50, r"a level of 999 in feature 'b' of frame 30\d \(5 such frames\).* a fill value"),
    "CMIP's fill": (1e20, 1, r"fill values; got a level of 3.162278e\+19 in feature 'b' of frame 300"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", LEVELS)
def test_levels__of_fill_values_and_outliers_are_named(kind, door):
    value, number, sentence = LEVELS[kind]
    samples = SAMPLES.copy()
    samples[3000 : 3000 + number, 1] = value
    coords = {"channel": list("abc"), "time": np.arange(6000) / 100}
    frames = mo.log_rms(xr.DataArray(samples, dims=("time", "channel"), coords=coords), frame=10)
    with pytest.raises(UserWarning if value < 1e19 else ValueError, match=sentence):
        door(frames, n_modes=2)


def test_levels__of_a_channel_that_is_mostly_silent_are_no_outliers():
    samples = SAMPLES * ((np.arange(6000) // 10) % 300 == 7)[:, None]
    coords = {"channel": list("abc"), "time": np.arange(6000) / 100}
    frames = mo.log_rms(xr.DataArray(samples, dims=("time", "channel"), coords=coords), frame=10, floor=1e-9)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mo.plan(frames, n_modes=2, preset="paper", geometry=mo.Geometry(regularization=1e-3))
    assert not [one for one in told if "looks like" in str(one.message)]


def settings(options):
    """Options as embed takes them."""
    return {"geometry": mo.Geometry(**options)} if "condition" in options else options
