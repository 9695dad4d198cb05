"""Zarr stores and HDF5 files that are written by hand."""

import json

import h5py
import numpy as np


def document(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def zarr_2(folder, *, name="recording", **array):
    root = folder / "a.zarr"
    document(root / ".zgroup", {"zarr_format": 2})
    usual = {"zarr_format": 2, "shape": [8], "chunks": [8], "dtype": "<f8", "compressor": None, "filters": None}
    document(root / name / ".zarray", {**usual, "fill_value": 0, "order": "C", **array})
    document(root / name / ".zattrs", {"_ARRAY_DIMENSIONS": ["time"]})
    (root / name / "0").write_bytes(np.arange(8.0).tobytes())
    return root


def zarr_3(folder, **array):
    root = folder / "a.zarr"
    document(root / "zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": {}})
    document(root / "recording" / "zarr.json", zarr_3_array(**array))
    (root / "recording" / "c").mkdir()
    (root / "recording" / "c" / "0").write_bytes(np.arange(8.0).tobytes())
    return root


def zarr_3_array(n=8, chunk=8, codecs=None, **array):
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


def hdf5_file(folder, **datasets):
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
