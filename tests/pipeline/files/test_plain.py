"""Samples that lie in files as they are: read without a library, to the same bits."""

import os
import pickle
import tracemalloc
from pathlib import Path

import dask
import h5py
import numcodecs
import numpy as np
import psutil
import pytest
import soundfile
import xarray as xr
import zarr
from numpy.testing import assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.files import coded
from manifold_observer.pipeline.files.plain import PlainRows
from manifold_observer.pipeline.graph.slabs import Stored, source_of

N, P = 5000, 3
SAMPLES = np.random.default_rng(0).normal(size=(N, P)).astype(np.float32)
WHOLE = (SAMPLES * 3000).astype(np.int16)
CHUNK = 700  # of which the last is cut short
CODED_WHOLE = {"compressors": zarr.codecs.ZstdCodec()}


def _dataset(samples):
    return xr.Dataset({"recording": (("time", "channel"), samples)}, attrs={"sampling_rate": 100.0})


def _xarray_zarr(path, samples=SAMPLES, chunks=(CHUNK, P), zarr_format=3, **encoding):
    compressors = {"compressors": None} if zarr_format == 3 else {"compressors": None, "filters": None}
    encoding = {"chunks": chunks, **compressors, **encoding}
    _dataset(samples).to_zarr(path, encoding={"recording": encoding}, consolidated=False, zarr_format=zarr_format)


def _bare_zarr(path, samples=SAMPLES, **options):
    array = zarr.create_array(path, shape=samples.shape, dtype=samples.dtype, chunks=(CHUNK, P), **options)
    array[:] = samples


def _hdf5(path, samples=SAMPLES, block=0, **options):
    with h5py.File(path, "w", userblock_size=block) as file:
        file.create_dataset("recording", data=samples, **options)
        for place, (dim, n) in enumerate(zip(("time", "channel"), samples.shape, strict=True)):
            file[dim] = np.arange(n) / 100
            file[dim].make_scale(dim)
            file["recording"].dims[place].attach_scale(file[dim])


