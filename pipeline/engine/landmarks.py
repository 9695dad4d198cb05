"""Embedding through landmarks: every frame meets a few chosen ones only, and all are streamed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Floats, Integers
from manifold_observer.tasks.engine import forms, kernel, landmarks, scale
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.landmarks import Anchors, Placed, Summed
from manifold_observer.tasks.engine.protocols import Block
from manifold_observer.tasks.engine.slab import Slab

from ..graph.compute import compute, persist, persist_in_turn, task
from ..graph.kept import array_of
from ..graph.progress import Progress
from ..graph.spans import Span, blocks
from ..graph.warn import warn
from .blocks import Table, block_task, part_of
from .config import EmbedConfig
from .cuts import gather_rows, landmark_spans, link_rows
from .eigensolve import Warm
from .passing import Own, passed, passed_in_pairs
from .problem import Found, Problem

# Frames whose exact rows judge the result.
_SAMPLE_FRAMES = 256
# Candidates a landmark, for choices that look at the features.
_CANDIDATES = 10
# Landmarks for the start of an exact solve: more cost more than the pass that they save.
_WARM_LANDMARKS = 1000
# An eigenvalue of the landmarks below this share of the largest is noise, and dividing by it spreads it.
_SMALLEST = 1e-2


def embed_landmarks(problem: Problem, n_modes: int) -> Found:
    """Coordinates of all frames through landmarks; it computes, in one pass (three by the diffusion route).

    Parameters
    ----------
    problem
        Frames, and how they are embedded.
    n_modes
        Coordinates wanted; fewer come where the landmarks have fewer that can be carried over.

    Returns
    -------
    The coordinates with unit mean square and fixed signs, estimated row sums, and an honest estimate of the residuals,
    over exact rows. Coordinates and row sums stay on the workers where that was decided.

    Notes
    -----
    O(N (m + 256)) distances. A task holds the frames of its span, and 1,024 of them with their distances
    to the landmarks at a time.
    """
    table, config = problem.table, problem.config
    chosen = _choose(table, min(config.n_landmarks, table.n_frames), config)
    block = _gather(table, problem.distance, chosen)
    how = _scale(block, config)
    found, anchors = persist(list(task(_start, block, how, config.alpha, n_modes, outputs=2)), "landmarks")
    del block
    eigenvalues = compute([found])[0]
    if config.landmark_route == "diffusion":
        eigenvalues, anchors = _diffusion_route(problem, anchors, n_modes)
    sample = np.sort(_draw(table.n_frames, _SAMPLE_FRAMES, config.seed))
    # One input of every task, not two: the scheduler lists for each which workers hold it.
    met = persist([task(_met, anchors, _gather(table, problem.distance, sample))], "landmarks")[0]
    # With exact passes to come this is where they start, not all of the work.
    placed, summed = _carried(problem, "near" if config.refine else "landmarks", sample, met)
    return _finish(problem, placed, summed, eigenvalues, how, chosen)


def near(
    made: list[Delayed], spans: list[Span], how: kernel.Scale, alpha: float, n_modes: int, progress: Progress
) -> Warm:
    """Coordinates near the exact ones, and row sums, for a solve to start from; it computes.

    Parameters
    ----------
    made, spans
        Blocks of all frames on the workers, and their frames.
    how
        Scale of the kernel.
    alpha
        Density normalisation.
    n_modes
        Coordinates wanted.
    progress
        Where to report.

    Returns
    -------
    Coordinates (N, <= n_modes), not scaled, and estimated row sums (N,).
    """
    n = spans[-1][1]
    chosen = landmarks.uniform(n, min(_WARM_LANDMARKS, n))
    parts = []
    for block, (first, stop) in zip(made, spans, strict=True):
        within = chosen[(chosen >= first) & (chosen < stop)] - first
        if len(within):
            parts.append(task(forms.take, block, within))
    joined = task(forms.join, parts)
    anchors = persist([task(_only_anchors, joined, how, alpha, n_modes)], "landmarks")[0]
    found = compute([task(landmarks.near_coordinates, block, anchors) for block in made], "near", progress)
    psi, affinity = (np.concatenate(column) for column in zip(*found, strict=True))
    return Warm(psi, np.maximum(n * affinity, 1.0))  # a frame is its own neighbour


def _choose(table: Table, m: int, config: EmbedConfig) -> Integers:
    """Numbers of the landmarks, ascending."""
    n = table.n_frames
    if config.landmark_choice == "uniform":
        return landmarks.uniform(n, m)
    candidates = landmarks.uniform(n, min(n, _CANDIDATES * m))
    frames = table.data[candidates]
    values = frames if isinstance(frames, np.ndarray) else compute([frames])[0]
    farthest = config.landmark_choice == "farthest"
    return candidates[landmarks.spread_points(np.asarray(values, np.float64), m, config.seed, farthest)]


def _draw(n: int, count: int, seed: int) -> Integers:
    """A seeded sample of frames."""
    return np.random.default_rng(seed).choice(n, min(count, n), replace=False)


def _gather(table: Table, distance: Distance, chosen: Integers) -> Delayed:
    """One block of the chosen frames, kept on the workers."""
    cut = blocks(table.n_frames, gather_rows(table.n_frames, table.n_features))
    spans = [(span, chosen[(chosen >= span[0]) & (chosen < span[1])]) for span in cut]
    made = persist_in_turn(
        task(block_task, distance, part_of(table, span, distance.window, within), span)
        for span, within in spans
        if len(within)
    )
    return persist([task(forms.join, made)], "landmarks")[0]


def _scale(block: Delayed, config: EmbedConfig) -> kernel.Scale:
    """Scale of the kernel: a number, or from the distances between the landmarks."""
    if not isinstance(config.epsilon, str):
        return kernel.Scale(float(config.epsilon))
    median = compute([task(scale.median_between, [block])])[0]
    if not median > 0:
        raise ValueError(
            "embed: the median distance between landmarks is 0, so that it cannot be the scale: most frames are "
            "equal. Give a number as epsilon=."
        )
    return kernel.Scale(config.epsilon_factor * median)


def _diffusion_route(problem: Problem, anchors: Delayed, n_modes: int) -> tuple[Floats, Delayed]:
    """Two more passes: column sums of all strips, then the links between landmarks."""
    n, p = problem.table.n_frames, problem.table.n_features
    sums = passed(landmarks.column_sums, problem, list(map(Own, landmark_spans(n, p))), "sums", anchors)
    kept = persist([task(_with_degrees, anchors, landmarks.add_up(sums))], "landmarks")[0]
    links = passed(landmarks.link_sums, problem, list(map(Own, blocks(n, link_rows(n, p)))), "links", kept, large=True)
    eigenvalues, vectors = landmarks.diffusion_maps(landmarks.add_up(links), n_modes)
    usable = eigenvalues > _SMALLEST * eigenvalues[0]
    return eigenvalues[usable], persist([task(_with_weights, kept, vectors[:, usable])], "landmarks")[0]


def _carried(problem: Problem, stage: str, sample: Integers, met: Delayed) -> tuple[list[Any], Summed]:
    """Coordinates of all spans, here or on the workers, and what they add up to."""
    spans = [
        Own(span, (problem.config.alpha, span[0], sample[(sample >= span[0]) & (sample < span[1])] - span[0]))
        for span in landmark_spans(problem.table.n_frames, problem.table.n_features)
    ]
    found = passed_in_pairs(_carry, landmarks.summed_together, problem, spans, stage, met)
    kept: list[Any] = []
    return kept, landmarks.summed_together(_keeping(found, kept))


def _keeping(found: Iterator[tuple[list[Any], Summed]], kept: list[Any]) -> Iterator[Summed]:
    """The sums of the spans of every task, their coordinates being put aside."""
    for placed, summed in found:
        kept += placed
        yield summed


def _finish(
    problem: Problem, placed: list[Any], summed: Summed, eigenvalues: Floats, how: kernel.Scale, chosen: Integers
) -> Found:
    """Unit mean square and fixed signs for the coordinates of all spans, and their residuals."""
    n, config = problem.table.n_frames, problem.config
    _warn_unreached(summed, n)
    factor = 1 / np.sqrt(summed.squares / n)
    flip = np.where(summed.largest < 0, -1.0, 1.0)
    psi, degrees = _all_frames(problem, placed, factor, flip)
    factor = factor * flip
    judged = landmarks.judge(summed.rows * factor, summed.row_sums, summed.sampled * factor)
    return Found(
        eigenvalues=eigenvalues,
        # of the pairs as they are given: what no eigenvalue explains, and how far this one is from the best
        residuals=np.hypot(judged.residuals, judged.eigenvalues - eigenvalues),
        coordinates=psi,
        degrees=degrees,
        scale=how,
        lift=problem.distance.axes.lift(summed.lift) * factor / n,
        attrs={
            "n_landmarks": len(chosen),
            "landmark_route": config.landmark_route,
            "residual_from": f"exact rows of {len(summed.sampled)} sampled frames",
            "epsilon_from": "landmarks" if isinstance(config.epsilon, str) else "given",
            "method": "landmarks",
            "refine": config.refine,
        },
        landmarks=chosen if config.landmark_route == "nystrom" else None,
    )


def _all_frames(
    problem: Problem, placed: Sequence[Any], factor: Floats, flip: Floats
) -> tuple[Floats | da.Array, Floats | da.Array]:
    """Coordinates in their units and row sums, of arrays here or of those that the workers keep."""
    n = problem.table.n_frames
    if not problem.decision.lazy:
        whole = landmarks.placed_together(placed)
        return _scaled(whole, factor, flip), _degrees(whole, n)
    lengths = [stop - start for start, stop in landmark_spans(n, problem.table.n_features)]
    return array_of(placed, lengths, len(factor), _scaled, factor, flip), array_of(placed, lengths, None, _degrees, n)


def _scaled(placed: Placed, factor: Floats, flip: Floats) -> Floats:
    """Coordinates of unit mean square and fixed signs."""
    return placed.coordinates * factor * flip


def _degrees(placed: Placed, n: int) -> Floats:
    """Estimated row sums; a frame is its own neighbour."""
    return np.maximum(n * placed.affinity, 1.0)


def _warn_unreached(summed: Summed, n: int) -> None:
    """Frames without any affinity to a landmark are told."""
    if summed.alone:
        warn(
            f"embed: {summed.alone} of {n} frames are beyond the reach of every landmark at this scale (the "
            f"first is frame {summed.first_alone}), and have coordinates 0. Give more landmarks=, "
            "landmark_choice='farthest', or a larger epsilon_factor=."
        )


def _with_degrees(anchors: Anchors, degrees: Floats) -> Anchors:
    """Anchors with column sums; they stay on the workers, where the landmarks' block is."""
    return anchors._replace(degrees=degrees)


