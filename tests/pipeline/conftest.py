"""Fixtures of the graph layer."""

import dask
import numpy as np
import pytest
import xarray as xr

from strategies import smooth_motion


def _refuse(*_args, **_options):
    raise AssertionError("something computed")


@pytest.fixture
def no_compute():
    """A scheduler that refuses."""
    with dask.config.set(scheduler=_refuse):
        yield


@pytest.fixture(scope="session")
def make_frames():
    """Seeded frames of a hidden motion with time and segment, half a second apart; each segment 10 s after the last."""

    def make(n=90, p=3, seed=0, lengths=None, noise=0.1):
        segment = np.repeat(np.arange(len(lengths or [n])), lengths or [n])
        values = smooth_motion(np.random.default_rng(seed), len(segment), p, noise)
        return xr.DataArray(
            values,
            dims=("frame", "feature"),
            coords={
                "time": ("frame", 0.25 + 0.5 * np.arange(len(segment)) + 10.0 * segment),
                "segment": ("frame", segment),
            },
            attrs={"features": "sensors", "frame_period": 0.5, "units": "V"},
        )

    return make
