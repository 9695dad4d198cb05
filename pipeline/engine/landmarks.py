"""Embedding through landmarks: every frame meets a few chosen ones only, and all are streamed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.engine import diffusion, forms, kernel, landmarks, scale
from manifold_observer.tasks.engine.covariance import DegenerateCovarianceError
from manifold_observer.tasks.engine.landmarks import Anchors, Carried
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.protocols import Block
from manifold_observer.tasks.engine.slab import Metric

from ..graph.compute import Progress, compute, persist, persist_in_turn, stream, task
from ..graph.spans import Span, blocks
from ..graph.warn import warn
from .blocks import Part, Table, block_task, degenerate, part_of, slab_of
from .config import EmbedConfig
from .cuts import gather_rows, landmark_spans, link_rows

Floats = NDArray[np.float64]
# Frames whose exact rows judge the result.
_SAMPLE_FRAMES = 256
# Candidates a landmark, for choices that look at the features.
_CANDIDATES = 10
# Landmarks for the start of an exact solve: more cost more than the pass that they save.
_WARM_LANDMARKS = 1000
# An eigenvalue of the landmarks below this share of the largest is noise, and dividing by it spreads it.
_SMALLEST = 1e-2


class Landmarked(NamedTuple):
    """What the landmarks give for all frames.

    ``eigenvalues`` (k,), ``coordinates`` (N, k) with unit mean square and fixed signs, ``degrees`` (N,)
    estimated, ``lift`` (p, k), ``residuals`` (k,) estimated over exact rows, ``epsilon``, ``attrs``, ``numbers`` (m,)
    of the landmarks.
    """

    eigenvalues: Floats
    coordinates: Floats
    degrees: Floats
    lift: Floats
    residuals: Floats
    epsilon: float
    attrs: dict[str, int | float | str]
    numbers: NDArray[np.int64]


def embed_landmarks(
    table: Table,
    metric: Metric,
    axes: Axes,
    form: str,
    dtype: str,
    config: EmbedConfig,
    n_modes: int,
    progress: Progress,
) -> Landmarked:
    """Coordinates of all frames through landmarks; it computes, in one pass (three by the diffusion route).

    Parameters
    ----------
    table, metric, axes, form, dtype, config
        As the exact way has them.
    n_modes
        Coordinates wanted; fewer come where the landmarks have fewer that can be carried over.
    progress
        Where to report.

    Returns
    -------
    The coordinates, with an honest estimate of their residuals.

    Notes
    -----
    O(N (m + 256)) distances. A task holds the frames of its span, and 1,024 of them with their distances
    to the landmarks at a time.
    """
    m = min(config.landmarks, table.n_frames)
    chosen = _choose(table, m, config)
    landmark_block = _gather(table, metric, axes, chosen, form, dtype)
    how = _scale(landmark_block, config)
    found, anchors = persist(list(task(_start, landmark_block, how, config.alpha, n_modes, outputs=2)), "landmarks")
    del landmark_block
    eigenvalues = compute([found])[0]
    spans = landmark_spans(table.n_frames, table.n_features)
    if config.landmark_route == "diffusion":
        eigenvalues, anchors = _diffusion_route(table, metric, axes, form, anchors, n_modes, spans, progress)
    sample = np.sort(_draw(table.n_frames, _SAMPLE_FRAMES, config.seed))
    sample_block = _gather(table, metric, axes, sample, form, dtype)
    tasks = (
        _span_task(landmarks.carry_over, table, metric, axes, form, span, anchors, sample_block, config.alpha)
        for span in spans
    )
    # With exact passes to come this is where they start, not all of the work.
    parts = list(stream(tasks, len(spans), "near" if config.refine else "landmarks", progress))
    return _finish(parts, eigenvalues, sample, table.n_frames, how.epsilon, config, chosen, axes)


def near(
    made: list[Delayed], spans: list[Span], how: kernel.Scale, alpha: float, n_modes: int, progress: Progress
) -> tuple[Floats, Floats]:
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
    return psi, np.maximum(n * affinity, 1.0)  # a frame is its own neighbour


def _choose(table: Table, m: int, config: EmbedConfig) -> NDArray[np.int64]:
    """Numbers of the landmarks, ascending."""
    n = table.n_frames
    if config.landmark_choice == "uniform":
        return landmarks.uniform(n, m)
    candidates = landmarks.uniform(n, min(n, _CANDIDATES * m))
    frames = table.data[candidates]
    values = frames if isinstance(frames, np.ndarray) else compute([frames])[0]
    farthest = config.landmark_choice == "farthest"
    return candidates[landmarks.spread_points(np.asarray(values, np.float64), m, config.seed, farthest)]


def _draw(n: int, count: int, seed: int) -> NDArray[np.int64]:
    """A seeded sample of frames."""
    return np.random.default_rng(seed).choice(n, min(count, n), replace=False)


def _gather(table: Table, metric: Metric, axes: Axes, chosen: NDArray[np.int64], form: str, dtype: str) -> object:
    """One block of the chosen frames, kept on the workers."""
    cut = blocks(table.n_frames, gather_rows(table.n_frames, table.n_features))
    spans = [(span, chosen[(chosen >= span[0]) & (chosen < span[1])]) for span in cut]
    made = persist_in_turn(
        task(block_task, axes, part_of(table, span, metric.window, within), metric, form, dtype, span)
        for span, within in spans
        if len(within)
    )
    return persist([task(forms.join, made)], "landmarks")[0]


def _scale(block: object, config: EmbedConfig) -> kernel.Scale:
    """Scale of the kernel: a number, or from the distances between the landmarks."""
    if not isinstance(config.epsilon, str):
        return kernel.Scale(float(config.epsilon))
    median = compute([task(_median, block)])[0]
    if not median > 0:
        raise ValueError(
            "embed: the median distance between landmarks is 0, so that it cannot be the scale: most frames are "
            "equal. Give a number as epsilon=."
        )
    return kernel.Scale(config.epsilon_factor * median)


def _diffusion_route(
    table: Table,
    metric: Metric,
    axes: Axes,
    form: str,
    anchors: Delayed,
    n_modes: int,
    spans: list[Span],
    progress: Progress,
) -> tuple[Floats, Delayed]:
    """Two more passes: column sums of all strips, then the links between landmarks."""
    sums = stream(
        (_span_task(landmarks.column_sums, table, metric, axes, form, span, anchors) for span in spans),
        len(spans),
        "sums",
        progress,
    )
    kept = persist([task(_with_degrees, anchors, landmarks.add_up(sums))], "landmarks")[0]
    long_spans = blocks(table.n_frames, link_rows(table.n_frames, table.n_features))
    links = stream(
        (_span_task(landmarks.link_sums, table, metric, axes, form, span, kept) for span in long_spans),
        len(long_spans),
        "links",
        progress,
    )
    eigenvalues, vectors = landmarks.diffusion_maps(landmarks.add_up(links), n_modes)
    usable = eigenvalues > _SMALLEST * eigenvalues[0]
    return eigenvalues[usable], persist([task(_with_weights, kept, vectors[:, usable])], "landmarks")[0]


def _span_task(
    function: Callable[..., Any], table: Table, metric: Metric, axes: Axes, form: str, span: Span, *others: Any
) -> Delayed:
    """A function of one span's slab, delayed."""
    return task(_on_span, function, axes, part_of(table, span, metric.window), metric, form, span, *others)


