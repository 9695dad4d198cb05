"""Pieces of a tile that stay in cache while they are worked on."""

from __future__ import annotations

from manifold_observer.tasks.arrays import Array

# Bytes of what is worked on together: one second-level cache.
_SCRATCH_BYTES = 2**20
# Columns of a tile that a transpose is added to at a time.
_COLUMNS = 64


def rows_at_a_time(bytes_per_row: int) -> int:
    """Rows that fit in the scratch space together; at least one.

    Examples
    --------
    >>> rows_at_a_time(2**18)
    4
    """
    return max(1, _SCRATCH_BYTES // max(bytes_per_row, 1))


def add_transposed(tile: Array, other: Array) -> None:
    """Add the transpose of ``other`` (n, m) to a tile (m, n), some columns at a time.

    NumPy walks along the rows of one of the two and jumps from row to row of the other: whole, that costs three
    times as much.
    """
    for first in range(0, len(other), _COLUMNS):
        tile[:, first : first + _COLUMNS] += other[first : first + _COLUMNS].T
