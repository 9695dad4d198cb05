"""Arrays lie in memory as NumPy makes them, wherever they came from."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from manifold_observer.tasks.arrays import aligned
from strategies import misaligned


class Pair(NamedTuple):
    array: np.ndarray
    number: int


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128"])
def test_aligned__keeps_values_and_layout(order, dtype):
    values = np.arange(12).reshape(3, 4).astype(dtype, order=order)
    shifted = misaligned(values)
    assert not shifted.flags.aligned
    found = aligned(shifted)
    assert found.flags.aligned
    assert found.flags[f"{order}_CONTIGUOUS"]
    assert_array_equal(found, values)


def test_aligned__looks_into_lists_and_tuples_and_leaves_the_rest_alone():
    shifted = misaligned(np.arange(3.0))
    nested = [Pair(shifted, 1), (shifted, "text"), None]
    found = aligned(nested)
    assert isinstance(found[0], Pair)
    assert found[0].array.flags.aligned
    assert found[1][0].flags.aligned
    assert found[1][1] == "text"
    assert found[2] is None
    whole = [Pair(np.arange(3.0), 1), ("text",)]
    assert aligned(whole) is whole
