"""Landmarks with a promise: as many as a residual takes, exact passes where those are cheaper, and a measurement.

A *round* takes landmarks, and judges what comes out by exact rows of a sample. Before the first one the kernel among
some frames foretells how many landmarks it takes. The next round keeps what is there: landmarks, blocks, strips.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Floats, Integers
from manifold_observer.tasks.engine import diffusion, expected, projected, scale
from manifold_observer.tasks.engine.expected import Expected, Seen
from manifold_observer.tasks.engine.kernel import Scale
from manifold_observer.tasks.engine.landmarks import add_up
from manifold_observer.tasks.engine.projected import Carried, Core, Estimate, Rows

from ..graph.compute import compute, persist, stream, task
from ..graph.say import say
from .checkpoint import Checkpoint
from .config import EmbedConfig
from .cuts import link_rows
from .eigensolve import WIDTH, wanted_modes
from .foresight import FORETELLING, Foresight, foresee, in_words, tolerated
from .problem import Problem
from .strips import Group, Met, group, met, over

# Frames among which the median distance is taken, as the exact way takes it.
_MEDIAN_FRAMES = 2048


class Course(NamedTuple):
    """What rounds share, and what the last one left: groups of landmarks, and the kernel among some of them."""

    frames: Met
    scale: Scale
    sample: Integers
    sampled: Group
    landmarks: tuple[Group, ...]
    witnesses: tuple[Delayed, ...]
    witnessed: Delayed
    n_witnessed: int


class Round(NamedTuple):
    """What a round found: eigenvalues, coordinates with row sums and sampled rows, residuals; and its weights."""

    landmarks: int
    eigenvalues: Floats
    carried: Carried
    judged: Estimate
    weights: Delayed


class Outcome(NamedTuple):
    """The last round with all its modes, the rounds that were made, what was expected.

    ``passes``: exact passes that may follow, at most; 0 for none.
    """

    last: Round
    rounds: tuple[Judged, ...]
    passes: int
    foresight: Foresight
    scale: Scale
    sample: int


class Judged(NamedTuple):
    """Landmarks of a round, its largest residual and the bound on it, relative to the largest eigenvalue."""

    landmarks: int
    residual: float
    bound: float


def approach(problem: Problem, checkpoint: Checkpoint) -> Outcome:
    """Take landmarks until the residual is within the tolerance, or what is left is for exact passes; it computes.

    Parameters
    ----------
    problem
        Frames, and how they are embedded, with a residual that is tolerated.
    checkpoint
        Where rounds are kept; those that are kept there already are not made again.

    Returns
    -------
    What came of it.
    """
    course = _begin(problem)
    foresight = foresee(course.witnessed, course.n_witnessed, problem)
    say(f"embed: {in_words(foresight.expected, tolerated(problem.config))}.")
    rounds, last = _kept(checkpoint), None
    while step := _next(foresight, rounds, tolerated(problem.config)):
        course, last = _round(course, step.landmarks, problem, step.passes > 0)
        rounds = (*rounds, _judged(last))
        checkpoint.keep_rounds([tuple(one) for one in rounds])
        say(f"embed: {_reached(rounds[-1])}.")
    if last is None:  # an earlier run made them
        course, last = _round(course, rounds[-1].landmarks, problem, False)
    passes = _passes(foresight, rounds, problem.config)
    if passes:
        last = _with_all_modes(course, last, problem)
    return Outcome(last, rounds, passes, foresight, course.scale, len(course.sample))


def _begin(problem: Problem) -> Course:
    """Frames, scale, sample, and the kernel among the first landmarks."""
    n, config = problem.table.n_frames, problem.config
    frames = met(problem)
    how = _scale(frames, config)
    sample = projected.spread_sample(n, expected.SAMPLE, config.seed)
    sampled = group(frames, sample, how.epsilon)
    count = min(FORETELLING, n)
    first = group(frames, projected.nested(n, count), None)
    witnessed = persist([task(projected.grown, None, [first.block], how.epsilon)], "landmarks")[0]
    return Course(frames, how, sample, sampled, (), (first.block,), witnessed, count)


def _scale(frames: Met, config: EmbedConfig) -> Scale:
    """Scale of the kernel: a number, or the median of the frames among which the exact way takes it."""
    if not isinstance(config.epsilon, str):
        return Scale(float(config.epsilon))
    n = frames.problem.table.n_frames
    drawn = np.sort(np.random.default_rng(config.seed).choice(n, min(_MEDIAN_FRAMES, n), replace=False))
    median = compute([task(scale.median_between, [group(frames, drawn, None).block])])[0]
    if not median > 0:
        raise ValueError(
            "embed: the median distance between frames is 0, so that it cannot be the scale: most frames are "
            "equal. Give a number as epsilon=."
        )
    return Scale(config.epsilon_factor * median)


def _round(course: Course, m: int, problem: Problem, passes_follow: bool) -> tuple[Course, Round]:
    """Take m landmarks, and judge what comes out."""
    n, p, config = problem.table.n_frames, problem.table.n_features, problem.config
    course = _with_landmarks(course, m)
    known = persist([task(_core, course.witnessed, min(2 * m, n), m)], "landmarks")[0]
    rows = _rows(course, known, problem)
    links = _sum(course, projected.link_sums, problem, link_rows(n, p), "links", rows)
    wanted = wanted_modes(config, n)
    found, weights = persist(
        list(task(projected.modes, known, links, rows, max(WIDTH, wanted), outputs=2)), "landmarks"
    )
    eigenvalues = compute([found])[0][:wanted]
    if not len(eigenvalues) or eigenvalues[0] <= diffusion.SMALLEST_EIGENVALUE:
        raise ValueError("embed: no eigenvalue beside the trivial one is above 0. Give another epsilon=.")
    few = task(projected.leading, weights, len(eigenvalues))
    carried = _carried(course, problem, few, "near" if passes_follow else "landmarks")
    judged = projected.estimate(carried, course.sample, eigenvalues, config.alpha)
    return course, Round(m, eigenvalues, carried, judged, weights)


def _with_landmarks(course: Course, m: int) -> Course:
    """The course with m landmarks and twice as many witnesses; what was there stays."""
    n, epsilon = course.frames.problem.table.n_frames, course.scale.epsilon
    order = projected.nested(n, min(2 * m, n))
    there = sum(one.number for one in course.landmarks)
    if m > there:
        more = group(course.frames, order[there:m], epsilon, (course.sampled, *course.landmarks))
        course = course._replace(landmarks=(*course.landmarks, more))
    if len(order) > course.n_witnessed:
        witness = group(course.frames, order[course.n_witnessed :], None).block
        blocks = (*course.witnesses, witness)
        witnessed = persist([task(projected.grown, course.witnessed, list(blocks), epsilon)], "landmarks")[0]
        course = course._replace(witnesses=blocks, witnessed=witnessed, n_witnessed=len(order))
    return course


def _rows(course: Course, known: Delayed, problem: Problem) -> Rows:
    """What gives sums over the rows of the kernel: a pass over the strips, two where the density counts."""
    rows, alpha = link_rows(problem.table.n_frames, problem.table.n_features), problem.config.alpha
    columns = _sum(course, projected.column_sums, problem, rows, "sums")
    degrees = compute([task(projected.row_weights, known, columns)])[0]
    if not alpha:
        return Rows(degrees, degrees, alpha)
    columns = _sum(course, projected.weighted_sums, problem, rows, "sums", degrees, alpha)
    return Rows(degrees, compute([task(projected.row_weights, known, columns)])[0], alpha)


def _sum(course: Course, function: Any, problem: Problem, rows: int, stage: str, *others: Any) -> Floats:
    """Sum over all frames of what a function makes of their strips, in the order of the frames."""
    made = over(course.frames, function, course.landmarks, course.scale.epsilon, rows, *others)
    return add_up(stream(made, len(made), stage, problem.progress))


def _carried(course: Course, problem: Problem, weights: Delayed, stage: str) -> Carried:
    """Coordinates of all frames, and the sampled rows of the kernel."""
    groups = (course.sampled, *course.landmarks)
    made = over(course.frames, projected.carry_over, groups, course.scale.epsilon, 1, weights)
    return projected.together(list(stream(made, len(made), stage, problem.progress)))


def _with_all_modes(course: Course, last: Round, problem: Problem) -> Round:
    """As many coordinates as an exact pass has vectors."""
    return last._replace(carried=_carried(course, problem, last.weights, "near"))


def _core(witnessed: Floats, count: int, m: int) -> Core:
    """The core from the first witnesses."""
    return projected.core(witnessed[:count, :count], m)


def _reached(one: Judged) -> str:
    """What a round left, in words."""
    return f"{one.landmarks} landmarks leave a residual of {one.residual:.1e}, at most {one.bound:.1e}"


def _judged(last: Round) -> Judged:
    """The numbers of a round."""
    largest = float(last.eigenvalues[0])
    return Judged(
        last.landmarks, float(last.judged.residuals.max()) / largest, float(last.judged.bounds.max()) / largest
    )


def _kept(checkpoint: Checkpoint) -> tuple[Judged, ...]:
    """Rounds of an earlier run."""
    return tuple(Judged(int(m), float(residual), float(bound)) for m, residual, bound in checkpoint.rounds())


def _next(foresight: Foresight, rounds: tuple[Judged, ...], tolerance: float) -> Expected | None:
    """The next round, None where no more landmarks are to be taken."""
    if not rounds:
        return foresight.expected
    found = _further(foresight, rounds, tolerance)
    return found if found is not None and found.landmarks > rounds[-1].landmarks else None


def _passes(foresight: Foresight, rounds: tuple[Judged, ...], config: EmbedConfig) -> int:
    """Exact passes that may follow the last round: none where it is enough, else as many as can be paid."""
    found = _further(foresight, rounds, tolerated(config))
    if not config.refine and (found is None or not found.passes):
        return 0
    paid = int((foresight.bounds.work - _spent(foresight, rounds)) // foresight.prices.of_passes(1))
    return max(config.refine, min(foresight.bounds.passes, paid), 1)


def _further(foresight: Foresight, rounds: tuple[Judged, ...], tolerance: float) -> Expected | None:
    """What is to be done after some rounds, None where they are enough or nothing more can be paid."""
    last = rounds[-1]
    if last.bound <= tolerance:
        return None
    work = foresight.bounds.work - _spent(foresight, rounds)
    numbers = [m for m in foresight.numbers if m >= 2 * last.landmarks or m == foresight.numbers[-1] > last.landmarks]
    return expected.expect(
        _seen(foresight, rounds),
        tolerance,
        foresight.per_pass,
        foresight.prices,
        [last.landmarks, *numbers],
        foresight.bounds._replace(work=work, done=last.landmarks),
    )


def _spent(foresight: Foresight, rounds: tuple[Judged, ...]) -> float:
    """Multiplications of the rounds."""
    return sum(foresight.prices.of_landmarks(one.landmarks) for one in rounds)


def _seen(foresight: Foresight, rounds: tuple[Judged, ...]) -> list[Seen]:
    """Residuals of the rounds; a single one falls on as it was foreseen."""
    seen = [Seen(one.landmarks, one.residual) for one in rounds]
    if len(seen) > 1:
        return seen
    last = seen[0]
    here, half = (expected.through(foresight.seen, m) for m in (last.landmarks, max(last.landmarks // 2, 1)))
    return [Seen(last.landmarks // 2, last.residual * half / max(here, 1e-300)), last]
