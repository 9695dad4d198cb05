"""Files are named by what they hold, whatever their name says."""

import gzip
import io
import pickle

import numpy as np
import pytest
import soundfile
import xarray as xr

from manifold_observer.datasets.readers import sniff


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "an empty file"),
        (b"<!DOCTYPE html><p>404", "an HTML page"),
        (b"\xef\xbb\xbf\n <HTML>", "an HTML page"),
        (b"<?xml version='1.0'?><Error/>", "an XML document"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer, not the data: run 'git lfs pull'"),
        (b"RIFF\0\0\0\0WAVE", "a RIFF/WAVE file"),
        (b"RIFX\0\0\0\0WAVE", "a RIFX/WAVE file (big-endian)"),
        (b"RIFF\0\0\0\0AVI ", "a RIFF file that is not WAVE"),
        (b"\x89HDF\r\n\x1a\n", "HDF5 (NetCDF 4)"),
        (bytes(512) + b"\x89HDF\r\n\x1a\n", "HDF5 (NetCDF 4)"),
        (b"CDF\x01", "classic NetCDF 3"),
        (b"0       subject", "an EDF recording"),
        (pickle.dumps([1, 2]), "a Python pickle"),
        (gzip.compress(b"x", mtime=0), "a gzip archive"),
        ("time,µV\r\n0,1\r\n".encode(), "text"),
        ("time,µV\r\n0,1\r\n".encode("cp1252"), "text"),
        ("time,x".encode("utf-16"), "text"),
        (bytes(5000), "nothing but zero bytes at its start"),
        (bytes(range(256)), "binary data of an unknown kind"),
    ],
)
def test_describe__names_content(tmp_path, content, words):
    path = tmp_path / "night.wav"
    path.write_bytes(content)
    assert sniff.describe(path) == words


@pytest.mark.parametrize(
    ("suffix", "words"),
    [
        ("wav", "a RIFF/WAVE file"),
        ("flac", "FLAC"),
        ("ogg", "Ogg"),
        ("aiff", "an AIFF file"),
        ("rf64", "an RF64/WAVE file"),
        ("w64", "a Sony Wave64 file"),
        ("au", "a Sun/NeXT .au file"),
        ("caf", "a Core Audio file"),
        ("mp3", "MP3"),
    ],
)
def test_describe__knows_what_libsndfile_writes(tmp_path, suffix, words):
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, np.zeros((2000, 1)), 8000)
    assert sniff.describe(path) == words
    assert words in sniff.SOUNDS


def test_describe__knows_numpy_and_netcdf(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    xr.Dataset({"x": ("t", [1.0])}).to_netcdf(tmp_path / "a.nc", engine="scipy")
    assert sniff.describe(tmp_path / "a.npy") == "a NumPy .npy array"
    assert sniff.describe(tmp_path / "a.nc") == "classic NetCDF 3"


def test_describe__tells_zarr_from_a_directory(tmp_path):
    assert sniff.describe(tmp_path) == "a directory"
    (tmp_path / "zarr.json").write_text("{}")
    assert sniff.describe(tmp_path) == "a Zarr store"


@pytest.mark.parametrize(
    ("installed", "is_missing"),
    [((), True), (("h5netcdf",), True), (("h5netcdf", "h5py"), False), (("netCDF4",), False)],
)
def test_missing_engine__says_what_to_install(tmp_path, monkeypatch, installed, is_missing):
    monkeypatch.setattr(sniff, "_is_installed", lambda module: module in installed)
    (tmp_path / "a.nc").write_bytes(b"\x89HDF\r\n\x1a\n")
    (tmp_path / "b.nc").write_bytes(b"CDF\x01")
    answer = "Install an engine for HDF5 with: pip install h5netcdf h5py." if is_missing else None
    assert sniff.missing_engine(tmp_path / "a.nc") == answer
    assert sniff.missing_engine(tmp_path / "b.nc") is None


def test_looks_crlf_mangled__needs_binary_data(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.random.default_rng(0).integers(0, 255, 9000, dtype=np.uint8))
    for name, content, answer in [
        ("a.npy", buffer.getvalue(), False),
        ("b.npy", buffer.getvalue().replace(b"\n", b"\r\n"), True),
        ("c.csv", b"a,b\r\n" * 20, False),
    ]:
        (tmp_path / name).write_bytes(content)
        assert sniff.looks_crlf_mangled(tmp_path / name) is answer
