"""Threads of a session that computes in its own process."""

import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import dask
import dask.array as da
import dask.threaded
import numpy as np
import pytest
from distributed import Client

from manifold_observer.pipeline.graph.threads import n_threads_here, threads_here


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"num_workers": 3}, 3),
        ({"num_workers": 3, "scheduler": "threads"}, 3),
        ({"num_workers": 3, "scheduler": dask.threaded.get}, 3),
        ({"num_workers": 3, "scheduler": "synchronous"}, 1),
        ({"num_workers": 3, "scheduler": dask.get}, 1),
        ({"num_workers": 3, "scheduler": "processes"}, 1),
    ],
)
def test_n_threads_here__are_those_of_dasks_threads(chosen, expected):
    with dask.config.set(chosen):
        assert n_threads_here() == expected


def _told_and_seen():
    """Threads that Dask is said to have, and the most of its tasks that were seen to run at once."""
    told, running, most, lock, enough = n_threads_here(), 0, 0, threading.Lock(), threading.Event()

    def one(block):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if most >= told:
                enough.set()
        enough.wait(5)
        with lock:
            running -= 1
        return block

    da.zeros(2 * told + 8, chunks=1).map_blocks(one, meta=np.empty(0)).compute()
    return told, most


def test_n_threads_here__are_those_of_a_pool_and_of_other_threads_than_the_first():
    found = {}
    with ThreadPool(3) as pool, ThreadPoolExecutor(4) as executor:
        for name, chosen in {"pool": {"pool": pool}, "scheduler": {"scheduler": executor}}.items():
            with dask.config.set(chosen):
                found[name] = _told_and_seen()

    def elsewhere():
        found["thread"] = _told_and_seen()

    aside = threading.Thread(target=elsewhere)
    aside.start()
    aside.join()
    assert found["pool"] == (3, 3)
    assert found["scheduler"] == (4, 4)
    assert found["thread"][0] == found["thread"][1]


def test_threads_here__maps_in_order_and_ends_its_threads():
    before = threading.active_count()
    with dask.config.set(num_workers=2), threads_here() as over:
        assert list(over(pow, range(20), [2] * 20)) == [k * k for k in range(20)]
    assert threading.active_count() == before


def test_threads_here__a_cluster_has_the_cores():
    with dask.config.set(num_workers=3), Client(processes=False, n_workers=1, dashboard_address="127.0.0.1:0"):
        assert n_threads_here() == 1
