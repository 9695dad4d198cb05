"""The observer's scan against the slow recursion."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks import observer
from reference import dense
from strategies import chunkings, generators, smooth_motion, spans


class Case(NamedTuple):
    """Frames (n, p), their mean, segment (n,), lift (p, m), rates (m,), coordinates (n, m), carry (m,)."""

    frames: np.ndarray
    mean: np.ndarray
    segment: np.ndarray
    lift: np.ndarray
    rates: np.ndarray
    psi: np.ndarray
    carry: np.ndarray

    @property
    def restarts(self):
        return np.concatenate([[True], np.diff(self.segment) != 0])

    @property
    def inputs(self):
        return observer.project(self.frames, self.mean, np.linalg.pinv(self.lift))


@st.composite
def cases(draw, max_rate=3.0):
    rng, p, m = draw(generators()), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    n = sum(lengths)
    frames = smooth_motion(rng, n, p)
    rates = rng.uniform(0, max_rate, m) * rng.integers(0, 5, m).clip(max=1)  # a rate of 0 now and then
    segment = np.repeat(np.arange(len(lengths)), lengths)
    lift, psi, carry = rng.normal(size=(p, m)), rng.normal(size=(n, m)), rng.normal(size=m)
    return Case(frames, frames.mean(axis=0), segment, lift, rates, psi, carry)


gammas = st.just(0.0) | st.floats(0, 0.99)


@given(
    cases(),
    gammas,
    st.sampled_from([("exact", None), ("euler", 1), ("euler", 4)]),
    st.sampled_from(["steady", "paper"]),
    st.booleans(),
)
def test_scan__is_the_reference(case, gamma, how, initial, carried):
    step, substeps = how
    poles = observer.poles(case.rates, gamma, step, substeps)
    gain, restarts = observer.steady_gain(gamma), case.restarts
    restarts[0] = not carried
    before = case.psi[restarts] if initial == "paper" else observer.steady_starts(case.inputs, restarts, gain)
    states, last = observer.scan(case.inputs, restarts, before, case.carry, poles, gain)
    expected, end = dense.observer(
        case.frames,
        case.segment,
        case.mean,
        case.lift,
        case.rates,
        gamma,
        step,
        substeps or 1,
        initial,
        case.psi,
        case.carry if carried else None,
    )
    size = 1 + np.abs(expected).max()
    assert_allclose(states, expected, atol=1e-9 * size)
    assert_allclose(last, end, atol=1e-9 * size)


@given(cases(), gammas)
def test_scan__is_the_telescoped_sum(case, gamma):
    n = len(case.frames)
    poles = observer.poles(case.rates, gamma, "euler", 1)
    none = np.zeros(n, bool)
    states, _ = observer.scan(
        case.inputs, none, np.zeros((0, len(poles))), case.carry, poles, observer.steady_gain(gamma)
    )
    size = 1 + np.abs(states).max()
    for k in range(1, n + 1):
        expected = dense.telescoped(case.frames, case.mean, case.lift, case.rates, gamma, case.carry, k)
        assert_allclose(states[k - 1], expected, atol=1e-9 * size)


@given(cases(), gammas, st.booleans())
def test_scan__in_two_parts_is_the_whole_bit_for_bit_at_every_cut(case, gamma, carried):
    n, poles, gain = len(case.frames), observer.poles(case.rates, gamma), observer.steady_gain(gamma)
    restarts, inputs = case.restarts, case.inputs
    restarts[0] = not carried
    before = observer.steady_starts(inputs, restarts, gain)
    whole, last = observer.scan(inputs, restarts, before, case.carry, poles, gain)
    for cut in range(n + 1):
        used = int(restarts[:cut].sum())
        first, middle = observer.scan(inputs[:cut], restarts[:cut], before[:used], case.carry, poles, gain)
        second, end = observer.scan(inputs[cut:], restarts[cut:], before[used:], middle, poles, gain)
        assert_array_equal(np.concatenate([first, second]), whole)
        assert_array_equal(end, last)


@given(st.data(), cases(), gammas)
def test_scan__in_any_parts_is_the_whole_bit_for_bit(data, case, gamma):
    poles, gain = observer.poles(case.rates, gamma), observer.steady_gain(gamma)
    before = observer.steady_starts(case.inputs, case.restarts, gain)
    whole, _ = observer.scan(case.inputs, case.restarts, before, case.carry, poles, gain)
    carry, parts = case.carry, []
    for start, stop in spans(data.draw(chunkings(len(whole)))):
        inputs, anew = case.inputs[start:stop], case.restarts[start:stop]
        states, carry = observer.scan(inputs, anew, observer.steady_starts(inputs, anew, gain), carry, poles, gain)
        parts.append(states)
    assert_array_equal(np.concatenate(parts), whole)


def test_scan__of_nothing_hands_the_carry_on():
    carry = np.array([3.0, 4.0])
    nothing = np.zeros((0, 2))
    states, last = observer.scan(nothing, np.zeros(0, bool), nothing, carry, np.array([0.5, 0.2]), 1.0)
    assert states.shape == (0, 2)
    assert_array_equal(last, carry)
    assert last is not carry


def test_scan__leaves_its_arguments_alone():
    inputs, carry, before = np.ones((4, 1)), np.array([5.0]), np.array([[7.0]])
    _, last = observer.scan(inputs, np.array([False, False, True, False]), before, carry, np.array([0.5]), 1.0)
    last[:] = 0
    assert (inputs == 1).all()
    assert (carry.item(), before.item()) == (5, 7)


@given(cases(max_rate=20.0), gammas, st.sampled_from(["exact", "euler"]), generators())
def test_scan__two_carries_approach_each_other_by_the_pole_a_frame(case, gamma, step, rng):
    n, m = len(case.frames), len(case.rates)
    poles, gain = observer.poles(case.rates, gamma, step), observer.steady_gain(gamma)
    none, starts = np.zeros(n, bool), np.zeros((0, m))
    one, other = rng.normal(size=(2, m))
    a, _ = observer.scan(case.inputs, none, starts, one, poles, gain)
    b, _ = observer.scan(case.inputs, none, starts, other, poles, gain)
    bound = np.abs(one - other) * np.abs(poles) ** np.arange(1, n + 1)[:, None]
    assert (np.abs(a - b) <= bound + 1e-12 * (1 + np.abs(a).max())).all()


@given(generators(), gammas, st.integers(1, 5))
def test_poles__default_steps_contract_without_oscillating(rng, gamma, m):
    rates = rng.exponential(size=m) * 10 ** rng.uniform(-2, 2)
    for step in ("exact", "euler"):
        poles = observer.poles(rates, gamma, step)
        assert ((poles >= 0) & (poles < 1)).all()
    enough = observer.contracting_substeps(rates, gamma)
    assert (1 - gamma) * rates.max() <= enough
    assert enough == 1 or (1 - gamma) * rates.max() > enough - 1


def test_poles__of_a_single_euler_step_are_the_papers():
    rates = np.array([0.2, 3.0])
    assert_allclose(observer.poles(rates, 0.1, "euler", 1), 1 - 0.9 * rates)
    assert_allclose(observer.poles(rates, 0.1, "euler", 3), (1 - 0.3 * rates) ** 3)
    assert_allclose(observer.poles(rates, 0.1), np.exp(-0.9 * rates))


def test_poles__many_euler_steps_are_exact():
    rates = np.array([0.2, 3.0])
    assert_allclose(observer.poles(rates, 0.5, "euler", 10**7), observer.poles(rates, 0.5), rtol=1e-6)


@given(gammas, st.floats(-5, 5), st.sampled_from(["paper", "unit"]))
def test_steady_gain__is_what_a_constant_input_settles_to(gamma, level, name):
    gain = observer.steady_gain(gamma, name)
    inputs, restarts = np.full((200, 1), level), np.arange(200) == 0
    poles = np.array([0.7])
    far, _ = observer.scan(inputs, np.zeros(200, bool), np.zeros((0, 1)), np.array([9.0]), poles, gain)
    assert_allclose(far[-1], gain * level, atol=1e-9 * (1 + abs(gain * level)))
    steady, _ = observer.scan(
        inputs, restarts, observer.steady_starts(inputs, restarts, gain), np.zeros(1), poles, gain
    )
    assert_allclose(steady, gain * level, atol=1e-9 * (1 + abs(gain * level)))
    assert gain == (1 if name == "unit" else pytest.approx(-gamma / (1 - gamma)))


@given(generators(), st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(1, 9))
def test_moving_average__is_the_reference(rng, lengths, width):
    segment = np.repeat(np.arange(len(lengths)), lengths)
    inputs = rng.normal(size=(len(segment), 2))
    restarts = np.concatenate([[True], np.diff(segment) != 0])
    averaged = observer.moving_average(inputs, restarts, width)
    assert_allclose(averaged, dense.moving_average(inputs, segment, width), atol=1e-12)


def test_project__by_hand():
    inverse = np.array([[1.0, 0, 0], [0, 0.5, 0]])
    assert_allclose(observer.project(np.array([[5.0, 2, 7]]), np.array([0.0, 1, 0]), inverse), [[5, 0.5]])
