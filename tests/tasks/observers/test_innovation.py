"""Innovations frame by frame, and their level."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from manifold_observer.tasks.observers import innovation
from strategies import generators


@given(generators(), st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans(), st.integers(1, 7))
def test_innovations__are_those_of_the_loop(rng, lengths, carried, width):
    n, m, p = sum(lengths), 2, 3
    segment = np.repeat(np.arange(len(lengths)), lengths)
    restarts = np.concatenate([[not carried], np.diff(segment) != 0])
    frames, states, carry, factor = (
        rng.normal(size=(n, p)),
        rng.normal(size=(n, m)),
        rng.normal(size=m),
        np.full(m, 0.7),
    )
    lift, mean, variance = rng.normal(size=(p, m)), rng.normal(size=p), rng.uniform(1, 2, p)
    predicted = innovation.predicted_states(states, carry, restarts, factor)
    found = innovation.innovations(frames, predicted, lift, mean)
    sizes = innovation.sizes(found, variance)
    level = innovation.level(sizes, restarts, width)
    for i in range(n):
        before = np.zeros(m) if restarts[i] else factor * (carry if i == 0 else states[i - 1])
        expected = frames[i] - mean - lift @ before
        assert_allclose(found[i], expected, atol=1e-12)
        assert_allclose(sizes[i], np.sqrt(np.mean(expected**2 / variance)))
        last = [j for j in range(max(0, i - width + 1), i + 1) if segment[j] == segment[i]]
        assert_allclose(level[i], np.sqrt(np.mean(sizes[last] ** 2)))


def test_sizes__constant_features_do_not_count():
    assert_allclose(innovation.sizes(np.array([[3.0, 1.0]]), np.array([9.0, 0.0])), [1.0])


def test_compare__frames_that_are_as_before_are_not_due():
    rng = np.random.default_rng(0)
    once = np.arange(500) == 0
    known = innovation.usual(1 + 0.1 * rng.normal(size=500), once, 50)
    level, due = innovation.compare(1 + 0.1 * rng.normal(size=500), once, 50, known)
    assert_allclose(level[100:], 1, atol=0.1)
    assert not due[100:].any()
    _, due = innovation.compare(1.5 * np.ones(500), once, 50, known)
    assert due[100:].all()
