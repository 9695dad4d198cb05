"""Any known format opens as the same lazy recording, and its clock knows the gaps."""

import contextlib

import numpy as np
import pytest
import soundfile
import xarray as xr
import zarr
from xarray.indexes import RangeIndex

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.recording import clock, start_time

N = 120
RATE = 8000
VALUES = np.random.default_rng(0).integers(-(2**15), 2**15, (N, 2)) / 2**15
SECONDS = np.arange(N) / RATE


def dataset(values=VALUES, **variables):
    return xr.Dataset({"volts": (("time", "sensor"), values)}, coords={"time": SECONDS[: len(values)]}, **variables)


def write_sound(path):
    soundfile.write(path, VALUES, RATE, subtype="PCM_16")


def write_csv(path):
    rows = np.column_stack([SECONDS, VALUES])
    path.write_text("time,left,right\n" + "\n".join(",".join(map(repr, map(float, row))) for row in rows) + "\n")


def write_npy(path):
    np.save(path, VALUES)


def write_netcdf3(path):
    dataset().to_netcdf(path, engine="scipy")


def write_netcdf4(path):
    pytest.importorskip("h5py")
    dataset().to_netcdf(path, engine="h5netcdf")


def write_zarr(path):
    dataset().to_zarr(path, zarr_format=3, consolidated=False, encoding={"volts": {"chunks": (50, 2)}})


def write_zarr_without_time(path):
    dataset().drop_vars("time").to_zarr(path, zarr_format=2, consolidated=True)


FORMATS = [
    ("a.wav", write_sound, None),
    ("a.flac", write_sound, None),
    ("a.csv", write_csv, None),
    ("a.npy", write_npy, RATE),
    ("a3.nc", write_netcdf3, None),
    ("a4.nc", write_netcdf4, None),
    ("a.zarr", write_zarr, None),
    ("b.zarr", write_zarr_without_time, RATE),
]


@pytest.mark.parametrize(("name", "write", "rate"), FORMATS, ids=[name for name, *_ in FORMATS])
def test_open_recording__gives_samples_and_seconds_of_every_format(tmp_path, name, write, rate):
    write(tmp_path / name)
    recording = mo.open_recording(tmp_path / name, sampling_rate=rate)
    assert recording.dims == ("time", "channel")
    assert recording.name == "recording"
    assert recording.chunks is not None
    assert recording.attrs["source"] == str(tmp_path / name)
    np.testing.assert_array_equal(recording.values, VALUES)
    np.testing.assert_allclose(recording["time"].values, SECONDS, rtol=0, atol=1e-12)
    assert clock(recording).sampling_rate == pytest.approx(RATE)
    assert clock(recording).segments == [(0, N)]


@pytest.mark.parametrize("name", ["a.npy", "b.zarr"])
def test_open_recording__without_clock_has_no_time(tmp_path, name):
    {"a.npy": write_npy, "b.zarr": write_zarr_without_time}[name](tmp_path / name)
    recording = mo.open_recording(tmp_path / name)
    assert "time" not in recording.coords
    assert not clock(recording).known
    assert clock(recording).at(np.array([3])).tolist() == [3.0]


@pytest.mark.usefixtures("no_compute")
def test_open_recording__reads_nothing_but_metadata(tmp_path):
    for name, write in (("a.wav", write_sound), ("a.npy", write_npy), ("a.zarr", write_zarr), ("a.nc", write_netcdf3)):
        write(tmp_path / name)
        assert mo.open_recording(tmp_path / name).sizes == {"time": N, "channel": 2}


def test_open_recording__one_series_is_one_channel(tmp_path):
    xr.Dataset({"load": ("time", VALUES[:, 0])}).to_netcdf(tmp_path / "a.nc", engine="scipy")
    recording = mo.open_recording(tmp_path / "a.nc")
    assert recording.dims == ("time", "channel")
    assert recording["channel"].values.tolist() == ["load"]
    np.testing.assert_array_equal(recording.values, VALUES[:, :1])


def test_open_recording__several_series_are_channels(tmp_path):
    series = {"load": ("time", VALUES[:, 0]), "heat": ("time", VALUES[:, 1])}
    xr.Dataset(series, attrs={"station": "north"}).to_netcdf(tmp_path / "a.nc", engine="scipy")
    recording = mo.open_recording(tmp_path / "a.nc")
    assert recording["channel"].values.tolist() == ["load", "heat"]
    assert recording.attrs["station"] == "north"
    np.testing.assert_array_equal(recording.values, VALUES)
    assert mo.open_recording(tmp_path / "a.nc", variable="heat")["channel"].values.tolist() == ["heat"]


