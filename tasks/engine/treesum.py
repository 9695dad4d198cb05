"""Sums whose last digits do not depend on who adds what: terms are leaves of one fixed binary tree.

Throughout: the *node* ``(level, index)`` of the tree stands for the leaves ``index * 2**level`` up to, but not
including, ``(index + 1) * 2**level``. A node is the sum of its two children; one that misses a child is the other.
However the leaves are dealt out among tasks, as long as each task adds up whole nodes, the same numbers are added
in the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from manifold_observer.tasks.arrays import Array

Node = tuple[int, int]
"""Level, and number within the level."""

Term = TypeVar("Term")


def in_pairs(terms: Iterable[Term], add: Callable[[Term, Term], Term]) -> Term:
    """What neighbours add up to, of terms that come in their order: leaves of the tree, or whole nodes of one level.

    Parameters
    ----------
    terms
        At least one.
    add
        Adds a term and the one after it.

    Returns
    -------
    The root; the same bits whether its leaves are given, or what every 2, 4, 8 ... of them add up to.

    Notes
    -----
    Memory: one term a level.

    Examples
    --------
    >>> in_pairs("abcde", "({}{})".format)
    '(((ab)(cd))e)'
    """
    nodes: list[tuple[int, Term]] = []
    for term in terms:
        level, node = 0, term
        while nodes and nodes[-1][0] == level:
            level, node = level + 1, add(nodes.pop()[1], node)
        nodes.append((level, node))
    total = nodes.pop()[1]
    while nodes:
        total = add(nodes.pop()[1], total)
    return total


class TreeSum:
    """A sum of arrays that are added one after the other, in any order.

    Examples
    --------
    >>> import numpy as np
    >>> total = TreeSum()
    >>> for leaf in (2, 0, 1):
    ...     total.add((0, leaf), np.array([10.0**leaf]))
    >>> total.total()
    array([111.])
    """

    def __init__(self) -> None:
        self._nodes: dict[Node, Array] = {}

    def add(self, node: Node, values: Array) -> None:
        """Add the sum over one node; the array is taken over, and may be written to.

        Notes
        -----
        Memory: one array a level, where the leaves come in their order.
        """
        level, index = node
        while (level, index ^ 1) in self._nodes:
            values += self._nodes.pop((level, index ^ 1))
            level, index = level + 1, index >> 1
        self._nodes[level, index] = values

    def total(self) -> Array | None:
        """The sum of what was added, None of nothing."""
        return fold(self._nodes)


def fold(nodes: Mapping[Node, Array]) -> Array | None:
    """The root of the tree from the sums over some of its nodes, none of which lies within another.

    Examples
    --------
    >>> import numpy as np
    >>> fold({(1, 0): np.array([3.0]), (0, 3): np.array([4.0])})
    array([7.])
    """
    left = dict(nodes)
    while len(left) > 1:
        level = min(level for level, _ in left)
        for index in sorted(index for at, index in left if at == level):
            _raise(left, level, index)
    return next(iter(left.values()), None)


def _raise(nodes: dict[Node, Array], level: int, index: int) -> None:
    """Put a node of the lowest level, with its sibling if that is there, in the place of its parent."""
    if (level, index) not in nodes:  # went up with its sibling
        return
    own, other = nodes.pop((level, index)), nodes.pop((level, index ^ 1), None)
    nodes[level + 1, index >> 1] = own if other is None else own + other
