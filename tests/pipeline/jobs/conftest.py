"""Fixtures of the jobs: results that are made once, for all tests of a process."""

import dask
import numpy as np
import pytest
from staged import CONFIG, by_name, write_small
from streams import WRITERS, learn

import manifold_observer.pipeline as mo


@pytest.fixture(scope="session")
def learnt(tmp_path_factory):
    """Results to continue, by the kind of their features, the format of their recording and options of the observer."""
    made = {}

    def get(kind, suffix="npy", **observe):
        key = (kind, suffix, *observe.items())
        if key not in made:
            with dask.config.set(scheduler="synchronous"):
                made[key] = learn(tmp_path_factory.mktemp("learnt"), kind, WRITERS[suffix], **observe)
        return made[key]

    return get


@pytest.fixture(scope="session")
def walk(tmp_path_factory):
    """A folder with a recording, and the result of a local run."""
    folder = tmp_path_factory.mktemp("walk")
    np.save(folder / "walk.npy", np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=0))
    mo.run([folder / "walk.npy"], folder / "walk.zarr", CONFIG)
    return folder


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A small result in a folder."""
    write_small(folder := tmp_path_factory.mktemp("small") / "a.zarr")
    return by_name(folder)
