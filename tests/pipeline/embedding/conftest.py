"""Fixtures of the embeddings."""

import dask
import pytest
from embeddings import FRAMES

import manifold_observer.pipeline as mo


@pytest.fixture(scope="module")
def whole():
    """The embedding of unchunked frames, form and precision fixed."""
    with dask.config.set(scheduler="synchronous"):
        return mo.embed(FRAMES, n_modes=3, engine=mo.Engine(form="quadratic", precision="float32"), preset="paper")
