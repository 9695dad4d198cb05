"""Stages run on whatever scheduler there is, and say how far they are."""

import subprocess
import sys

import dask
import numpy as np
import pytest

from manifold_observer.pipeline import graph
from strategies import misaligned


def double(x):
    return 2 * x


def fail(x):
    raise ValueError(f"no {x}")


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_compute__gives_values_in_their_order(scheduler):
    seen = []
    with dask.config.set(scheduler=scheduler):
        values = graph.compute([graph.task(double, k) for k in range(5)], "mine", lambda *step: seen.append(step))
    assert values == [0, 2, 4, 6, 8]
    assert seen[-1] == ("mine", 5, 5)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_persist__keeps_values_and_counts_them(scheduler):
    seen = []
    with dask.config.set(scheduler=scheduler):
        items = [graph.task(double, graph.task(double, k)) for k in range(4)]
        kept = graph.persist(items, "mine", lambda *step: seen.append(step))
    assert [len(item.dask) for item in kept] == [1, 1, 1, 1]
    assert graph.compute(kept) == [0, 4, 8, 12]
    assert seen[0] == ("mine", 0, 4)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert {total for _, _, total in seen} == {4}
    assert seen[-1] == ("mine", 4, 4)


def is_aligned(array):
    return array.flags.aligned


def test_task_and_compute__arrays_arrive_aligned_wherever_they_come_from():
    # As after a journey between workers: sums of such arrays round in another order.
    shifted = misaligned(np.arange(5.0))
    with dask.config.set(scheduler="synchronous"):
        assert graph.compute([graph.task(is_aligned, shifted)]) == [True]
        (found,) = graph.compute([dask.delayed(misaligned)(np.arange(5.0))])
    assert found.flags.aligned


def test_task__is_known_by_the_name_of_its_function():
    assert graph.task(double, 1).key.startswith("double-")


@pytest.mark.parametrize("run", [graph.compute, lambda items: graph.persist(items, "mine")])
def test_errors__are_raised_as_they_were(run):
    with dask.config.set(scheduler="threads"), pytest.raises(ValueError, match="no 3"):
        run([graph.task(fail, 3)])


FIRST = """
import dask, sys
from manifold_observer.pipeline import graph
assert "distributed" not in sys.modules
for k in range(2):
    assert graph.compute([graph.task(abs, -k)]) == [k]
dask.config.get("distributed.comm.timeouts.connect")
"""


def test_compute__works_before_anybody_imported_distributed():
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
