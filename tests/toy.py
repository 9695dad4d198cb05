"""A small embedding and its frames, for what comes after the embedding."""

import dask.array as da
import numpy as np
import xarray as xr

from strategies import smooth_motion

N, P, M = 60, 5, 2
SEGMENT = np.repeat([0, 1, 2], [25, 1, 34])
RNG = np.random.default_rng(4)
VALUES = smooth_motion(RNG, N, P)
RATES = np.array([0.3, 2.5])
CALM = np.array([0.3, 0.5])  # as the values below move
EMBEDDING = xr.Dataset(
    {
        "lift": (("feature", "mode"), RNG.normal(size=(P, M))),
        "feature_mean": ("feature", VALUES.mean(axis=0)),
        "rate": ("mode", RATES),
        "eigenvalue": ("mode", np.exp(-RATES)),
        "coordinate": (("frame", "mode"), RNG.normal(size=(N, M))),
        "epsilon": ((), 3.0),
        "feature_variance": ("feature", VALUES.var(axis=0)),
        "reference": (("frame", "feature"), VALUES),
    },
    coords={"mode": [1, 2]},
    attrs={"alpha": 0.0},
)


# Every kind of filter: diagonal, or with a matrix as its transition.
FILTERS = [{}, {"gain": "kalman", "rates": CALM}, {"gain": "dmk"}]
NAMES = ["observer", "kalman", "dmk"]


def as_frames(values=VALUES, segment=None, first=0.25):
    segment = np.zeros(len(values), np.int64) if segment is None else segment
    return xr.DataArray(
        values,
        dims=("frame", "feature"),
        coords={
            "time": ("frame", first + 0.5 * np.arange(len(values)) + 10.0 * segment),
            "segment": ("frame", segment),
        },
        attrs={"frame_period": 0.5},
    )


def lazily(frames, size):
    """Frames in chunks, their labels in memory, as features make them."""
    return frames.copy(data=da.from_array(frames.values, chunks=(size, -1)))


FRAMES = as_frames()
GAPPED = as_frames(segment=SEGMENT)
