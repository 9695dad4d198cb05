"""Files that want to run code, read other files, or exhaust memory or patience; each made anew in a folder."""

import gzip
import json
import os
import pickle
import socket
import struct
import zipfile

import h5py
import numpy as np
import xarray as xr


class Payload:
    """What makes a canary file when it is unpickled."""

    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return os.system, (f"touch {self.canary}",)


def _json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def _v2(folder, *, name="recording", **array):
    root = folder / "a.zarr"
    _json(root / ".zgroup", {"zarr_format": 2})
    usual = {"zarr_format": 2, "shape": [8], "chunks": [8], "dtype": "<f8", "compressor": None, "filters": None}
    _json(root / name / ".zarray", {**usual, "fill_value": 0, "order": "C", **array})
    _json(root / name / ".zattrs", {"_ARRAY_DIMENSIONS": ["time"]})
    (root / name / "0").write_bytes(np.arange(8.0).tobytes())
    return root


def _v3(folder, **array):
    root = folder / "a.zarr"
    _json(root / "zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": {}})
    _json(root / "recording" / "zarr.json", _v3_array(**array))
    (root / "recording" / "c").mkdir()
    (root / "recording" / "c" / "0").write_bytes(np.arange(8.0).tobytes())
    return root


def _v3_array(n=8, chunk=8, codecs=None, **array):
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [n],
        "data_type": "float64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0,
        "codecs": codecs or [{"name": "bytes", "configuration": {"endian": "little"}}],
        "dimension_names": ["time"],
        "attributes": {},
        **array,
    }


# ----------------------------------------------------------------------------------------------------------- code


def pickle_filter(folder):
    # The first filter makes it an array of text, which Zarr believes; the last one is the first to decode.
    root = _v2(folder, dtype="|O", filters=[{"id": "vlen-utf8"}, {"id": "pickle"}], fill_value="")
    (root / "recording" / "0").write_bytes(pickle.dumps(Payload(folder / "canary")))
    return root


def pickle_of_a_coordinate(folder):
    root = _v2(folder)
    _v2(folder, name="time", dtype="|O", filters=[{"id": "vlen-utf8"}], compressor={"id": "pickle"}, fill_value="")
    (root / "time" / "0").write_bytes(pickle.dumps(Payload(folder / "canary")))
    return root


def pickle_compressor_in_a_group_within(folder):
    return _v2(folder, name="night/recording", compressor={"id": "pickle"})


def pickle_in_zarr_3(folder):
    return _v3(folder, codecs=[{"name": "numcodecs.pickle", "configuration": {}}])


def pickle_in_a_shard(folder):
    inner = {"chunk_shape": [4], "codecs": [{"name": "numcodecs.pickle"}], "index_codecs": [{"name": "bytes"}]}
    return _v3(folder, codecs=[{"name": "sharding_indexed", "configuration": inner}])


def pickle_in_consolidated_metadata(folder):
    root = _v3(folder)
    table = {"recording": _v3_array(codecs=[{"name": "numcodecs.pickle"}])}
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    _json(root / "zarr.json", {**group, "consolidated_metadata": {"kind": "inline", "metadata": table}})
    return root


def pickle_in_zmetadata(folder):
    root = _v2(folder)
    entry = {"filters": [{"id": "pickle"}], "dtype": "|O", "shape": [8], "chunks": [8]}
    _json(root / ".zmetadata", {"metadata": {"recording/.zarray": entry}})
    return root


def objects_of_json(folder):
    return _v2(folder, dtype="|O", filters=[{"id": "json2"}])


def objects_without_a_codec(folder):
    return _v2(folder, dtype="|O")


def codec_of_another_package(folder):
    return _v2(folder, compressor={"id": "evil_codec"})


def data_type_of_another_package(folder):
    return _v3(folder, data_type={"name": "evil.type", "configuration": {}})


def pickled_npy(folder):
    np.save(folder / "a.npy", np.array([Payload(folder / "canary")], object))
    return folder / "a.npy"


def pickle_named_npy(folder):
    (folder / "a.npy").write_bytes(pickle.dumps(Payload(folder / "canary")))
    return folder / "a.npy"