def _hdf5_of_12_bits(path, offset):
    kind = h5py.h5t.STD_I16LE.copy()
    kind.set_precision(12)
    kind.set_offset(offset)
    _hdf5(path, WHOLE // 8, dtype=h5py.Datatype(kind))


def _hdf5_of_another_bias(path):
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_ebias(100)
    _hdf5(path, dtype=h5py.Datatype(kind))


def _npy(path, samples=SAMPLES):
    np.save(path, samples)


def _sound(path, samples=WHOLE, subtype="PCM_16", **options):
    soundfile.write(path, samples, 100, subtype=subtype, **options)


PLAIN = {
    "v3.zarr": _xarray_zarr,
    "v2.zarr": lambda path: _xarray_zarr(path, zarr_format=2),
    "int.zarr": lambda path: _xarray_zarr(path, WHOLE),
    "bare.zarr": lambda path: _bare_zarr(path, compressors=None),
    "bare2.zarr": lambda path: _bare_zarr(path, compressors=None, zarr_format=2),
    "big.zarr": lambda path: _bare_zarr(path, compressors=None, serializer=zarr.codecs.BytesCodec(endian="big")),
    "zstd.zarr": lambda path: _xarray_zarr(path, **CODED_WHOLE),
    "bare_blosc.zarr": lambda path: _bare_zarr(path, WHOLE, compressors=zarr.codecs.BloscCodec()),
    "big.zstd.zarr": lambda path: _bare_zarr(path, serializer=zarr.codecs.BytesCodec(endian="big")),
    "gzip2.zarr": lambda path: _xarray_zarr(path, zarr_format=2, compressors=numcodecs.GZip()),
    "bare_lz4.zarr": lambda path: _bare_zarr(path, compressors=numcodecs.LZ4(), zarr_format=2),
    "classic.nc": lambda path: _dataset(SAMPLES).to_netcdf(path, engine="scipy"),
    "whole.nc": lambda path: _dataset(SAMPLES).to_netcdf(path, engine="h5netcdf"),
    "block.h5": lambda path: _hdf5(path, block=512),
    "plain.npy": _npy,
    "int8.npy": lambda path: _npy(path, WHOLE.astype(np.int8)),
    "big.npy": lambda path: _npy(path, SAMPLES.astype(">f8")),
    "half.npy": lambda path: _npy(path, SAMPLES.astype(np.float16)),
    "mono.npy": lambda path: _npy(path, SAMPLES[:, 0]),
    "sound.wav": _sound,
    "float.wav": lambda path: _sound(path, SAMPLES / 9, "FLOAT"),
    "big.wav": lambda path: _sound(path, endian="BIG"),
    "wide.rf64": lambda path: _sound(path, format="RF64"),
}
CODED = {
    "columns.zarr": lambda path: _xarray_zarr(path, chunks=(CHUNK, 1)),
    "scaled.zarr": lambda path: _xarray_zarr(
        path, SAMPLES.astype(float), dtype="i2", scale_factor=0.01, _FillValue=-9999
    ),
    "delta.zarr": lambda path: _bare_zarr(path, WHOLE, filters=[numcodecs.Delta(dtype="i2")], zarr_format=2),
    "twice.zarr": lambda path: _bare_zarr(path, compressors=[zarr.codecs.ZstdCodec(), zarr.codecs.GzipCodec()]),
    "checked.zarr": lambda path: _bare_zarr(path, compressors=zarr.codecs.Crc32cCodec()),
    "turned.zarr": lambda path: _bare_zarr(path, compressors=None, filters=[zarr.codecs.TransposeCodec(order=(1, 0))]),
    "shards.zarr": lambda path: _bare_zarr(path, compressors=None, shards=(CHUNK * 2, P)),
    "chunks.h5": lambda path: _hdf5(path, chunks=(100, P)),
    "short.h5": lambda path: _hdf5_of_12_bits(path, 0),
    "shifted.h5": lambda path: _hdf5_of_12_bits(path, 4),
    "biased.h5": _hdf5_of_another_bias,
    "turned.npy": lambda path: _npy(path, np.asfortranarray(SAMPLES)),
    "pcm24.wav": lambda path: _sound(path, SAMPLES / 9, "PCM_24"),
    "sound.flac": _sound,
}


def _opened(folder, name):
    made = PLAIN | CODED
    made[name](folder / name)
    known = {"sampling_rate": 100.0} if name.endswith(".npy") or name.startswith(("bare", "big.z")) else {}
    engine = "h5netcdf" if name == "block.h5" else None  # whose signature is looked for at the beginning
    return mo.open_recording(folder / name, engine=engine, **known)


def _by_library(recording):
    source = source_of(recording.data)
    bare = Stored(source.dataset, source.pick, recording, source.grain)
    return np.asarray(bare[:, :])


@pytest.mark.parametrize("name", PLAIN)
def test_plain__rows_are_those_of_the_library(tmp_path, name):
    recording = _opened(tmp_path, name)
    source = pickle.loads(pickle.dumps(source_of(recording.data)))
    assert source.rows is not None
    expected = _by_library(recording)
    for span in ((0, N), (CHUNK - 1, CHUNK + 1), (0, 1), (N - 1, N), (650, 2900)):
        (piece,) = source.pieces([span])
        assert_array_equal(piece, expected[slice(*span)])
        assert piece.dtype == recording.dtype == expected.dtype
    assert_array_equal(recording.values, expected)
    assert_array_equal(recording[3:2000:7].values, expected[3:2000:7])


@pytest.mark.parametrize(("name", "itemsize"), [("sound.wav", 2), ("classic.nc", 4)])
def test_plain__as_many_bytes_of_a_file_are_read_at_a_time_whatever_their_numbers_become(
    tmp_path, monkeypatch, name, itemsize
):
    monkeypatch.setattr("manifold_observer.pipeline.frames.runs._PIECE_BYTES", 100 * P * itemsize)
    recording, spans = _opened(tmp_path, name), []
    assert recording.dtype == np.float32
    read = PlainRows.pieces
    monkeypatch.setattr(PlainRows, "pieces", lambda *given, **how: spans.extend(given[1]) or read(*given, **how))
    mo.log_rms(recording, frame=10).compute()
    assert spans == [(first, first + 100) for first in range(0, N, 100)]


@pytest.mark.parametrize("name", CODED)
def test_plain__what_is_coded_is_left_to_its_library(tmp_path, name):
    recording = _opened(tmp_path, name)
    assert source_of(recording.data).rows is None
    assert recording.shape == (N, P)
    np.testing.assert_allclose(recording.values, _by_library(recording))


@pytest.mark.parametrize("name", ["v3.zarr", "classic.nc", "sound.wav"])
@pytest.mark.parametrize(("frame", "hop"), [(10, None), (64, 16), (10, 25), (4990, None)])
def test_plain__features_have_the_bits_of_samples_in_memory(tmp_path, monkeypatch, name, frame, hop):
    monkeypatch.setattr("manifold_observer.pipeline.frames.runs._PIECE_BYTES", 4096)
    recording = _opened(tmp_path, name)
    for feature, options in ((mo.log_rms, {}), (mo.stft, {}), (mo.histogram, {"bins": 30})):
        found = feature(recording, frame=frame, hop=hop, **options)
        expected = feature(recording.compute(), frame=frame, hop=hop, **options)
        assert_array_equal(found.values, expected.values)


def test_plain__chosen_channels_are_taken_of_the_rows(tmp_path):
    _npy(tmp_path / "a.npy")
    recording = mo.open_recording(tmp_path / "a.npy", sampling_rate=10.0, channels=["ch3", "ch1"])
    assert source_of(recording.data).rows is not None
    assert_array_equal(recording.values, SAMPLES[:, [2, 0]])
    assert_array_equal(mo.identity(recording).values, SAMPLES[:, [2, 0]])


def test_plain__few_of_many_channels_take_little_memory(tmp_path):
    wide = np.tile(SAMPLES, (4, 80))
    _npy(tmp_path / "a.npy", wide)
    recording = mo.open_recording(tmp_path / "a.npy", sampling_rate=10.0, channels=["ch7", "ch200"])
    tracemalloc.start()
    found = source_of(recording.data)[:, :]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_array_equal(found, wide[:, [6, 199]])
    assert peak < wide.nbytes / 4


def test_plain__values_that_stand_for_nothing_are_found_by_the_library(tmp_path):
    _npy(tmp_path / "a.npy", WHOLE.astype(np.float32))
    recording = mo.open_recording(tmp_path / "a.npy", sampling_rate=10.0, missing=[float(WHOLE[5, 1])])
    assert source_of(recording.data).rows is None
    assert np.isnan(recording.values[5, 1])


@pytest.mark.parametrize("how", [{}, CODED_WHOLE])
def test_plain__a_chunk_that_is_not_stored_is_its_fill_value(tmp_path, how):
    _xarray_zarr(tmp_path / "a.zarr", **how)
    (tmp_path / "a.zarr/recording/c/2/0").unlink()
    with pytest.warns(UserWarning, match="stores 7 of 8 chunks"):
        recording = mo.open_recording(tmp_path / "a.zarr")
    assert source_of(recording.data).rows is not None
    expected = SAMPLES.copy()
    expected[2 * CHUNK : 3 * CHUNK] = np.nan
    assert_array_equal(recording.values, expected)


def test_plain__a_coded_chunk_that_was_written_anew_is_read_anew(tmp_path):
    recording = _opened(tmp_path, "zstd.zarr")
    assert_array_equal(recording[:9].values, SAMPLES[:9])
    zarr.open_array(tmp_path / "zstd.zarr/recording", mode="r+")[:] = -SAMPLES
    assert_array_equal(recording[:9].values, -SAMPLES[:9])


def test_plain__a_coded_chunk_of_another_length_is_left_to_its_library(tmp_path):
    recording = _opened(tmp_path, "zstd.zarr")
    chunk = tmp_path / "zstd.zarr/recording/c/1/0"
    chunk.write_bytes(numcodecs.Zstd().encode(bytes(40)))
    with pytest.raises(ValueError, match=r"zstd\.zarr: 'recording' in .* could not be read"):
        mo.log_rms(recording, frame=10).compute()


@pytest.mark.parametrize("codec", [numcodecs.Zstd(), numcodecs.Blosc(), numcodecs.GZip(), numcodecs.Zlib()])
@pytest.mark.parametrize("damaged", [b"", b"abc", None, bytes(100)], ids=["empty", "short", "longer", "zeros"])
def test_coded__what_cannot_be_decoded_or_is_too_long_is_neither_given_nor_kept(tmp_path, codec, damaged):
    chunk = tmp_path / "chunk"
    chunk.write_bytes(codec.encode(bytes(10**6)) if damaged is None else damaged)
    room = memoryview(bytearray(8))
    assert not coded.DECODED.read(str(chunk), 0, room, 40, codec)
    assert len(coded.DECODED.chunk) == 0
    chunk.write_bytes(codec.encode(bytes(range(40))))
    assert coded.DECODED.read(str(chunk), 3, room, 40, codec)
    assert bytes(room) == bytes(range(3, 11))


def test_plain__long_coded_chunks_are_left_to_their_library(tmp_path, monkeypatch):
    monkeypatch.setattr("manifold_observer.pipeline.files.plain_places.MOST_BYTES", CHUNK * P * 4 - 1)
    _xarray_zarr(tmp_path / "a.zarr", **CODED_WHOLE)
    assert source_of(mo.open_recording(tmp_path / "a.zarr").data).rows is None


@pytest.mark.parametrize("how", [{}, CODED_WHOLE])
def test_plain__a_chunk_that_was_cut_is_refused(tmp_path, how):
    _xarray_zarr(tmp_path / "a.zarr", **how)
    recording = mo.open_recording(tmp_path / "a.zarr")
    cut = tmp_path / "a.zarr/recording/c/2/0"
    cut.write_bytes(cut.read_bytes()[:-4])
    with pytest.raises(ValueError, match=r"a\.zarr: 'recording' in .* could not be read"):
        mo.log_rms(recording, frame=10).compute()


@pytest.mark.parametrize("name", ["classic.nc", "whole.nc", "plain.npy", "sound.wav"])
def test_plain__a_file_that_shrank_is_refused(tmp_path, name):
    recording = _opened(tmp_path, name)
    path = Path(tmp_path / name)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="not shrink while it is read"):
        mo.log_rms(recording, frame=10).compute()


