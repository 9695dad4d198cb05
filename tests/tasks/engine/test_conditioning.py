"""Conditioned features come back, and counts are told from converters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.tasks.engine.conditioning import Conditioning, NegativeError, are_counts, look
from strategies import generators


@given(generators(), st.sampled_from(["none", "root", "log"]), st.integers(1, 5))
def test_backward__undoes_forward(rng, transform, p):
    frames = rng.gamma(2.0, size=(30, p)) + 0.1
    conditioning = Conditioning(transform, 0.05, rng.uniform(0.1, 9, p))
    np.testing.assert_allclose(conditioning.backward(conditioning.forward(frames)), frames, rtol=1e-10)


def test_forward__is_the_formula():
    frames, scale = np.array([[4.0, 0.0]]), np.array([2.0, 1.0])
    np.testing.assert_array_equal(Conditioning("root", 0.0, scale).forward(frames), [[1.0, 0.0]])
    np.testing.assert_allclose(Conditioning("log", 0.5, scale).forward(frames), [[np.log(4) / 2, np.log(0.5)]])
    np.testing.assert_array_equal(Conditioning("none", 0.0, scale).forward(frames), [[2.0, 0.0]])


def test_forward__names_the_smallest_of_negative_features():
    with pytest.raises(NegativeError, match=r"must not be negative for a square root; got -3"):
        Conditioning("root", 0.0, np.ones(1)).forward(np.array([[1.0], [-3.0], [-1.0]]))


def counted(values):
    return are_counts(look(values), values.mean(axis=0), values.var(axis=0))


@given(generators(), st.floats(0.05, 40))
def test_are_counts__of_spikes(rng, rate):
    assert counted(rng.poisson(rate * rng.uniform(0.5, 2, 12), size=(600, 12)).astype(float))


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=(500, 4)),  # not whole
        np.round(np.random.default_rng(0).normal(0, 300, size=(500, 4))),  # negative too
        np.round(np.random.default_rng(0).normal(2048, 3, size=(500, 4))),  # a converter at rest
        np.round(np.random.default_rng(0).normal(2048, 600, size=(500, 4)).clip(0)),  # and at work
        np.zeros((500, 4)),
    ],
)
def test_are_counts__no_others(values):
    assert not counted(values)


def test_forward__counts_what_lies_beyond_the_limits_as_the_limit():
    limits = np.array([[-1.0, -np.inf], [2.0, np.inf]])
    within = Conditioning("none", 0.0, np.array([2.0, 1.0]), limits).forward(np.array([[-9.0, -9.0], [9.0, 9.0]]))
    np.testing.assert_array_equal(within, [[-0.5, -9.0], [1.0, 9.0]])