def test_open_recording__several_tables_ask_which(tmp_path):
    tables = {name: (("time", "sensor"), k * VALUES) for k, name in enumerate(["first", "second"])}
    xr.Dataset(tables).to_netcdf(tmp_path / "a.nc", engine="scipy")
    with pytest.raises(ValueError, match=r"holds several variables .*first.*second.* variable='first'"):
        mo.open_recording(tmp_path / "a.nc")
    np.testing.assert_array_equal(mo.open_recording(tmp_path / "a.nc", variable="second").values, VALUES)
    with pytest.raises(ValueError, match=r"has no variable 'third'; it has \['first', 'second'\]"):
        mo.open_recording(tmp_path / "a.nc", variable="third")


def test_open_recording__several_tables_of_which_one_is_named_recording(tmp_path):
    tables = {"recording": (("time", "sensor"), VALUES), "quality": (("time", "sensor"), 0 * VALUES)}
    xr.Dataset(tables).to_netcdf(tmp_path / "a.nc", engine="scipy")
    np.testing.assert_array_equal(mo.open_recording(tmp_path / "a.nc").values, VALUES)


def test_open_recording__channels_before_time_are_turned(tmp_path):
    xr.Dataset({"a": (("sensor", "time"), VALUES.T)}).to_netcdf(tmp_path / "a.nc", engine="scipy")
    np.testing.assert_array_equal(mo.open_recording(tmp_path / "a.nc").values, VALUES)


def test_open_recording__sampling_rate_outranks_the_file(tmp_path):
    write_sound(tmp_path / "a.wav")
    recording = mo.open_recording(tmp_path / "a.wav", sampling_rate=10.0)
    assert recording.attrs["sampling_rate"] == 10.0
    np.testing.assert_allclose(recording["time"].values, np.arange(N) / 10)


@pytest.mark.parametrize("rate", [0, -1.0, np.nan, np.inf])
def test_open_recording__sampling_rate_must_be_a_rate(tmp_path, rate):
    write_npy(tmp_path / "a.npy")
    with pytest.raises(ValueError, match="sampling_rate must be above 0"):
        mo.open_recording(tmp_path / "a.npy", sampling_rate=rate)


def test_open_recording__nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"night\.wav does not exist"):
        mo.open_recording(tmp_path / "night.wav")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.wav", b"", "an empty file"),
        ("a.npy", b"", "an empty file"),
        ("a.csv", b"", "an empty file"),
        ("a.nc", b"", "not in a supported format"),
        ("a.wav", b"<!DOCTYPE html><html>404 Not Found</html>", "an HTML page"),
        ("a.nc", b"<!DOCTYPE html><html>404 Not Found</html>", "not in a supported format"),
        ("a.xyz", bytes(range(200)), "not in a supported format"),
    ],
)
def test_open_recording__what_the_name_does_not_say(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as refused:
        mo.open_recording(tmp_path / name)
    assert str(tmp_path / name) in str(refused.value)


def test_open_recording__damaged_netcdf_is_named(tmp_path):
    write_netcdf3(tmp_path / "a.nc")
    (tmp_path / "a.nc").write_bytes((tmp_path / "a.nc").read_bytes()[:1500])
    with pytest.raises(ValueError, match=r"open_recording: .*a\.nc could not be read: .*damaged"):
        mo.open_recording(tmp_path / "a.nc")


def test_open_recording__directory_that_is_no_zarr(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(ValueError, match="is not a Zarr group"):
        mo.open_recording(tmp_path)


def test_open_recording__bare_zarr_array_is_a_recording(tmp_path):
    zarr.save_array(str(tmp_path / "a.zarr"), VALUES)
    recording = mo.open_recording(tmp_path / "a.zarr", time_dim="dim_0")
    np.testing.assert_array_equal(recording.values, VALUES)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("found the following matches with the input file in xarray's IO backends: ['h5netcdf']."),
        ImportError("No module named 'h5py', backend not available."),
    ],
)
def test_open_recording__hdf5_without_engine_says_what_to_install(tmp_path, monkeypatch, error):
    def fail(*_args, **_options):
        raise error

    (tmp_path / "a.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    monkeypatch.setattr(xr, "open_dataset", fail)
    with pytest.raises(ValueError, match=r"pip install h5netcdf h5py\."):
        mo.open_recording(tmp_path / "a.nc")


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (("samples", VALUES[:, 0]), "no variable along 'time'"),
        ((("time", "sensor", "axis"), VALUES[:, :, None]), r"must have dims \(time, channel\)"),
        ((("time", "sensor"), VALUES[:0]), "holds no samples"),
    ],
)
def test_open_recording__wrong_shape(tmp_path, variable, message):
    xr.Dataset({"a": variable}).to_netcdf(tmp_path / "a.nc", engine="scipy")
    with pytest.raises(ValueError, match=message):
        mo.open_recording(tmp_path / "a.nc")


