"""Time unit, signal and noise of processes whose dynamics are known."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.signal import lfilter

from manifold_observer.tasks.observers import dynamics
from strategies import generators, share

SHAPE = np.array([1.0, 1.3, 2.0])


def process(rng, n, decay, signal, noise):
    """Independent first-order processes with variance ``signal`` in white noise."""
    poles = np.exp(-decay)
    columns = []
    for pole, power in zip(poles, signal, strict=True):
        first = rng.normal() * np.sqrt(power)
        steps = rng.normal(size=n) * np.sqrt((1 - pole**2) * power)
        columns.append(lfilter([1.0], [1.0, -pole], steps, zi=[pole * first])[0])
    return np.stack(columns, axis=1) + rng.normal(size=(n, len(poles))) * np.sqrt(noise)


@given(generators(), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_autocovariance__is_the_sum_over_pairs_of_frames(rng, lengths):
    segment = np.repeat(np.arange(len(lengths)), lengths)
    inputs, lags = rng.normal(size=(len(segment), 2)), np.array([1, 2, 5])
    found = dynamics.autocovariance(inputs, segment, lags)
    for k, lag in enumerate(lags):
        pairs = [(i, i + lag) for i in range(len(segment) - lag) if segment[i] == segment[i + lag]]
        assert found.counts[:, k].sum() == len(pairs)
        expected = sum((inputs[i] * inputs[j] for i, j in pairs), np.zeros(2))
        assert_allclose(found.sums[:, k].sum(axis=0), expected, atol=1e-12)
        assert_allclose(found.mean()[k] * max(len(pairs), 1), expected, atol=1e-12)


@pytest.mark.parametrize(("unit", "noise"), share(itertools.product([0.02, 0.1, 0.4], [0.1, 1.0]), 4))
def test_calibrate__finds_the_unit_within_its_own_error(unit, noise):
    found, errors = [], []
    for seed in range(8):
        inputs = process(np.random.default_rng(seed), 8000, unit * SHAPE, [1.0, 0.6, 0.4], noise)
        result = dynamics.calibrate(inputs, np.zeros(8000, np.int64), SHAPE)
        assert result.sampling == "good"
        found.append(result.unit)
        errors.append(result.unit_error)
    spread = np.sqrt(np.mean(np.square(np.array(found) - unit)))
    assert abs(np.mean(found) - unit) < 0.08 * unit
    assert 0.5 < np.mean(errors) / spread < 2


def test_calibrate__modes_of_noise_do_not_pull_the_unit():
    rng = np.random.default_rng(0)
    inputs = process(rng, 8000, 0.1 * SHAPE, [1.0, 0.5, 0.0], 0.3)
    assert dynamics.calibrate(inputs, np.zeros(8000, np.int64), SHAPE).unit == pytest.approx(0.1, rel=0.15)


def test_calibrate__pairs_across_a_gap_do_not_count():
    rng = np.random.default_rng(3)
    parts = [process(rng, 200, 0.1 * SHAPE, [1.0, 0.6, 0.4], 0.1) for _ in range(40)]
    segment = np.repeat(np.arange(40), 200)
    assert dynamics.calibrate(np.concatenate(parts), segment, SHAPE).unit == pytest.approx(0.1, rel=0.1)


def test_calibrate__says_where_the_sampling_hides_the_dynamics():
    rng = np.random.default_rng(0)
    white = rng.normal(size=(3000, 3))
    assert dynamics.calibrate(white, np.zeros(3000, np.int64), SHAPE).sampling == "sparse"
    slow = np.linspace(-1, 1, 300)[:, None] * np.ones(3) + 1e-3 * rng.normal(size=(300, 3))
    assert dynamics.calibrate(slow, np.zeros(300, np.int64), SHAPE).sampling == "short"


def test_signal_and_noise__are_those_of_the_process():
    rng = np.random.default_rng(2)
    inputs = process(rng, 60_000, 0.1 * SHAPE, [1.0, 0.5, 0.2], 0.3)
    signal = dynamics.near_signal(inputs, np.zeros(len(inputs), np.int64), 0.1 * SHAPE).variance
    assert_allclose(signal, [1.0, 0.5, 0.2], rtol=0.15)
    noise = dynamics.measurement_noise(inputs, signal)
    assert_allclose(np.diag(noise), 0.3, rtol=0.2)
    assert (np.linalg.eigvalsh(noise) > 0).all()


def test_measurement_noise__stays_positive_where_there_is_none():
    inputs = np.random.default_rng(0).normal(size=(100, 2))
    noise = dynamics.measurement_noise(inputs, 2 * np.ones(2))
    assert (np.linalg.eigvalsh(noise) > 0).all()
