"""Threads of a session that computes in its own process."""

import threading

import dask
import dask.threaded
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


def test_threads_here__maps_in_order_and_ends_its_threads():
    before = threading.active_count()
    with dask.config.set(num_workers=2), threads_here() as over:
        assert list(over(pow, range(20), [2] * 20)) == [k * k for k in range(20)]
    assert threading.active_count() == before


def test_threads_here__a_cluster_has_the_cores():
    with dask.config.set(num_workers=3), Client(processes=False, n_workers=1, dashboard_address="127.0.0.1:0"):
        assert n_threads_here() == 1
