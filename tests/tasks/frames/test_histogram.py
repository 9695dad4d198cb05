"""Histograms of one block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.frames.histogram import OutsideEdgesError, histogram
from reference import loops
from strategies import generators

COUNT_EDGES = np.arange(7)


@given(generators(), st.integers(0, 40), st.integers(1, 9), st.integers(1, 4))
def test_histogram__is_the_reference_for_counts(rng, n, frame, n_channels):
    counts = rng.integers(0, 6, (n, n_channels))
    assert_allclose(histogram(counts, frame, COUNT_EDGES), loops.histogram(counts, frame, COUNT_EDGES), atol=1e-15)


@given(generators(), st.integers(9, 40), st.integers(1, 9), st.integers(1, 12))
def test_histogram__is_a_loop_for_any_hop_and_float_edges(rng, n, frame, hop):
    edges = np.cumsum(rng.uniform(0.1, 1, 6))
    samples = rng.uniform(edges[0], edges[-1], (n, 2))
    expected = [
        np.concatenate([np.histogram(samples[first : first + frame, c], edges)[0] for c in range(2)]) / frame
        for first in range(0, n - frame + 1, hop)
    ]
    assert_allclose(histogram(samples, frame, edges, hop), expected, atol=1e-15)


@given(generators(), st.integers(1, 5), st.booleans())
def test_histogram__every_channel_sums_to_one(rng, n_channels, clip):
    samples = rng.normal(size=(30, n_channels)) * (5 if clip else 0.1)
    parts = histogram(samples, 10, np.linspace(-1, 1, 8), clip=clip).reshape(3, n_channels, 7)
    assert_allclose(parts.sum(axis=2), 1)


def test_histogram__cells_hold_their_lower_edge_and_the_last_both():
    edges = np.array([0.0, 0.5, 2.0])
    samples = np.array([[0.0], [np.nextafter(0.5, 0)], [0.5], [2.0]])
    assert_array_equal(histogram(samples, 1, edges), [[1, 0], [1, 0], [0, 1], [0, 1]])


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float32, np.float64, bool])
def test_histogram__any_kind_of_sample(dtype):
    features = histogram(np.array([[0], [1], [1], [1]], dtype), 2, np.arange(3))
    assert_array_equal(features, [[0.5, 0.5], [0, 1]])
    assert features.dtype == np.float64


@pytest.mark.parametrize("value", [-0.001, 3.001, np.nan, np.inf, -np.inf])
def test_histogram__refuses_what_lies_outside(value):
    with pytest.raises(
        OutsideEdgesError, match=r"a sample (of .* lies outside the edges 0.0 \.\. 3.0|is (nan|inf|-inf), not a number)"
    ):
        histogram(np.array([[1.0], [value]]), 2, np.arange(4.0))


def test_histogram__clip_counts_in_the_end_cells():
    samples = np.array([[-7.0], [0.5], [3.0], [9.0]])
    assert_array_equal(histogram(samples, 4, np.arange(4.0), clip=True), [[0.5, 0, 0.5]])


def test_histogram__clip_still_refuses_nan():
    with pytest.raises(OutsideEdgesError):
        histogram(np.array([[1.0], [np.nan]]), 2, np.arange(4.0), clip=True)


def test_histogram__leaves_the_samples_alone():
    samples = np.array([[-1.0], [1.0]])
    histogram(samples, 1, np.arange(3.0), clip=True)
    assert_array_equal(samples, [[-1], [1]])


def _edges(rng, kind, dtype):
    if kind == "counts":
        return np.arange(60)
    if kind == "even":
        return np.linspace(-3, 4, int(rng.integers(2, 90)))
    if kind == "wide":  # beyond what small kinds of samples hold
        return np.array([-1e39, -300.5, -3, 0.5, 2, 300, 1e39])
    return np.cumsum(rng.uniform(0.01, 1, int(rng.integers(2, 60)))) - 3


@given(
    generators(),
    st.sampled_from(["counts", "even", "wide", "uneven"]),
    st.sampled_from([np.int8, np.uint16, np.int64, np.uint64, np.float32, np.float64]),
)
def test_histogram__every_way_to_find_cells_is_numpys(rng, kind, dtype):
    edges = _edges(rng, kind, dtype)
    inside = edges[np.abs(edges) < 1e3]
    near = np.concatenate([np.nextafter(inside, -np.inf), inside, np.nextafter(inside, np.inf), rng.normal(size=99)])
    samples = np.clip(near, 0 if np.dtype(dtype).kind == "u" else -99, 99).astype(dtype)[:, None]
    wide = np.clip(samples[:, 0].astype(np.float64), edges[0], edges[-1])
    counted = histogram(samples, len(samples), edges, clip=True)[0] * len(samples)
    assert_array_equal(counted.round(), np.histogram(wide, edges)[0])


def test_histogram__frames_are_the_same_alone_and_together():
    samples = np.random.default_rng(0).normal(size=(50_000, 3)).astype(np.float32)
    edges = np.linspace(-2, 2, 41)
    together = histogram(samples, 1000, edges, clip=True)
    alone = [histogram(samples[first : first + 1000], 1000, edges, clip=True) for first in range(0, 50_000, 1000)]
    assert_array_equal(together, np.concatenate(alone))


def test_histogram__of_cells_too_narrow_to_divide_by():
    edges = np.linspace(0, 1e-310, 41)
    counted = histogram(edges[:40, None], 40, edges)
    assert_array_equal(counted, np.full((1, 40), 1 / 40))
