"""How many landmarks and exact passes a tolerated residual is expected to take, from the kernel among some frames."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Floats, Integers
from manifold_observer.tasks.engine import expected, forms, projected, scale
from manifold_observer.tasks.engine.expected import Bounds, Expected, Prices, Seen
from manifold_observer.tasks.engine.protocols import Block

from ..graph.compute import compute, persist, task
from .blocks import block_task, part_of
from .config import EmbedConfig
from .cuts import sample_spans
from .decide import choose_home, shape_of
from .eigensolve import WIDTH, wanted_modes
from .memory import Shape, exact_memory, projected_memory
from .problem import Problem

FORETELLING = 2048
"""Frames among which the kernel foretells residuals."""
# The parts of them that are tried as landmarks.
_PARTS = (16, 8, 4)
# Frames of a run, where they are read in runs.
_RUN = 32
# Landmarks at most, where nobody says: their decompositions take minutes on one core.
_MOST = 8192
# Passes whose vectors must fit where passes are to follow.
_LIKELY_PASSES = 8


class Foresight(NamedTuple):
    """What is expected of a way with landmarks, and what that is concluded from."""

    expected: Expected
    seen: tuple[Seen, ...]
    per_pass: float
    prices: Prices
    bounds: Bounds
    numbers: tuple[int, ...]


def foresee(witnessed: Delayed, n_witnessed: int, problem: Problem) -> Foresight:
    """What the kernel among some frames lets expect of all; it computes.

    Parameters
    ----------
    witnessed
        The kernel among frames that are spread in time.
    n_witnessed
        How many.
    problem
        All frames.

    Returns
    -------
    What is expected.

    Raises
    ------
    ValueError
        At this scale no frame differs from another.
    """
    config, n = problem.config, problem.table.n_frames
    wanted = wanted_modes(config, n)
    sizes = sorted({max(n_witnessed // part, min(wanted + 8, n_witnessed)) for part in _PARTS})
    residuals, eigenvalues = compute([task(projected.foresee, witnessed, sizes, wanted, config.alpha)])[0]
    if not len(eigenvalues):
        raise ValueError("embed: no eigenvalue beside the trivial one is above 0. Give another epsilon=.")
    seen = tuple(Seen(m, float(residual)) for m, residual in zip(sizes, residuals, strict=True))
    per_pass = expected.gain(eigenvalues, wanted, max(WIDTH, wanted + 4))
    prices, bounds, numbers = _prices(problem), _bounds(problem), _numbers(problem)
    tolerance = tolerated(config)
    found = expected.expect(seen, tolerance, per_pass, prices, numbers, bounds)
    if found is None:  # the least that can be done
        found = expected.after(seen, numbers[0], 0, per_pass, tolerance, n)
    return Foresight(found, seen, per_pass, prices, bounds, numbers)


def foresee_of_runs(problem: Problem) -> Foresight:
    """As :func:`foresee`, from short runs of frames, which are quickly read; it computes.

    Parameters
    ----------
    problem
        All frames; the distance may be that of some of them.

    Returns
    -------
    What is expected.
    """
    table, distance = problem.table, problem.distance
    spans = sample_spans(table.n_frames, _RUN, FORETELLING)
    made = [task(block_task, distance, part_of(table, span, distance.window), span) for span in spans]
    count = sum(stop - start for start, stop in spans)
    witnessed = persist([task(_among, made, projected.nested(count, count), problem.config)], "landmarks")[0]
    return foresee(witnessed, count, problem)


def _among(made: list[Block], order: Integers, config: EmbedConfig) -> Floats:
    """The kernel among some frames, in another order."""
    block = forms.take(forms.join(made), order)
    named = isinstance(config.epsilon, str)
    epsilon = config.epsilon_factor * scale.median_between([block]) if named else float(config.epsilon)
    return projected.grown(None, [block], max(epsilon, np.finfo(float).tiny))


def in_words(expected: Expected, tolerance: float) -> str:
    """What is expected, as a plan and a log say it.

    Examples
    --------
    >>> in_words(Expected(1024, 0, 6e-4, True), 1e-3)
    'a residual of 0.001 is expected to take 1024 landmarks (about 6.0e-04)'
    >>> in_words(Expected(8192, 0, 6e-4, False), 1e-4)
    'a residual of 0.0001 is not expected to be reached: 8192 landmarks should leave about 6.0e-04'
    """
    passes = "" if not expected.passes else f" and {expected.passes} exact pass{'es' * (expected.passes > 1)}"
    way = f"{expected.landmarks} landmarks{passes}"
    if expected.enough:
        return f"a residual of {tolerance:g} is expected to take {way} (about {expected.residual:.1e})"
    return (
        f"a residual of {tolerance:g} is not expected to be reached: {way} should leave about {expected.residual:.1e}"
    )


def tolerated(config: EmbedConfig) -> float:
    """The residual that is tolerated."""
    if config.residual_tolerance is None:
        raise AssertionError("rounds of landmarks without a residual that is tolerated")
    return config.residual_tolerance


def _shape(problem: Problem) -> Shape:
    """Sizes of the embedding."""
    return shape_of(problem.table.n_frames, problem.distance, problem.config, problem.decision.workers.threads)


def _prices(problem: Problem) -> Prices:
    """What pairs cost, by counting."""
    shape, form = _shape(problem), problem.distance.form
    pair = forms.cost(form, shape.n_axes, shape.distance.rank, shape.window)
    apart = forms.cost_apart(form, shape.n_axes, shape.distance.rank, shape.window, shape.window)
    return Prices(shape.n_frames, float(pair), float(apart), 2.0 * shape.width)


def _bounds(problem: Problem) -> Bounds:
    """The most passes and work: no pass where its vectors do not fit."""
    config, there = problem.config, problem.decision.workers
    home = choose_home(problem.table.n_frames, problem.distance.itemsize, config.home, there)
    fits = exact_memory(_shape(problem), home, _LIKELY_PASSES, there.number).worker <= there.limit
    return Bounds(config.max_passes if fits else 0, config.max_core_hours * 3600 * expected.RATE)


def _numbers(problem: Problem) -> tuple[int, ...]:
    """Landmarks that may be tried: doublings, as many as are allowed, there, and fit."""
    shape, there = _shape(problem), problem.decision.workers
    most = min(problem.config.landmarks or _MOST, shape.n_frames)
    rungs = expected.ladder(expected.LEAST, most)
    fitting = [m for m in rungs if projected_memory(shape, m).worker <= there.limit]
    return tuple(fitting or rungs[:1])
