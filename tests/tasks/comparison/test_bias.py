"""Errors over realisations, against plain loops."""

import numpy as np

from manifold_observer.tasks.comparison.bias import relative_bias, worst_error

RNG = np.random.default_rng(6)
TRUTH = np.array([1.0, -2.0, 5.0])
VALUES = TRUTH * (1 + 0.2 * RNG.normal(size=(7, 3)))


def test_relative_bias__is_the_mean_of_the_relative_errors():
    expected = [sum(row[k] / TRUTH[k] - 1 for row in VALUES) / len(VALUES) for k in range(3)]
    np.testing.assert_allclose(relative_bias(VALUES, TRUTH), expected)
    np.testing.assert_allclose(relative_bias(np.tile(1.1 * TRUTH, (4, 1)), TRUTH), 0.1)


def test_worst_error__is_the_largest_of_a_realisation():
    expected = [max(abs(row[k] / TRUTH[k] - 1) for k in range(3)) for row in VALUES]
    np.testing.assert_allclose(worst_error(VALUES, TRUTH), expected)
    assert (worst_error(VALUES, TRUTH) >= 0).all()


def test_errors__of_one_realisation_and_of_the_truth_itself():
    assert relative_bias(TRUTH[None], TRUTH).tolist() == [0, 0, 0]
    assert worst_error(TRUTH[None], TRUTH).tolist() == [0]
    assert worst_error(np.empty((0, 3)), TRUTH).shape == (0,)
