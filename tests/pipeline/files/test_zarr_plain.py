"""Zarr that xarray did not write opens with its values, or says in one sentence what is missing."""

import pickle
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import manifold_observer.pipeline as mo

N, P = 1000, 4
VALUES = np.round(np.random.default_rng(0).normal(size=(N, P)), 3)
VALUES[100:150, 1] = 0.0
VALUES[0] = 0.0
COUNTS = np.round(100 * VALUES).astype("i2")
FORMATS = pytest.mark.parametrize("version", [2, 3])


@dataclass(frozen=True)
class Store:
    """Arrays by their paths ('' is the root), names of dimensions or None, and what is wanted."""

    arrays: dict[str, Any]
    dims: tuple[str, ...] | None = None
    want: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


NESTED = {"night/eeg/volts": VALUES, "day/empty": np.zeros(3)}
STORES = {
    "array at the root": Store({"": VALUES}, None, VALUES),
    "array at the root, with names": Store({"": VALUES}, ("time", "channel"), VALUES),
    "array at the root, (channel, time)": Store({"": VALUES.T}, None, VALUES),
    "array at the root, told": Store({"": VALUES[:8]}, None, VALUES[:8].T, {"time_dim": "dim_1"}),
    "array at the root, one channel": Store({"": VALUES[:, 0]}, None, VALUES[:, :1]),
    "array at the root of few samples": Store({"": VALUES[:8]}, None, "time_dim='dim_0'"),
    "no names": Store({"volts": VALUES}, None, VALUES),
    "no names, one channel": Store({"volts": VALUES[:, 0]}, None, VALUES[:, :1]),
    "no names, (channel, time)": Store({"volts": VALUES.T}, None, VALUES),
    "no names, few samples": Store({"volts": VALUES[:8]}, None, "time_dim='dim_0'"),
    "no names, few samples, told": Store({"volts": VALUES[:8]}, None, VALUES[:8], {"time_dim": "dim_0"}),
    "no names, few samples, told the other": Store({"volts": VALUES[:8]}, None, VALUES[:8].T, {"time_dim": "dim_1"}),
    "no names, with a clock": Store({"volts": VALUES[:8], "time": np.arange(8) / 10}, None, VALUES[:8]),
    "no names, two arrays": Store({"a": VALUES, "b": VALUES + 1}, None, "several variables.*variable='a'"),
    "no names, two arrays, told": Store({"a": VALUES, "b": VALUES + 1}, None, VALUES + 1, {"variable": "b"}),
    "other names": Store({"volts": VALUES}, ("t", "electrode"), "time_dim='t'"),
    "other names, told": Store({"volts": VALUES}, ("t", "electrode"), VALUES, {"time_dim": "t"}),
    "nested": Store(NESTED, None, "group='(night/eeg|day)'"),
    "nested, told": Store(NESTED, None, VALUES, {"group": "night/eeg"}),
    "nested, the array told": Store(NESTED, None, VALUES, {"group": "/night/eeg/volts/"}),
    "nested, wrong": Store(NESTED, None, "must name a group.*night/eeg", {"group": "night/ecg"}),
    "0 is 0": Store({"volts": VALUES}, ("time", "channel"), VALUES, {}, {"fill_value": 0}),
    "0 is 0 in whole numbers": Store({"volts": COUNTS}, ("time", "channel"), COUNTS, {}, {"fill_value": 0}),
    "0 is 0 without names": Store({"volts": VALUES}, None, VALUES, {}, {"fill_value": 0}),
    "no fill value": Store({"volts": VALUES}, ("time", "channel"), VALUES, {}, {"fill_value": None}),
}


def written(path, store, version):
    """A store as zarr alone writes it."""
    for name, values in store.arrays.items():
        dims = store.dims if store.dims and version == 3 and values.ndim == len(store.dims) else None
        chunks = tuple(min(n, 100) for n in values.shape)
        array = zarr.create_array(
            path, name=name or None, shape=values.shape, dtype=values.dtype, chunks=chunks, zarr_format=version,
            dimension_names=dims, **store.settings,
        )  # fmt: skip
        array[...] = values
        if store.dims and version == 2:
            array.attrs["_ARRAY_DIMENSIONS"] = list(store.dims)
    return path


