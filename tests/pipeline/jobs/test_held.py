"""What a run has just stored is read where it is open."""

import dask
import numpy as np
import xarray as xr

from manifold_observer.pipeline.jobs.held import at_hand
from manifold_observer.pipeline.jobs.store import open_group, start, write_group, writing

VALUES = np.random.default_rng(0).normal(size=(40, 3))


def refused(*_, **__):
    raise AssertionError("a task for the session's workers")


def test_at_hand__asks_no_worker_and_leaves_the_frames_where_they_are(tmp_path):
    group = xr.Dataset({"coordinate": (("frame", "mode"), VALUES), "reference": (("frame", "feature"), VALUES)})
    with writing(tmp_path / "out.zarr") as folder:
        start(folder, {})
        write_group(folder, "embedding", group)
        with dask.config.set(scheduler=refused):
            found = at_hand(open_group(folder, "embedding"))
            np.testing.assert_array_equal(found["coordinate"], VALUES)
        assert found["coordinate"].chunks is None
        assert found["reference"].chunks is not None