def hdf5_filter_of_a_library(folder):
    with h5py.File(folder / "a.nc", "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4,))
        plist.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, ())
        h5py.h5d.create(file.id, b"recording", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((8,)), plist)
    return folder / "a.nc"


# ---------------------------------------------------------------------------------------------------- other files


def _secret(folder):
    (folder / "secret").write_bytes(np.arange(8.0).tobytes())
    return folder / "secret"


def zarr_chunk_that_is_a_link_out(folder):
    root = _v2(folder)
    (root / "recording" / "0").unlink()
    (root / "recording" / "0").symlink_to(_secret(folder))
    return root


def zarr_array_that_is_a_link_out(folder):
    (folder / "other").mkdir()
    root, other = _v2(folder), _v2(folder / "other")
    (root / "more").symlink_to(other / "recording")
    return root


def zarr_folder_that_holds_itself(folder):
    root = _v2(folder)
    (root / "again").symlink_to(root)
    return root


def hdf5_external_storage(folder):
    return _hdf5(folder, recording=((8,), {"external": [(str(_secret(folder)), 0, 64)]}))


def hdf5_external_link(folder):
    _hdf5(folder, recording=((8,), {"data": np.arange(8.0)})).rename(folder / "other.nc")
    with h5py.File(folder / "a.nc", "w") as file:
        for name in ("recording", "time"):
            file[name] = h5py.ExternalLink("other.nc", name)
    return folder / "a.nc"


def hdf5_external_link_in_a_group(folder):
    with h5py.File(_hdf5(folder, recording=((8,), {"data": np.arange(8.0)})), "r+") as file:
        file.create_group("x/y")["z"] = h5py.ExternalLink(str(_secret(folder)), "/")
    return folder / "a.nc"


def hdf5_virtual_source(folder):
    _hdf5(folder, recording=((8,), {"data": np.arange(8.0)})).rename(folder / "other.nc")
    layout = h5py.VirtualLayout((8,), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "other.nc"), "recording", (8,))
    with h5py.File(_hdf5(folder, time=((8,), {})), "r+") as file:
        file.create_virtual_dataset("recording", layout).dims[0].attach_scale(file["time"])
    return folder / "a.nc"


def references_to_other_files(folder):
    _json(folder / "a.json", {"version": 1, "refs": {".zgroup": "{}", "x/0": [f"file://{_secret(folder)}", 0, 64]}})
    return folder / "a.json"


# -------------------------------------------------------------------------------------------------- memory at open


def zarr_of_a_million_million(folder):
    return _v3(folder, n=10**12, chunk=10**6)


def zarr_of_a_million_million_chunks(folder):
    return _v3(folder, n=10**12, chunk=1)


def zarr_chunk_of_a_million_million(folder):
    return _v3(folder, n=10**12, chunk=10**12, codecs=[{"name": "bytes"}, {"name": "zstd"}])


def zarr_clock_of_a_million_million(folder):
    root = _v3(folder)
    _json(root / "time" / "zarr.json", _v3_array(n=10**12, chunk=10**6))
    return root


def zarr_shape_that_is_no_number(folder):
    return _v2(folder, shape=["many"])


def zarr_negative_shape(folder):
    return _v2(folder, shape=[-(10**12)])


def zarr_attributes_of_100_megabytes(folder):
    root = _v2(folder)
    with (root / "recording" / ".zattrs").open("r+b") as file:
        file.truncate(10**8)
    return root


def zarr_metadata_nested_deeply(folder):
    root = _v2(folder)
    _json(root / ".zattrs", '{"a":' * 100_000 + "1" + "}" * 100_000)
    return root


def zarr_groups_nested_deeply(folder):
    root = place = _v2(folder)
    for _ in range(200):
        place = place / "g"
        _json(place / ".zgroup", {"zarr_format": 2})
    return root


