"""Sums in one fixed tree: whoever adds what, the same numbers are added in the same pairs."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from manifold_observer.tasks.engine.treesum import TreeSum, fold, in_pairs
from strategies import generators


def whole(values, level):
    """The sum as the tree defines it, by recursion over halves."""
    if level == 0:
        return values.get(0)
    half = 2 ** (level - 1)
    parts = {k: v for k, v in values.items() if k < half}, {k - half: v for k, v in values.items() if k >= half}
    left, right = (whole(part, level - 1) if part else None for part in parts)
    return right if left is None else left if right is None else left + right


@given(rng=generators(), leaves=st.sets(st.integers(0, 40), min_size=1), level=st.integers(0, 6))
def test_fold__nodes_of_any_level_give_the_same_bits(rng, leaves, level):
    values = {leaf: rng.normal(size=3).astype(np.float32) * 10 ** rng.uniform(-6, 6) for leaf in leaves}
    expected = whole(values, 6)
    total, nodes = TreeSum(), {}
    for leaf in rng.permutation(sorted(leaves)).tolist():
        total.add((0, leaf), values[leaf].copy())
        nodes.setdefault((level, leaf >> level), TreeSum()).add((0, leaf), values[leaf].copy())
    assert_array_equal(total.total(), expected)
    assert_array_equal(fold({node: part.total() for node, part in nodes.items()}), expected)


def test_fold__terms_keep_their_precision_and_are_not_written_to():
    nodes = {(0, k): np.full(2, 0.1, np.float32) for k in range(5)}
    assert fold(nodes).dtype == np.float32
    assert all((values == np.float32(0.1)).all() for values in nodes.values())


def test_fold__nothing_is_none():
    assert fold({}) is None
    assert TreeSum().total() is None


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_treesum__holds_one_array_a_level(n):
    total = TreeSum()
    for leaf in range(n):
        total.add((0, leaf), np.ones(1))
        assert len(total._nodes) <= (leaf + 1).bit_length()
    assert total.total() == n


@given(generators(), st.integers(1, 40), st.sampled_from([2, 4, 8, 64]))
def test_in_pairs__whole_nodes_lead_to_the_bits_of_their_leaves(rng, n, together):
    leaves = list(rng.normal(size=n) * 10.0 ** rng.integers(-9, 9, n))
    nodes = [in_pairs(leaves[k : k + together], operator.add) for k in range(0, n, together)]
    tree = TreeSum()
    for number, leaf in enumerate(leaves):
        tree.add((0, number), np.array([leaf]))
    assert in_pairs(nodes, operator.add) == in_pairs(leaves, operator.add) == tree.total()[0]


def test_in_pairs__keeps_the_order():
    assert in_pairs(map(str, range(11)), operator.add) == "012345678910"
