"""The two ways to the coordinates: over all pairs of frames, or through landmarks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from manifold_observer.tasks.engine.kernel import Scale

from ..graph.compute import compute, persist
from ..graph.progress import Progress
from ..graph.threads import threads_here
from .blocks import make_blocks
from .checkpoint import Checkpoint
from .config import Attrs
from .cuts import EXACT_MEDIAN_FRAMES
from .decide import choose_home, tolerance_of
from .eigensolve import NARROW, WIDTH, Solved, Warm, solve, wanted_modes
from .landmarks import embed_landmarks, near
from .problem import Found, Problem
from .promise import through, told
from .rounds import approach
from .scales import Distances, find_scale
from .tiledisk import require_space, tiles_bytes
from .tiling import (
    MatMat,
    Tiling,
    disk_product,
    distance_panels,
    local_product,
    recomputed_product,
    resident_product,
    tiling,
)


def find_modes(problem: Problem, checkpoint: Checkpoint) -> Found:
    """Eigenpairs by the method that was decided."""
    if problem.decision.home == "disk":  # before anything is computed
        require_space(tiles_bytes(problem.spans, problem.distance.itemsize), checkpoint.folder)
    return (
        exactly(problem, checkpoint) if problem.decision.method == "exact" else through_landmarks(problem, checkpoint)
    )


def exactly(problem: Problem, checkpoint: Checkpoint) -> Found:
    """Eigenpairs of the whole kernel, to the residual that the options say."""
    config, home, n = problem.config, problem.decision.home, problem.table.n_frames
    if home == "local":  # a matter of seconds
        checkpoint = Checkpoint(None, {})
    tiles, distances = _tiles(problem)
    scale, attrs = find_scale(tiles, distances or distance_panels(tiles), config, problem.progress)
    tolerance = tolerance_of(home, problem.distance.precision, config)
    warm = None
    if home != "local" and scale.local is None and not checkpoint.begun:
        n_near = max(WIDTH, wanted_modes(config, n))
        warm = near(tiles.blocks, tiles.spans, scale, config.alpha, n_near, problem.progress)
    with _product(home, tiles, distances, scale, checkpoint, problem.progress) as matmat:
        del distances
        width = NARROW if home == "local" else WIDTH
        solved = solve(
            matmat, n, config, problem.progress, tolerance=tolerance, checkpoint=checkpoint, warm=warm, width=width
        )
    return _found(solved, scale, attrs | {"method": "exact", "home": home, "tile": _side(tiles)})


def through_landmarks(problem: Problem, checkpoint: Checkpoint) -> Found:
    """Eigenpairs through landmarks, with ``refine`` exact passes after them."""
    if problem.config.residual_tolerance is not None:
        return _promised(problem, checkpoint)
    wanted = wanted_modes(problem.config, problem.table.n_frames)
    if not problem.config.refine:
        found = embed_landmarks(problem, wanted)
        return found._replace(attrs=found.attrs | {"passes": 0})
    # as many as one exact pass after them has vectors
    return _refined(problem, checkpoint, embed_landmarks(problem, max(WIDTH, wanted)))


def _refined(problem: Problem, checkpoint: Checkpoint, known: Found) -> Found:
    """Exact passes over the whole kernel, from what the landmarks gave."""
    warm = Warm(known.coordinates, known.degrees)
    attrs = known.attrs | {"residual_from": "all frames"}
    return _passes(problem, checkpoint, known.scale, warm, attrs, passes=problem.config.refine)


def _promised(problem: Problem, checkpoint: Checkpoint) -> Found:
    """Landmarks and exact passes until the residual is as small as it was asked for, or a bound is met."""
    outcome = approach(problem, checkpoint)
    if not outcome.passes:
        return told(through(outcome, problem), outcome, problem)
    there, n = problem.decision.workers, problem.table.n_frames
    home = choose_home(n, problem.distance.itemsize, problem.config.home, there)
    problem = problem._replace(decision=replace(problem.decision, home=home))
    warm = Warm(outcome.last.carried.coordinates, outcome.last.carried.degrees)
    attrs: Attrs = {"residual_from": "measured"}
    return told(_passes(problem, checkpoint, outcome.scale, warm, attrs, most=outcome.passes), outcome, problem)


def _passes(
    problem: Problem,
    checkpoint: Checkpoint,
    scale: Scale,
    warm: Warm,
    attrs: Attrs,
    *,
    passes: int | None = None,
    most: int | None = None,
) -> Found:
    """Exact passes from where landmarks led: so many ``passes``, or until the residual is small and ``most``."""
    config, home = problem.config, problem.decision.home
    tolerance = tolerance_of(home, problem.distance.precision, config)
    tiles, distances = _tiles(problem)
    with _product(home, tiles, distances, scale, checkpoint, problem.progress) as matmat:
        del distances
        solved = solve(
            matmat,
            problem.table.n_frames,
            config,
            problem.progress,
            tolerance=tolerance,
            checkpoint=checkpoint,
            warm=warm,
            passes=passes,
            most=most,
        )
    return _found(solved, scale, attrs | {"home": home, "tile": _side(tiles)})


def _tiles(problem: Problem) -> tuple[Tiling, Distances | None]:
    """Blocks on the workers, and panels of distances where all of them are wanted twice: on the workers, or here."""
    made = make_blocks(problem.table, problem.distance, problem.spans, problem.progress)
    tiles = tiling(made, problem.spans, problem.distance.precision, problem.decision.workers.number)
    if problem.decision.home == "local":
        return tiles, compute(distance_panels(tiles), "distances", problem.progress)
    looked_at = isinstance(problem.config.epsilon, str) and problem.table.n_frames <= EXACT_MEDIAN_FRAMES
    if problem.decision.home != "resident" or not looked_at:
        return tiles, None
    return tiles, persist(distance_panels(tiles), "distances", problem.progress)


@contextmanager
def _product(
    home: str,
    tiles: Tiling,
    distances: Distances | None,
    scale: Scale,
    checkpoint: Checkpoint,
    progress: Progress,
) -> Iterator[MatMat]:
    """Product with the kernel, its tiles in the home that was chosen; what lies on disk is gone at the end."""
    if home == "local" and distances is not None:
        with threads_here() as over:
            product = local_product(tiles, distances, scale, progress, over)
            del distances  # they may lie beside the kernel, which is all that is wanted from here on
            yield product
    elif home == "resident":
        product = resident_product(tiles, distances, scale, progress)
        del distances
        yield product
    elif home == "recomputed":
        yield recomputed_product(tiles, scale, progress)
    else:
        with checkpoint.tiles() as folder:
            yield disk_product(tiles, scale, folder, progress)


def _found(solved: Solved, scale: Scale, attrs: Attrs) -> Found:
    """What a solve found."""
    return Found(
        solved.eigenvalues,
        solved.residuals,
        solved.coordinates,
        solved.degrees,
        scale,
        None,
        attrs | {"passes": solved.passes},
    )


def _side(tiles: Tiling) -> int:
    """Frames on the side of a tile."""
    return tiles.spans[0][1] - tiles.spans[0][0]
