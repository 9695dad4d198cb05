"""A bank of observers equals a loop, its mixture a ridge regression, and it contracts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.tasks.observers import bank
from strategies import chunkings, generators

POLES = np.array([0.0, 0.5, 0.9])
N, M = 60, 2
RESTARTS = np.isin(np.arange(N), [0, 17, 18])


def coordinates(rng):
    return np.sin(np.arange(N)[:, None] / [5, 9]) + 0.1 * rng.normal(size=(N, M))


def plain_loop(values, restarts, carry):
    rows, state = [], np.array(carry)
    for y, anew in zip(values, restarts, strict=True):
        pushed = np.tile(y, len(POLES))
        kept = np.repeat(POLES, M)
        state = pushed if anew else kept * state + (1 - kept) * pushed
        rows.append(state)
    return np.array(rows)


@given(generators())
def test_scan__equals_the_loop(rng):
    values, carry = coordinates(rng), rng.normal(size=M * len(POLES))
    for restarts in (RESTARTS, RESTARTS & (np.arange(N) > 0)):
        found, last = bank.scan(values, restarts, carry, POLES)
        np.testing.assert_allclose(found, plain_loop(values, restarts, carry), atol=1e-12)
        np.testing.assert_array_equal(last, found[-1])


@given(generators(), chunkings(N))
def test_scan__and_states_are_the_same_bits_in_any_blocks(rng, chunks):
    values = coordinates(rng)
    whole, _ = bank.scan(values, RESTARTS, np.zeros(6), POLES)
    mixture = bank.Mixture(rng.normal(size=6), rng.uniform(1, 2, 6), rng.normal(size=(6, M)))
    carry, parts, first = np.zeros(6), [], 0
    for length in chunks:
        own = slice(first, first + length)
        part, carry = bank.scan(values[own], RESTARTS[own], carry, POLES)
        parts.append(mixture.states(part))
        first += length
    np.testing.assert_array_equal(np.concatenate(parts), mixture.states(whole))


@given(generators(), chunkings(N))
def test_learn__is_a_ridge_regression_on_the_next_frame_whatever_the_blocks(rng, chunks):
    values = coordinates(rng)
    whole, _ = bank.scan(values, RESTARTS, np.zeros(6), POLES)
    followed = np.append(~RESTARTS[1:], False)
    later = np.concatenate([values[1:], values[-1:]])
    sums, first = bank.nothing(6, M), 0
    for length in chunks:
        own = slice(first, first + length)
        sums = bank.add(sums, whole[own], later[own], followed[own])
        first += length
    found = bank.learn(sums)
    scaled = (whole - whole.mean(axis=0)) / whole.std(axis=0)
    now = np.flatnonzero(followed)
    squares = scaled[now].T @ scaled[now] / len(now) + 0.1 * np.eye(6)
    expected = np.linalg.solve(squares, scaled[now].T @ values[now + 1] / len(now))
    np.testing.assert_allclose(found.weights, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.states(whole), scaled @ expected, rtol=1e-7, atol=1e-9)


def pulses(rng, n=3000):
    """A short pulse every 25 frames or so, whose phase nothing else shows."""
    phase = np.cumsum(2 * np.pi / 25 * (1 + 0.05 * rng.normal(size=n)))
    signal = np.exp(-(np.angle(np.exp(1j * phase)) ** 2) / 0.1)
    return phase, (signal - signal.mean())[:, None] / signal.std() + 0.2 * rng.normal(size=(n, 2))


def ahead_of(values, restarts, poles):
    rows, _ = bank.scan(values, restarts, np.zeros(values.shape[1] * len(poles)), poles)
    segment, n, sums = np.cumsum(restarts), len(values), []
    for h in bank.AHEAD:
        then = np.minimum(np.arange(n) + h, n - 1)
        where = (segment[then] == segment) & (np.arange(n) + h < n)
        sums.append(bank.add(bank.nothing(rows.shape[1], values.shape[1]), rows, values[then], where))
    return rows, sums


def test_foretell__keeps_a_phase_that_shows_only_later():
    """Read linearly: what foretells the next frame alone has forgotten it between the pulses."""
    phase, values = pulses(np.random.default_rng(0))
    rows, sums = ahead_of(values, np.arange(len(values)) == 0, np.array(bank.POLES))
    truth = np.column_stack([np.cos(phase), np.sin(phase)])
    errors = []
    for mixture in (bank.learn(sums[0]), bank.foretell(sums)):
        known = np.column_stack([np.ones(len(values)), mixture.states(rows)])
        errors.append(np.square(truth - known @ np.linalg.lstsq(known, truth, rcond=None)[0]).mean())
    assert errors[1] < 0.8 * errors[0]


def test_foretell__every_column_estimates_its_own_coordinate():
    values = coordinates(np.random.default_rng(1))
    values = np.tile(values, (20, 1)) + 0.1 * np.random.default_rng(2).normal(size=(20 * N, M))
    restarts = np.arange(len(values)) % N == 0
    rows, sums = ahead_of(values, restarts, POLES)
    nearest, several = (mixture.states(rows) for mixture in (bank.learn(sums[0]), bank.foretell(sums)))
    for k in range(M):
        assert np.corrcoef(nearest[:, k], several[:, k])[0, 1] > 0.9
        assert several[:, k] @ nearest[:, k] == pytest.approx(several[:, k] @ several[:, k], rel=0.05)


def test_foretell__of_short_segments_is_what_predicts_the_next_frame():
    values = coordinates(np.random.default_rng(3))
    _, sums = ahead_of(values, np.arange(N) % 2 == 0, POLES)
    np.testing.assert_array_equal(bank.foretell(sums).weights, bank.learn(sums[0]).weights)


def test_learn__without_a_pair_of_frames_takes_the_coordinates_themselves():
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    whole, _ = bank.scan(values, np.array([True, True]), np.zeros(6), POLES)
    mixture = bank.learn(bank.add(bank.nothing(6, M), whole, values, np.array([False, False])))
    np.testing.assert_array_equal(mixture.states(whole), values)


@given(generators(), st.integers(1, 40))
def test_scan__two_states_come_together_by_the_largest_pole_a_frame(rng, n):
    values = coordinates(rng)[:n]
    nowhere = np.zeros(n, bool)
    ends = [bank.scan(values, nowhere, carry, POLES)[1] for carry in rng.normal(size=(2, 6))]
    assert np.linalg.norm(ends[0] - ends[1]) <= POLES.max() ** n * 20


def test_add__of_nothing_changes_nothing():
    sums = bank.nothing(6, M)
    again = bank.add(sums, np.zeros((0, 6)), np.zeros((0, M)), np.zeros(0, bool))
    for one, other in zip(sums, again, strict=True):
        assert one == pytest.approx(other)