def test_plain__another_array_under_the_name_is_refused(tmp_path):
    recording = _opened(tmp_path, "plain.npy")
    _npy(tmp_path / "plain.npy", np.zeros((2 * N, P + 1)))
    with pytest.raises(ValueError, match=r"keep its shape \(5000, 3\) and dtype float32 while it is read"):
        mo.log_rms(recording, frame=10).compute()


def test_plain__long_chunks_that_lie_as_they_are_cost_nothing(tmp_path, recwarn):
    wide = np.tile(SAMPLES, (400, 4))
    _xarray_zarr(tmp_path / "a.zarr", wide, chunks=wide.shape)
    recording = mo.open_recording(tmp_path / "a.zarr")
    assert not [one for one in recwarn if "chunks" in str(one.message)]
    assert source_of(recording.data).kept_bytes == 0


def test_plain__samples_outside_the_edges_are_named_at_their_scale(tmp_path):
    recording = _opened(tmp_path, "sound.wav")
    lowest = float(recording.min())
    edges = np.linspace(np.nextafter(lowest, 0), 1, 5)
    with pytest.raises(
        ValueError, match=rf"a sample of {lowest} lies outside the edges {edges[0]} \.\. 1.0, in samples"
    ):
        mo.histogram(recording, frame=10, edges=edges).compute()


