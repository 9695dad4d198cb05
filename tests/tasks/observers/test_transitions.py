"""Learnt transitions find what turns, contract whatever they are learnt from, and say when they end at their bound."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov

from manifold_observer.tasks.observers import bank, transitions
from strategies import chunkings, generators

POLES = np.array(bank.POLES)


def turning(rng, n, *, turn=0.3, decay=0.97, noise=0.7, m=2):
    """A point that goes round and is pushed, in noise; further coordinates are noise."""
    hidden, z = np.empty(n, complex), 0j
    pushes = rng.normal(size=(n, 2)) @ [1, 1j] * np.sqrt(1 - decay**2)
    for now in range(n):
        z = decay * np.exp(1j * turn) * z + pushes[now]
        hidden[now] = z
    plane = np.column_stack([hidden.real, hidden.imag, np.zeros((n, m - 2))])
    return plane, plane + noise * rng.normal(size=(n, m))


def beginnings(n, *firsts):
    return np.isin(np.arange(n), [0, *firsts])


@pytest.mark.parametrize("turn", [0.1, 0.6, 2.0])
def test_learn__finds_how_fast_it_turns_and_follows_it_better_than_decays_do(turn):
    plane, values = turning(np.random.default_rng(0), 3000, turn=turn)
    anew = beginnings(3000)
    learnt = transitions.learn(values, anew)
    values_of = np.linalg.eigvals(learnt.dynamics)
    assert np.abs(np.angle(values_of)) == pytest.approx(turn, abs=0.03)
    assert np.abs(values_of) == pytest.approx(0.97, abs=0.02)
    assert not learnt.at_bound
    rows, _ = bank.scan(values, anew, np.zeros(2), learnt.filter)
    said = learnt.mixture.states(rows)[:-1]
    best = min(
        np.square(plane[1:] - bank.scan(values, anew, np.zeros(2), np.array([pole]))[0][:-1]).mean() for pole in POLES
    )
    assert np.square(plane[1:] - said).mean() < 0.8 * best


@given(generators(), st.integers(1, 4), st.sampled_from([0.0, 1e-6, 1.0, 1e6]), st.integers(0, 3))
def test_learn__the_norm_of_a_transition_is_below_one_whatever_it_is_learnt_from(rng, m, size, kind):
    n = 120
    steps = rng.normal(size=(n, m))
    values = size * [steps, np.cumsum(steps, axis=0), np.exp(np.cumsum(np.abs(steps), axis=0) / 9), 0 * steps][kind]
    learnt = transitions.learn(values, beginnings(n, 50, 51))
    if learnt is not None:
        assert np.linalg.norm(learnt.filter.transition, 2) <= transitions.MOST + 1e-9
        ends = [bank.scan(values, np.zeros(n, bool), carry, learnt.filter)[0] for carry in rng.normal(size=(2, m))]
        apart = np.linalg.norm(ends[0] - ends[1], axis=1)
        assert (apart[1:] <= transitions.MOST * apart[:-1] + 1e-7 * (1 + np.abs(ends[0]).max())).all()


def test_learn__a_walk_that_never_comes_back_is_at_its_bound():
    walk = np.cumsum(np.random.default_rng(2).normal(size=(150, 1)), axis=0) + 100
    assert transitions.learn(walk, beginnings(150)).at_bound


def test_learn__of_too_few_frames_is_nothing():
    values = np.random.default_rng(0).normal(size=(40, 3))
    assert transitions.learn(values[:15], beginnings(15)) is None
    assert transitions.learn(values, np.ones(40, bool)) is None
    assert transitions.learn(values, beginnings(40)) is not None


@given(generators(), chunkings(90))
def test_scan__of_transitions_has_the_same_bits_in_any_blocks(rng, chunks):
    _, values = turning(rng, 90, m=3)
    anew = beginnings(90, 40, 41)
    learnt = transitions.learn(values, anew)
    whole, _ = bank.scan(values, anew, np.zeros(3), learnt.filter)
    carry, parts, first = np.zeros(3), [], 0
    for length in chunks:
        own = slice(first, first + length)
        part, carry = bank.scan(values[own], anew[own], carry, learnt.filter)
        parts.append(learnt.mixture.states(part))
        first += length
    np.testing.assert_array_equal(np.concatenate(parts), learnt.mixture.states(whole))


def test_doubling__solves_the_equations_of_the_filter_and_the_smoother():
    rng = np.random.default_rng(4)
    m = 3
    dynamics = np.linalg.qr(rng.normal(size=(m, m)))[0] * 0.95
    process, noise = (x @ x.T + 0.1 * np.eye(m) for x in rng.normal(size=(2, m, m)))
    model = transitions._Model(dynamics, process, noise, np.eye(m), at_bound=False)
    gains = transitions._gains(model)
    expected = solve_discrete_are(dynamics.T, np.eye(m), process, noise)
    np.testing.assert_allclose(gains.predicted, expected, rtol=1e-8)
    own = gains.posterior - gains.backward @ gains.predicted @ gains.backward.T
    np.testing.assert_allclose(transitions._spread(gains), solve_discrete_lyapunov(gains.backward, own), rtol=1e-6)


def loop(drives, started, anew, transition):
    rows = []
    for drive, start, first in zip(drives, started, anew, strict=True):
        rows.append(start if first else transition @ rows[-1] + drive)
    return np.array(rows)


@pytest.mark.parametrize("cut", [(), (30, 31, 80)])
def test_run__is_the_scan(cut):
    rng = np.random.default_rng(5)
    drives, started = rng.normal(size=(2, 120, 3))
    transition = 0.9 * np.linalg.qr(rng.normal(size=(3, 3)))[0]
    expected = loop(drives, started, beginnings(120, *cut), transition)
    np.testing.assert_allclose(
        transitions._run(drives, started, beginnings(120, *cut), transition), expected, atol=1e-9
    )
    jordan = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]])  # has one eigenvector only
    expected = loop(drives, started, beginnings(120), jordan)
    np.testing.assert_allclose(transitions._run(drives, started, beginnings(120), jordan), expected, atol=1e-9)


@pytest.mark.slow
def test_shares__transitions_win_where_a_bank_has_too_many_weights_for_the_frames():
    _, values = turning(np.random.default_rng(1), 240, m=6, noise=0.5)
    found = transitions.shares(values, np.zeros(240, int), beginnings(240), POLES)
    assert found.clearly_better
    _, values = turning(np.random.default_rng(1), 4000, m=2, noise=0.5)
    found = transitions.shares(values, np.zeros(4000, int), beginnings(4000), POLES)
    assert not found.clearly_better
    assert found.transitions.mean() > 0.3
    noise = np.random.default_rng(3).normal(size=(300, 2))
    assert transitions.shares(noise, np.zeros(300, int), beginnings(300), POLES).transitions.mean() < 0.05
    assert transitions.shares(noise[:40], np.zeros(40, int), beginnings(40), POLES) is None


def test_run__goes_through_runs_of_one_length_at_once_with_the_bits_of_each_alone(monkeypatch):
    """Calls cost more than short runs do: recordings may have hundreds of them."""
    rng = np.random.default_rng(3)
    lengths = [12] * 40 + [7, 30, 7, 1, 12]
    firsts = np.cumsum([0, *lengths])
    drives, started = rng.normal(size=(2, firsts[-1], 3))
    transition = np.diag([0.9, 0.8, 0.5]) + 0.1 * rng.normal(size=(3, 3))
    alone = [
        transitions._run(drives[a:b], started[a:b], beginnings(b - a), transition)
        for a, b in itertools.pairwise(firsts)
    ]
    calls, recursion = [], transitions.recursion
    monkeypatch.setattr(transitions, "recursion", lambda *given: (calls.append(1), recursion(*given))[1])
    together = transitions._run(drives, started, beginnings(len(drives), *firsts[:-1]), transition)
    np.testing.assert_allclose(together, np.concatenate(alone), rtol=1e-13, atol=1e-13)
    assert len(calls) == 3 * len(set(lengths))
