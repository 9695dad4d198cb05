"""The observer's scan against the slow recursion."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.observers import observer
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

    def filter(self, poles, gain):
        return observer.contracting(np.linalg.pinv(self.lift), poles, gain)

    def drives(self, chosen):
        return observer.project(self.frames, self.mean, chosen.drive)

    def starts(self, chosen, restarts):
        return observer.project(self.frames[restarts], self.mean, chosen.start)


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
    chosen = case.filter(observer.poles(case.rates, gamma, step, substeps), observer.steady_gain(gamma))
    restarts = case.restarts
    restarts[0] = not carried
    before = case.psi[restarts] if initial == "paper" else case.starts(chosen, restarts)
    states, last = observer.scan(case.drives(chosen), restarts, before, case.carry, chosen.transition)
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
    chosen = case.filter(observer.poles(case.rates, gamma, "euler", 1), observer.steady_gain(gamma))
    nothing = np.zeros((0, len(case.rates)))
    states, _ = observer.scan(case.drives(chosen), np.zeros(n, bool), nothing, case.carry, chosen.transition)
    size = 1 + np.abs(states).max()
    for k in range(1, n + 1):
        expected = dense.telescoped(case.frames, case.mean, case.lift, case.rates, gamma, case.carry, k)
        assert_allclose(states[k - 1], expected, atol=1e-9 * size)


def transitions(draw, m):
    """A diagonal or a whole matrix that contracts."""
    rng = draw(generators())
    if draw(st.booleans()):
        return rng.uniform(-0.9, 0.99, m)
    matrix = rng.normal(size=(m, m))
    return 0.95 * matrix / np.linalg.norm(matrix, 2)


@given(st.data(), cases(), st.booleans())
def test_scan__in_two_parts_is_the_whole_bit_for_bit_at_every_cut(data, case, carried):
    drives, before, restarts = case.inputs, case.psi, case.restarts
    transition = transitions(data.draw, drives.shape[1])
    restarts[0] = not carried
    before = before[restarts]
    whole, last = observer.scan(drives, restarts, before, case.carry, transition)
    for cut in range(len(drives) + 1):
        used = int(restarts[:cut].sum())
        first, middle = observer.scan(drives[:cut], restarts[:cut], before[:used], case.carry, transition)
        second, end = observer.scan(drives[cut:], restarts[cut:], before[used:], middle, transition)
        assert_array_equal(np.concatenate([first, second]), whole)
        assert_array_equal(end, last)


@given(st.data(), cases())
def test_scan__in_any_parts_is_the_whole_bit_for_bit(data, case):
    drives, restarts = case.inputs, case.restarts
    transition = transitions(data.draw, drives.shape[1])
    whole, _ = observer.scan(drives, restarts, case.psi[restarts], case.carry, transition)
    carry, parts = case.carry, []
    for start, stop in spans(data.draw(chunkings(len(whole)))):
        anew = restarts[start:stop]
        states, carry = observer.scan(drives[start:stop], anew, case.psi[start:stop][anew], carry, transition)
        parts.append(states)
    assert_array_equal(np.concatenate(parts), whole)


@given(st.data(), cases())
def test_scan__is_the_recursion_for_a_matrix_as_for_its_diagonal(data, case):
    drives, restarts, before = case.inputs, case.restarts, case.psi[case.restarts]
    transition = transitions(data.draw, drives.shape[1])
    matrix = np.diag(transition) if transition.ndim == 1 else transition
    states, _ = observer.scan(drives, restarts, before, case.carry, transition)
    expected, started = np.empty_like(drives), iter(before)
    for i, drive in enumerate(drives):
        previous = next(started) if restarts[i] else expected[i - 1]
        expected[i] = matrix @ previous + drive
    assert_allclose(states, expected, atol=1e-10 * (1 + np.abs(expected).max()))


@given(st.data(), cases())
def test_scan_back__is_the_scan_of_what_is_turned_round(data, case):
    drives, ends = case.inputs, case.restarts[::-1]
    transition, after = transitions(data.draw, drives.shape[1]), case.psi[case.restarts]
    states, first = observer.scan_back(drives, ends, after, case.carry, transition)
    turned, last = observer.scan(drives[::-1], case.restarts, after[::-1], case.carry, transition)
    assert_array_equal(states[::-1], turned)
    assert_array_equal(first, last)
    assert_array_equal(first, states[0])


def test_scan__of_nothing_hands_the_carry_on():
    carry = np.array([3.0, 4.0])
    nothing = np.zeros((0, 2))
    for transition in (np.array([0.5, 0.2]), 0.5 * np.eye(2)):
        states, last = observer.scan(nothing, np.zeros(0, bool), nothing, carry, transition)
        assert states.shape == (0, 2)
        assert_array_equal(last, carry)
        assert last is not carry


def test_scan__leaves_its_arguments_alone():
    inputs, carry, before = np.ones((4, 1)), np.array([5.0]), np.array([[7.0]])
    _, last = observer.scan(inputs, np.array([False, False, True, False]), before, carry, np.array([0.5]))
    last[:] = 0
    assert (inputs == 1).all()
    assert (carry.item(), before.item()) == (5, 7)


@given(cases(max_rate=20.0), gammas, st.sampled_from(["exact", "euler"]), generators())
def test_scan__two_carries_approach_each_other_by_the_pole_a_frame(case, gamma, step, rng):
    n, m = len(case.frames), len(case.rates)
    poles = observer.poles(case.rates, gamma, step)
    drives = case.drives(case.filter(poles, observer.steady_gain(gamma)))
    none, starts = np.zeros(n, bool), np.zeros((0, m))
    one, other = rng.normal(size=(2, m))
    a, _ = observer.scan(drives, none, starts, one, poles)
    b, _ = observer.scan(drives, none, starts, other, poles)
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
def test_contracting__settles_to_the_gain_and_stays_there_from_its_start(gamma, level, name):
    gain = observer.steady_gain(gamma, name)
    chosen = observer.contracting(np.eye(1), np.array([0.7]), gain)
    frames, once = np.full((200, 1), level), np.arange(200) == 0
    drives = observer.project(frames, np.zeros(1), chosen.drive)
    starts = observer.project(frames[once], np.zeros(1), chosen.start)
    far, _ = observer.scan(drives, np.zeros(200, bool), np.zeros((0, 1)), np.array([9.0]), chosen.transition)
    assert_allclose(far[-1], gain * level, atol=1e-9 * (1 + abs(gain * level)))
    steady, _ = observer.scan(drives, once, starts, np.zeros(1), chosen.transition)
    assert_allclose(steady, gain * level, atol=1e-9 * (1 + abs(gain * level)))
    assert gain == (1 if name == "unit" else pytest.approx(-gamma / (1 - gamma)))


@given(st.data(), generators(), st.integers(1, 4))
def test_contraction_factor__is_kept_by_any_two_states(data, rng, m):
    transition = transitions(data.draw, m)
    root = rng.normal(size=(m, m))
    metric = root @ root.T + 0.1 * np.eye(m)
    matrix = np.diag(transition) if transition.ndim == 1 else transition
    one, other = rng.normal(size=(2, m))
    for lengths in (None, metric):
        inverse = np.eye(m) if lengths is None else np.linalg.inv(lengths)
        before, after = ((x @ inverse @ x) ** 0.5 for x in (one - other, matrix @ (one - other)))
        assert after <= observer.contraction_factor(transition, lengths) * before * (1 + 1e-9)


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
