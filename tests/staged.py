"""Results in a bucket, as files by name."""

import json

import numpy as np
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs.store import start, write_group, writing
from manifold_observer.pipeline.stores.address import place
from manifold_observer.pipeline.stores.objects import read, sizes

OPTIONS = {"n_modes": 2, "home": "recomputed", "form": "quadratic", "tile": 64, "window": 9}
CONFIG = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(**OPTIONS))


def by_name(out):
    """Files of a result and their bytes; its root as what it says, for each store lists it in its order."""
    if hasattr(out, "rglob"):
        found = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    else:
        found = {name: read(out / name) for name in sizes(out)}
    root = json.loads(found["zarr.json"])
    # In a bucket it also says by which versions of the recordings, since no times of files do.
    root["attributes"].pop("source_stamps", None)
    root["attributes"]["_nc_manifest"].pop("root")
    return found | {"zarr.json": root}


def left(bucket, *names):
    """What lies in a bucket beside some results."""
    return [name for name in sizes(place(bucket)) if not name.startswith(tuple(f"{name}/" for name in names))]


def write_small(out, value=1.0, *, overwrite=False, meanwhile=lambda: None):
    """A small result, written as a run writes its own."""
    with writing(place(out), overwrite=overwrite) as folder:
        start(folder, {"settings": "{}"})
        for group in ("frames", "state"):
            write_group(folder, group, xr.Dataset({group: ("frame", np.full(50, value))}))
        meanwhile()
