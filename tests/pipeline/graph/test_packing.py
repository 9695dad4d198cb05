"""What travels with a task: small arguments in one piece, large ones as Dask sends them."""

import operator
import pickle

import numpy as np
import pytest
from distributed.protocol import deserialize, serialize

from manifold_observer.pipeline.graph import compute as graph
from manifold_observer.pipeline.graph.packing import Call


def travelled(call):
    """A call after the way to a worker, and the pieces that it took: the scheduler opens and packs it once more."""
    for _ in range(2):
        header, frames = serialize(call, serializers=("pickle",))
        call = deserialize(header, frames)
    return call, len(frames)


def scaled(arrays, factor):
    for array in arrays:
        np.multiply(array, factor, out=array)  # arguments are the task's own
    return arrays


def test_call__many_small_arrays_are_one_piece():
    arrays = [np.arange(3.0) + k for k in range(60)]
    call, pieces = travelled(Call(scaled, (arrays, 2.0)))
    assert pieces == 1
    assert isinstance(call.arguments, bytes)
    np.testing.assert_array_equal(call(), [2 * (np.arange(3.0) + k) for k in range(60)])


def test_call__large_arrays_are_not_copied_into_it():
    large = np.arange(2.0**16)
    call, pieces = travelled(Call(np.sum, (large,)))
    assert pieces == 2
    assert call() == large.sum()


@pytest.mark.parametrize("function", [operator.neg, lambda x: -x])
def test_task__functions_of_any_kind_come_over(workers_here, function):
    with workers_here(1):
        assert graph.compute([graph.task(apply, function, 3)]) == [-3]


def apply(function, x):
    return function(x)


def test_call__what_cannot_be_pickled_is_told_by_dask():
    with pytest.raises(TypeError, match=r"generator|pickle"):
        pickle.dumps(Call(sum, ((k for k in range(3)),)))
