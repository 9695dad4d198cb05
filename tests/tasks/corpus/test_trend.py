"""Trends over recordings: found where there are any, and by chance no more often than p says."""

import numpy as np
import pytest
from scipy.stats import spearmanr, theilslopes

from manifold_observer.tasks.corpus.trend import trends


def test_trends__are_those_of_scipy():
    rng = np.random.default_rng(0)
    when, values = np.sort(rng.uniform(0, 9, 20)), rng.normal(size=(20, 4)).cumsum(axis=0)
    found = trends(values, when)
    for k in range(4):
        assert found.correlations[k] == pytest.approx(spearmanr(when, values[:, k])[0])
        assert found.slopes[k] == pytest.approx(theilslopes(values[:, k], when)[0])


def test_trends__one_quantity_alone_has_the_p_of_its_correlation():
    rng = np.random.default_rng(3)
    values = 0.1 * np.arange(12)[:, None] + rng.normal(size=(12, 1))
    assert trends(values, np.arange(12.0)).p[0] == pytest.approx(spearmanr(np.arange(12), values[:, 0])[1], abs=0.03)


def test_trends__more_quantities_make_the_same_trend_less_sure():
    rng = np.random.default_rng(1)
    one = 0.15 * np.arange(12) + rng.normal(size=12)
    many = np.column_stack([one, rng.normal(size=(12, 60))])
    assert trends(many, np.arange(12.0)).p[0] > 3 * trends(one[:, None], np.arange(12.0)).p[0]


def test_trends__by_chance_are_no_more_often_than_they_say():
    """Some of ten quantities in 80 sets of recordings: 4 are expected, 12 hardly ever are."""
    rng = np.random.default_rng(2)
    least = [trends(rng.normal(size=(9, 10)), np.arange(9.0)).p.min() for _ in range(80)]
    assert np.count_nonzero(np.array(least) <= 0.05) < 12


def test_trends__one_wild_recording_does_not_make_one():
    values = np.random.default_rng(4).normal(size=(15, 1))
    values[-1] = 1e6
    found = trends(values, np.arange(15.0))
    assert abs(found.slopes[0]) < 1
    assert found.p[0] > 0.05


@pytest.mark.parametrize("values", [np.zeros((9, 2)), np.full((9, 2), np.nan), np.zeros((0, 2)), np.eye(4)[:, :2]])
def test_trends__none_where_nothing_varies_or_recordings_are_few(values):
    assert np.isnan(trends(values, np.arange(float(len(values)))).p).all()


def test_trends__recordings_of_one_time_have_none():
    assert np.isnan(trends(np.random.default_rng(0).normal(size=(9, 2)), np.ones(9)).p).all()
