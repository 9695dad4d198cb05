"""Judges of made-up numbers, on both sides of every threshold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from manifold_observer.tasks.comparison import paired, scores, verdicts

# Differences with mean 0 and deviation 1: shifted by t / sqrt(r) they have the statistic t.
PATTERN = stats.zscore(np.array([-1.3, -0.6, -0.2, 0.1, 0.4, 0.9, 1.1, -0.4]), ddof=1)
R = len(PATTERN)


def with_statistic(t):
    """Scores of one and other whose paired t-statistic is t."""
    other = np.linspace(0.2, 0.9, R)
    return other + PATTERN + t / np.sqrt(R), other


@pytest.mark.parametrize("p", [0.001, 0.049, 0.051, 0.5, 0.949, 0.951, 0.999])
def test_exceeds__p_is_that_of_the_paired_one_sided_test(p):
    one, other = with_statistic(stats.t.isf(p, R - 1))
    found = verdicts.exceeds(one, other)
    assert_allclose(found.p, p, rtol=1e-9)
    assert_allclose(found.p, stats.ttest_rel(one, other, alternative="greater").pvalue, rtol=1e-9)
    interval = stats.ttest_rel(one, other).confidence_interval(0.95)
    assert_allclose((found.low, found.high), interval, rtol=1e-9)
    assert_allclose(found.value, np.mean(one - other))
    assert verdicts.shown([found.p])[0] == (p < 0.05)


@pytest.mark.parametrize(("difference", "holds"), [(-0.012, False), (-0.009, True), (0.1, True)])
def test_exceeds__a_margin_below_0_asks_whether_it_is_no_worse(difference, holds):
    one = np.full(R, 0.5) + difference + 1e-4 * PATTERN
    assert (verdicts.exceeds(one, np.full(R, 0.5), -0.01).p < 0.05) == holds
    assert (verdicts.exceeds(one, 0.5, -0.01).p < 0.05) == holds


@pytest.mark.parametrize(("difference", "holds"), [(0.14, False), (0.16, True)])
def test_exceeds__a_margin_above_0_asks_for_more_than_it(difference, holds):
    assert (verdicts.exceeds(difference + 1e-4 * PATTERN, 0.0, 0.15).p < 0.05) == holds


def test_exceeds__one_realisation_shows_nothing_and_no_spread_is_exact():
    lone = verdicts.exceeds(np.array([9.0]), np.array([0.0]))
    assert lone.p == 1
    assert lone.low == -np.inf
    assert verdicts.exceeds(np.ones(4), np.zeros(4)).p == 0
    assert verdicts.exceeds(np.zeros(4), np.zeros(4)).p == 1
    assert verdicts.exceeds(np.zeros(4), np.ones(4)).p == 1


def test_exceeds_everywhere__one_place_that_fails_is_enough():
    good, bad = with_statistic(6.0), with_statistic(1.0)
    assert verdicts.exceeds_everywhere([good, good]).p < 0.05
    found = verdicts.exceeds_everywhere([good, bad, good])
    assert_allclose(found.p, verdicts.exceeds(*bad).p)
    assert_allclose(found[:3], verdicts.exceeds(*bad)[:3])
    noisy = (0.5 + 10 * PATTERN, np.zeros(R))  # a larger difference, less sure
    assert verdicts.exceeds_everywhere([(0.1 + 1e-3 * PATTERN, np.zeros(R)), noisy]).p > 0.05
    assert verdicts.exceeds_everywhere([(0.1 + 1e-3 * PATTERN, np.zeros(R)), noisy]).value == pytest.approx(0.1)


@pytest.mark.parametrize("error", [-0.16, -0.14, 0.0, 0.14, 0.16])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_within__every_mean_must_be_in_the_band(error, mode):
    truth = np.array([1.0, 2.0, 5.0])
    values = truth * (1 + 1e-3 * PATTERN[:, None])
    values[:, mode] += error * truth[mode]
    found = verdicts.within(values, truth, 0.15)
    assert (found.p < 0.05) == (abs(error) < 0.15)
    assert found.value == pytest.approx(error, abs=1e-9)
    assert found.low < found.value < found.high


def test_within__a_mean_that_is_right_by_chance_is_not_shown():
    values = 1 + 0.5 * PATTERN[:, None]
    assert verdicts.within(values, np.ones(1), 0.15).p > 0.05
    assert verdicts.within(1 + 0.02 * PATTERN[:, None], np.ones(1), 0.15).p < 0.05


def test_holm__raises_by_the_number_of_tests_that_remain():
    assert_allclose(verdicts.holm([0.04, 0.01, 0.03]), [0.06, 0.03, 0.06])
    assert_allclose(verdicts.holm([0.9, 0.8]), [1.0, 1.0])
    assert verdicts.holm([]).size == 0


@pytest.mark.parametrize(("p", "expected"), [([0.024, 0.5], [True, False]), ([0.026, 0.5], [False, False])])
def test_shown__at_5_percent_for_all(p, expected):
    assert verdicts.shown(p).tolist() == expected


def test_shown__nothing_true_is_seldom_called_shown():
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(400):
        found = [verdicts.exceeds(rng.normal(size=10), rng.normal(size=10)).p for _ in range(10)]
        wrong += verdicts.shown(found).any()
    assert wrong <= 0.08 * 400


@pytest.mark.parametrize("r", [0.5, 0.8, 0.95])
def test_shrunk_reading__is_a_regression_of_truth_and_white_noise_with_the_same_r(r):
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(20_000, 2)) * [1.0, 3.0] + 5
    seen = truth + np.sqrt(1 / r**2 - 1) * truth.std(axis=0) * rng.normal(size=truth.shape)
    reading = np.column_stack([scores.linear_readout(seen[:, [k]], truth[:, [k]]) for k in (0, 1)])
    made = verdicts.shrunk_reading(truth, reading, rng)
    assert_allclose(scores.correlation(made, truth), [r, r], atol=0.01)
    assert_allclose(made.std(axis=0), reading.std(axis=0), rtol=0.02)
    assert_allclose(made.mean(axis=0), truth.mean(axis=0), rtol=0.01)
    ratios = [paired.boundary_ratio(x - truth, truth) for x in (made, reading)]
    assert_allclose(ratios[0], ratios[1], rtol=0.05)
    assert ratios[0] > 1.05, "shrinkage alone makes errors larger at the boundary"