def test_open_recording__no_channels(tmp_path):
    xr.Dataset({"a": (("time", "sensor"), VALUES[:, :0])}).to_zarr(tmp_path / "a.zarr", consolidated=False)
    with pytest.raises(ValueError, match=r"a\.zarr holds no channels"):
        mo.open_recording(tmp_path / "a.zarr")


# ------------------------------------------------------------------------------------------------ clock


def timed(times, **coords):
    return xr.DataArray(
        np.zeros((len(times), 1)), dims=("time", "channel"), coords={"time": times} | coords, attrs={"units": "V"}
    )


def regular(start, stop, n):
    index = RangeIndex.linspace(start, stop, n, endpoint=False, dim="time")
    return xr.DataArray(np.zeros((n, 1)), dims=("time", "channel"), coords=xr.Coordinates.from_xindex(index))


@pytest.mark.parametrize(
    ("times", "segments"),
    [
        ([0.0, 1.0, 2.0, 3.0], [(0, 4)]),
        ([0.0, 1.0, 2.0, 3.49, 4.49], [(0, 5)]),  # 1.49 periods are no gap
        ([0.0, 1.0, 2.0, 3.51, 4.51], [(0, 3), (3, 5)]),  # 1.51 are
        ([0.0, 1.0, 2.0, 9.0, 20.0, 21.0, 22.0], [(0, 3), (3, 4), (4, 7)]),
        ([5.0], [(0, 1)]),
        ([0, 2, 4, 6, 100], [(0, 4), (4, 5)]),  # whole seconds
    ],
)
def test_clock__steps_longer_than_one_and_a_half_periods_are_gaps(times, segments):
    ticks = clock(timed(times))
    assert ticks.segments == segments
    assert ticks.known
    np.testing.assert_array_equal(ticks.at(np.arange(len(times))), times)


@pytest.mark.parametrize(
    ("times", "where"),
    [
        ([0.0, 1.0, 2.0, 1.5, 3.0], "samples 2 and 3"),
        ([0.0, 1.0, 1.0, 2.0], "samples 1 and 2"),
        ([0.0, np.nan, 2.0], "samples 0 and 1"),
        ([0.0, 1.0, np.inf], "inf"),
    ],
)
def test_clock__must_increase(times, where):
    with pytest.raises(ValueError, match=f"time must increase .*{where}"):
        clock(timed(times))


def test_clock__regular_one_must_not_run_backwards():
    with pytest.raises(ValueError, match="time must increase"):
        clock(regular(0.0, 1.0, 10).isel(time=slice(None, None, -1)))


def test_clock__must_be_numbers():
    with pytest.raises(ValueError, match="time must be numbers of seconds or date-times"):
        clock(timed(["noon", "later"]))


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_clock__date_times_count_from_the_first(unit):
    first = np.datetime64("2020-03-09T12:00:00", unit)
    recording = timed(first + np.array([0, 2, 4, 6, 60]) * np.timedelta64(1, "s"))
    ticks = clock(recording)
    assert ticks.sampling_rate == 0.5
    assert ticks.segments == [(0, 4), (4, 5)]
    np.testing.assert_array_equal(ticks.at(np.arange(5)), [0.0, 2.0, 4.0, 6.0, 60.0])
    assert np.datetime64(start_time(recording)) == first


def test_clock__durations_are_seconds():
    ticks = clock(timed(np.array([1000, 1500, 2000]) * np.timedelta64(1, "ms")))
    np.testing.assert_array_equal(ticks.at(np.arange(3)), [1.0, 1.5, 2.0])


def test_clock__segment_coordinate_marks_gaps_that_the_times_do_not_show():
    assert clock(timed([0.0, 1.0, 2.0, 3.0], segment=("time", [4, 4, 4, 7]))).segments == [(0, 3), (3, 4)]
    both = timed([0.0, 1.0, 2.0, 9.0, 10.0], segment=("time", [0, 1, 1, 1, 1]))
    assert clock(both).segments == [(0, 1), (1, 3), (3, 5)]
    marked = regular(0.0, 1.0, 10).assign_coords(segment=("time", np.repeat([0, 1], 5)))
    assert clock(marked).segments == [(0, 5), (5, 10)]


def thinned(recording, samples):
    """Some samples only; the attribute of the rate, which no longer holds, is gone."""
    part = recording.isel(time=samples)
    del part.attrs["sampling_rate"]
    return part