@FORMATS
@pytest.mark.parametrize("kind", STORES)
def test_store__opens_with_its_values_or_one_sentence(tmp_path, kind, version):
    store = STORES[kind]
    path = written(tmp_path / "a.zarr", store, version)
    if isinstance(store.want, str):
        with pytest.raises(ValueError, match=store.want) as refused:
            mo.open_recording(path, **store.options)
        assert re.fullmatch(r"open_recording: [^\n]+\.", str(refused.value))
        return
    recording = mo.open_recording(path, **store.options)
    assert recording.dims == ("time", "channel")
    np.testing.assert_array_equal(recording.values, store.want)
    np.testing.assert_array_equal(recording[5:9, 0].values, store.want[5:9, 0])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(recording))[3:5].values, store.want[3:5])


@FORMATS
@pytest.mark.parametrize("named", [True, False])
def test_missing_chunks__are_told_and_read_as_0(tmp_path, version, named):
    store = Store({"volts": VALUES}, ("time", "channel") if named else None, settings={"fill_value": 0})
    path = written(tmp_path / "a.zarr", store, version)
    gone = [*path.glob("volts/**/7*")]
    assert gone
    for place in gone:
        for chunk in [place] if place.is_file() else place.iterdir():
            chunk.unlink()
    with pytest.warns(UserWarning, match="stores 9 of 10 chunks of 'volts'; the others read as the fill value 0"):
        recording = mo.open_recording(path)
    wanted = VALUES.copy()
    wanted[700:800] = 0.0
    np.testing.assert_array_equal(recording.values, wanted)


@FORMATS
def test_missing_chunks__of_an_array_at_the_root_are_told(tmp_path, version):
    path = tmp_path / "a.zarr"
    array = zarr.create_array(path, shape=VALUES.shape, dtype="f8", chunks=(100, P), zarr_format=version)
    array[:500] = VALUES[:500] + 1
    with pytest.warns(UserWarning, match="stores 5 of 10 chunks of 'recording'"):
        mo.open_recording(path)


@FORMATS
@pytest.mark.parametrize("fill", [np.nan, -999.0])
def test_missing_values_of_xarray__are_still_missing(tmp_path, version, fill):
    values = VALUES.copy()
    values[5] = np.nan
    dataset = xr.Dataset({"recording": (("time", "channel"), values)})
    encoding = {"recording": {"_FillValue": fill}}
    dataset.to_zarr(tmp_path / "a.zarr", zarr_format=version, consolidated=False, encoding=encoding)
    np.testing.assert_array_equal(mo.open_recording(tmp_path / "a.zarr").values, values)


def test_clock_of_zarr_2__may_begin_with_0(tmp_path):
    store = Store({"volts": VALUES}, ("time", "channel"), settings={"fill_value": 0})
    path = written(tmp_path / "a.zarr", store, 2)
    for name, units in (("time", "s"), ("date", "seconds since 2020-01-01")):
        clock = zarr.create_array(path, name="time", data=np.arange(N) / 8, zarr_format=2, overwrite=name == "date")
        clock.attrs.update({"_ARRAY_DIMENSIONS": ["time"], "units": units})
        recording = mo.open_recording(path)
        assert float(recording["time"][0]) == 0.0 or np.isfinite(float(recording["time"][0]))
        assert mo.log_rms(recording, frame=8, floor=1e-3).sizes["frame"] == N // 8


def test_scale_and_offset__are_applied_where_0_is_0(tmp_path):
    store = Store({"volts": COUNTS}, ("time", "channel"), settings={"fill_value": 0})
    path = written(tmp_path / "a.zarr", store, 2)
    zarr.open_array(path / "volts").attrs.update({"scale_factor": 0.5, "add_offset": 3.0})
    np.testing.assert_allclose(mo.open_recording(path).values, 0.5 * COUNTS + 3)


def test_zip_of_a_store__is_refused_in_one_sentence(tmp_path):
    with zarr.storage.ZipStore(tmp_path / "a.zarr.zip", mode="w") as store, warnings.catch_warnings():
        zarr.open_group(store, mode="w").create_array("volts", data=VALUES)
    with pytest.raises(ValueError, match=r"a\.zarr\.zip is an archive\. Unpack it, and name what is in it\.$"):
        mo.open_recording(tmp_path / "a.zarr.zip")
