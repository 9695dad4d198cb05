"""Read-outs and their marks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.comparison.scores import (
    apply_linear,
    balanced_accuracy,
    correlation,
    fit_linear,
    folds,
    linear_readout,
    neighbour_readout,
    nrmse_db,
    silhouette,
    threshold_area,
)
from reference import dense
from strategies import generators


@given(generators(), st.integers(8, 30), st.integers(1, 3), st.integers(1, 3))
def test_linear_readout__scores_are_the_reference(rng, n, m, k):
    estimate, truth = rng.normal(size=(n, m)), 4 + rng.normal(size=(n, k))
    reading = linear_readout(estimate, truth)
    r, db = dense.regression_scores(estimate, truth)
    assert_allclose(correlation(reading, truth), r, atol=1e-9)
    assert_allclose(nrmse_db(reading, truth), db, atol=1e-9)


@given(generators(), st.integers(12, 40), st.integers(2, 5))
def test_linear_readout__held_out_frames_have_no_say(rng, n, n_folds):
    estimate, truth = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    reading = linear_readout(estimate, truth, n_folds)
    for learn, held_out in folds(n, n_folds):
        changed = np.where(held_out[:, None], truth + 100, truth)
        assert_allclose(linear_readout(estimate, changed, n_folds)[held_out], reading[held_out], atol=1e-9)
        expected = apply_linear(fit_linear(estimate[learn], truth[learn]), estimate[held_out])
        assert_array_equal(reading[held_out], expected)


def test_linear_readout__held_out_line_by_hand():
    # from (2, 5) (3, 7): 2x + 1 reads 1 and 3; from (0, 0) (1, 0): 0 reads 0 and 0
    truth = np.array([[0.0], [0], [5], [7]])
    assert_allclose(linear_readout(np.arange(4.0)[:, None], truth, 2), [[1], [3], [0], [0]], atol=1e-12)


def test_linear_readout__constant_estimate_reads_the_mean():
    truth = np.array([[1.0], [2], [6]])
    assert_allclose(linear_readout(np.ones((3, 2)), truth), np.full((3, 1), 3.0))


def test_folds__one_block_has_nothing_to_learn_from():
    with pytest.raises(ValueError, match="at least 2"):
        folds(10, 1)


@given(st.integers(1, 60), st.integers(2, 10))
def test_folds__partition_into_contiguous_blocks(n, n_folds):
    parts = folds(n, n_folds)
    assert_array_equal(sum(held_out.astype(int) for _, held_out in parts), np.ones(n))
    sizes = [int(held_out.sum()) for _, held_out in parts]
    assert max(sizes) - min(sizes) <= 1
    for learn, held_out in parts:
        assert_array_equal(learn, ~held_out)
        assert np.count_nonzero(np.diff(np.concatenate([[0], held_out, [0]]).astype(int))) <= 2


@given(generators(), st.integers(3, 40))
def test_correlation__is_pearsons(rng, n):
    a, b = rng.normal(size=(2, n, 2))
    expected = [np.corrcoef(a[:, k], b[:, k])[0, 1] for k in range(2)]
    assert_allclose(correlation(a, b), expected, atol=1e-12)
    assert_allclose(correlation(7 - 3 * a, b), -np.array(expected), atol=1e-12)


def test_correlation__constant_tells_nothing():
    assert_array_equal(correlation(np.full((4, 1), 3.0), np.arange(4.0)[:, None]), [0])


def test_correlation__constant_that_is_no_binary_fraction_tells_nothing():
    assert_array_equal(correlation(np.full((3, 1), 0.1), np.array([[1.0], [2], [6]])), [0])  # mean 0.10000000000000002


def test_nrmse_db__by_hand():
    truth = np.array([[-2.0, 1], [2, 3]])  # deviations 2 and 1
    reading = np.array([[-2.2, 2], [2.2, 2]])  # errors .2 and 1
    assert_allclose(nrmse_db(reading, truth), [-20, 0], atol=1e-12)
    assert nrmse_db(truth, truth).tolist() == [-np.inf, -np.inf]


def slow_neighbour_readout(estimate, labels, n_folds, k):
    """One frame at a time, by sorted distances."""
    scaled = estimate / estimate.std(axis=0)
    reading = []
    fold = np.arange(len(labels)) * n_folds // len(labels)
    for i in range(len(labels)):
        others = [j for j in range(len(labels)) if fold[j] != fold[i]]
        others.sort(key=lambda j: np.sum((scaled[i] - scaled[j]) ** 2))
        votes = [int(labels[j]) for j in others[:k]]
        reading.append(min(set(votes), key=lambda label: (-votes.count(label), label)))
    return reading


@given(generators(), st.integers(4, 30), st.integers(2, 4), st.integers(1, 40))
def test_neighbour_readout__is_the_slow_vote(rng, n, n_folds, k):
    estimate, labels = rng.normal(size=(n, 2)) * [1.0, 1000.0], rng.integers(0, 3, n)
    expected = slow_neighbour_readout(estimate, labels, n_folds, k)
    assert_array_equal(neighbour_readout(estimate, labels, n_folds, k), expected)


def test_neighbour_readout__constant_column_is_harmless():
    estimate = np.column_stack([[0, 9, 0.1, 9.1], np.full(4, 0.1)])
    assert_array_equal(neighbour_readout(estimate, np.array([5, 7, 5, 7]), 2, 1), [5, 7, 5, 7])


def test_balanced_accuracy__rare_classes_weigh_as_much():
    labels = np.array([0] * 8 + [1] * 2)
    assert balanced_accuracy(np.zeros(10, int), labels) == 0.5
    assert balanced_accuracy(labels, labels) == 1.0
    assert balanced_accuracy(np.array([0, 3, 0]), np.array([0, 0, 2])) == pytest.approx(0.25)


def slow_silhouette(estimate, labels):
    """One frame at a time, as it is defined."""
    scaled = estimate / estimate.std(axis=0)
    widths = []
    for i, label in enumerate(labels):
        distances = {
            other: [np.linalg.norm(scaled[i] - scaled[j]) for j in range(len(labels)) if labels[j] == other and j != i]
            for other in set(labels.tolist())
        }
        own, others = distances.pop(label), [np.mean(values) for values in distances.values()]
        a, b = np.mean(own) if own else 0, min(others)
        widths.append((b - a) / max(a, b) if own else 0.0)
    return widths


@given(generators(), st.integers(6, 30), st.sampled_from([1, 4, 1024]))
def test_silhouette__is_the_slow_one(rng, n, block):
    labels = np.concatenate([[0, 1, 5], rng.integers(0, 3, n - 3)])
    estimate = rng.normal(size=(n, 2)) * [1.0, 1000.0] + labels[:, None]
    assert_allclose(silhouette(estimate, labels, block), slow_silhouette(estimate, labels), atol=1e-9)


def test_silhouette__frames_on_one_point_and_one_class():
    assert_array_equal(silhouette(np.zeros((4, 1)), np.array([0, 0, 1, 1])), np.zeros(4))
    with pytest.raises(ValueError, match="two classes or more; got 1"):
        silhouette(np.zeros((4, 1)), np.zeros(4, int))


@given(generators(), st.integers(2, 30))
def test_threshold_area__counts_pairs(rng, n):
    second = np.concatenate([[True, False], rng.random(n - 2) < 0.5])
    values = rng.integers(0, 5, n).astype(float)
    pairs = [np.sign(b - a) / 2 + 0.5 for a in values[~second] for b in values[second]]
    expected = max(np.mean(pairs), 1 - np.mean(pairs))
    assert threshold_area(values, second) == pytest.approx(expected)
    assert threshold_area(-values, second) == pytest.approx(expected)


def test_threshold_area__needs_both_classes():
    with pytest.raises(ValueError, match="there must be two classes; got one"):
        threshold_area(np.arange(3.0), np.ones(3, bool))
