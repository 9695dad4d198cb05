"""Files that want to run code, or to read other files."""

import os
import pickle

import h5py
import numpy as np

from .by_hand import document, hdf5_file, zarr_2, zarr_3, zarr_3_array


class Payload:
    """What makes a canary file when it is unpickled."""

    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return os.system, (f"touch {self.canary}",)


# ----------------------------------------------------------------------------------------------------------- code


def pickle_filter(folder):
    # The first filter makes it an array of text, which Zarr believes; the last one is the first to decode.
    root = zarr_2(folder, dtype="|O", filters=[{"id": "vlen-utf8"}, {"id": "pickle"}], fill_value="")
    (root / "recording" / "0").write_bytes(pickle.dumps(Payload(folder / "canary")))
    return root


def pickle_of_a_coordinate(folder):
    root = zarr_2(folder)
    zarr_2(folder, name="time", dtype="|O", filters=[{"id": "vlen-utf8"}], compressor={"id": "pickle"}, fill_value="")
    (root / "time" / "0").write_bytes(pickle.dumps(Payload(folder / "canary")))
    return root


def pickle_compressor_in_a_group_within(folder):
    return zarr_2(folder, name="night/recording", compressor={"id": "pickle"})


def pickle_in_zarr_3(folder):
    return zarr_3(folder, codecs=[{"name": "numcodecs.pickle", "configuration": {}}])


def pickle_in_a_shard(folder):
    inner = {"chunk_shape": [4], "codecs": [{"name": "numcodecs.pickle"}], "index_codecs": [{"name": "bytes"}]}
    return zarr_3(folder, codecs=[{"name": "sharding_indexed", "configuration": inner}])


def pickle_in_consolidated_metadata(folder):
    root = zarr_3(folder)
    table = {"recording": zarr_3_array(codecs=[{"name": "numcodecs.pickle"}])}
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    document(root / "zarr.json", {**group, "consolidated_metadata": {"kind": "inline", "metadata": table}})
    return root


def pickle_in_zmetadata(folder):
    root = zarr_2(folder)
    entry = {"filters": [{"id": "pickle"}], "dtype": "|O", "shape": [8], "chunks": [8]}
    document(root / ".zmetadata", {"metadata": {"recording/.zarray": entry}})
    return root


def objects_of_json(folder):
    return zarr_2(folder, dtype="|O", filters=[{"id": "json2"}])


def objects_without_a_codec(folder):
    return zarr_2(folder, dtype="|O")


def codec_of_another_package(folder):
    return zarr_2(folder, compressor={"id": "evil_codec"})


def data_type_of_another_package(folder):
    return zarr_3(folder, data_type={"name": "evil.type", "configuration": {}})


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
    root = zarr_2(folder)
    (root / "recording" / "0").unlink()
    (root / "recording" / "0").symlink_to(_secret(folder))
    return root


def zarr_array_that_is_a_link_out(folder):
    (folder / "other").mkdir()
    root, other = zarr_2(folder), zarr_2(folder / "other")
    (root / "more").symlink_to(other / "recording")
    return root


def zarr_folder_that_holds_itself(folder):
    root = zarr_2(folder)
    (root / "again").symlink_to(root)
    return root


def hdf5_external_storage(folder):
    return hdf5_file(folder, recording=((8,), {"external": [(str(_secret(folder)), 0, 64)]}))


def hdf5_external_link(folder):
    hdf5_file(folder, recording=((8,), {"data": np.arange(8.0)})).rename(folder / "other.nc")
    with h5py.File(folder / "a.nc", "w") as file:
        for name in ("recording", "time"):
            file[name] = h5py.ExternalLink("other.nc", name)
    return folder / "a.nc"


def hdf5_external_link_in_a_group(folder):
    with h5py.File(hdf5_file(folder, recording=((8,), {"data": np.arange(8.0)})), "r+") as file:
        file.create_group("x/y")["z"] = h5py.ExternalLink(str(_secret(folder)), "/")
    return folder / "a.nc"


def hdf5_virtual_source(folder):
    hdf5_file(folder, recording=((8,), {"data": np.arange(8.0)})).rename(folder / "other.nc")
    layout = h5py.VirtualLayout((8,), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "other.nc"), "recording", (8,))
    with h5py.File(hdf5_file(folder, time=((8,), {})), "r+") as file:
        file.create_virtual_dataset("recording", layout).dims[0].attach_scale(file["time"])
    return folder / "a.nc"


def references_to_other_files(folder):
    document(folder / "a.json", {"version": 1, "refs": {".zgroup": "{}", "x/0": [f"file://{_secret(folder)}", 0, 64]}})
    return folder / "a.json"
