"""What lies outside a map, against frames that were held out."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.tasks.corpus.levels import joined, levels
from manifold_observer.tasks.corpus.outside import distance_ratio, outside, ratio_limit, reach_of
from strategies import chunkings, generators


@given(generators(), st.sampled_from([0.01, 0.05, 0.2]))
def test_reach_of__so_many_of_the_held_out_frames_lie_outside(rng, level):
    nearest, recording = rng.exponential(size=1000), rng.integers(0, 7, 1000)
    found = reach_of(nearest, recording, 8, level)
    assert outside(nearest, found.limit).mean() == pytest.approx(level, abs=0.002)
    assert np.isnan(found.shares[7])
    weights = np.bincount(recording, minlength=8)[:7]
    np.testing.assert_allclose(np.average(found.shares[:7], weights=weights), outside(nearest, found.limit).mean())
    assert found.median == np.median(nearest)


def test_reach_of__where_nothing_was_held_out_nothing_lies_outside():
    found = reach_of(np.full(5, np.nan), np.zeros(5, int), 1, 0.01)
    assert not outside(np.array([1e300]), found.limit).any()
    assert np.isfinite(found.limit)
    assert ratio_limit(found.ratios) == np.inf


def test_distance_ratio__is_finite_however_far():
    assert distance_ratio(np.array([np.inf, np.nan, np.inf]), 1.0) > 1e30
    assert np.isfinite(distance_ratio(np.full(3, 1e300), 1e-300))


def test_ratio_limit__goes_by_how_much_recordings_scatter():
    rng = np.random.default_rng(0)
    near, far = (ratio_limit(np.exp(spread * rng.normal(size=200))) for spread in (0.01, 0.2))
    assert near == pytest.approx(1.15)
    assert 1.8 < far < 2.8
    assert ratio_limit(np.ones(3)) > ratio_limit(np.ones(20))  # a few say little


@given(generators(), chunkings(60))
def test_levels__any_blocks_give_the_levels_of_all(rng, chunks):
    samples = 1e3 + rng.normal(size=(60, 3)) * [1, 5, 0]
    samples[rng.integers(0, 60, 5), 0] = np.nan
    cuts = np.cumsum([0, *chunks])
    found = joined([levels(samples[a:b]) for a, b in itertools.pairwise(cuts)])
    np.testing.assert_allclose(found.mean, np.nanmean(samples, axis=0))
    np.testing.assert_allclose(found.deviation, [*np.nanstd(samples[:, :2], axis=0), 1.0])
