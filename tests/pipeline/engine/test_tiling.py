"""Products with the kernel, wherever its tiles live, against the dense matrix."""

import dask
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.pipeline.engine import tiling as kernel
from manifold_observer.pipeline.graph import compute as graph
from manifold_observer.pipeline.graph.compute import silent
from strategies import chunkings, cut_kernel, generators, spans

WITHIN = {"float64": 1e-12, "float32": 5e-6}


def tiled(rng, cut, precision, local):
    """A tiling of some frames, the scale, and the dense kernel."""
    blocks, scale, whole = cut_kernel(rng, cut, precision, local)
    return kernel.tiling([dask.delayed(block, pure=False) for block in blocks], cut, precision), scale, whole


def products(tiles, scale, folder, progress=silent):
    """The product from every home that workers have."""
    distances = kernel.distance_panels(tiles)
    return {
        "resident": kernel.resident_product(tiles, distances, scale, silent),
        "recomputed": kernel.recomputed_product(tiles, scale, progress),
        "disk": kernel.disk_product(tiles, scale, folder, silent),
    }


@pytest.mark.parametrize("local", [False, True], ids=["one scale", "local scales"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
@given(rng=generators(), chunks=st.integers(2, 24).flatmap(chunkings))
@pytest.mark.usefixtures("in_this_thread")
def test_products__are_those_of_the_dense_kernel(tmp_path_factory, precision, local, rng, chunks):
    tiles, scale, whole = tiled(rng, spans(chunks), precision, local)
    x = rng.normal(size=(len(whole), 2))
    size = np.abs(whole) @ np.abs(x)
    for home, matmat in products(tiles, scale, tmp_path_factory.mktemp("tiles")).items():
        found = matmat(x)
        assert found.dtype == np.float64
        assert (np.abs(found - whole @ x) <= WITHIN[precision] * size.max()).all(), home


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.usefixtures("in_this_thread")
def test_products__what_travels_has_the_precision_of_the_tiles(tmp_path, monkeypatch, precision):
    tiles, scale, whole = tiled(np.random.default_rng(0), [(0, 6), (6, 11)], precision, local=False)
    made = []

    def watching(items, *how):
        values = graph.compute(items, *how)
        made.extend(getattr(value, "values", value).dtype for value in values)
        return values

    monkeypatch.setattr(kernel, "compute", watching)
    for matmat in products(tiles, scale, tmp_path).values():
        matmat(np.ones((len(whole), 1)))
    assert made == [np.dtype(precision)] * 3 * len(tiles.panels)


@pytest.mark.usefixtures("in_this_thread")
def test_products__tell_which_panels_are_done(tmp_path):
    tiles, scale, whole = tiled(np.random.default_rng(0), [(0, 6), (6, 11)], "float64", local=False)
    seen = []
    matmat = products(tiles, scale, tmp_path, lambda *step: seen.append(step))["recomputed"]
    matmat(np.ones((len(whole), 1)))
    assert set(seen) == {("pass", done, len(tiles.panels)) for done in range(len(tiles.panels) + 1)}
