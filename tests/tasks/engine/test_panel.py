"""Panels of tiles against the whole matrix."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.engine import forms, kernel, panel
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.kernel import Scale
from manifold_observer.tasks.engine.slab import Metric, Slab
from reference import dense
from strategies import chunkings, cut_kernel, generators, smooth_motion, spans


@st.composite
def tilings(draw, min_n=1, dtypes=(np.float32, np.float64), distinct=True):
    """A symmetric matrix with zero diagonal, and the panels (tiles, spans) that make it up, in any order."""
    n, rng = draw(st.integers(min_n, 20)), draw(generators())
    entries = rng.exponential(size=(n, n)) if distinct else rng.integers(0, 4, (n, n)).astype(float)
    matrix = np.triu(entries, 1).astype(draw(st.sampled_from(dtypes)))
    matrix = matrix + matrix.T
    cut = spans(draw(chunkings(n)))
    tiles = [(a, b) for i, a in enumerate(cut) for b in cut[i:]]
    tiles = [tiles[k] for k in rng.permutation(len(tiles))]
    dealt = spans(draw(chunkings(len(tiles))))
    panels = []
    for first, last in dealt:
        own = tiles[first:last]
        panels.append(([matrix[a[0] : a[1], b[0] : b[1]] for a, b in own], [(a[0], b[0]) for a, b in own]))
    return matrix, panels


@given(tilings(min_n=2), st.integers(1, 25))
def test_nearest__panels_merge_to_the_sorted_rows(tiling, k):
    matrix, panels = tiling
    n = len(matrix)
    tables = [panel.nearest(*part, n, k) for part in panels]
    merged = tables[0]
    for more in tables[1:]:
        merged = panel.merge_nearest(merged, more)
    there = min(k, n - 1)
    for i in range(n):
        assert_array_equal(merged[i, :there], np.sort(np.delete(matrix[i], i))[:there])
    assert (merged[:, there:] == np.inf).all()
    assert_array_equal(merged[:, there - 1], dense.local_scales(matrix, there))


@given(tilings(min_n=2, distinct=False), st.integers(0, 3), st.integers(0, 3))
def test_count_and_collect__is_every_pair_once(tiling, one, other):
    matrix, panels = tiling
    low, high = min(one, other), max(one, other)
    pairs = matrix[np.triu_indices(len(matrix), 1)]
    found = [panel.count_and_collect(*part, low, high) for part in panels]
    assert sum(below for below, _ in found) == np.count_nonzero(pairs < low)
    inside = np.concatenate([values for _, values in found])
    assert_array_equal(np.sort(inside), np.sort(pairs[(pairs >= low) & (pairs <= high)]))


@given(tilings(min_n=2), st.integers(1, 8))
def test_sample_entries__are_some_of_the_pairs(tiling, stride):
    matrix, panels = tiling
    sample = np.concatenate([panel.sample_entries(*part, stride) for part in panels])
    pairs = matrix[np.triu_indices(len(matrix), 1)]
    assert np.isin(sample, pairs).all()
    assert len(pairs) / stride <= len(sample)
    if stride == 1:
        assert_array_equal(np.sort(sample), np.sort(pairs))


WITHIN = {np.float32: 5e-6, np.float64: 1e-12}
PRODUCTS = st.tuples(generators(), st.integers(2, 24).flatmap(chunkings))


def one_panel(rng, chunks, dtype, local):
    """Blocks of some frames, places and spans of all their tiles, the scale, and the dense kernel."""
    cut = spans(chunks)
    blocks, scale, whole = cut_kernel(rng, cut, dtype, local)
    places = [(i, j) for i in range(len(cut)) for j in range(i, len(cut))]
    return blocks, places, [(cut[i][0], cut[j][0]) for i, j in places], scale, whole


@pytest.mark.parametrize("local", [False, True], ids=["one scale", "local scales"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(PRODUCTS, st.integers(1, 3))
def test_fused_product__is_the_dense_product(dtype, local, drawn, width):
    blocks, places, corners, scale, whole = one_panel(*drawn, dtype, local)
    x = drawn[0].normal(size=(len(whole), width))
    expected = whole @ x
    found = panel.fused_product(blocks, places, corners, scale, x)
    assert found.dtype == np.float64
    size = np.abs(whole) @ np.abs(x)
    assert (np.abs(found - expected) <= WITHIN[dtype] * size.max()).all()


@pytest.mark.parametrize("local", [False, True], ids=["one scale", "local scales"])
@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 13])
def test_fused_product__a_tile_on_the_diagonal_may_be_cut(monkeypatch, dtype, form, local, n):
    rng = np.random.default_rng(n)
    frames = smooth_motion(rng, n + 6, 3)
    frames -= frames.mean(axis=0)
    slab = Slab(frames, np.arange(n) + 2, np.arange(n), None)  # windows of seven, halo on both sides
    block = forms.build_block(slab, Metric(7, PseudoInverse()), form, dtype)
    epsilon = 2 * float(np.median(kernel.squared_distances(block, block))) + 1
    scale = Scale(epsilon, epsilon * rng.uniform(0.5, 2, n) if local else None)
    whole = kernel.kernel_tile(block, block, *scale.of(0, 0, block, block), on_diagonal=True).astype(np.float64)
    monkeypatch.setattr(panel, "DIAGONAL_FRAMES", 2)
    x = rng.normal(size=(n, 2))
    found = panel.fused_product([block], [(0, 0)], [(0, 0)], scale, x)
    assert_allclose(found, whole @ x, rtol=0, atol=WITHIN[dtype] * np.abs(x).sum(axis=0).max())


@given(PRODUCTS)
def test_fused_product__panels_add_up(drawn):
    blocks, places, corners, scale, whole = one_panel(*drawn, np.float64, local=False)
    x = drawn[0].normal(size=(len(whole), 2))
    middle = len(places) // 2
    parts = [slice(0, middle), slice(middle, None)]
    total = sum(panel.fused_product(blocks, places[part], corners[part], scale, x) for part in parts)
    assert_allclose(total, whole @ x, atol=1e-12 * len(whole))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(tiling=tilings(), width=st.integers(1, 3), rng=generators())
def test_stored_product__panels_add_up_to_the_dense_product(dtype, tiling, width, rng):
    matrix, panels = tiling
    affinities = np.exp(-matrix)
    x = rng.normal(size=(len(matrix), width))
    total = sum(panel.stored_product([np.exp(-tile).astype(dtype) for tile in part[0]], part[1], x) for part in panels)
    assert total.dtype == np.float64
    bound = WITHIN[dtype] if matrix.dtype == np.float64 else 5e-6
    assert_allclose(total, affinities.astype(np.float64) @ x, rtol=0, atol=bound * np.abs(x).sum(axis=0).max())


def test_products__strips_do_not_show(monkeypatch):
    drawn = np.random.default_rng(1), (5, 9)
    blocks, places, corners, scale, whole = one_panel(*drawn, np.float32, local=False)
    x = drawn[0].normal(size=(14, 2))
    tiles = [kernel.kernel_tile(blocks[i], blocks[j], scale.epsilon, on_diagonal=i == j) for i, j in places]
    monkeypatch.setattr(panel, "_STRIP_NUMBERS", 1)
    monkeypatch.setattr(panel, "_COPY_NUMBERS", 1)
    for found in (panel.fused_product(blocks, places, corners, scale, x), panel.stored_product(tiles, corners, x)):
        assert_allclose(found, whole @ x, atol=5e-6 * np.abs(x).sum(axis=0).max())


@given(tilings(), st.integers(1, 3), st.integers(1, 64), generators())
def test_exact_product__is_the_dense_product_in_float64(tiling, width, step, rng):
    matrix, panels = tiling
    tiles, corners = [[part for own in each for part in own] for each in zip(*panels, strict=True)]
    x = rng.normal(size=(len(matrix), width))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(panel, "_COPY_NUMBERS", step)
        found = panel.exact_product(tiles, corners, x)
    assert found.dtype == np.float64
    assert_allclose(found, matrix.astype(np.float64) @ x, rtol=0, atol=1e-13 * (1 + np.abs(matrix).sum()))


def test_exact_product__threads_and_their_number_do_not_show():
    rng = np.random.default_rng(0)
    cut = [(first, first + 30) for first in range(0, 150, 30)]
    numbers = [(i, j) for i in range(5) for j in range(i, 5)]
    matrix = rng.random((150, 150)).astype(np.float32)
    matrix = matrix + matrix.T
    tiles = [matrix[slice(*cut[i]), slice(*cut[j])] for i, j in numbers]
    corners = [(cut[i][0], cut[j][0]) for i, j in numbers]
    x = rng.normal(size=(150, 4))
    plain = panel.exact_product(tiles, corners, x)
    for n_threads in (1, 3):
        with ThreadPoolExecutor(n_threads) as pool:
            assert_array_equal(panel.exact_product(tiles, corners, x, pool.map), plain)
