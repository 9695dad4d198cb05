"""Errors of states that are mixed from a bank, against filters that really start anew and truth that is known."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose
from scipy.signal import lfilter

from manifold_observer.tasks.observers import bank, certainty
from strategies import examples, generators

POLES = np.array(bank.POLES)


def slow(rng, n, rates, restarts=()):
    """First-order processes of variance 1."""
    poles = np.exp(-np.asarray(rates))
    steps = rng.normal(size=(n, len(poles))) * np.sqrt(1 - poles**2)
    for start in (0, *restarts):
        steps[start] = rng.normal(size=len(poles))
    return np.stack([lfilter([1.0], [1.0, -pole], column) for pole, column in zip(poles, steps.T, strict=True)], axis=1)


def runs(values, anew):
    followed = np.append(~anew[1:], False)
    later = np.concatenate([values[1:], values[-1:]])
    columns = values.shape[1] * len(POLES)
    sums = bank.nothing(columns, values.shape[1])
    rows, _ = bank.scan(values, anew, np.zeros(columns), POLES)
    return certainty.Runs(values, anew, POLES, bank.learn(bank.add(sums, rows, later, followed)))


@given(generators())
@examples(5)
def test_aged_states__are_those_of_a_filter_that_starts_so_many_frames_before(rng):
    values, anew = rng.normal(size=(150, 2)), np.isin(np.arange(150), [0, 40])
    one = runs(values, anew)
    states, reached = certainty.aged_states(one)
    for age, state, there in zip(certainty.AGES, states, reached, strict=False):
        for frame in rng.choice(np.flatnonzero(there), 3):
            own = values[frame - age : frame + 1]
            rows, _ = bank.scan(own, np.arange(age + 1) == 0, np.zeros(14), POLES)
            assert_allclose(state[frame], one.mixture.states(rows)[-1], atol=1e-10)


@given(generators())
@examples(5)
def test_weights_of_own_frame__are_what_a_state_changes_by_with_its_frame(rng):
    values, anew = rng.normal(size=(100, 3)), np.arange(100) == 0
    one = runs(values, anew)
    moved = values.copy()
    step = rng.normal(size=3)
    for frame, weights in zip((0, 57), certainty.weights_of_own_frame(one), strict=True):
        moved[:] = values
        moved[frame] += step
        changed = [one.mixture.states(bank.scan(x, anew, np.zeros(21), POLES)[0])[frame] for x in (values, moved)]
        assert_allclose(changed[1] - changed[0], step @ weights, atol=1e-10)


@pytest.mark.parametrize("noise", [0.05, 0.3, 2.0])
@pytest.mark.parametrize("rates", [[0.03], [0.3], [0.03, 0.5]])
def test_noise_of__is_told_from_what_persists_within_its_error(noise, rates):
    found, errors = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        series = slow(rng, 6000, rates).sum(axis=1, keepdims=True) + np.sqrt(noise) * rng.normal(size=(6000, 1))
        variance, error = certainty.noise_of(series, np.zeros(6000, int), 1)
        found.append(variance[0])
        errors.append(error[0])
    assert abs(np.mean(found) - noise) < 2 * np.mean(errors)
    assert np.mean(errors) < 0.1 * (noise + len(rates))


def test_noise_of__what_turns_is_no_noise():
    rng = np.random.default_rng(0)
    wave = np.sqrt(2) * np.sin(np.arange(4000) / 4)[:, None] + 0.5 * rng.normal(size=(4000, 1))
    variance, _ = certainty.noise_of(wave, np.zeros(4000, int), 1)
    assert variance[0] == pytest.approx(0.25, abs=0.05)


def test_noise_of__too_few_frames_say_nothing():
    variance, error = certainty.noise_of(np.ones((30, 2)), np.arange(30), 2)
    assert np.isinf(error).all()
    assert (variance == 0).all()


@pytest.mark.parametrize("length", [25, 3000])
def test_errors__are_those_of_the_states_from_the_first_frame_on(length):
    rng = np.random.default_rng(1)
    n = 3000
    segment = np.arange(n) // length
    anew = np.arange(n) % length == 0
    truth = slow(rng, n, [0.05, 0.2], np.flatnonzero(anew)[1:])
    mixed = np.sqrt([0.2, 0.8]) * rng.normal(size=(n, 2)) @ np.array([[1.0, 0.4], [0.0, 1.0]])
    values = truth + mixed
    ahead, back = runs(values, anew), runs(values[::-1], np.concatenate([[True], anew[:0:-1]]))
    found = certainty.errors(ahead, back, segment)
    states, reached = certainty.aged_states(ahead)
    for variance, state, there in zip(found.forwards, states, reached, strict=True):
        actual = np.square(state - truth)[there].mean(axis=0)
        assert_allclose(variance, actual, rtol=0.35)
        inside = np.abs(state - truth)[there] < 1.96 * np.sqrt(variance)
        assert 0.92 < inside.mean() < 0.98
    assert (found.forwards[0] > found.forwards[-1]).all()
    middle = certainty.AGES.index(12)
    assert (found.both[middle, middle] < found.forwards[middle]).all()


@pytest.mark.parametrize("n", [90, 700])
def test_oldest_errors__are_the_last_forward_ones_to_the_bit(n):
    rng = np.random.default_rng(n)
    values = slow(rng, n, [0.05, 0.4]) + 0.3 * rng.normal(size=(n, 2))
    ends = np.isin(np.arange(n), [0, n // 2])
    ahead, back = runs(values, ends), runs(values[::-1], np.isin(np.arange(n), [0, n - n // 2]))
    segment = np.cumsum(ends)
    every = certainty.errors(ahead, back, segment).forwards
    assert len(every) > 3
    np.testing.assert_array_equal(certainty.oldest_errors(ahead, back, segment), every[-1])
