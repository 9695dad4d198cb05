"""Run parts of a graph where the user's session runs them, and say how far they are.

Everything here works alike on a distributed Client and on Dask's local schedulers. A stage keeps what
it made with :func:`persist` and reads numbers back with :func:`compute`.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from uuid import uuid4

import dask
import dask.threaded
from dask.base import get_scheduler
from dask.callbacks import Callback
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from threadpoolctl import threadpool_limits

from manifold_observer.tasks.arrays import aligned

from .client import on_cluster
from .packing import Call, with_places
from .progress import Progress, silent

# Tasks in hand for each thread of a cluster where they are given out in turn: one runs, the next has its frames.
_IN_HAND = 2
# The share of them that is given out at once, where they are many.
_HANDFUL = 8
# Pairs whose second values are brought here together: some ten megabytes, where they are sums past landmarks.
_PAIRS = 1024


def task(function: Callable[..., Any], *arguments: Any, outputs: int | None = None) -> Delayed:
    """One task: a module-level function of blocks (delayed, or read by the task) and plain values, aligned on arrival.

    With ``outputs`` the function gives a tuple of so many, and the task can be unpacked.

    Blocks are handed to Dask side by side, whatever lists they lie in: looking into lists costs Dask
    milliseconds a task, and each pass over the kernel begins with that.
    """
    inputs: list[Any] = []
    call = Call(function, tuple(with_places(argument, inputs) for argument in arguments))
    key = f"{function.__name__}-{uuid4().hex}"
    made: Delayed = dask.delayed(call, traverse=False, pure=False, nout=outputs)(*inputs, dask_key_name=key)
    return made


def in_order_of(number: int) -> AbstractContextManager[Any]:
    """Tasks that are made within are run before those of larger numbers, where a cluster can choose."""
    return dask.annotate(priority=-number)


def persist(items: Sequence[Delayed], stage: str, progress: Progress = silent) -> list[Delayed]:
    """Compute the items and keep the results where they were made.

    Parameters
    ----------
    items
        Delayed values, not nested.
    stage
        Name of the stage, for the progress.
    progress
        Called as parts are done.

    Returns
    -------
    Delayed values that are computed already, or are being computed where nobody watches the progress. On
    a cluster they are futures: a lost worker's are made again from the graph.

    Raises
    ------
    Exception
        Whatever a task raised.
    """
    progress(stage, 0, len(items))
    with _ticking(stage, len(items), {item.key for item in items}, progress):
        kept = _persisted(items)
    if progress is not silent:
        _wait(kept, stage, progress)
    progress(stage, len(items), len(items))
    return kept


def compute(items: Sequence[Any], stage: str = "", progress: Progress = silent) -> list[Any]:
    """Compute the items and bring the results here, in their order.

    Parameters
    ----------
    items
        Delayed values; Dask arrays too, where nobody watches the progress.
    stage
        Name of the stage, for the progress.
    progress
        Called as parts are done.

    Returns
    -------
    The values.

    Raises
    ------
    Exception
        Whatever a task raised.
    """
    if progress is not silent:
        return _fetched(persist(items, stage, progress))
    if on_cluster() or not all(isinstance(item, Delayed) for item in items):
        with large_graphs():
            return [aligned(value) for value in dask.compute(*items)]
    return [aligned(value) for value in _computed_here(items)]


def _persisted(items: Sequence[Delayed]) -> list[Delayed]:
    """Items whose values a cluster keeps, or a local scheduler has computed."""
    if on_cluster():
        with large_graphs():
            return list(dask.persist(*items))
    kept = []
    for item, value in zip(items, _computed_here(items), strict=True):
        rebuild, arguments = item.__dask_postpersist__()
        kept.append(rebuild({item.key: value}, *arguments))
    return kept


def _computed_here(items: Sequence[Delayed]) -> Sequence[Any]:
    """Values by a local scheduler, given the graph as it is: what Dask would do to it takes longer than a small job."""
    if not items:
        return []
    layers: dict[Any, Any] = {}  # each once: items have most of theirs in common
    for item in items:
        graph = item.__dask_graph__()
        layers |= graph.layers if isinstance(graph, HighLevelGraph) else {item.key: graph}
    whole = {key: node for layer in layers.values() for key, node in layer.items()}
    found: Sequence[Any] = get_scheduler(collections=items)(whole, [item.key for item in items])
    return found


def _fetched(kept: Sequence[Delayed]) -> list[Any]:
    """Values that :func:`persist` kept."""
    futures = _futures(kept)
    if len(futures) < len(kept):  # a local scheduler kept the values themselves
        return compute(kept)
    from distributed import default_client  # noqa: PLC0415

    return [aligned(value) for value in default_client().gather(futures)]


def _futures(kept: Sequence[Delayed]) -> list[Any]:
    """Futures of items that a cluster keeps, in their order; none where a local scheduler kept the values.

    A Client may be there and not be used: what Dask's settings name as the scheduler comes first.
    """
    if not kept or not on_cluster():
        return []
    from distributed import futures_of  # noqa: PLC0415

    return [future for item in kept for future in futures_of(item)]


def stream(
    items: Iterable[Delayed], total: int, stage: str, progress: Progress = silent, *, at_once: bool = False
) -> Iterator[Any]:
    """Compute many items that read much, and bring the results here one after the other, in their order.

    A cluster gets a few at a time. Given all of them it would read all frames first: what reads them has
    nothing to wait for, what uses them waits for a word of the scheduler.

    Parameters
    ----------
    items
        Delayed values; they may be made on the way.
    total
        How many.
    stage
        Name of the stage, for the progress.
    progress
        Called as parts are done.
    at_once
        Give all of them out: for tasks that read for themselves and are :func:`~.placing.placed`.

    Yields
    ------
    The values.

    Raises
    ------
    Exception
        Whatever a task raised.
    """
    if not on_cluster():
        yield from compute(list(items), stage, progress)
        return
    done = ((number, aligned(future.result())) for number, _, future in _in_turn(items, at_once))
    yield from _in_order(done, total, stage, progress)


def stream_kept(
    items: Iterable[Delayed], total: int, stage: str, progress: Progress = silent, *, at_once: bool = False
) -> Iterator[tuple[Delayed, Any]]:
    """As :func:`stream`, for tasks that give pairs: the pair, computed and delayed still, and its second value.

    The second values of all pairs of a worker come together: one by one each would cost the scheduler a task more, and
    a question to a worker.
    """
    if on_cluster():
        done = ((number, pair) for number, pair, _ in _in_turn(items, at_once))
        kept = list(_in_order(done, total, stage, progress))
    else:
        kept = persist(list(items), stage, progress)
    for first in range(0, len(kept), _PAIRS):
        pairs = kept[first : first + _PAIRS]
        yield from zip(pairs, _seconds_of(pairs), strict=True)


def _seconds_of(pairs: Sequence[Delayed]) -> list[Any]:
    """Second values of computed pairs: a task for those that one worker holds."""
    together: dict[Any, list[int]] = {}
    for number, holder in enumerate(_holders(pairs)):
        together.setdefault(holder, []).append(number)
    taking = dask.delayed(_seconds, pure=False, traverse=False)
    several = compute([taking(*(pairs[number] for number in own)) for own in together.values()])
    order = itertools.chain.from_iterable(together.values())
    found = dict(zip(order, itertools.chain.from_iterable(map(pickle.loads, several)), strict=True))
    return [found[number] for number in range(len(pairs))]


def _holders(kept: Sequence[Delayed]) -> list[Any]:
    """A worker that holds each of some computed items; one for all where there is no cluster."""
    futures = _futures(kept)
    if not futures:
        return [None] * len(kept)
    from distributed import default_client  # noqa: PLC0415

    holders = default_client().who_has(futures)
    return [next(iter(holders.get(future.key) or ()), None) for future in futures]


def _seconds(*pairs: tuple[Any, Any]) -> bytes:
    """The second value of every pair, in one piece: each of thousands of small arrays would be a frame of its own."""
    return pickle.dumps([second for _, second in pairs], protocol=4)


def _in_order(done: Iterable[tuple[int, Any]], total: int, stage: str, progress: Progress) -> Iterator[Any]:
    """Values in the order of their numbers."""
    progress(stage, 0, total)
    early: dict[int, Any] = {}
    next_one = 0
    for count, (number, value) in enumerate(done, 1):
        early[number] = value
        progress(stage, count, total)
        while next_one in early:
            yield early.pop(next_one)
            next_one += 1


def as_done(items: Iterable[Delayed]) -> Iterator[tuple[int, Any]]:
    """Compute independent items and give each as soon as it is done, with its number.

    Parameters
    ----------
    items
        Delayed values.

    Yields
    ------
    Number of the item, and its value.

    Raises
    ------
    Exception
        Whatever a task raised.
    """
    if not on_cluster():
        for number, item in enumerate(items):
            yield number, compute([item])[0]
        return
    for number, _, future in _in_turn(items):
        yield number, aligned(future.result())


def persist_in_turn(items: Iterable[Delayed]) -> list[Delayed]:
    """As :func:`persist`, for many items that read much: see :func:`stream`."""
    if not on_cluster():
        return persist(list(items), "")
    done = {number: kept for number, kept, _ in _in_turn(items)}
    return [done[number] for number in range(len(done))]


def _in_turn(items: Iterable[Delayed], at_once: bool = False) -> Iterator[tuple[int, Delayed, Any]]:
    """Give a cluster a few items at a time, or all; number, what is kept and its future as they are done."""
    from distributed import as_completed, default_client, futures_of  # noqa: PLC0415

    waiting = enumerate(items)
    in_hand: dict[Any, tuple[int, Delayed]] = {}
    running = as_completed([], raise_errors=False)

    wanted, over = 0, False

    def fill_up() -> None:
        nonlocal wanted, over
        if over or wanted - len(in_hand) < wanted // _HANDFUL:  # of many workers: each graph costs milliseconds
            return
        wanted = _IN_HAND * sum(default_client().nthreads().values())  # asked again: workers come and go
        taken = list(itertools.islice(waiting, None if at_once else max(1, wanted - len(in_hand))))
        over = at_once or not taken
        with large_graphs():
            made = dask.persist(*(item for _, item in taken))
        for (number, _), kept in zip(taken, made, strict=True):
            (future,) = futures_of(kept)
            in_hand[future.key] = number, kept
            running.add(future)

    fill_up()
    for future in running:
        if future.status == "error":
            raise future.exception()
        if future.status == "cancelled":  # the cluster is gone; this says so
            future.result()
        number, made = in_hand.pop(future.key)
        fill_up()
        yield number, made, future


def large_graphs() -> AbstractContextManager[Any]:
    """Vectors travel in the graph on purpose: scattered data would be lost with its worker."""
    if not on_cluster():  # and so no settings of distributed that could be changed
        return nullcontext()
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})


@contextmanager
def _ticking(stage: str, total: int, keys: set[Any], progress: Progress) -> Iterator[None]:
    """Report finished tasks of a local scheduler."""
    done = 0

    def posttask(key: Any, *_: Any) -> None:
        nonlocal done
        if key in keys:
            done += 1
            progress(stage, done, total)

    with Callback(posttask=posttask):
        yield


def one_blas_thread() -> Any:
    """One BLAS thread in this process for the length of a ``with`` block.

    A local scheduler has a thread for every core already; with a cluster on this machine the workers do,
    and BLAS threads that wait for each other's cores are many times slower than one.
    """
    return threadpool_limits(limits=1)


def _wait(kept: Sequence[Delayed], stage: str, progress: Progress) -> None:
    """Wait for what a cluster keeps, reporting each; the first error is raised as it was, and the rest is given up."""
    futures = _futures(kept)
    if not futures:
        return
    from distributed import as_completed  # noqa: PLC0415

    try:
        for done, future in enumerate(as_completed(futures, raise_errors=False), 1):
            if future.status == "error":
                raise future.exception()
            if future.status == "cancelled":  # the cluster is gone; this says so
                future.result()
            progress(stage, done, len(kept))
    except BaseException:
        for future in futures:  # a traceback that somebody keeps would keep them running
            future.release()
        raise
