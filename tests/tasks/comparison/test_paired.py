"""Comparisons over realisations by hand."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.signal import lfilter

from manifold_observer.tasks.comparison import paired


def test_compare__a_shift_is_seen_and_its_interval_covers_it():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=50)
    covered = 0
    for _ in range(200):
        one, other = shared + 0.1 + 0.2 * rng.normal(size=50), shared + 0.2 * rng.normal(size=50)
        found = paired.compare(one, other)
        covered += abs(found.difference - 0.1) < found.half_width
    assert 180 <= covered <= 199
    assert paired.compare(shared + 1 + 0.01 * rng.normal(size=50), shared).p < 1e-10
    assert paired.compare(shared, shared + 1 + 0.01 * rng.normal(size=50)).p > 0.99


def test_outermost__is_the_share_that_is_farthest():
    truth = np.random.default_rng(1).normal(size=(1000, 2)) * [1.0, 5.0]
    outer = paired.outermost(truth, 0.1)
    assert outer.sum() == 100
    distance = np.hypot(*(truth - truth.mean(axis=0)).T / truth.std(axis=0)[:, None])
    assert distance[outer].min() > distance[~outer].max()


def test_boundary_ratio__even_errors_give_one():
    truth = np.random.default_rng(1).normal(size=(1000, 2))
    assert_allclose(paired.boundary_ratio(np.ones((1000, 2)), truth), 1.0)


def test_effective_window__leaves_as_much_white_noise():
    noise = np.random.default_rng(2).normal(size=400_000)
    for pole in (0.3, 0.8):
        filtered = lfilter([1 - pole], [1, -pole], noise)
        assert_allclose(filtered.var(), 1 / paired.effective_window(np.array(pole)), rtol=0.03)


def test_best_single__is_the_largest_correlation_of_any_coordinate():
    rng = np.random.default_rng(3)
    estimate, truth = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    expected = [max(abs(np.corrcoef(e, t)[0, 1]) for e in estimate.T) for t in truth.T]
    assert_allclose(paired.best_single(estimate, truth), expected)
