"""Products with the kernel, wherever its tiles live, against the dense matrix."""

import dask
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.pipeline.engine import tiling as kernel
from manifold_observer.pipeline.graph import compute as graph
from manifold_observer.pipeline.graph.progress import silent
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


@pytest.mark.parametrize("local", [False, True], ids=["one scale", "local scales"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
@given(rng=generators(), chunks=st.integers(2, 24).flatmap(chunkings))
@pytest.mark.usefixtures("in_this_thread")
def test_kernel_panels__with_distances_on_the_way_have_the_bits_of_those_from_kept_ones(precision, local, rng, chunks):
    tiles, scale, _ = tiled(rng, spans(chunks), precision, local)
    panels = [
        graph.compute(kernel.kernel_panels(tiles, distances, scale))
        for distances in (kernel.distance_panels(tiles), None)
    ]
    for one, other in zip(*panels, strict=True):
        assert one.corners == other.corners
        for tile, same in zip(one.tiles, other.tiles, strict=True):
            np.testing.assert_array_equal(tile, same)


WORKERS = [1, 2, 4, 1000]


@pytest.mark.parametrize("local", [False, True], ids=["one scale", "local scales"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
@given(rng=generators(), sides=st.lists(st.just(3), min_size=1, max_size=8), last=st.integers(1, 3))
@pytest.mark.usefixtures("in_this_thread")
def test_products__have_the_same_bits_whatever_the_panels(tmp_path_factory, precision, local, rng, sides, last):
    cut = spans([*sides, last])
    blocks, scale, _ = cut_kernel(rng, cut, precision, local)
    made = [dask.delayed(block, pure=False) for block in blocks]
    x = rng.normal(size=(cut[-1][1], 3)) * 10 ** rng.uniform(-4, 4, (cut[-1][1], 1))
    found, numbers = {}, set()
    for workers in WORKERS:
        tiles = kernel.tiling(made, cut, precision, workers)
        numbers.add(len(tiles.panels))
        for home, matmat in products(tiles, scale, tmp_path_factory.mktemp("tiles")).items():
            found.setdefault(home, []).append(matmat(x))
    for home, several in found.items():
        assert all((one == several[0]).all() for one in several), home
    assert len(numbers) > 1 or len(cut) < 4


@pytest.mark.usefixtures("in_this_thread")
def test_products__have_the_same_bits_where_the_workers_add_up(monkeypatch, tmp_path):
    rng = np.random.default_rng(3)
    cut = spans([5] * 23 + [2])
    blocks, scale, _ = cut_kernel(rng, cut, "float32", local=False)
    made, x = [dask.delayed(block, pure=False) for block in blocks], rng.normal(size=(117, 4))
    few = {home: matmat(x) for home, matmat in products(kernel.tiling(made, cut, "float32"), scale, tmp_path).items()}
    monkeypatch.setattr(kernel, "MANY_PANELS", 10)
    (tmp_path / "many").mkdir()
    for home, matmat in products(kernel.tiling(made, cut, "float32", 9), scale, tmp_path / "many").items():
        assert (matmat(x) == few[home]).all(), home


@pytest.mark.usefixtures("in_this_thread")
def test_disk_product__where_the_workers_add_up_tiles_that_cannot_be_kept_are_told_once(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel, "MANY_PANELS", 10)
    cut = spans([5] * 9)
    blocks, scale, whole = cut_kernel(np.random.default_rng(3), cut, "float64", local=False)
    tiles = kernel.tiling([dask.delayed(block, pure=False) for block in blocks], cut, "float64", 9)
    matmat = kernel.disk_product(tiles, scale, tmp_path / "missing", silent)
    with pytest.warns(UserWarning, match="tiles could not be kept") as told:
        found = [matmat(np.ones((45, 1))) for _ in range(2)][1]
    assert len(told) == 1
    np.testing.assert_allclose(found[:, 0], whole.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("n_workers", [1, 9, 64, 256, 1000])
def test_tiling__a_panel_asks_for_two_groups_and_a_sum_for_its_panels_once(n_workers):
    # What is asked for costs the scheduler as much as what is computed: a message for each that comes to a worker.
    cut = spans([8] * 489)
    tiles = kernel.tiling([dask.delayed(number, pure=False) for number in range(489)], cut, "float32", n_workers)
    assert max(len(tiles.groups_of(plan)) for plan in tiles.panels) <= 2
    terms = kernel._terms(tiles)
    assert len(terms) == len(tiles.groups)
    assert all(len(set(own.panels)) == len(own.panels) for own in terms)
    asked = sum(len(own.panels) for own in terms)
    assert asked <= 2 * len(tiles.panels)
    for own, (first, stop) in zip(terms, tiles.group_spans, strict=True):
        assert sum(unit[0].stop - unit[0].first for unit in own.units) == stop - first
