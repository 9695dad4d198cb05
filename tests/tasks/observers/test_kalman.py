"""Kalman filters in the modes against the one in all features, and against the formulas of textbooks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from manifold_observer.tasks.observers import kalman, observer
from reference import dense
from strategies import generators


def problem(rng, p, m):
    """Lift, poles, process noise and noise of the features."""
    lift = rng.normal(size=(p, m))
    root = rng.normal(size=(m, m))
    return lift, rng.uniform(0.2, 0.98, m), 0.1 * root @ root.T + 0.05 * np.eye(m), rng.uniform(0.2, 3, p)


def model(lift, poles, process, feature_noise):
    reading, noise = kalman.weighted_reading(lift, feature_noise)
    return kalman.Model(poles, process, reading, noise)


def run(chosen, z, mean, restarts):
    drives = observer.project(z, mean, chosen.drive)
    starts = observer.project(z[restarts], mean, chosen.start)
    return observer.scan(drives, restarts, starts, np.zeros(len(drives[0])), chosen.transition)[0]


sizes = st.integers(1, 4).flatmap(lambda m: st.tuples(st.integers(m, m + 4), st.just(m)))


@given(generators(), sizes, st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_kalman_and_backward__are_the_filter_and_the_smoother_in_all_features(rng, size, lengths):
    p, m = size
    lift, poles, process, noise = problem(rng, p, m)
    segment = np.repeat(np.arange(len(lengths)), lengths)
    z, mean = rng.normal(size=(len(segment), p)), rng.normal(size=p)
    restarts = np.concatenate([[True], np.diff(segment) != 0])
    expected, posterior, _ = dense.kalman(z, segment, mean, lift, poles, process, noise)
    known = kalman.steady(model(lift, poles, process, noise))
    states = run(kalman.kalman(model(lift, poles, process, noise), known), z, mean, restarts)
    size = 1 + np.abs(expected).max()
    assert_allclose(known.posterior, posterior, atol=1e-7 * (1 + np.abs(posterior).max()))
    assert_allclose(states, expected, atol=1e-6 * size)
    back = kalman.backward(model(lift, poles, process, noise), known)
    ends = np.append(restarts[1:], True)
    nothing = np.zeros(m)
    drives, after = (observer.project(x, nothing, k) for x, k in ((states, back.drive), (states[ends], back.start)))
    smoothed, _ = observer.scan_back(drives, ends, after, nothing, back.transition)
    expected, variances = dense.smoother(states, segment, poles, known.posterior, known.predicted)
    assert_allclose(smoothed, expected, atol=1e-8 * size)
    table = kalman.smoothed_variances(known)
    to_end = np.concatenate([np.arange(length)[::-1] for length in lengths])
    assert_allclose(table[np.minimum(to_end, len(table) - 1)], variances, atol=1e-8 * (1 + variances.max()))


def test_kalman__its_own_deviations_cover_the_truth_and_no_other_gain_does_better():
    rng = np.random.default_rng(0)
    lift, poles, process, noise = problem(rng, 5, 2)
    n, nothing = 40_000, np.zeros(5)
    steps = rng.multivariate_normal(np.zeros(2), process, size=n)
    truth, _ = observer.scan(steps, np.zeros(n, bool), np.zeros((0, 2)), np.zeros(2), poles)
    z = truth @ lift.T + rng.normal(size=(n, 5)) * np.sqrt(noise)
    given_model = model(lift, poles, process, noise)
    known = kalman.steady(given_model)
    once = np.arange(n) == 0
    error = run(kalman.kalman(given_model, known), z, nothing, once) - truth
    assert_allclose(np.cov(error.T), known.posterior, rtol=0.1, atol=0.02 * known.posterior.max())
    covered = np.abs(error) <= 1.96 * np.sqrt(np.diag(known.posterior))
    assert_allclose(covered.mean(axis=0), 0.95, atol=0.01)
    for factor in (0.7, 1.4):
        other = known._replace(gain=factor * known.gain)
        worse = run(kalman.kalman(given_model, other), z, nothing, once) - truth
        assert np.square(worse).mean() > np.square(error).mean()


@given(generators(), sizes)
def test_kalman__contracts_by_the_stated_factor_a_frame(rng, size):
    p, m = size
    given_model = model(*problem(rng, p, m))
    known = kalman.steady(given_model)
    chosen = kalman.kalman(given_model, known)
    factor = observer.contraction_factor(chosen.transition, known.posterior)
    assert factor < 1
    inverse = np.linalg.inv(known.posterior)
    apart = rng.normal(size=m)
    for _ in range(5):
        before = apart
        apart = chosen.transition @ apart
        assert apart @ inverse @ apart <= factor**2 * (before @ inverse @ before) * (1 + 1e-9)


def test_weighted_reading__has_the_least_noise_and_leaves_out_features_that_never_change():
    rng = np.random.default_rng(1)
    lift, noise = rng.normal(size=(6, 2)), np.array([0.1, 1, 5, 2, 0.3, 0])
    reading, own = kalman.weighted_reading(lift, noise)
    assert_allclose(reading @ lift, np.eye(2), atol=1e-12)
    assert_allclose(reading @ np.diag(noise) @ reading.T, own, atol=1e-12)
    assert (reading[:, -1] == 0).all()
    plain = np.linalg.pinv(lift[:-1])
    assert np.trace(plain @ np.diag(noise[:-1]) @ plain.T) > np.trace(own)


@pytest.mark.parametrize("noise", [np.diag([1.0, 0.0]), np.array([[1.0, 2.0], [2.0, 1.0]])])
def test_steady__estimates_that_are_singular_or_indefinite_are_floored(noise):
    known = kalman.steady(kalman.Model(np.array([0.9, 0.5]), noise, np.eye(2), noise))
    assert np.isfinite(known.gain).all()
    assert (np.linalg.eigvalsh(known.posterior) > -1e-12).all()
