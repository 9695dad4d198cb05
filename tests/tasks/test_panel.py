"""Panels of tiles against the whole matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks import panel
from reference import dense
from strategies import chunkings, generators, spans


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


@given(tilings(), st.integers(1, 3), generators())
def test_symmetric_product__panels_add_up_to_the_dense_product(tiling, width, rng):
    matrix, panels = tiling
    x = rng.normal(size=(len(matrix), width))
    total = sum(panel.symmetric_product(*part, x) for part in panels)
    assert total.dtype == np.float64
    assert_allclose(total, matrix.astype(np.float64) @ x, atol=1e-12)


def test_symmetric_product__sums_of_single_precision_are_double():
    tile, x = np.full((1, 4096), 0.1, np.float32), np.ones((4097, 1))
    product = panel.symmetric_product([tile], [(0, 1)], x)
    assert product[0, 0] == pytest.approx(4096 * float(np.float32(0.1)), rel=1e-14)


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
