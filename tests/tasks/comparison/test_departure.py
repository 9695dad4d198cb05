"""Chance seldom departs, drift does, and nights that departed are no measure for others."""

import numpy as np
import pytest

from manifold_observer.tasks.comparison.departure import departures


def nights(rng, n, p, shared):
    """Rows that differ by chance; ``shared`` is the share of their variance that all columns have in common."""
    own, common = rng.normal(size=(n, p)), rng.normal(size=(n, 1))
    return 10 + np.sqrt(1 - shared) * own + np.sqrt(shared) * common


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_departures__chance_is_flagged_less_than_once_in_a_thousand(shared):
    rng = np.random.default_rng(0)
    found = np.concatenate([departures(nights(rng, 40, 8, shared)) for _ in range(150)])
    judged = found[np.isfinite(found)]
    assert len(judged) > 5000
    assert (judged > 1).mean() < 1e-3


@pytest.mark.parametrize("shared", [0.0, 1.0])
@pytest.mark.parametrize(("n", "shift"), [(10, 9.0), (30, 6.0)])
def test_departures__a_shift_is_seen_the_night_it_comes(n, shift, shared):
    rng = np.random.default_rng(1)
    seen = []
    for _ in range(100):
        values = nights(rng, n + 1, 8, shared)
        values[-1] += shift
        seen.append(departures(values)[-1] > 1)
    assert np.mean(seen) > 0.95


def test_departures__slow_drift_is_seen_before_it_is_three_spreads_beyond_the_shift_that_is_seen_at_once():
    rng = np.random.default_rng(2)
    values = nights(rng, 60, 8, 0.5)
    values[30:] += np.linspace(0, 15, 30)[:, None]  # half a spread every night
    first = np.flatnonzero(departures(values) > 1)[0]
    assert 30 < first < 48


def test_departures__what_departed_is_no_measure_for_the_next():
    rng = np.random.default_rng(3)
    values = nights(rng, 30, 4, 0.5)
    values[20:] += 50
    assert (departures(values)[20:] > 1).all()


def test_departures__what_is_not_known_is_not_judged():
    values = nights(np.random.default_rng(4), 12, 3, 0.0)
    values[7, 1] = np.nan
    found = departures(values)
    assert np.isnan(found[[0, 1, 2, 3, 4, 7]]).all()
    assert np.isfinite(found[[5, 6, 8, 9, 10, 11]]).all()


def test_departures__constant_columns_depart_only_where_they_change():
    values = np.ones((10, 2))
    values[9, 0] = 1 + 1e-3
    found = departures(values)
    assert (found[5:9] == 0).all()
    assert found[9] > 1
