"""Vectors that become more, against one array of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.engine.vectors import Vectors

WIDTHS = [20, 20, 20, 3, 1, 70, 20, 64, 1]


def grown(blocks):
    vectors = Vectors(len(blocks[0]))
    for block in blocks:
        vectors = vectors.grown(block)
    return vectors


@pytest.fixture
def blocks():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(30, width)) for width in WIDTHS]


def test_vectors__are_those_of_the_blocks(blocks):
    whole = np.concatenate(blocks, axis=1)
    vectors = grown(blocks)
    assert vectors.shape == whole.shape
    assert_array_equal(vectors, whole)
    for first, stop in [(0, 5), (18, 23), (60, 64), (60, 140), (219, 219), (0, 219)]:
        assert_array_equal(vectors.taken(first, stop), whole[:, first:stop])


def test_vectors__products_are_those_of_the_matrix(blocks):
    rng = np.random.default_rng(1)
    whole = np.concatenate(blocks, axis=1)
    x, weights = rng.normal(size=(30, 4)), rng.normal(size=(sum(WIDTHS), 5))
    assert_allclose(grown(blocks).against(x), whole.T @ x, atol=1e-12)
    assert_allclose(grown(blocks).mixed(weights), whole @ weights, atol=1e-12)


def test_vectors__none_at_all():
    nothing = Vectors(3)
    assert nothing.shape == (3, 0)
    assert nothing.against(np.ones((3, 2))).shape == (0, 2)
    assert_array_equal(nothing.mixed(np.zeros((0, 2))), np.zeros((3, 2)))


def test_vectors__what_was_there_stays_whatever_grows_from_it(blocks):
    early = grown(blocks[:2])
    kept = np.array(early)
    one, other = early.grown(blocks[2]), early.grown(-blocks[2])
    assert_array_equal(early, kept)
    assert_array_equal(one, np.concatenate([kept, blocks[2]], axis=1))
    assert_array_equal(other, np.concatenate([kept, -blocks[2]], axis=1))
    assert_array_equal(early.grown(blocks[3]), np.concatenate([kept, blocks[3]], axis=1))


def test_vectors__growing_moves_nothing(blocks):
    vectors = grown(blocks[:1])
    first = vectors._pieces[0].values
    for block in blocks[1:]:
        vectors = vectors.grown(block)
    assert np.shares_memory(first, vectors._pieces[0].values)
