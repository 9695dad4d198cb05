"""What is stored agrees with what is declared, or one sentence says what is missing."""

import json
import os
import shutil
import warnings

import numpy as np
import pytest
import soundfile
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.files import guarded
from manifold_observer.pipeline.frames.recording import clock
from strategies import examples

pytestmark = pytest.mark.usefixtures("in_this_thread")
N = 400
VALUES = np.random.default_rng(0).normal(size=(N, 3)) + 5


def dataset(values=VALUES, **attrs):
    recording = xr.DataArray(values, dims=("time", "channel"), attrs=attrs)
    return xr.Dataset({"recording": recording}, coords={"time": np.arange(len(values)) / 10})


def write_zarr(path, values=VALUES, zarr_format=3, **encoding):
    options = {"consolidated": False, "zarr_format": zarr_format, "write_empty_chunks": False}
    dataset(values).to_zarr(path, encoding={"recording": {"chunks": (100, 3), **encoding}}, **options)
    return path


def write_netcdf3(path, values=VALUES):
    dataset(values).to_netcdf(path, engine="scipy")
    return path


def write_netcdf4(path, values=VALUES):
    pytest.importorskip("h5py")
    dataset(values).to_netcdf(path, engine="h5netcdf", encoding={"recording": {"chunksizes": (100, 3), "zlib": True}})
    return path


def write_npy(path, values=VALUES):
    np.save(path, values)
    return path


def write_wav(path, values=VALUES):
    soundfile.write(path, values / 20, 10, subtype="DOUBLE")
    return path


def write_csv(path, values=VALUES):
    path.write_text("a,b,c\n" + "".join(",".join(map(repr, map(float, row))) + "\n" for row in values))
    return path


FILES = {"a3.nc": write_netcdf3, "a4.nc": write_netcdf4, "a.npy": write_npy, "a.wav": write_wav, "a.csv": write_csv}
each_file = pytest.mark.parametrize("name", FILES)


def chunk_files(store):
    return sorted(path for path in (store / "recording").rglob("*") if path.is_file() and path.name[0].isdigit())


# ------------------------------------------------------------------------------------------------- what is missing


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr__missing_chunks_are_said(tmp_path, zarr_format):
    store = write_zarr(tmp_path / "a.zarr", zarr_format=zarr_format)
    chunk_files(store)[2].unlink()
    with pytest.warns(
        UserWarning, match=r"a\.zarr stores 3 of 4 chunks of 'recording'; the others read as the fill value"
    ):
        recording = mo.open_recording(store)
    np.testing.assert_array_equal(recording[:200].values, VALUES[:200])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr__of_which_nothing_is_stored_is_refused(tmp_path, zarr_format):
    store = write_zarr(tmp_path / "a.zarr", zarr_format=zarr_format)
    for path in chunk_files(store):
        path.unlink()
    with pytest.raises(ValueError, match="must hold the data that it declares; got 0 of 4 chunks of 'recording'"):
        mo.open_recording(store)


def test_zarr__sparse_one_opens(tmp_path):
    """Zarr leaves out chunks that equal the fill value: zeros between sounds are a recording."""
    values = VALUES.copy()
    values[100:300] = 0
    store = write_zarr(tmp_path / "a.zarr", values, fill_value=0.0)
    assert len(chunk_files(store)) == 2
    with pytest.warns(UserWarning, match="stores 2 of 4 chunks"):
        recording = mo.open_recording(store)
    assert recording.shape == (N, 3)


def test_zarr__shards_are_counted(tmp_path):
    store = write_zarr(tmp_path / "a.zarr", shards=(200, 3))
    assert len(chunk_files(store)) == 2
    np.testing.assert_array_equal(mo.open_recording(store).values, VALUES)
    chunk_files(store)[0].unlink()
    with pytest.warns(UserWarning, match="stores 1 of 2 chunks"):
        mo.open_recording(store)


def test_zarr__links_within_the_store_are_fine(tmp_path):
    store = write_zarr(tmp_path / "a.zarr")
    chunk = chunk_files(store)[1]
    shutil.move(chunk, store / "recording" / "blob")
    chunk.symlink_to(store / "recording" / "blob")
    (tmp_path / "b.zarr").symlink_to(store)
    np.testing.assert_array_equal(mo.open_recording(tmp_path / "b.zarr").values, VALUES)


def test_zarr__without_names_of_dimensions_opens_by_their_lengths(tmp_path):
    store = write_zarr(tmp_path / "a.zarr")
    metadata = json.loads((store / "recording" / "zarr.json").read_text())
    del metadata["dimension_names"]
    (store / "recording" / "zarr.json").write_text(json.dumps(metadata))
    np.testing.assert_array_equal(mo.open_recording(store).values, VALUES)


