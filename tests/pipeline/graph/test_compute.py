"""Stages run on whatever scheduler there is, and say how far they are."""

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import dask
import dask.array as da
import dask.threaded
import numpy as np
import pytest
from dask.highlevelgraph import MaterializedLayer
from distributed import Client, LocalCluster, default_client

from manifold_observer.pipeline.graph import compute as graph
from manifold_observer.pipeline.graph.client import on_cluster
from manifold_observer.pipeline.graph.kept import Of, array_of
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
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert (seen[0], seen[-1]) == (("mine", 0, 5), ("mine", 5, 5))


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


def both(x):
    return x, -x


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes", ThreadPoolExecutor(2)])
def test_compute__every_scheduler_here_takes_the_same_items(scheduler):
    one = graph.task(double, 3)
    items = [one, graph.task(double, one), one, dask.delayed(double)(1), da.arange(4, chunks=2).to_delayed()[1]]
    with dask.config.set(scheduler=scheduler):
        *numbers, block = graph.compute(items)
        kept = graph.persist(items[:2], "mine")
    assert numbers == [6, 12, 6, 2]
    assert block.tolist() == [2, 3]
    assert graph.compute([]) == []
    with dask.config.set(scheduler="synchronous"):
        assert graph.compute(kept) == [6, 12]


def test_persist__what_has_several_outputs_can_be_unpacked():
    with dask.config.set(scheduler="synchronous"):
        (kept,) = graph.persist([graph.task(both, 3, outputs=2)], "mine")
        assert graph.compute(list(kept)) == [3, -3]


def test_compute__a_layer_that_items_share_is_looked_through_once(monkeypatch):
    items = [graph.task(double, 1)]
    for _ in range(30):
        items.append(graph.task(double, items[-1]))
    seen, counted = [], MaterializedLayer.items
    monkeypatch.setattr(MaterializedLayer, "items", lambda layer: seen.append(layer) or counted(layer))
    with dask.config.set(scheduler="synchronous"):
        assert graph.compute(items)[-1] == 2**31
    assert len(seen) == 31


def is_aligned(array):
    return array.flags.aligned


def test_task_and_compute__arrays_arrive_aligned_wherever_they_come_from():
    # As after a journey between workers: sums of such arrays round in another order.
    shifted = misaligned(np.arange(5.0))
    with dask.config.set(scheduler="synchronous"):
        assert graph.compute([graph.task(is_aligned, shifted)]) == [True]
        (found,) = graph.compute([dask.delayed(misaligned)(np.arange(5.0))])
    assert found.flags.aligned


class Pair(NamedTuple):
    left: object
    right: object


def flat(value):
    """Numbers of nested lists and tuples, with the types around them."""
    if isinstance(value, list | tuple):
        return type(value).__name__, [flat(part) for part in value]
    return value


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_task__finds_what_is_delayed_in_lists_and_tuples(scheduler):
    one, two, three = (graph.task(double, k) for k in (0.5, 1, 1.5))
    given = [one, (two, Pair([three], "x")), [], 4], Pair(one, (one,))
    with dask.config.set(scheduler=scheduler):
        (found,) = graph.compute([graph.task(flat, *given[:1])])
        (pair,) = graph.compute([graph.task(flat, given[1])])
    assert found == flat([1.0, (2, Pair([3.0], "x")), [], 4])
    assert pair == flat(Pair(1.0, (1.0,)))


def test_task__takes_parts_of_arrays_and_gives_several_values():
    lazy = da.arange(6, chunks=3)
    with dask.config.set(scheduler="synchronous"):
        low, high = graph.task(divmod, graph.task(np.sum, lazy), 4, outputs=2)
        assert graph.compute([low, high]) == [3, 3]


RAN = []


def note(number):
    RAN.append(number)


def test_in_order_of__small_numbers_are_run_first():
    RAN.clear()
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
        items = []
        for number in (3, 0, 4, 1, 2):
            with graph.in_order_of(number):
                items.append(graph.task(note, number))
        graph.compute(items)
    assert RAN == [0, 1, 2, 3, 4]


def test_task__is_known_by_the_name_of_its_function():
    assert graph.task(double, 1).key.startswith("double-")


@pytest.mark.parametrize("run", [graph.compute, lambda items: graph.persist(items, "mine")])
def test_errors__are_raised_as_they_were(run):
    with dask.config.set(scheduler="threads"), pytest.raises(ValueError, match="no 3"):
        run([graph.task(fail, 3)])


# --------------------------------------------------------------------------------------- on a cluster, in turn


@pytest.fixture(scope="module")
def two_threads():
    """A cluster of two threads in this process."""
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
        yield


def counted(count, made):
    """Items that are made on the way, and how many were."""
    for k in range(count):
        made.append(k)
        yield graph.task(double, k)


def test_stream__gives_values_in_their_order_without_a_cluster():
    seen, made = [], []
    with dask.config.set(scheduler="threads"):
        values = list(graph.stream(counted(5, made), 5, "mine", lambda *step: seen.append(step)))
    assert values == [0, 2, 4, 6, 8]
    assert seen[0] == ("mine", 0, 5)
    assert seen[-1] == ("mine", 5, 5)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("scheduler", [None, "threads", "synchronous"])
