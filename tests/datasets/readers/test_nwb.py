"""NWB: series with their clock, units and channels, and spike times of units in bins, as they were written."""

import os
import pickle
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.recording import clock
from strategies import examples

h5py = pytest.importorskip("h5py")
VALUES = np.random.default_rng(0).integers(-900, 900, (50, 3)).astype("i2")
SPIKES = {7: [0.02, 0.31, 0.33], 11: [], 12: [0.12, 0.55]}


def nwb(folder, name="a.nwb"):
    path = folder / name
    file = h5py.File(path, "w")
    file.attrs["nwb_version"] = "2.6.0"
    file["session_start_time"] = "2022-04-05T03:07:59.5+02:00"
    for group in ("acquisition", "processing", "specifications/core"):
        file.create_group(group)
    return path, file


def series(file, name, values, rate=None, start=0.0, timestamps=None, **attrs):
    group = file.create_group(name)
    group.attrs["neurodata_type"] = "TimeSeries"
    group["data"] = values
    group["data"].attrs.update({"unit": "volts", **attrs})
    if rate is not None:
        group["starting_time"] = start
        group["starting_time"].attrs.update(rate=rate, unit="seconds")
    if timestamps is not None:
        group["timestamps"] = timestamps
    return group


def units(file, spikes):
    file["units/id"] = np.array(list(spikes))
    file["units/spike_times"] = np.concatenate(list(spikes.values()))
    file["units/spike_times_index"] = np.cumsum([len(times) for times in spikes.values()])


def test_series__are_physical_with_clock_and_electrodes(tmp_path):
    path, file = nwb(tmp_path)
    with file:
        group = series(file, "acquisition/ElectricalSeries", VALUES, rate=250.0, start=3.5, conversion=1e-6, offset=0.5)
        group["channel_conversion"] = [1.0, 2.0, 4.0]
        table = file.create_group("general/extracellular_ephys/electrodes")
        table["id"], table["channel_name"] = [4, 5, 6, 7], np.array([b"A", b"B", b"C", b"D"])
        group["electrodes"] = [3, 0, 1]
    recording = mo.open_recording(path)
    expected = VALUES * (1e-6 * np.array([1, 2, 4])) + 0.5
    np.testing.assert_allclose(recording, expected, rtol=1e-12)
    assert recording.channel.values.tolist() == ["D", "A", "B"]
    assert (recording.attrs["units"], recording.attrs["sampling_rate"]) == ("volts", 250.0)
    np.testing.assert_allclose(recording.time, 3.5 + np.arange(50) / 250)
    assert recording.time.attrs["start_time"] == "2022-04-05T01:07:59.500000Z"
    lazy = xr.open_dataset(path, engine="manifold-nwb")["recording"]
    for key in (np.s_[3:9], np.s_[2:40:7, ::-1], np.s_[5], np.s_[:, 2], np.s_[[1, 4, 2]]):
        np.testing.assert_allclose(lazy[key], expected[key], rtol=1e-12)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(lazy)), expected, rtol=1e-12)


def test_stored_timestamps__keep_their_gaps(tmp_path):
    path, file = nwb(tmp_path)
    times = np.r_[0:30, 100:120] / 10
    with file:
        series(file, "processing/behavior/Position/xy", VALUES[:, 0], timestamps=times)
    recording = mo.open_recording(path)
    np.testing.assert_array_equal(recording, VALUES[:, :1])
    assert recording.dtype == np.int16
    np.testing.assert_allclose(recording.time, times)
    assert clock(recording).segments == [(0, 30), (30, 50)]


def test_several_series__are_listed_and_chosen(tmp_path):
    path, file = nwb(tmp_path)
    with file:
        series(file, "acquisition/lfp", VALUES, rate=10.0)
        series(file, "acquisition/eye", VALUES[:20] + 1, rate=5.0)
        units(file, SPIKES)
    with pytest.raises(
        ValueError, match=r"hold one series; got acquisition/eye, acquisition/lfp, units\. Choose one with"
    ):
        mo.open_recording(path)
    np.testing.assert_array_equal(mo.open_recording(path, variable="eye"), VALUES[:20] + 1)
    np.testing.assert_array_equal(mo.open_recording(path, variable="acquisition/lfp"), VALUES)
    with pytest.raises(ValueError, match="have one series 'ear'"):
        mo.open_recording(path, variable="ear")
    counts = mo.open_recording(path, bin=0.3)
    assert counts.channel.values.tolist() == ["7", "11", "12"]
    np.testing.assert_array_equal(counts, [[1, 0, 1], [2, 0, 1]])
    assert counts.time.attrs["start_time"] == "2022-04-05T01:07:59.500000Z"
    with pytest.raises(ValueError, match="be counted in bins; got spike times of 3 units"):
        mo.open_recording(path, variable="units")


