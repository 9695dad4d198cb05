"""Workers that only wait: they speak the protocol of a scheduler, and instead of multiplying they let the time pass.

Throughout: a *stand-in* takes the place of a task's function; it says how long the task would take (``seconds``) and
gives a value of the right shape that holds no memory. Workers have one thread and one link to the others each;
what they lack of a task's inputs takes the time of both ends' links while an earlier task is "running", and comes in
one piece from each worker that has some of it, as between real ones. Their scheduler, its graph
and what travels between it and them are the real ones, so that they run in a process of their own, whose time is
not the scheduler's.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import os
import pickle
import random
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from distributed.batched import BatchedSend
from distributed.comm import connect, listen
from distributed.protocol import to_serialize
from distributed.versions import get_versions

from manifold_observer.pipeline.graph.slabs import Stored

BANDWIDTH = 1e9
"""Bytes a second that one worker sends or receives, 10 Gbit/s less what protocols take."""
LATENCY = 1e-3
"""Seconds until a request to another worker is answered."""
# Bytes that a worker asks another one for at once, as Dask's configuration has it.
_TOGETHER = 50e6


class Costed(NamedTuple):
    """What a stand-in gives."""

    value: Any
    seconds: float


class Sized(NamedTuple):
    """A value of which only the frames and the bytes matter."""

    n_frames: int
    nbytes: int


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """An array of any size that takes the memory of one number, also when it travels."""
    return np.broadcast_to(np.zeros((), dtype), shape)


class Nowhere(Stored):
    """Frames that nobody will read; of a module, as stored ones are: what is of a script travels in many pieces."""

    def __init__(self, n_frames: int, n_features: int) -> None:
        self.shape, self.dtype, self.grain, self.name = (n_frames, n_features), np.dtype(np.float32), 1, "nowhere"

    def __getitem__(self, key: Any) -> np.ndarray:
        """As many rows as were asked for."""
        return zeros(len(range(self.shape[0])[key[0]]), self.shape[1])


def bytes_of(value: Any) -> int:
    """Bytes that a value stands for."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        return sum(map(bytes_of, value))
    return sys.getsizeof(value)


class Shared:
    """What all simulated workers have in common: values by key, stand-ins, counts."""

    def __init__(self, standins: dict[str, Callable[..., Costed]], hasten: float) -> None:
        self.values: dict[Any, Any] = {}
        self.standins, self.hasten = standins, hasten
        self.sending: dict[str, float] = defaultdict(float)
        self.counts: Counter[str] = Counter()
        self.draw = random.Random(0)

    def run(self, key: Any, spec: Any) -> float:
        """Make a task's value; the seconds that it would take."""
        call = getattr(spec, "func", None)
        name = getattr(getattr(call, "function", None), "__name__", None)
        if name in self.standins:
            call.function = self.standins[name]
        inputs = {dependency: self.values[dependency] for dependency in spec.dependencies}
        made = spec(inputs)
        value, seconds = made if isinstance(made, Costed) else (made, 0.0)
        if isinstance(value, np.ndarray):  # numbers of the client are not kept
            value = zeros(*value.shape, dtype=value.dtype)
        self.values[key] = value
        self.counts["tasks"] += 1
        self.counts["worker_us"] += round(1e6 * seconds)
        return seconds * self.hasten