def test_plain__threads_read_their_own_places(tmp_path):
    recording = _opened(tmp_path, "plain.npy")
    with dask.config.set(scheduler="threads", num_workers=4):
        found = recording.chunk(time=97).compute()
    assert_array_equal(found, SAMPLES)


def test_plain__hdf5_hands_out_numbers_of_few_bits_converted(tmp_path):
    assert_array_equal(_opened(tmp_path, "shifted.h5"), WHOLE // 8)


def test_plain__sound_is_found_where_its_header_says_now(tmp_path):
    recording = _opened(tmp_path, "sound.wav")
    other = tmp_path / "other.wav"
    with soundfile.SoundFile(other, "w", 100, P, "PCM_16") as file:
        file.title = "a longer header"
        file.write(WHOLE[::-1])
    (tmp_path / "sound.wav").write_bytes(other.read_bytes())  # in place
    assert source_of(recording.data).rows is not None
    assert_array_equal(recording.values, WHOLE[::-1] / np.float32(2**15))


@pytest.mark.parametrize("name", ["classic.nc", "whole.nc"])
def test_plain__a_file_that_was_written_to_is_left_to_its_library(tmp_path, name):
    recording = _opened(tmp_path, name)
    source = source_of(recording.data)
    assert next(source.pieces([(0, 5)])) is not None
    os.utime(tmp_path / name, ns=(0, 0))
    assert next(source.pieces([(0, 5)])) is None
    assert_array_equal(recording.values, SAMPLES)


@pytest.mark.parametrize("error", [AttributeError, NotImplementedError, ValueError])
def test_plain__what_a_library_does_not_tell_is_left_to_it(tmp_path, monkeypatch, error):
    def ask(path, wrapper):
        raise error

    monkeypatch.setattr("manifold_observer.pipeline.files.plain_places._in_zarr", ask)
    recording = _opened(tmp_path, "v3.zarr")
    assert source_of(recording.data).rows is None
    assert_array_equal(recording.values, SAMPLES)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="of Linux")
