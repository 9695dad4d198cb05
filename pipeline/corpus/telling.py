"""How far recordings are, told by the workers that compute them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from ..jobs.events import Event, emit, listen

# A worker tells no more often than this, but for stages that end.
_SECONDS = 1.0
_OWN: ContextVar[object] = ContextVar("own", default=None)


@contextmanager
def telling(topic: str) -> Iterator[None]:
    """Pass on what this thread's job tells, from a worker to the client that listens to a topic."""
    if not topic:
        yield
        return
    own, last = object(), [time.monotonic()]
    token = _OWN.set(own)  # other threads of this worker may compute other recordings

    def forward(event: Event) -> None:
        now = time.monotonic()
        if _OWN.get() is not own or (event.seconds == 0 and now < last[0] + _SECONDS):
            return
        last[0] = now
        from distributed import get_worker  # noqa: PLC0415 - there is one here

        with suppress(Exception):  # a recording is not lost for want of news of it
            # As text: a name that is no UTF-8 would end the worker's connection.
            get_worker().log_event(topic, json.dumps(tuple(event)))

    try:
        with listen(forward):
            yield
    finally:
        _OWN.reset(token)


@contextmanager
def hearing(client: Any, topic: str) -> Iterator[None]:
    """Emit here what workers tell on a topic."""
    client.subscribe_topic(topic, lambda told: emit(Event(*json.loads(told[1]))))
    try:
        yield
    finally:
        with suppress(Exception):  # the cluster may be gone
            client.unsubscribe_topic(topic)
