"""All frames, met by groups of others: what is made for one group is kept for the next where there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Array, Integers
from manifold_observer.tasks.engine import forms, projected
from manifold_observer.tasks.engine.covariance import DegenerateCovarianceError
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.projected import Strips
from manifold_observer.tasks.engine.protocols import Block
from manifold_observer.tasks.engine.slab import narrow

from ..graph.compute import persist, persist_in_turn, task
from ..graph.spans import Span, blocks
from .blocks import Part, block_task, degenerate, make_blocks, part_of, slab_of
from .cuts import gather_rows
from .decide import shape_of
from .memory import strip_bytes
from .problem import Problem

# Share of the workers' memory that blocks and strips may fill together.
_SHARE = 0.5


class Group(NamedTuple):
    """Frames that all others meet: how many, their block on the workers, and their strips where those are kept."""

    number: int
    block: Delayed
    strips: list[Delayed] | None


class Met(NamedTuple):
    """All frames: the problem, and their blocks on the workers, or None where they are made anew for every pass."""

    problem: Problem
    blocks: list[Delayed] | None


def met(problem: Problem) -> Met:
    """All frames; it computes their blocks where those may stay on the workers."""
    fits = _room(problem) >= 0
    made = make_blocks(problem.table, problem.distance, problem.spans, problem.progress) if fits else None
    return Met(problem, made)


def group(frames: Met, numbers: Integers, epsilon: float | None, before: Sequence[Group] = ()) -> Group:
    """Frames as a group, in the order of their numbers as they are given; it computes.

    Parameters
    ----------
    frames
        All frames.
    numbers
        Those of the group, in any order.
    epsilon
        Scale of the strips; None where none are wanted.
    before
        Groups that are kept already.

    Returns
    -------
    The group, with strips where there is room for them beside the others.
    """
    order = np.argsort(numbers, kind="stable")
    parts = _taken(frames, numbers[order]) if frames.blocks is not None else _read(frames.problem, numbers[order])
    block = persist([task(_joined, parts, np.argsort(order))], "landmarks")[0]
    wanted = epsilon is not None and frames.blocks is not None and all(one.strips is not None for one in before)
    fits = _room(frames.problem, len(numbers) + sum(one.number for one in before)) >= 0
    if not (wanted and fits and frames.blocks and epsilon):
        return Group(len(numbers), block, None)
    made = [task(projected.strip, own, block, epsilon) for own in frames.blocks]
    return Group(len(numbers), block, persist(made, "landmarks"))


def over(
    frames: Met, function: Callable[..., Any], groups: Sequence[Group], epsilon: float, rows: int, *others: Any
) -> list[Delayed]:
    """Tasks of a function of the strips of some blocks, ``rows`` frames each, about: the same whatever is kept.

    Parameters
    ----------
    frames
        All frames.
    function
        Of an iterable that gives the strips of a block to every group, and of the others.
    groups
        The groups.
    epsilon
        Scale of the kernel.
    rows
        Frames of a task.
    *others
        More arguments of the function.

    Returns
    -------
    The tasks, in the order of their frames.
    """
    spans = frames.problem.spans
    step = max(1, rows // (spans[0][1] - spans[0][0]))
    runs = [range(first, min(first + step, len(spans))) for first in range(0, len(spans), step)]
    met_blocks = [one.block for one in groups]
    if frames.blocks is None:
        return [_from_frames(frames.problem, function, run, met_blocks, epsilon, *others) for run in runs]
    kept = [one.strips for one in groups if one.strips is not None]
    if len(kept) == len(groups):
        return [task(function, [[strips[k] for strips in kept] for k in run], *others) for run in runs]
    return [task(_on_blocks, function, [frames.blocks[k] for k in run], met_blocks, epsilon, *others) for run in runs]


def _room(problem: Problem, n_met: int = 0) -> int:
    """Bytes that are left to keep things in, below 0 where they do not fit."""
    decision = problem.decision
    shape = shape_of(problem.table.n_frames, problem.distance, problem.config)
    return int(_SHARE * decision.workers.total) - strip_bytes(shape, n_met)


def _from_frames(
    problem: Problem, function: Callable[..., Any], run: range, groups: list[Delayed], epsilon: float, *others: Any
) -> Delayed:
    """One task that makes blocks and strips on its way."""
    spans = problem.spans
    whole = (spans[run[0]][0], spans[run[-1]][1])
    cuts = [(spans[k][0] - whole[0], spans[k][1] - whole[0]) for k in run]
    part = part_of(problem.table, whole, problem.distance.window)
    return task(_on_frames, function, problem.distance, part, whole, cuts, groups, epsilon, *others)


def _taken(frames: Met, chosen: Integers) -> list[Delayed]:
    """Parts of the blocks that are kept."""
    parts = []
    for block, (first, stop) in zip(frames.blocks or (), frames.problem.spans, strict=True):
        within = chosen[(chosen >= first) & (chosen < stop)] - first
        if len(within):
            parts.append(task(forms.take, block, within))
    return parts


def _read(problem: Problem, chosen: Integers) -> list[Delayed]:
    """Blocks of frames that are read for it."""
    table, distance = problem.table, problem.distance
    cut = blocks(table.n_frames, gather_rows(table.n_frames, table.n_features))
    spans = [(span, chosen[(chosen >= span[0]) & (chosen < span[1])]) for span in cut]
    return persist_in_turn(
        task(block_task, distance, part_of(table, span, distance.window, within), span)
        for span, within in spans
        if len(within)
    )


def _joined(parts: list[Block], order: Integers) -> Block:
    """Blocks as one, its frames in another order."""
    return forms.take(forms.join(parts), order)


def _on_blocks(
    function: Callable[..., Any], made: list[Block], groups: list[Block], epsilon: float, *others: Any
) -> Any:
    """A function of strips that are made from blocks."""
    return function(_strips(made, groups, epsilon), *others)


def _on_frames(
    function: Callable[..., Any],
    distance: Distance,
    part: Part,
    whole: Span,
    cuts: list[Span],
    groups: list[Block],
    epsilon: float,
    *others: Any,
) -> Any:
    """A function of strips that are made from frames; a degenerate covariance is told with the frames it belongs to."""
    slab = slab_of(distance.axes, part)
    try:
        made = (distance.block(narrow(slab, first, stop, distance.window)) for first, stop in cuts)
        return function(_strips(made, groups, epsilon), *others)
    except DegenerateCovarianceError as error:
        raise degenerate(error, distance.window, whole) from None


def _strips(made: Iterable[Block], groups: list[Block], epsilon: float) -> Iterator[Strips]:
    """Strips of one block after the other."""
    for block in made:
        strips: list[Array] = [projected.strip(block, other, epsilon) for other in groups]
        yield strips
