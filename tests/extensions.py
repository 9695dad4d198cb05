"""Embedded and new frames of one motion, and their extensions compared."""

import functools

import dask
import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import manifold_observer.pipeline as mo
from strategies import embed_options, smooth_motion, spd

N, M, P, WINDOW = 90, 45, 3, 15
VALUES = smooth_motion(np.random.default_rng(3), N + M, P)
SEGMENT = np.repeat([0, 1, 2, 3], [40, 50, 20, 25])
METHODS = ["nystrom", "one-sided"]
BOTH = pytest.mark.parametrize("method", METHODS)
OPTIONS = {"n_modes": 3, "window": WINDOW, "precision": "float64"}


def as_frames(values, segment, first=0):
    return xr.DataArray(
        values,
        dims=("frame", "feature"),
        coords={
            "time": ("frame", 0.5 * (first + np.arange(len(values))) + 10.0 * segment),
            "segment": ("frame", segment),
            "channel": ("feature", np.array([f"sensor {k}" for k in range(values.shape[1])], object)),
        },
        attrs={"frame_period": 0.5},
    )


FRAMES, NEW = as_frames(VALUES[:N], SEGMENT[:N]), as_frames(VALUES[N:], SEGMENT[N:], N)


@functools.cache
def given_covariances(n=N + M, p=P):
    return spd(np.random.default_rng(5), n, p)


def labelled(covariances):
    return xr.DataArray(covariances, dims=("frame", "feature", "feature_1"))


def assert_same(one, other, within=0.0):
    for name in ("coordinate", "kernel_sum"):
        assert_allclose(one[name], other[name], rtol=0, atol=within * float(np.abs(other[name]).max()), err_msg=name)


@functools.cache
def embedded(**options):
    with dask.config.set(scheduler="synchronous"):
        return mo.embed(FRAMES, **embed_options(**OPTIONS, **options), preset="paper")


LONG = smooth_motion(np.random.default_rng(0), 700, 4)
LONG_FRAMES = xr.DataArray(LONG, dims=("frame", "feature"), coords={"segment": ("frame", np.repeat([0, 1], 350))})
