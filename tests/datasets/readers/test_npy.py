"""Arrays in files come out with the right values, lazily, and nothing is unpickled."""

import pickle

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given
from hypothesis import strategies as st

from manifold_observer.datasets.readers.npy import NpyArray
from strategies import examples


def saved(folder, values):
    np.save(folder / "a.npy", values)
    return folder / "a.npy"


def test_open__labels_a_table(tmp_path):
    values = np.arange(12.0).reshape(6, 2)
    dataset = xr.open_dataset(saved(tmp_path, values), sampling_rate=50, units="mV")
    recording = dataset["recording"]
    np.testing.assert_array_equal(recording.values, values)
    assert recording.dims == ("time", "channel")
    assert recording.attrs == {
        "sampling_rate": 50.0,
        "units": "mV",
        "long_name": "recorded values",
        "source": "a.npy",
    }
    assert dataset["channel"].values.tolist() == ["ch1", "ch2"]
    np.testing.assert_allclose(dataset["time"], np.arange(6) / 50, rtol=1e-15)
    assert dataset["time"].attrs["units"] == "s"


def test_open__invents_no_clock(tmp_path):
    dataset = xr.open_dataset(saved(tmp_path, np.zeros(5)))
    assert dataset["recording"].shape == (5, 1)
    assert "time" not in dataset.coords
    assert "sampling_rate" not in dataset["recording"].attrs


@pytest.mark.parametrize(
    ("stored", "read"),
    [("<i2", "i2"), (">i2", "i2"), (">u4", "u4"), (">f8", "f8"), (">f4", "f4"), ("f2", "f4"), ("?", "u1")],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_open__gives_native_values_of_any_byte_order(tmp_path, stored, read, order):
    values = np.asarray(np.arange(12).reshape(4, 3) % 2, dtype=stored, order=order)
    recording = xr.open_dataset(saved(tmp_path, values))["recording"]
    assert recording.dtype == np.dtype(read)
    assert recording.dtype.isnative
    assert recording.load().dtype.isnative
    np.testing.assert_array_equal(recording.values, values)


def test_open__turns_channels_first_round(tmp_path):
    values = np.arange(12).reshape(3, 4)
    recording = xr.open_dataset(saved(tmp_path, values), channels_first=True)["recording"]
    np.testing.assert_array_equal(recording.isel(channel=2), values[2])
    assert recording.sizes == {"time": 4, "channel": 3}


index = st.one_of(
    st.slices(20),
    st.integers(-20, 19),
    st.lists(st.integers(-20, 19), min_size=1, max_size=5),
)


@pytest.fixture(scope="module")
def fortran(tmp_path_factory):
    values = np.asfortranarray(np.arange(400, dtype=">i4").reshape(20, 20))
    return saved(tmp_path_factory.mktemp("npy"), values), xr.DataArray(values, dims=("time", "channel"))


@examples(40)
@given(time=index, channel=index)
def test_array__indexes_like_numpy(fortran, time, channel):
    # xarray 2026.9 itself fails on an empty slice with a negative step.
    assume(all(not isinstance(part, slice) or range(20)[part] for part in (time, channel)))
    path, values = fortran
    recording = xr.open_dataset(path)["recording"].drop_vars("channel")
    key = {"time": time, "channel": channel}
    np.testing.assert_array_equal(recording.isel(key).values, values.isel(key).values)


def test_array__opens_in_chunks_and_pickles(tmp_path):
    path = saved(tmp_path, np.arange(3_000_000, dtype=">f4").reshape(-1, 1))
    lazy = xr.open_dataset(path, chunks={}, sampling_rate=1000.0)
    assert lazy["recording"].chunks == ((2_000_000, 1_000_000), (1,))
    again = pickle.loads(pickle.dumps(lazy))
    assert again["recording"].isel(time=slice(2_500_000, 2_500_003)).values.ravel().tolist() == [
        2_500_000.0,
        2_500_001.0,
        2_500_002.0,
    ]


def test_array__reads_only_what_is_asked(tmp_path, monkeypatch):
    path = saved(tmp_path, np.zeros((1000, 8)))
    copied = []
    read = NpyArray._read
    monkeypatch.setattr(NpyArray, "_read", lambda self, key: copied.append(read(self, key).size) or read(self, key))
    dataset = xr.open_dataset(path)
    assert copied == []
    dataset["recording"].isel(time=slice(10, 20), channel=3).load()
    assert copied == [10]


def test_open__refuses_pickled_objects(tmp_path, monkeypatch):
    path = saved(tmp_path, np.array([{"a": 1}, None], dtype=object))
    monkeypatch.setattr(pickle, "load", lambda *_: pytest.fail("unpickled"))
    with pytest.raises(ValueError, match=r"a\.npy must hold plain numbers; got pickled Python objects"):
        xr.open_dataset(path)


def test_open__refuses_a_bare_pickle(tmp_path):
    (tmp_path / "a.npy").write_bytes(pickle.dumps([1.0]))
    with pytest.raises(ValueError, match=r"must be a NumPy \.npy array; got a Python pickle"):
        xr.open_dataset(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.zeros((2, 2), complex), "must hold real numbers of at most 64 bits; got dtype complex128"),
        (np.zeros((2, 2), np.longdouble), "must hold real numbers of at most 64 bits"),
        (np.zeros((2, 2, 2)), r"shape \(time,\) or \(time, channel\); got shape \(2, 2, 2\)"),
        (np.zeros((0, 2)), r"got shape \(0, 2\)"),
        (np.float64(3), r"got shape \(\)"),
        (np.array(["a"]), "got dtype <U1"),
        (np.zeros(2, [("a", "f8")]), "must hold real numbers"),
    ],
)
def test_open__refuses_what_is_no_recording(tmp_path, values, sentence):
    with pytest.raises(ValueError, match=sentence):
        xr.open_dataset(saved(tmp_path, values))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda b: b[:-3], "must be 208 bytes long .* got 205 bytes .it was cut short"),
        (lambda b: b + b"xx", "got 210 bytes .more follows the array"),
        (lambda b: b[:40], "must have a readable .npy header"),
        (lambda b: b[:6] + b"\x09\x00" + b[8:], "must have a readable .npy header"),
    ],
)
def test_open__checks_header_against_size(tmp_path, change, sentence):
    path = saved(tmp_path, np.zeros(10))
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=sentence):
        xr.open_dataset(path)


