"""Spans of frames that stream past the landmarks; where workers are many, a task takes several, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed

from manifold_observer.tasks.engine.covariance import DegenerateCovarianceError
from manifold_observer.tasks.engine.distance import Distance

from ..graph.compute import stream, stream_kept, task
from ..graph.kept import Of
from ..graph.limits import Workers
from ..graph.placing import placed, places
from ..graph.slabs import Later, Reading, source_of
from ..graph.spans import Span
from .blocks import Part, Table, degenerate, part_of, slab_of
from .cuts import spans_together
from .problem import Problem

# Workers from which on all tasks are given out at once: handfuls, each a graph, would be most of what the caller does.
_MANY_WORKERS = 16


class Own(NamedTuple):
    """A span, and what the function takes of it beside its slab."""

    span: Span
    arguments: tuple[Any, ...] = ()


class Piece(NamedTuple):
    """A span within a task: what its slab is made from, and what else the function takes of it."""

    part: Part
    own: Own


def passed(
    function: Callable[..., Any], problem: Problem, spans: list[Own], stage: str, *others: Any, large: bool = False
) -> Iterator[Any]:
    """A function of the slab of every span, in their order.

    Parameters
    ----------
    function
        Called with a slab, the distance, the ``others``, and the span's own arguments.
    problem
        Frames, and how they are embedded.
    spans
        Spans, with their own arguments.
    stage
        Name of the stage, for the progress.
    *others
        What all spans are given.
    large
        What it gives is large: a span a task, and a few at a time, so that no worker holds many of them.

    Yields
    ------
    What it gives.
    """
    tasks = _tasks(_on_spans, function, problem, spans, others, large)
    found = stream(tasks.made, tasks.number, stage, problem.progress, at_once=tasks.at_once)
    yield from itertools.chain.from_iterable(found)


def passed_in_pairs(
    function: Callable[..., tuple[Any, Any]],
    joining: Callable[[Iterable[Any]], Any],
    problem: Problem,
    spans: list[Own],
    stage: str,
    *others: Any,
) -> Iterator[tuple[list[Any], Any]]:
    """As :func:`passed`, of a function that gives pairs, for the spans of one task together.

    Parameters
    ----------
    function, problem, spans, stage, *others
        As :func:`passed` has them.
    joining
        Makes one of the second values of spans that follow each other.

    Yields
    ------
    The first value of each span, which stays on the workers where coordinates do; and what the second ones join to.
    """
    tasks = _tasks(_pairs_on_spans, function, problem, spans, (joining, *others))
    if not problem.decision.lazy:
        yield from stream(tasks.made, tasks.number, stage, problem.progress, at_once=tasks.at_once)
        return
    kept = stream_kept(tasks.made, tasks.number, stage, problem.progress, at_once=tasks.at_once)
    for group, (whole, joined) in zip(tasks.groups, kept, strict=True):
        yield [Of(whole, (0, number)) for number in range(len(group))], joined


class _Tasks(NamedTuple):
    """Tasks of one span or several, the spans of each, and whether they may all be given out at once."""

    made: Iterable[Delayed]
    groups: list[list[Own]]
    at_once: bool

    @property
    def number(self) -> int:
        """How many tasks."""
        return len(self.groups)


def _tasks(
    taking: Callable[..., Any],
    function: Callable[..., Any],
    problem: Problem,
    spans: list[Own],
    others: Any,
    large: bool = False,
) -> _Tasks:
    """Tasks for all spans; where workers are many, neighbouring spans are for the same one."""
    there = problem.decision.workers
    several = 1 if large else spans_a_task(problem.table, len(spans), there)
    groups = [spans[first : first + several] for first in range(0, len(spans), several)]
    made = (task(taking, function, problem.distance, _pieces(problem, group), *others) for group in groups)
    if large or not _reads_itself(problem.table) or _takers(there) < _MANY_WORKERS:
        return _Tasks(made, groups, at_once=False)
    return _Tasks(_placed(made, len(groups)), groups, at_once=True)


def spans_a_task(table: Table, n_spans: int, there: Workers) -> int:
    """How many of the spans of a table one task takes."""
    return spans_together(n_spans, _takers(there)) if _reads_itself(table) else 1


def _takers(there: Workers) -> int:
    """Threads that take a task each; of one worker, which needs no groups, none is counted but the first."""
    return there.number * there.threads if there.number > 1 else 1


def _placed(made: Iterator[Delayed], number: int) -> list[Delayed]:
    """Tasks, each made for a worker."""
    with places():
        found = []
        for k in range(number):
            with placed(k, number):
                found.append(next(made))
    return found


def _reads_itself(table: Table) -> bool:
    """Whether tasks read their frames; what others make for them would all be made, and held, before they begin."""
    given = [table.data] if table.covariance is None else [table.data, table.covariance]
    return all(isinstance(array, np.ndarray) or source_of(array) is not None for array in given)


def _pieces(problem: Problem, group: list[Own]) -> list[Piece]:
    """Spans of one task; where they are several, each is read when its turn comes."""
    parts = [part_of(problem.table, own.span, problem.distance.window) for own in group]
    if len(group) > 1:
        parts = [part._replace(frames=_later(part.frames), covariance=_later(part.covariance)) for part in parts]
    return [Piece(part, own) for part, own in zip(parts, group, strict=True)]


def _later(rows: Any) -> Any:
    """A reading that waits."""
    return Later(rows) if isinstance(rows, Reading) else rows


def _on_spans(function: Callable[..., Any], distance: Distance, pieces: list[Piece], *others: Any) -> list[Any]:
    """A function of the slab of every piece."""
    return [_on_span(function, distance, piece, *others) for piece in pieces]


def _pairs_on_spans(
    function: Callable[..., Any],
    distance: Distance,
    pieces: list[Piece],
    joining: Callable[[Iterable[Any]], Any],
    *others: Any,
) -> tuple[list[Any], Any]:
    """As :func:`_on_spans`, of a function that gives pairs: all their first values, and what the second join to."""
    firsts, seconds = zip(*_on_spans(function, distance, pieces, *others), strict=True)
    return list(firsts), joining(seconds)


def _on_span(function: Callable[..., Any], distance: Distance, piece: Piece, *others: Any) -> Any:
    """A function of one slab; a degenerate covariance is told with the frames it belongs to."""
    try:
        return function(slab_of(distance.axes, piece.part), distance, *others, *piece.own.arguments)
    except DegenerateCovarianceError as error:
        raise degenerate(error, distance.window, piece.own.span) from None
