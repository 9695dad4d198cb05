"""The scale of the kernel, from distances that lie in panels on the workers, or here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

import numpy as np
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.engine import forms, panel, scale
from manifold_observer.tasks.engine.kernel import Scale

from ..graph.compute import compute, task
from ..graph.progress import Progress, silent
from ..graph.threads import threads_here
from .config import Attrs, EmbedConfig
from .cuts import EXACT_MEDIAN_FRAMES
from .kernels import Panel
from .tiling import Tiling

# Frames among which the median distance is taken where there are too many for all pairs.
_SAMPLE_FRAMES = 2048
# A local scale below this share of the median one is rounding.
_ROUNDING = 1e-6


Distances = list[Delayed] | list[Panel]
"""Panels on the workers, or here."""


def find_scale(tiles: Tiling, distances: Distances, config: EmbedConfig, progress: Progress) -> tuple[Scale, Attrs]:
    """Choose the scale as the options say; it computes unless a number was given.

    Raises
    ------
    ValueError
        The median distance is zero.
    """
    if not isinstance(config.epsilon, str):
        return Scale(float(config.epsilon)), {}
    if config.epsilon == "local":
        return _local_scale(tiles, distances, config, progress)
    attrs: Attrs = {"epsilon_from": "all pairs"}
    if tiles.n_frames <= EXACT_MEDIAN_FRAMES:
        median = _exact_median(distances, tiles.n_frames)
    else:
        median, chosen = _sampled_median(tiles, config.seed)
        attrs = {"epsilon_from": "sample", "epsilon_sample_frames": chosen}
    if not median > 0:
        raise ValueError(
            "embed: the median distance between frames is 0, so that it cannot be the scale: most frames are "
            "equal. Give epsilon='local', or a number."
        )
    return Scale(config.epsilon_factor * median), attrs


def _local_scale(tiles: Tiling, distances: Distances, config: EmbedConfig, progress: Progress) -> tuple[Scale, Attrs]:
    """Distance of every frame to its k-th nearest."""
    n = tiles.n_frames
    k = min(config.neighbours, n - 1)
    lengths = [sum(stop - start for start, stop in tiles.rows(plan)) for plan in tiles.panels]
    tables = _each(_nearest, distances, lengths, repeat(k), stage="scale", progress=progress)
    nearest = np.full((n, k), np.inf)
    for plan, table in zip(tiles.panels, tables, strict=True):
        first = 0
        for start, stop in tiles.rows(plan):
            own = table[first : first + stop - start]
            nearest[start:stop] = panel.merge_nearest(nearest[start:stop], own)
            first += stop - start
    local = config.epsilon_factor * nearest[:, -1]
    # Equal frames are at the distance that rounding leaves.
    if not (local > _ROUNDING * np.median(local)).all():
        frame = int(np.argmin(local))
        raise ValueError(
            f"embed: frame {frame} has {k} neighbours at distance 0, so that it has no local scale. "
            f"Give more than neighbours={k}, or epsilon='median'."
        )
    return Scale(float(np.median(local)), local), {"neighbours": k}


def _exact_median(distances: Distances, n: int) -> float:
    """Median over all pairs i < j in two looks: a bracket from a sample, then what lies within."""
    pairs = n * (n - 1) // 2
    stride = max(1, pairs // 2**15) | 1  # odd, so that it does not keep to one column of a tile
    sample = np.concatenate(_each(_sample, distances, repeat(stride)))
    for low, high in scale.brackets(sample):
        parts = _each(_count, distances, repeat(low), repeat(high))
        inside = np.concatenate([values for _, values in parts])
        median = scale.median_from(inside, sum(below for below, _ in parts), pairs)
        if median is not None:
            return median
    raise AssertionError(f"no bracket held the median of {pairs} pairs; the last was all numbers")


def _sampled_median(tiles: Tiling, seed: int) -> tuple[float, int]:
    """Median over all pairs of a seeded sample of frames, and how many they were."""
    chosen = np.sort(np.random.default_rng(seed).choice(tiles.n_frames, _SAMPLE_FRAMES, replace=False))
    parts = []
    for block, (start, stop) in zip(tiles.blocks, tiles.spans, strict=True):
        within = chosen[(chosen >= start) & (chosen < stop)] - start
        if len(within):
            parts.append(task(forms.take, block, within))
    return compute([task(scale.median_between, parts)])[0], len(chosen)


def _each(
    function: Callable[..., Any],
    distances: Distances,
    *given: Iterable[Any],
    stage: str = "",
    progress: Progress = silent,
) -> list[Any]:
    """What a function says of every panel, where the panel is."""
    if isinstance(distances[0], Panel):
        progress(stage, 0, len(distances))
        with threads_here() as over:
            found = list(over(function, distances, *given))
        progress(stage, len(distances), len(distances))
        return found
    return compute([task(function, *own) for own in zip(distances, *given)], stage, progress)  # noqa: B905


def _nearest(part: Panel, n: int, k: int) -> Floats:
    """Smallest distances that one panel knows."""
    return panel.nearest(part.tiles, part.corners, n, k)


def _sample(part: Panel, stride: int) -> Array:
    """Some distances of one panel."""
    return panel.sample_entries(part.tiles, part.corners, stride)


def _count(part: Panel, low: float, high: float) -> tuple[int, Array]:
    """What of one panel lies below and within a bracket."""
    return panel.count_and_collect(part.tiles, part.corners, low, high)
