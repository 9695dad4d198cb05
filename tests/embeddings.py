"""Frames of a smooth motion, and their embeddings compared."""

import numpy as np
import xarray as xr

from strategies import smooth_motion

N, P = 90, 3
EXACT = {"precision": "float64"}


def as_frames(values, segment=None):
    segment = np.zeros(len(values), np.int64) if segment is None else segment
    return xr.DataArray(
        values,
        dims=("frame", "feature"),
        coords={
            "time": ("frame", 0.5 * np.arange(len(values)) + 10.0 * segment),
            "segment": ("frame", segment),
            "channel": ("feature", np.array([f"sensor {k}" for k in range(values.shape[1])], object)),
        },
        attrs={"features": "sensors", "frame_period": 0.5, "units": "V"},
    )


VALUES = smooth_motion(np.random.default_rng(3), N, P)
FRAMES = as_frames(VALUES)
SEGMENT = np.repeat([0, 1, 2], [25, 21, 44])


def assert_same(one, other, within=1e-6):
    """The same embedding, signs included."""
    for name in ("eigenvalue", "coordinate", "lift", "epsilon", "degree", "rate"):
        scale = float(np.abs(other[name]).max())
        np.testing.assert_allclose(one[name], other[name], rtol=0, atol=within * scale, err_msg=name)