def test_hdf5__values_that_were_never_written_are_said(tmp_path):
    h5py = pytest.importorskip("h5py")
    write_netcdf4(tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc", "r+") as file:
        old, scales = file["recording"], [dim[0] for dim in file["recording"].dims]
        made = file.create_dataset("new", (N, 3), "f8", chunks=(100, 3), fillvalue=7.0)
        made[:100] = old[:100]
        for dim, scale in zip(made.dims, scales, strict=True):
            dim.attach_scale(scale)
    with pytest.warns(UserWarning, match=r"stores 1 of 4 chunks of 'new'; the others read as the fill value 7\.0"):
        mo.open_recording(tmp_path / "a.nc", variable="new")


def test_hdf5__compressed_silence_opens(tmp_path):
    recording = mo.open_recording(write_netcdf4(tmp_path / "a.nc", np.zeros((N, 3))))
    np.testing.assert_array_equal(recording.values, np.zeros((N, 3)))


def test_long_coordinate__gets_no_index_and_is_read_when_it_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(guarded, "MOST_INDEXED", 100)
    for write in (write_zarr, write_netcdf3):
        recording = mo.open_recording(write(tmp_path / f"{write.__name__}.nc"))
        assert "time" not in recording.xindexes
        assert recording["time"].chunks
        assert clock(recording).segments == [(0, N)]
        np.testing.assert_array_equal(clock(recording).at(np.arange(N)), np.arange(N) / 10)


def test_engine__is_not_guessed_by_others(tmp_path, monkeypatch):
    """An engine of another package may take a file for a list of addresses."""
    asked = []

    class Eager(xr.backends.BackendEntrypoint):
        def guess_can_open(self, filename_or_obj):
            asked.append(filename_or_obj)
            return True

    engines = {"eager": Eager(), **xr.backends.list_engines()}
    monkeypatch.setattr(xr.backends, "list_engines", lambda: engines)
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ValueError, match="not in a supported format"):
        mo.open_recording(tmp_path / "a.json")
    assert asked == []


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"decimal": ","}, "decimal goes with CSV tables"),
        ({"channels_first": True}, r"channels_first goes with \.npy files"),
    ],
)
def test_options__of_other_formats_are_refused(tmp_path, option, sentence):
    with pytest.raises(ValueError, match=sentence):
        mo.open_recording(write_wav(tmp_path / "a.wav"), **option)


# ------------------------------------------------------------------------------------------ changed while it is read


@pytest.mark.parametrize("name", [name for name in FILES if name != "a.csv"])
@pytest.mark.parametrize("change", ["cut", "removed", "replaced"])
def test_change__while_it_is_read_is_one_sentence(tmp_path, name, change):
    path = FILES[name](tmp_path / name)
    recording = mo.open_recording(path)
    if change == "cut":
        os.truncate(path, path.stat().st_size // 2)
    elif change == "removed":
        path.unlink()
    else:
        FILES[name](tmp_path / f"new_{name}", VALUES + 1).replace(path)
    with pytest.raises(ValueError, match=r"must (?:stay in place|not shrink) while it is read; got") as refused:
        recording.values  # noqa: B018
    assert str(path) in str(refused.value)


def test_change__a_table_has_been_read(tmp_path):
    recording = mo.open_recording(write_csv(tmp_path / "a.csv"))
    (tmp_path / "a.csv").unlink()
    np.testing.assert_array_equal(recording.values, VALUES)


def test_damaged_chunk__is_named(tmp_path):
    store = write_zarr(tmp_path / "a.zarr")
    chunk = chunk_files(store)[1]
    chunk.write_bytes(chunk.read_bytes()[:-100])
    recording = mo.open_recording(store)
    with pytest.raises(ValueError, match=r"open_recording: .*a\.zarr: 'recording' in 0 .. [0-9]+ could not be read: "):
        recording.values  # noqa: B018


# ------------------------------------------------------------------------------------------------- cut and mutated


def right_or_refused(path, expected):
    """Open and read: the very values, or one sentence that names the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = mo.open_recording(path).values
    except (ValueError, OSError, UserWarning) as said:
        text = str(said)
    else:
        np.testing.assert_array_equal(found, expected)
        return
    assert str(path) in text
    assert "\n" not in text


@pytest.fixture(scope="module")
def whole(tmp_path_factory, in_this_thread):
    """The bytes of each file and its values, made once."""
    folder = tmp_path_factory.mktemp("whole")
    paths = {name: write(folder / name) for name, write in FILES.items() if name != "a4.nc" or has_h5py()}
    return {name: (path.read_bytes(), mo.open_recording(path).values) for name, path in paths.items()}


def has_h5py():
    with warnings.catch_warnings():
        try:
            import h5py  # noqa: F401, PLC0415
        except ImportError:
            return False
    return True


@examples(40)
@given(name=st.sampled_from(sorted(FILES)), share=st.floats(0, 1))
def test_cut__anywhere_is_refused_or_right(whole, tmp_path_factory, name, share):
    content, expected = whole[name]
    length = min(int(share * len(content)), len(content) - 1)
    path = tmp_path_factory.mktemp("cut") / name
    path.write_bytes(content[:length])
    if name == "a.csv" and content[:length].endswith(b"\n"):  # a table may end after any line
        expected = expected[: max(0, content[:length].count(b"\n") - 1)]
    right_or_refused(path, expected)


@examples(40)
@given(name=st.sampled_from(sorted(set(FILES) - {"a.csv"})), data=st.data())
def test_mutated_header__is_refused_or_read(whole, tmp_path_factory, name, data):
    """Without checksums a value may change unseen; never the error, and never the length without a word."""
    content, expected = whole[name]
    mutated = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, min(600, len(content) - 1)))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("mutated") / name
    path.write_bytes(mutated)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = mo.open_recording(path)
            clock(found)
            assert found.shape[0] >= len(expected)
            assert found.size <= 2 * expected.size
            found.values  # noqa: B018
    except (ValueError, OSError) as said:
        text = str(said)
        assert "\n" not in text