def test_compute__watched_or_not_gives_the_same(scheduler):
    # A Client is there; what the settings name comes first all the same.
    items = [graph.task(double, graph.task(double, k)) for k in range(7)]
    seen = []
    with dask.config.set({} if scheduler is None else {"scheduler": scheduler}):
        watched = graph.compute(items, "mine", lambda *step: seen.append(step))
        assert watched == graph.compute(items) == [4 * k for k in range(7)]
        assert list(graph.compute([], "mine", lambda *_: None)) == []
    assert set(seen) == {("mine", done, 7) for done in range(8)}


@pytest.mark.usefixtures("two_threads")
def test_compute__what_is_left_after_an_error_is_given_up():
    items = [graph.task(fail if k == 3 else double, k) for k in range(60)]
    with pytest.raises(ValueError, match="no 3") as kept:  # as a notebook keeps the last traceback
        graph.compute(items, "mine", lambda *_: None)
    default_client().sync(asyncio.sleep, 0)  # what was asked of the client's loop before is done
    assert kept.tb is not None
    assert not {item.key for item in items} & set(default_client().futures)


@pytest.mark.usefixtures("two_threads")
def test_stream__a_cluster_has_a_few_at_a_time():
    seen, made = [], []
    for done, value in enumerate(graph.stream(counted(40, made), 40, "mine", lambda *step: seen.append(step))):
        assert value == 2 * done
        finished = seen[-1][1]
        assert len(made) <= finished + 2 * graph._IN_HAND
    assert seen == [("mine", done, 40) for done in range(41)]


@pytest.mark.usefixtures("two_threads")
def test_persist_in_turn__keeps_values_in_their_order():
    kept = graph.persist_in_turn(counted(9, []))
    assert [len(item.dask) for item in kept] == [1] * 9
    assert graph.compute(kept) == [2 * k for k in range(9)]


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("run", [lambda items: list(graph.stream(items, 2, "mine")), graph.persist_in_turn])
def test_in_turn__errors_are_raised_as_they_were(run):
    with pytest.raises(ValueError, match="no 3"):
        run([graph.task(double, 1), graph.task(fail, 3)])


@pytest.mark.usefixtures("two_threads")
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("scheduler", ["synchronous", "threads", dask.threaded.get])
def test_stream__a_scheduler_that_was_chosen_outranks_the_client(scheduler):
    with dask.config.set(scheduler=scheduler):
        assert not on_cluster()
        assert list(graph.stream([graph.task(double, k) for k in range(3)], 3, "mine")) == [0, 2, 4]
        assert [kept.compute() for kept in graph.persist_in_turn([graph.task(double, 4)])] == [8]


@pytest.mark.usefixtures("two_threads")
def test_on_cluster__whoever_names_the_client_or_dask_distributed_computes_there():
    client = default_client()
    for scheduler in ("distributed", "dask.distributed", client, client.get):
        with dask.config.set(scheduler=scheduler):
            assert on_cluster()


def test_in_turn__nothing_is_nothing():
    assert list(graph.stream([], 0, "mine")) == []
    assert graph.persist_in_turn([]) == []


def die_once(k, folder):
    """The fifth item takes its worker with it, the first time."""
    mark = os.path.join(folder, "died")
    if k == 5 and not os.path.exists(mark):
        open(mark, "w").close()
        os._exit(1)
    return 2 * k


@pytest.mark.slow
def test_stream__a_worker_that_dies_changes_nothing(tmp_path):
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster),
    ):
        items = [graph.task(die_once, k, str(tmp_path)) for k in range(12)]
        assert list(graph.stream(items, 12, "mine")) == [2 * k for k in range(12)]
    assert (tmp_path / "died").exists()


FIRST = """
import dask, sys
from manifold_observer.pipeline.graph import compute as graph
from manifold_observer.pipeline.graph.client import on_cluster
from manifold_observer.pipeline.graph.kept import Of, array_of
assert "distributed" not in sys.modules
for k in range(2):
    assert graph.compute([graph.task(abs, -k)]) == [k]
dask.config.get("distributed.comm.timeouts.connect")
"""


@pytest.mark.slow
def test_compute__works_before_anybody_imported_distributed():
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def pair(k):
    return [k, k + 1], -k


@pytest.mark.parametrize("at_once", [False, True])
def test_stream_kept__second_values_come_here_in_order_by_a_task_a_worker(workers_here, at_once, monkeypatch):
    monkeypatch.setattr(graph, "_PAIRS", 6)
    asked, computing = [], graph.compute
    monkeypatch.setattr(graph, "compute", lambda items: asked.append(len(items)) or computing(items))
    with workers_here(2):
        made = (graph.task(pair, k) for k in range(11))
        kept, seconds = zip(*graph.stream_kept(made, 11, "mine", at_once=at_once), strict=True)
        array = array_of([Of(whole, (0, 1)) for whole in kept], [1] * 11, None, np.atleast_1d, dtype=np.int64)
        assert array.compute().tolist() == list(range(1, 12))
    assert seconds == tuple(-k for k in range(11))
    assert len(asked) == 2
    assert max(asked) <= 2


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_stream_kept__gives_the_same_without_a_cluster(scheduler):
    with dask.config.set(scheduler=scheduler):
        found = list(graph.stream_kept((graph.task(pair, k) for k in range(3)), 3, "mine"))
        assert [second for _, second in found] == [0, -1, -2]
        assert graph.compute([whole for whole, _ in found]) == [([k, k + 1], -k) for k in range(3)]