@pytest.mark.parametrize("rate", [0, -1.0, np.inf, np.nan])
def test_open__refuses_rates_that_are_none(tmp_path, rate):
    with pytest.raises(ValueError, match="sampling_rate must be a positive number of Hz"):
        xr.open_dataset(saved(tmp_path, np.zeros(3)), sampling_rate=rate)


def test_open__says_that_a_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"npy: .*a\.npy must be a local file"):
        xr.open_dataset(tmp_path / "a.npy")


def test_open__refuses_directories_and_buffers(tmp_path):
    with pytest.raises(ValueError, match="must be a file; got a directory"):
        xr.open_dataset(tmp_path, engine="manifold-npy")
    with pytest.raises(TypeError, match="must be the path of a file"):
        xr.open_dataset(b"\x93NUMPY", engine="manifold-npy")


@pytest.mark.parametrize("shape", [(64, 200_000), (2, 5000), (1, 300), (8, 100)])
def test_open__asks_about_what_looks_like_channels_first(tmp_path, shape):
    values = np.arange(np.prod(shape)).reshape(shape)
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(
        ValueError, match=r"looks like \(channel, time\): give channels_first=True\. If it is right, give"
    ):
        xr.open_dataset(tmp_path / "a.npy")
    turned = xr.open_dataset(tmp_path / "a.npy", channels_first=True)["recording"]
    np.testing.assert_array_equal(turned[:50].values, values.T[:50])
    believed = xr.open_dataset(tmp_path / "a.npy", channels_first=False)["recording"]
    np.testing.assert_array_equal(believed[:, :50].values, values[:, :50])


@pytest.mark.parametrize("shape", [(200, 513), (100, 64), (1, 64), (30, 100)])
def test_open__believes_a_shape_that_can_be(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    assert xr.open_dataset(tmp_path / "a.npy")["recording"].shape == shape


@pytest.mark.parametrize("other", [np.zeros((5, 2)), np.zeros((9, 3)), np.zeros((10, 2), "f4"), np.zeros(3)])
def test_array__refuses_another_file_in_its_place(tmp_path, other):
    np.save(tmp_path / "a.npy", np.ones((10, 2)))
    recording = xr.open_dataset(tmp_path / "a.npy", cache=False)["recording"]
    np.save(tmp_path / "a.npy", other)
    with pytest.raises(
        ValueError, match=r"a\.npy must keep its shape \(10, 2\) and dtype float64 while it is read; got"
    ):
        recording.values  # noqa: B018


def test_array__may_grow(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((10, 2)))
    recording = xr.open_dataset(tmp_path / "a.npy", cache=False)["recording"]
    np.save(tmp_path / "a.npy", np.vstack([np.ones((10, 2)), np.zeros((5, 2))]))
    np.testing.assert_array_equal(recording.values, np.ones((10, 2)))
