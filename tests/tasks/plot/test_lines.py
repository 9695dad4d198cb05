"""Buckets hold every frame once, stop at every gap, and keep the extremes."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.tasks.plot import clouds, lines


@given(st.integers(1, 300), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_buckets__hold_every_frame_and_the_extremes(n, most, seed):
    rng = np.random.default_rng(seed)
    begins = np.unique(np.concatenate([[0], rng.integers(0, n, 5)]))
    edges = lines.bucket_edges(n, begins, most)
    assert (edges[0], edges[-1]) == (0, n)
    assert (np.diff(edges) > 0).all()
    assert len(edges) - 1 <= most + len(begins)
    if len(begins) <= most:
        assert set(begins) <= set(edges)
    values = rng.normal(size=(n, 2))
    values[rng.random(n) < 0.2] = np.nan
    low, high = lines.extremes(values, edges)
    for k, (a, b) in enumerate(itertools.pairwise(edges)):
        known = values[a:b][~np.isnan(values[a:b, 0])]
        if len(known):
            np.testing.assert_array_equal(low[k], known.min(axis=0))
            np.testing.assert_array_equal(high[k], known.max(axis=0))
        else:
            assert np.isnan(low[k]).all()
    np.testing.assert_allclose(lines.means(np.ones((n, 1)), edges), 1)


@given(st.lists(st.integers(0, 2), max_size=30))
def test_runs__lie_end_to_end(codes):
    begin, end = lines.runs(np.array(codes, np.int64))
    again = [codes[a] for a, b in zip(begin, end, strict=True) for _ in range(b - a)]
    assert again == codes
    assert all(codes[a] != codes[a - 1] for a in begin[1:])


def test_gaps__are_one_row_with_the_time_before():
    starts = np.array([True, True, False, True])
    np.testing.assert_array_equal(lines.with_gaps(np.arange(4.0), starts), [0, np.nan, 1, 2, np.nan, 3])
    np.testing.assert_array_equal(lines.times_with_gaps(np.arange(4), starts), [0, 0, 1, 2, 2, 3])


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_counts__are_all_frames_within_the_edges(n):
    points = np.random.default_rng(n).normal(size=(n, 2))
    edges = np.linspace(-9, 9, 5)
    assert clouds.counts(points, edges, edges).sum() == n