class Worker:
    """One simulated worker."""

    def __init__(self, number: int, shared: Shared) -> None:
        self.number, self.shared = number, shared
        self.has: set[Any] = set()
        self.waiting: dict[Any, dict[str, Any]] = {}
        self.ready: list[Any] = []
        self.order = itertools.count()
        self.running: Any = None
        self.link_free = 0.0
        self.on_the_way: dict[Any, asyncio.TimerHandle] = {}

    async def start(self, scheduler: str) -> None:
        """Register, and listen to the scheduler from then on."""
        self.loop = asyncio.get_running_loop()
        self.listener = await listen("tcp://127.0.0.1:0", self._serve, deserialize=False)
        self.address = self.listener.contact_address
        comm = await connect(scheduler)
        await comm.write(self._introduction())
        answer = await comm.read()
        if answer["status"] != "OK":
            raise RuntimeError(answer["message"])
        self.stream = BatchedSend(interval="2ms")
        self.stream.start(comm)
        self.tasks = [asyncio.create_task(self._listen(comm)), asyncio.create_task(self._beat(scheduler))]
        self.tasks[0].add_done_callback(_loudly)

    def _introduction(self) -> dict[str, Any]:
        """What a worker says of itself."""
        return {
            "op": "register-worker",
            "reply": False,
            "address": self.address,
            "status": "running",
            "nthreads": 1,
            "name": f"simulated-{self.number}",
            "now": time.time(),
            "resources": {},
            "memory_limit": 2**32,
            "local_directory": "",
            "services": {},
            "nanny": None,
            "pid": self.number,
            "versions": VERSIONS,
            "metrics": self._metrics(),
            "extra": {},
            "stimulus_id": f"worker-connect-{self.number}",
            "server_id": f"simulated-{self.number}",
        }

    def _metrics(self) -> dict[str, Any]:
        """What a heartbeat holds; about as much as a worker's own."""
        transfer = ("incoming_bytes", "incoming_count", "incoming_count_total")
        transfer += ("outgoing_bytes", "outgoing_count", "outgoing_count_total")
        return {
            "task_counts": {"memory": len(self.has)},
            "bandwidth": {"total": BANDWIDTH, "workers": {}, "types": {}},
            "digests_total_since_heartbeat": {},
            "managed_bytes": 0,
            "spilled_bytes": {"memory": 0, "disk": 0},
            "transfer": dict.fromkeys(transfer, 0),
            "event_loop_interval": 0.02,
            "cpu": 100.0,
            "memory": 2**28,
            "time": time.time(),
            "host_net_io": {"read_bps": 0, "write_bps": 0},
            "host_disk_io": {"read_bps": 0, "write_bps": 0},
            "num_fds": 10,
        }

    async def _beat(self, scheduler: str) -> None:
        """Heartbeats, spread over time, as often as the scheduler asks for them."""
        comm, seconds = await connect(scheduler), 1.0
        await asyncio.sleep(seconds * (self.number % 97) / 97)
        while True:
            await comm.write(
                {
                    "op": "heartbeat_worker",
                    "reply": True,
                    "address": self.address,
                    "now": time.time(),
                    "metrics": self._metrics(),
                    "executing": {self.running: 1.0} if self.running else {},
                    "extensions": {},
                }
            )
            seconds = (await comm.read())["heartbeat-interval"]
            self.shared.counts["heartbeats"] += 1
            await asyncio.sleep(seconds)

    async def _serve(self, comm: Any) -> None:
        """Give values to who asks: the client, or the scheduler for it."""
        while True:
            try:
                message = await comm.read()
            except (OSError, asyncio.CancelledError):
                return
            if message["op"] != "get_data":
                await comm.write("OK")
                continue
            data = {key: self.shared.values[key] for key in message["keys"] if key in self.has}
            self.shared.counts["result_bytes"] += sum(map(bytes_of, data.values()))
            await comm.write({"status": "OK", "data": {key: to_serialize(value) for key, value in data.items()}})
            await comm.read()

    async def _listen(self, comm: Any) -> None:
        """What the scheduler says."""
        while True:
            for message in await comm.read():
                op = message.pop("op")
                if op == "compute-task":
                    self._take(message)
                elif op in ("free-keys", "remove-replicas"):
                    self._forget(message["keys"])
                elif op == "steal-request":
                    self._give_up(message)
                elif op == "close":
                    return

    def _take(self, message: dict[str, Any]) -> None:
        """A task: fetch what it needs, one after the other over this worker's link."""
        key = message["key"]
        lacking = [dependency for dependency in message["who_has"] if dependency not in self.has]
        message["lacking"] = set(lacking)
        self.waiting[key] = message
        coming = [dependency for dependency in lacking if dependency not in self.on_the_way]
        while coming:
            peer = self.shared.draw.choice(message["who_has"][coming[0]])
            own, n_bytes = [], 0
            for dependency in coming:
                if peer in message["who_has"][dependency] and n_bytes < _TOGETHER:
                    own.append(dependency)
                    n_bytes += message["nbytes"][dependency]
            self._fetch(peer, own, n_bytes)
            coming = [dependency for dependency in coming if dependency not in self.on_the_way]
        if not lacking:
            self._make_ready(key)

    def _fetch(self, peer: str, keys: list[Any], n_bytes: int) -> None:
        """Receive values from another worker."""
        sending, now = self.shared.sending, self.loop.time() + LATENCY
        seconds = n_bytes / BANDWIDTH * self.shared.hasten
        # Each link is shared by what goes over it: neither waits, unused, for the other.
        self.link_free, sending[peer] = max(now, self.link_free) + seconds, max(now, sending[peer]) + seconds
        there = max(self.link_free, sending[peer])
        self.shared.counts["peer_bytes"] += n_bytes
        self.shared.counts["fetches"] += 1
        self.on_the_way |= dict.fromkeys(keys, self.loop.call_at(there, self._arrived, keys))

    def _arrived(self, keys: list[Any]) -> None:
        """Values are here: the scheduler is told, as workers do."""
        for key in keys:
            del self.on_the_way[key]
            self.has.add(key)
        self.stream.send({"op": "add-keys", "keys": keys, "stimulus_id": f"arrived-{time.time()}"})
        for name, message in list(self.waiting.items()):
            if message["lacking"].intersection(keys):
                message["lacking"].difference_update(keys)
                if not message["lacking"]:
                    self._make_ready(name)

    def _make_ready(self, key: Any) -> None:
        """All inputs are here."""
        heapq.heappush(self.ready, (tuple(self.waiting[key]["priority"]), next(self.order), key))
        self._next()

    def _next(self) -> None:
        """Begin the first task that is ready."""
        while self.running is None and self.ready:
            key = heapq.heappop(self.ready)[2]
            message = self.waiting.pop(key, None)
            if message is not None:
                self._begin(key, message)

    def _begin(self, key: Any, message: dict[str, Any]) -> None:
        """Let the time of a task pass."""
        self.running = key
        spec = message["run_spec"]
        seconds = self.shared.run(key, getattr(spec, "data", spec))
        self.loop.call_later(seconds, self._done, key, message["run_id"], time.time())

    def _done(self, key: Any, run_id: int, started: float) -> None:
        """Say that a task is done."""
        self.running = None
        self.has.add(key)
        self.stream.send(
            {
                "op": "task-finished",
                "status": "OK",
                "key": key,
                "run_id": run_id,
                "nbytes": bytes_of(self.shared.values[key]),
                "type": ARRAY_TYPE,
                "typename": "numpy.ndarray",
                "metadata": {},
                "thread": 1,
                "startstops": [{"action": "compute", "start": started, "stop": time.time()}],
                "stimulus_id": f"task-finished-{time.time()}",
            }
        )
        self._next()

    def _forget(self, keys: list[Any]) -> None:
        """Values and tasks that nobody wants here any more."""
        for key in keys:
            self.has.discard(key)
            self.waiting.pop(key, None)

    def _give_up(self, message: dict[str, Any]) -> None:
        """Another worker is idle: give up a task that has not begun."""
        key = message["key"]
        begun = key not in self.waiting
        state = ("executing" if key == self.running else "memory") if begun else "ready"
        self.waiting.pop(key, None)
        self.stream.send({"op": "steal-response", "key": key, "state": state, "stimulus_id": message["stimulus_id"]})


def _loudly(task: asyncio.Task[None]) -> None:
    """End the process with the error of a worker, which would else be waited for."""
    if not task.cancelled() and (error := task.exception()) is not None:
        traceback.print_exception(error)
        os._exit(1)


ARRAY_TYPE = pickle.dumps(np.ndarray)
VERSIONS = get_versions()


async def serve(scheduler: str, n_workers: int, standins: dict[str, Callable[..., Costed]], hasten: float) -> None:
    """Be so many workers until standard input ends; each line of it is answered with the counts since the last."""
    shared = Shared(standins, hasten)
    workers = [Worker(number, shared) for number in range(n_workers)]
    for first in range(0, n_workers, 20):  # a scheduler answers a backlog of greetings too late
        await asyncio.gather(*(worker.start(scheduler) for worker in workers[first : first + 20]))
    print("up", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(shared.counts), flush=True)
        shared.counts.clear()
