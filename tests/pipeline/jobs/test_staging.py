"""A result in a bucket is the local one, whatever happens on the way."""

import json

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.stores.address import place
from manifold_observer.pipeline.stores.objects import read, sizes, write
from manifold_observer.pipeline.stores.zarrs import zarr_target

CONFIG = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))


@pytest.fixture(scope="session")
def walk(tmp_path_factory):
    """A recording, and the result of a local run."""
    folder = tmp_path_factory.mktemp("walk")
    np.save(folder / "walk.npy", np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0))
    mo.run([folder / "walk.npy"], folder / "walk.zarr", CONFIG)
    return folder


def everything(result):
    """All arrays of a result, by name, as bytes; and its names."""
    tree = {name: node.to_dataset().load() for name, node in mo.open_result(result).subtree_with_keys}
    return {
        f"{group}/{name}": (values.dtype, values.shape, values.values.tobytes())
        for group, dataset in tree.items()
        for name, values in dataset.variables.items()
    }


def objects_of(folder):
    """Files of a result and their bytes, but for what names the recording."""
    inside = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in inside}


def test_run__to_a_bucket_equals_the_local_run_to_the_bit(walk, bucket):
    out = place(f"{bucket}/out/walk.zarr")
    mo.run([walk / "walk.npy"], out, CONFIG)
    local, there = objects_of(walk / "walk.zarr"), {name: read(out / name) for name in sizes(out)}
    # The root lists the same, in the order in which each store lists it.
    assert json.loads(there.pop("zarr.json")) == json.loads(local.pop("zarr.json"))
    assert there == local
    assert [name for name in sizes(out.parent) if not name.startswith("walk.zarr/")] == []
    assert everything(out) == everything(walk / "walk.zarr")
    theirs = xr.open_datatree(zarr_target(out), engine="zarr")
    xr.testing.assert_identical(
        theirs["state/state"].load(), xr.open_datatree(walk / "walk.zarr")["state/state"].load()
    )


def test_run__an_existing_result_is_kept_without_overwrite_and_replaced_with_it(walk, bucket):
    out = f"{bucket}/walk.zarr"
    mo.run([walk / "walk.npy"], out, CONFIG)
    with pytest.raises(ValueError, match=r"already exists\. Choose another name, or give --overwrite"):
        mo.run([walk / "walk.npy"], out, CONFIG)
    write(place(out) / "frames" / "note.txt", b"mine")
    with pytest.raises(ValueError, match=r"holds frames/note.txt, which is not part of the result,"):
        mo.run([walk / "walk.npy"], out, CONFIG, overwrite=True)
    assert read(place(out) / "frames" / "note.txt") == b"mine"