def _finish(
    parts: list[Carried],
    eigenvalues: Floats,
    sample: NDArray[np.int64],
    n: int,
    epsilon: float,
    config: EmbedConfig,
    chosen: NDArray[np.int64],
    axes: Axes,
) -> Landmarked:
    """Unit mean square and fixed signs for the coordinates of all spans, and their residuals."""
    psi = np.concatenate([part.coordinates for part in parts])
    affinity = np.concatenate([part.affinity for part in parts])
    _warn_unreached(affinity)
    factor = 1 / np.sqrt(landmarks.add_up([part.squares for part in parts]) / n)
    psi *= factor
    flip = diffusion.signs(psi)
    psi *= flip
    factor = factor * flip
    judged = landmarks.judge(
        landmarks.add_up([part.rows for part in parts]) * factor,
        landmarks.add_up([part.row_sums for part in parts]),
        psi[sample],
    )
    return Landmarked(
        eigenvalues=eigenvalues,
        coordinates=psi,
        degrees=np.maximum(n * affinity, 1.0),
        lift=axes.lift(landmarks.add_up([part.lift for part in parts])) * factor / n,
        # of the pairs as they are given: what no eigenvalue explains, and how far this one is from the best
        residuals=np.hypot(judged.residuals, judged.eigenvalues - eigenvalues),
        epsilon=epsilon,
        attrs={
            "n_landmarks": len(chosen),
            "landmark_route": config.landmark_route,
            "residual_from": f"exact rows of {len(sample)} sampled frames",
            "epsilon_from": "landmarks" if isinstance(config.epsilon, str) else "given",
        },
        numbers=chosen,
    )


def _warn_unreached(affinity: Floats) -> None:
    """Frames without any affinity to a landmark are told."""
    alone = np.flatnonzero(affinity == 0)
    if len(alone):
        warn(
            f"embed: {len(alone)} of {len(affinity)} frames are beyond the reach of every landmark at this scale (the "
            f"first is frame {alone[0]}), and have coordinates 0. Give more landmarks=, landmark_choice='farthest', "
            "or a larger epsilon_factor=."
        )


def _with_degrees(anchors: Anchors, degrees: Floats) -> Anchors:
    """Anchors with column sums; they stay on the workers, where the landmarks' block is."""
    return anchors._replace(degrees=degrees)


def _with_weights(anchors: Anchors, weights: Floats) -> Anchors:
    """Anchors with other weights."""
    return anchors._replace(weights=weights)


def _median(block: Block) -> float:
    """Median distance between the landmarks."""
    return scale.median_between([block])


def _start(block: Block, how: kernel.Scale, alpha: float, n_modes: int) -> tuple[Floats, Anchors]:
    """Eigenvalues of the landmarks, and what carries their diffusion maps over."""
    maps = landmarks.landmark_maps(block, how, alpha, n_modes)
    usable = maps.eigenvalues > _SMALLEST * max(maps.eigenvalues[0], 0.0)
    maps = maps._replace(eigenvalues=maps.eigenvalues[usable], coordinates=maps.coordinates[:, usable])
    return maps.eigenvalues, landmarks.nystrom_anchors(block, how, maps, alpha)


def _only_anchors(block: Block, how: kernel.Scale, alpha: float, n_modes: int) -> Anchors:
    """What carries the landmarks' diffusion maps over."""
    return _start(block, how, alpha, n_modes)[1]


def _on_span(
    function: Callable[..., Any], axes: Axes, part: Part, metric: Metric, form: str, span: Span, *others: Any
) -> Any:
    """A function of one span's slab; a degenerate covariance is told with the frames it belongs to."""
    try:
        return function(slab_of(axes, part), metric, form, *others)
    except DegenerateCovarianceError as error:
        raise degenerate(error, metric, span) from None
