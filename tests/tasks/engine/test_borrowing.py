"""Borrowed precisions are a weighted mean over all references, in however many blocks they come."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.tasks.engine import borrowing
from manifold_observer.tasks.engine.quadratic import Quadratic, quadratic_block
from strategies import generators, spd


@given(generators(), st.integers(1, 4), st.integers(1, 3))
def test_borrowed__equals_the_plain_sum(rng, p, n_blocks):
    known, new, epsilon = rng.normal(size=(24, p)), rng.normal(size=(7, p)), 3.0
    precision = spd(rng, 24, p, condition=5.0)
    lent = [
        borrowing.lend(
            Quadratic().points(new),
            quadratic_block(known[own], precision[own]),
            borrowing.pack(precision[own]),
            epsilon,
        )
        for own in np.array_split(np.arange(24), n_blocks)
    ]
    apart = new[:, None] - known[None]
    weights = np.exp(-np.einsum("ijp,jpq,ijq->ij", apart, precision, apart) / epsilon)
    expected = np.einsum("ij,jpq->ipq", weights / weights.sum(axis=1, keepdims=True), precision)
    np.testing.assert_allclose(borrowing.borrowed(lent, epsilon, p), expected, rtol=1e-6, atol=1e-9)


def test_borrowed__far_away_the_nearest_reference_lends_its_own():
    known, precision = np.array([[0.0], [1.0]]), np.array([[[2.0]], [[5.0]]])
    block = quadratic_block(known, precision)
    lent = borrowing.lend(Quadratic().points(np.array([[1e4]])), block, borrowing.pack(precision), 1.0)
    np.testing.assert_allclose(borrowing.borrowed([lent], 1.0, 1), [[[2.0]]])  # by its own, smaller, distance


@given(generators(), st.integers(1, 6))
def test_unpack__undoes_pack(rng, p):
    matrices = spd(rng, 3, p)
    np.testing.assert_array_equal(borrowing.unpack(borrowing.pack(matrices), p), matrices)