def test_plain__the_system_is_told_that_a_file_is_read_in_order(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *given: told.append(given[1:]))
    mo.log_rms(_opened(tmp_path, "sound.wav"), frame=10).compute()
    assert told[0] == (0, 0, os.POSIX_FADV_SEQUENTIAL)
    assert told.count(told[0]) == 1


def _is_open(path):
    return str(path) in [one.path for one in psutil.Process().open_files()]


def test_plain__a_file_that_was_read_to_its_end_is_closed(tmp_path):
    source = source_of(_opened(tmp_path, "sound.wav").data)
    assert_array_equal(source[:9, :], WHOLE[:9] / np.float32(2**15))
    assert _is_open(tmp_path / "sound.wav")
    assert_array_equal(source[9:, :], WHOLE[9:] / np.float32(2**15))
    assert not _is_open(tmp_path / "sound.wav")


def test_plain__a_system_that_deletes_no_open_files_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr("manifold_observer.pipeline.files.plain._STAYS_OPEN", False)
    source = source_of(_opened(tmp_path, "plain.npy").data)
    assert_array_equal(source[:9, :], SAMPLES[:9])
    assert not _is_open(tmp_path / "plain.npy")


def test_plain__other_systems_read_the_same_rows(tmp_path, monkeypatch):
    for name in ("preadv", "posix_fadvise", "POSIX_FADV_WILLNEED"):
        monkeypatch.delattr(os, name, raising=False)
    recording = _opened(tmp_path, "v3.zarr")
    assert source_of(recording.data).rows is not None
    assert_array_equal(recording.values, SAMPLES)