def _hdf5(folder, **datasets):
    with h5py.File(folder / "a.nc", "w") as file:
        for name, (shape, options) in datasets.items():
            made = file.create_dataset(name, shape, **{"dtype": "f8", **options})
            for k, size in enumerate(shape):
                scale = "channel" if k else "time"
                if scale not in file:
                    file.create_dataset(scale, (size,), "f8")
                file[scale].make_scale("This is a netCDF dimension but not a netCDF variable. " + str(size))
                if name != scale:
                    made.dims[k].attach_scale(file[scale])
    return folder / "a.nc"


def hdf5_of_a_million_million(folder):
    return _hdf5(folder, recording=((10**12,), {}))


def hdf5_chunks_of_a_million_million(folder):
    path = _hdf5(folder, recording=((10**12,), {"chunks": (10**6,), "compression": "gzip"}))
    with h5py.File(path, "r+") as file:
        file["recording"][:10] = 1.0
    return path


def hdf5_of_ten_million_channels(folder):
    path = _hdf5(folder, recording=((8, 10**7), {"chunks": (8, 10**4), "compression": "gzip"}))
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
    path = _hdf5(folder, recording=((8,), {"data": np.arange(8.0)}))
    with h5py.File(path, "r+") as file:
        file["recording"].attrs["note"] = "x" * 10**8
    return path


def hdf5_groups_nested_deeply(folder):
    with h5py.File(folder / "a.nc", "w") as file:
        file["recording"] = np.arange(8.0)
        file.create_group("/".join("g" * 3000))
    return folder / "a.nc"


def hdf5_that_was_cut(folder):
    path = _hdf5(folder, recording=((800,), {"data": np.arange(800.0)}))
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


# ---------------------------------------------------------------------------------------------------------- tables


def _text(folder, text):
    (folder / "a.csv").write_text(text)
    return folder / "a.csv"


def table_cell_of_10_megabytes(folder):
    return _text(folder, "x,y\n1,2\n" + "3" * 10**7 + ",4\n")


def table_line_without_end(folder):
    return _text(folder, "1," * 10**7)


def table_of_a_million_columns(folder):
    return _text(folder, ("1," * 10**6 + "1\n") * 2)


def table_with_a_quote_that_never_closes(folder):
    return _text(folder, 'x,y\n1,2\n"3' + ",4\n" * 10**6)


def table_with_zero_bytes(folder):
    return _text(folder, "x,y\n1,2\n" + "3,4\n" * 5000 + "5\0,6\n")


def table_of_a_wide_and_ragged_kind(folder):
    return _text(folder, "x\n" + "".join("," * (k % 97) + "\n" for k in range(10**5)))


# ------------------------------------------------------------------------------------------------------- no files


def _fifo(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


def fifo_named_wav(folder):
    return _fifo(folder / "a.wav")


def fifo_named_csv(folder):
    return _fifo(folder / "a.csv")


def fifo_named_npy(folder):
    return _fifo(folder / "a.npy")


def fifo_named_nc(folder):
    return _fifo(folder / "a.nc")


def fifo_named_zarr(folder):
    return _fifo(folder / "a.zarr")


def fifo_for_metadata(folder):
    root = _v2(folder)
    (root / ".zgroup").unlink()
    _fifo(root / ".zgroup")
    return root


def fifo_for_a_chunk(folder):
    root = _v2(folder)
    (root / "recording" / "0").unlink()
    _fifo(root / "recording" / "0")
    return root


def _link(folder, name, target):
    (folder / name).symlink_to(target)
    return folder / name


def device_named_csv(folder):
    return _link(folder, "a.csv", "/dev/zero")


def device_named_wav(folder):
    return _link(folder, "a.wav", "/dev/zero")


def device_named_nc(folder):
    return _link(folder, "a.nc", "/dev/zero")


def link_to_itself(folder):
    return _link(folder, "a.csv", "a.csv")


def a_socket(folder):
    here = os.getcwd()
    os.chdir(folder)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("a.wav")
    finally:
        os.chdir(here)
    return folder / "a.wav"


MALICIOUS = {
    name: make
    for name, make in list(globals().items())
    if callable(make) and not name.startswith("_") and getattr(make, "__module__", "") == __name__ and name != "Payload"
}
