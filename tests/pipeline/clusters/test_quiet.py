"""Heartbeats of many workers: what a scheduler that is started here asks for."""

import asyncio

import pytest
from distributed import Worker

from manifold_observer.pipeline.clusters import quiet


@pytest.mark.parametrize("n_workers", [1, 10, 64, 199, 1000, 5000])
def test_beat__at_most_25_a_second_as_long_as_nobody_is_silent_for_half_a_minute(n_workers):
    seconds = quiet.beat(n_workers, 0.5)
    assert n_workers / seconds <= 25 or seconds == 30
    assert 0.5 <= seconds <= 30


def test_scheduler__answers_when_the_next_heartbeat_is_wanted(monkeypatch):
    monkeypatch.setattr(quiet, "_RATE", 0.25)

    async def asked():
        options = {"dashboard_address": "127.0.0.1:0", "dashboard": False, "port": 0}
        async with (
            quiet.QuietScheduler(host="127.0.0.1", **options) as scheduler,
            Worker(scheduler.address, nthreads=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as worker,
        ):
            await worker.heartbeat()
            return worker.periodic_callbacks["heartbeat"].callback_time

    assert asyncio.run(asked()) == 4000
