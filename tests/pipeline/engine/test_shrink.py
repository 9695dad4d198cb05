"""What local covariances are shrunk by is learnt from frames that are read once."""

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import blocks, shrink
from manifold_observer.pipeline.engine.blocks import slab_of

pytestmark = pytest.mark.usefixtures("in_this_thread")
FRAMES = xr.DataArray(np.random.default_rng(0).normal(size=(900, 4)).cumsum(axis=0), dims=("frame", "feature"))


def learnt(monkeypatch, kept_bytes):
    """An embedding, and how often frames were put along the axes."""
    made = []
    monkeypatch.setattr(shrink, "_KEPT_BYTES", kept_bytes)
    monkeypatch.setattr(shrink, "_WINDOW_RUN", 128)
    monkeypatch.setattr(shrink, "slab_of", lambda *taken: (made.append(taken), slab_of(*taken))[1])
    return mo.embed(FRAMES, n_modes=2), len(made)


def test_shrink__windows_are_read_once_where_they_are_few_and_the_bits_are_those_of_reading_them_twice(monkeypatch):
    kept, times = learnt(monkeypatch, 2**20)
    anew, more = learnt(monkeypatch, 0)
    windows = -(-900 // 128)
    assert more - times >= windows
    assert times == windows + 2  # and two runs, on which targets are compared
    for name in ("coordinate", "mean_covariance", "principal"):
        np.testing.assert_array_equal(kept[name], anew[name])
    assert kept.attrs == anew.attrs


@pytest.mark.parametrize(("most", "times"), [(2**20, 1), (0, 2)])
def test_embed__frames_that_are_computed_are_computed_once_where_they_can_be_kept(monkeypatch, most, times):
    made = []
    monkeypatch.setattr(blocks, "_HERE_BYTES", 0)
    monkeypatch.setattr(blocks, "_KEEP_BYTES", 0)
    monkeypatch.setattr(blocks, "KEEP_COMPUTED_BYTES", most)
    lazy = FRAMES.copy(
        data=FRAMES.chunk(frame=300).data.map_blocks(lambda x: (made.append(len(x)), x)[1], meta=np.empty((0, 0)))
    )
    lazy = lazy.assign_attrs(features="identity")
    mo.embed(lazy, n_modes=2)
    assert sum(made) >= times * 900
    assert (sum(made) == 900) == (times == 1)