@pytest.mark.parametrize("name", ["a.h5", "a.bin", "a"])
def test_content__decides_whatever_the_name(tmp_path, name):
    path, file = nwb(tmp_path, name)
    with file:
        series(file, "acquisition/lfp", VALUES, rate=10.0)
    np.testing.assert_array_equal(mo.open_recording(path), VALUES)


def test_netcdf__is_none(tmp_path):
    pytest.importorskip("h5netcdf")
    xr.Dataset({"x": (("time", "channel"), VALUES)}).to_netcdf(tmp_path / "a.h5", engine="h5netcdf")
    np.testing.assert_array_equal(mo.open_recording(tmp_path / "a.h5"), VALUES)


def test_faults__are_named(tmp_path):
    path, file = nwb(tmp_path)
    with file:
        series(file, "acquisition/video", np.zeros((5, 4, 4)), rate=10.0)
    with pytest.raises(ValueError, match=r"hold samples \(time, channel\) in acquisition/video; got shape \(5, 4, 4\)"):
        mo.open_recording(path)
    path, file = nwb(tmp_path, "b.nwb")
    file.close()
    with pytest.raises(ValueError, match="hold a series of samples or spike times; got neither"):
        mo.open_recording(path)
    (tmp_path / "c.nwb").write_text("<html>")
    with pytest.raises(ValueError, match="be an NWB file; got an HTML page"):
        mo.open_recording(tmp_path / "c.nwb")


def test_links_to_other_files__are_not_followed(tmp_path):
    other, file = nwb(tmp_path, "other.nwb")
    with file:
        series(file, "acquisition/lfp", VALUES, rate=10.0)
    path, file = nwb(tmp_path)
    with file:
        file["acquisition/lfp"] = h5py.ExternalLink(str(other), "acquisition/lfp")
    with pytest.raises(ValueError, match="must hold its data itself"):
        mo.open_recording(path)
    with pytest.raises(ValueError, match="hold a series of samples or spike times; got neither"):
        xr.open_dataset(path, engine="manifold-nwb")


def test_twenty_gigabytes__are_read_in_part(tmp_path):
    path, file = nwb(tmp_path)
    n = 5_000_000_000
    with file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        group = series(file, "acquisition/lfp", np.zeros(1), rate=30_000.0)
        del group["data"]
        h5py.h5d.create(group.id, b"data", h5py.h5t.NATIVE_INT16, h5py.h5s.create_simple((n, 2)), plist)
        group["data"].attrs["conversion"] = 2.0
        group["data"][n - 2 :] = [[1, 2], [3, 4]]
    assert os.path.getsize(path) > 20e9 - 1
    assert mo.open_recording(path).shape == (n, 2)
    lazy = xr.open_dataset(path, engine="manifold-nwb", create_default_indexes=False)["recording"]
    np.testing.assert_array_equal(lazy[n - 3 :], [[0, 0], [2, 4], [6, 8]])


@examples(90)
@given(data=st.data())
def test_mutated_files__give_values_or_one_sentence(data, tmp_path_factory):
    path, file = nwb(tmp_path_factory.mktemp("nwb"))
    with file:
        series(file, "acquisition/lfp", VALUES, rate=10.0, conversion=1e-6)
        units(file, SPIKES)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 9))
        new = data.draw(st.binary(min_size=1, max_size=8))
        content[at : at + len(new)] = new
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), 3000]))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            recording = mo.open_recording(path, **data.draw(st.sampled_from([{"bin": 0.1}, {"variable": "lfp"}])))
            if recording.size < 10**6:
                assert recording.values.shape == recording.shape
            return
        except (ValueError, OSError) as error:
            said = str(error)
    assert str(path) in said