def _with_weights(anchors: Anchors, weights: Floats) -> Anchors:
    """Anchors with other weights."""
    return anchors._replace(weights=weights)


def _start(block: Block, how: kernel.Scale, alpha: float, n_modes: int) -> tuple[Floats, Anchors]:
    """Eigenvalues of the landmarks, and what carries their diffusion maps over."""
    maps = landmarks.landmark_maps(block, how, alpha, n_modes)
    usable = maps.eigenvalues > _SMALLEST * max(maps.eigenvalues[0], 0.0)
    maps = maps._replace(eigenvalues=maps.eigenvalues[usable], coordinates=maps.coordinates[:, usable])
    return maps.eigenvalues, landmarks.nystrom_anchors(block, how, maps, alpha)


def _only_anchors(block: Block, how: kernel.Scale, alpha: float, n_modes: int) -> Anchors:
    """What carries the landmarks' diffusion maps over."""
    return _start(block, how, alpha, n_modes)[1]


def _met(anchors: Anchors, sample: Block) -> tuple[Anchors, Block]:
    """What every frame meets."""
    return anchors, sample


def _carry(
    slab: Slab, distance: Distance, met: tuple[Anchors, Block], alpha: float, first: int, sampled: Integers
) -> tuple[Placed, Summed]:
    """Coordinates of one span, and its sums."""
    return landmarks.carry_over(slab, distance, *met, alpha, first, sampled)