@pytest.mark.usefixtures("no_compute")
def test_clock__regular_one_stays_lazy(tmp_path):
    write_sound(tmp_path / "a.wav")
    recording = mo.open_recording(tmp_path / "a.wav")
    assert isinstance(recording.xindexes["time"], RangeIndex)
    for part in (recording, recording.isel(time=slice(30, 60)), thinned(recording, slice(7, None, 3))):
        assert isinstance(part.xindexes["time"], RangeIndex)
        ticks = clock(part)
        np.testing.assert_allclose(ticks.at(np.arange(part.sizes["time"])), part["time"].values, rtol=0, atol=1e-12)
    assert clock(thinned(recording, slice(7, None, 3))).sampling_rate == pytest.approx(RATE / 3)
    np.testing.assert_allclose(clock(recording.isel(time=slice(30, 60))).at(np.array([0])), 30 / RATE)


def test_clock__costs_no_memory_however_long():
    ticks = clock(regular(0.0, 1e9, 10).isel(time=slice(0, 10)))
    assert ticks.at(np.array([9])).tolist() == [9e8]


def test_clock__times_of_a_regular_recording_do_not_round_with_its_length(tmp_path):
    times = {}
    for n in (7, 1000, 1517):
        soundfile.write(tmp_path / "a.wav", np.zeros((n, 1)), 44100, subtype="PCM_16")
        times[n] = clock(mo.open_recording(tmp_path / "a.wav")).at(np.arange(7))
    np.testing.assert_array_equal(times[7], times[1000])
    np.testing.assert_array_equal(times[7], times[1517])
    every_other = thinned(mo.open_recording(tmp_path / "a.wav"), slice(None, None, 2))
    np.testing.assert_allclose(clock(every_other).at(np.arange(3)), [0, 2 / 44100, 4 / 44100])


def test_clock__a_period_that_is_told_decides_what_a_gap_is():
    two = xr.DataArray(np.zeros((2, 1)), dims=("time", "channel"), coords={"time": [0.0, 3.0]})
    assert clock(two).segments == [(0, 2)]
    assert clock(two, 1.0).segments == [(0, 1), (1, 2)]


def test_single_samples_and_channels__are_read_alone(tmp_path):
    values = np.arange(30.0).reshape(10, 3)
    np.save(tmp_path / "a.npy", values)
    recording = mo.open_recording(tmp_path / "a.npy", sampling_rate=1.0)
    for key in (np.s_[0, 0], np.s_[5], np.s_[:, 1], np.s_[-1, 2], np.s_[[1, 4], 0], np.s_[2:9:3, 1]):
        np.testing.assert_array_equal(recording[key].values, values[key])
    np.testing.assert_array_equal(recording.isel(time=7, channel=[2, 0]).values, [23, 21])


@pytest.mark.parametrize(
    ("selected", "rate"),
    [
        (lambda recording: recording.isel(time=slice(None, None, 4)), 2000),
        (lambda recording: recording.coarsen(time=10).mean(), 800),
        (lambda recording: recording.isel(time=slice(3, None, 5)).load(), 1600),
        (lambda recording: recording.isel(time=slice(20, 100)), 8000),
    ],
    ids=["every fourth", "means of ten", "every fifth, loaded", "a slice"],
)
@pytest.mark.parametrize("write", [write_sound, write_csv, write_netcdf3], ids=lambda write: write.__name__)
def test_clock__decides_the_rate_of_what_was_selected(tmp_path, write, selected, rate):
    """An attribute that is older than a selection is warned of."""
    name = {write_sound: "a.wav", write_csv: "a.csv", write_netcdf3: "a.nc"}[write]
    write(tmp_path / name)
    part = selected(mo.open_recording(tmp_path / name).assign_attrs(sampling_rate=float(RATE)))
    stale = pytest.warns(UserWarning, match=f"says 8000 Hz, but its clock runs at {rate} Hz, which is used")
    with stale if rate != RATE else contextlib.nullcontext():
        assert clock(part).sampling_rate == pytest.approx(rate, rel=1e-6)
    with stale if rate != RATE else contextlib.nullcontext():
        frames = mo.stft(part, frame="1ms")
    assert frames.attrs["frame_period"] == pytest.approx(round(rate / 1000) / rate)
    assert frames["frequency"].values.max() == pytest.approx(rate / 2 if round(rate / 1000) % 2 == 0 else 0, rel=1e-6)


@pytest.mark.parametrize("names", [("b", "a", "c"), ("c", "b", "a")])
def test_open_recording__several_arrays_of_a_zarr_folder_have_one_order(tmp_path, names):
    """Whatever order the disk lists them in."""
    series = {name: ("time", np.arange(5.0) + ord(name)) for name in names}
    xr.Dataset(series, coords={"time": np.arange(5.0)}).to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    found = mo.open_recording(tmp_path / "a.zarr")
    assert found["channel"].values.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(found[0], [97.0, 98.0, 99.0])
