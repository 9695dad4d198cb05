"""The exact median in pieces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from manifold_observer.tasks.engine import factor, kernel, panel, scale
from reference import dense
from strategies import chunkings, generators, smooth_motion, spans


def median_by_pieces(pieces, stride):
    """What the pipeline does: a bracket from a sample, then what lies within."""
    total = sum(len(piece) for piece in pieces)
    sample = np.concatenate([piece[::stride] for piece in pieces])
    for looks, (low, high) in enumerate(scale.brackets(sample), 1):
        found = [panel.count_and_collect([piece[None, :]], [(0, 1)], low, high) for piece in pieces]
        inside = np.concatenate([values for _, values in found])
        median = scale.median_from(inside, sum(below for below, _ in found), total)
        if median is not None:
            return median, looks
    raise AssertionError("the last bracket holds all")


@given(
    st.data(),
    generators(),
    st.integers(1, 400),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([1, 2, 3, 1000]),
    st.integers(1, 20),
)
def test_brackets__lead_to_the_exact_median(data, rng, n, dtype, values, stride):
    numbers = rng.exponential(size=n) if values == 1000 else rng.integers(0, values, n)
    numbers = numbers.astype(dtype)
    pieces = [numbers[start:stop] for start, stop in spans(data.draw(chunkings(n)))]
    median, _ = median_by_pieces(pieces, stride)
    assert median == np.median(numbers.astype(np.float64))


def test_brackets__one_look_is_enough_for_a_fair_sample():
    numbers = np.random.default_rng(0).exponential(size=20_000)
    median, looks = median_by_pieces([numbers], 10)
    assert (median, looks) == (np.median(numbers), 1)
    low, high = next(scale.brackets(numbers[::10]))
    assert np.mean((numbers >= low) & (numbers <= high)) < 0.15


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_median__of_few_frames_is_the_reference(n):
    rng = np.random.default_rng(n)
    matrix = rng.exponential(size=(n, n))
    matrix = matrix + matrix.T
    sample = panel.sample_entries([matrix], [(0, 0)], 1)
    *_, (low, high) = scale.brackets(sample)
    below, inside = panel.count_and_collect([matrix], [(0, 0)], low, high)
    assert (below, len(inside)) == (0, n * (n - 1) // 2)
    assert scale.median_from(inside, below, len(inside)) == dense.epsilon_median(matrix)


def test_median_from__outside_is_not_guessed():
    assert scale.median_from(np.array([3.0, 4.0]), 0, 9) is None
    assert scale.median_from(np.array([3.0, 4.0]), 5, 6) is None
    assert scale.median_from(np.array([3.0]), 1, 4) is None  # only one of the two in the middle
    assert scale.median_from(np.array([]), 0, 1) is None


@given(st.data(), generators(), st.integers(2, 30))
def test_median_between__is_the_median_over_all_pairs(data, rng, n):
    frames = smooth_motion(rng, n, 2)
    frames -= frames.mean(axis=0)
    eye = np.broadcast_to(np.eye(2), (n, 2, 2))
    cut = spans(data.draw(chunkings(n)))
    blocks = [factor.factor_block(frames[a:b], eye[a:b]) for a, b in cut]
    assert scale.median_between(blocks) == pytest.approx(dense.epsilon_median(dense.distances(frames, eye)))


def test_symmetric__mean_of_both_and_zero_diagonal():
    tile = np.array([[1e-9, 1.0], [3.0, 1e-9]])
    assert_array_equal(kernel.symmetric(tile), [[0, 2], [2, 0]])
    assert tile[0, 0] == 1e-9
