"""Sums whose last digits do not depend on who adds what: terms are leaves of one fixed binary tree.

Throughout: the *node* ``(level, index)`` of the tree stands for the leaves ``index * 2**level`` up to, but not
including, ``(index + 1) * 2**level``. A node is the sum of its two children; one that misses a child is the other.
However the leaves are dealt out among tasks, as long as each task adds up whole nodes, the same numbers are added
in the same pairs.
"""

from __future__ import annotations

from collections.abc import Mapping

from manifold_observer.tasks.arrays import Array

Node = tuple[int, int]
"""Level, and number within the level."""


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
