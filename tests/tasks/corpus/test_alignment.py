"""New coordinates in the order and with the signs of earlier ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.tasks.corpus.alignment import alignment, explained
from strategies import generators


@given(generators(), st.integers(1, 6), st.integers(0, 3))
def test_alignment__finds_any_order_and_signs(rng, k, more):
    earlier = rng.normal(size=(200, k))
    order = rng.permutation(k + more)
    new = np.hstack([earlier * rng.choice([-1.0, 1.0], k), rng.normal(size=(200, more))])[:, order]
    new = 3 * new + 0.1 * rng.normal(size=new.shape) + 5
    found = alignment(earlier, new)
    turned = found.apply(new)
    for place in range(k):
        r = np.corrcoef(earlier[:, place], turned[:, place])[0, 1]
        assert r > 0.9
        np.testing.assert_allclose(found.correlations[place], r)
    assert np.isnan(found.correlations[k:]).all()
    assert sorted(found.order.tolist()) == list(range(k + more))


def test_alignment__of_fewer_coordinates_keeps_those_that_there_are():
    earlier = np.random.default_rng(0).normal(size=(100, 3))
    found = alignment(earlier, -earlier[:, [2, 0]])
    np.testing.assert_allclose(found.apply(-earlier[:, [2, 0]]), earlier[:, [0, 2]])


def test_alignment__what_resembles_nothing_stays_where_it_is():
    rng = np.random.default_rng(1)
    found = alignment(rng.normal(size=(5000, 4)), rng.normal(size=(5000, 4)))
    assert found.order.tolist() == [0, 1, 2, 3]


@given(generators(), st.integers(1, 5))
def test_explained__whatever_the_turn(rng, k):
    earlier = rng.normal(size=(100, k))
    np.testing.assert_allclose(explained(earlier, earlier @ rng.normal(size=(k, k)) + 1), 1, atol=1e-6)
    assert explained(earlier, rng.normal(size=(100, 1))) < 0.5
