"""Files that exhaust memory as they are opened."""

import gzip
import struct
import zipfile

import h5py
import numpy as np
import xarray as xr

from .by_hand import document, hdf5_file, zarr_2, zarr_3, zarr_3_array

# -------------------------------------------------------------------------------------------------- memory at open


def zarr_of_a_million_million(folder):
    return zarr_3(folder, n=10**12, chunk=10**6)


def zarr_of_a_million_million_chunks(folder):
    return zarr_3(folder, n=10**12, chunk=1)


def zarr_chunk_of_a_million_million(folder):
    return zarr_3(folder, n=10**12, chunk=10**12, codecs=[{"name": "bytes"}, {"name": "zstd"}])


def zarr_clock_of_a_million_million(folder):
    root = zarr_3(folder)
    document(root / "time" / "zarr.json", zarr_3_array(n=10**12, chunk=10**6))
    return root


def zarr_shape_that_is_no_number(folder):
    return zarr_2(folder, shape=["many"])


def zarr_negative_shape(folder):
    return zarr_2(folder, shape=[-(10**12)])


def zarr_attributes_of_100_megabytes(folder):
    root = zarr_2(folder)
    with (root / "recording" / ".zattrs").open("r+b") as file:
        file.truncate(10**8)
    return root


def zarr_metadata_nested_deeply(folder):
    root = zarr_2(folder)
    document(root / ".zattrs", '{"a":' * 100_000 + "1" + "}" * 100_000)
    return root


def zarr_groups_nested_deeply(folder):
    root = place = zarr_2(folder)
    for _ in range(200):
        place = place / "g"
        document(place / ".zgroup", {"zarr_format": 2})
    return root


def hdf5_of_a_million_million(folder):
    return hdf5_file(folder, recording=((10**12,), {}))


def hdf5_chunks_of_a_million_million(folder):
    path = hdf5_file(folder, recording=((10**12,), {"chunks": (10**6,), "compression": "gzip"}))
    with h5py.File(path, "r+") as file:
        file["recording"][:10] = 1.0
    return path


def hdf5_of_ten_million_channels(folder):
    path = hdf5_file(folder, recording=((8, 10**7), {"chunks": (8, 10**4), "compression": "gzip"}))
    with h5py.File(path, "r+") as file:
        file["recording"][:, :10] = 1.0
    return path


def hdf5_label_of_a_gigabyte(folder):
    with h5py.File(folder / "a.nc", "w") as file:
        labels = h5py.h5t.C_S1.copy()
        labels.set_size(2**30)
        h5py.h5d.create(file.id, b"channel", labels, h5py.h5s.create_simple((8,)))
        file["recording"] = np.arange(8.0)
    return folder / "a.nc"


def hdf5_attribute_of_100_megabytes(folder):
    path = hdf5_file(folder, recording=((8,), {"data": np.arange(8.0)}))
    with h5py.File(path, "r+") as file:
        file["recording"].attrs["note"] = "x" * 10**8
    return path


def hdf5_groups_nested_deeply(folder):
    with h5py.File(folder / "a.nc", "w") as file:
        file["recording"] = np.arange(8.0)
        file.create_group("/".join("g" * 3000))
    return folder / "a.nc"


def hdf5_that_was_cut(folder):
    path = hdf5_file(folder, recording=((800,), {"data": np.arange(800.0)}))
    path.write_bytes(path.read_bytes()[:-500])
    return path


def netcdf3_of_absurd_dimensions(folder):
    xr.Dataset({"a": ("time", np.arange(8.0))}).to_netcdf(folder / "a.nc", engine="scipy")
    raw = (folder / "a.nc").read_bytes()
    (folder / "a.nc").write_bytes(
        raw.replace(b"time" + struct.pack(">i", 8), b"time" + struct.pack(">I", 2**31 - 1), 1)
    )
    return folder / "a.nc"


def netcdf3_of_too_many_dimensions(folder):
    (folder / "a.nc").write_bytes(b"CDF\x01" + struct.pack(">III", 0, 10, 2**31 - 1) + bytes(1000))
    return folder / "a.nc"


def netcdf3_of_a_long_name(folder):
    (folder / "a.nc").write_bytes(b"CDF\x01" + struct.pack(">IIII", 0, 10, 1, 2**31 - 4) + bytes(1000))
    return folder / "a.nc"


def npy_of_a_million_million(folder):
    with (folder / "a.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 2)})
    return folder / "a.npy"


def npy_of_ten_million_channels(folder):
    with (folder / "a.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (8, 10**7)})
        file.truncate(file.tell() + 64 * 10**7)  # sparse
    return folder / "a.npy"


def wave_of_four_gigabytes(folder):
    head = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", 2**32 - 10, b"WAVE", b"fmt ", 16, 1, 2, 8000, 32000, 4, 16)
    (folder / "a.wav").write_bytes(head + struct.pack("<4sI", b"data", 2**32 - 60) + bytes(400))
    return folder / "a.wav"


def flac_of_nothing(folder):
    (folder / "a.flac").write_bytes(b"fLaC\x00\x00\x00\x22" + b"\xff" * 34 + bytes(1000))
    return folder / "a.flac"


def gzip_bomb(folder):
    with gzip.open(folder / "a.csv.gz", "wb", compresslevel=1) as file:
        for _ in range(30):
            file.write(bytes(10**6))
    return folder / "a.csv.gz"


def netcdf_in_gzip(folder):
    (folder / "a.nc.gz").write_bytes(gzip.compress(b"CDF\x01" + bytes(10**7)))
    return folder / "a.nc.gz"


def zarr_in_zip(folder):
    with zipfile.ZipFile(folder / "a.zarr", "w") as file:
        file.writestr(".zgroup", '{"zarr_format": 2}')
    return folder / "a.zarr"
