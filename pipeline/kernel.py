"""The kernel matrix as panels of tiles on the workers, its scale, and its products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks import kernel, panel, scale

from .config import EmbedConfig
from .graph import Progress, compute, persist, task
from .plan import EXACT_MEDIAN_FRAMES, Span, panels

Floats = NDArray[np.float64]
Tile = NDArray[np.floating]
MatMat = Callable[[Floats], Floats]
# Frames among which the median distance is taken where there are too many for all pairs.
_SAMPLE_FRAMES = 2048
_ALL_PAIRS: dict[str, int | str] = {"epsilon_from": "all pairs"}


class Panel(NamedTuple):
    """Tiles of the upper triangle, and the first row and column of each."""

    tiles: list[Tile]
    spans: list[Span]


class Scale(NamedTuple):
    """Scale of the kernel: one number, the local scales where it is local, and how it was found."""

    epsilon: float
    local: Floats | None
    attrs: dict[str, int | str]


def distance_panels(blocks: list[Delayed], spans: list[Span], itemsize: int) -> list[Delayed]:
    """Panels of distances, not yet computed; they depend on the frames and the tile size alone."""
    side = spans[0][1] - spans[0][0]
    dealt = panels(len(blocks), side * side * itemsize)
    made = []
    for pairs in dealt:
        used = sorted({number for pair in pairs for number in pair})
        places = [(used.index(i), used.index(j)) for i, j in pairs]
        corners = [(spans[i][0], spans[j][0]) for i, j in pairs]
        made.append(task(_distances, [blocks[number] for number in used], places, corners))
    return made


def find_scale(
    distances: list[Delayed],
    blocks: list[Delayed],
    spans: list[Span],
    config: EmbedConfig,
    progress: Progress,
) -> Scale:
    """Choose the scale as the options say; it computes unless a number was given.

    Raises
    ------
    ValueError
        The median distance is zero.
    """
    n = spans[-1][1]
    if not isinstance(config.epsilon, str):
        return Scale(float(config.epsilon), None, {})
    if config.epsilon == "local":
        return _local_scale(distances, n, config, progress)
    if n <= EXACT_MEDIAN_FRAMES:
        median, attrs = _exact_median(distances, n), _ALL_PAIRS
    else:
        median, attrs = _sampled_median(blocks, spans, config.seed)
    if not median > 0:
        raise ValueError(
            "embed: the median distance between frames is 0, so that it cannot be the scale: most frames are "
            "equal. Give epsilon='local', or a number."
        )
    return Scale(config.epsilon_factor * median, None, attrs)


def kernel_panels(distances: list[Delayed], scale: Scale, progress: Progress) -> list[Delayed]:
    """Panels of the kernel, kept on the workers; it computes."""
    return persist([task(_affinities, part, scale) for part in distances], "kernel", progress)


def product(kernels: list[Delayed]) -> MatMat:
    """Product of the whole kernel matrix with vectors (N, b), summed over the panels in their order."""

    def matmat(x: Floats) -> Floats:
        vectors = dask.delayed(x, pure=False)
        parts = compute([task(_product, part, vectors) for part in kernels])
        total = parts[0]
        for part in parts[1:]:
            total += part
        return total

    return matmat


def _local_scale(distances: list[Delayed], n: int, config: EmbedConfig, progress: Progress) -> Scale:
    """Distance of every frame to its k-th nearest."""
    k = min(config.neighbours, n - 1)
    tables = compute([task(_nearest, part, n, k) for part in distances], "scale", progress)
    nearest = tables[0]
    for more in tables[1:]:
        nearest = panel.merge_nearest(nearest, more)
    local = config.epsilon_factor * nearest[:, -1]
    if not (local > 0).all():
        frame = int(np.argmin(local))
        raise ValueError(
            f"embed: frame {frame} has {k} neighbours at distance 0, so that it has no local scale. "
            f"Give more than neighbours={k}, or epsilon='median'."
        )
    return Scale(float(np.median(local)), local, {"neighbours": k})


def _exact_median(distances: list[Delayed], n: int) -> float:
    """Median over all pairs i < j in two looks: a bracket from a sample, then what lies within."""
    pairs = n * (n - 1) // 2
    stride = max(1, pairs // 2**15)
    sample = np.concatenate(compute([task(_sample, part, stride) for part in distances]))
    for low, high in scale.brackets(sample):
        parts = compute([task(_count, part, low, high) for part in distances])
        inside = np.concatenate([values for _, values in parts])
        median = scale.median_from(inside, sum(below for below, _ in parts), pairs)
        if median is not None:
            return median
    raise AssertionError(f"no bracket held the median of {pairs} pairs; the last was all numbers")


def _sampled_median(blocks: list[Delayed], spans: list[Span], seed: int) -> tuple[float, dict[str, int | str]]:
    """Median over all pairs of a seeded sample of frames."""
    n = spans[-1][1]
    chosen = np.sort(np.random.default_rng(seed).choice(n, _SAMPLE_FRAMES, replace=False))
    parts = []
    for block, (start, stop) in zip(blocks, spans, strict=True):
        within = chosen[(chosen >= start) & (chosen < stop)] - start
        if len(within):
            parts.append(task(_take, block, within))
    median = compute([task(_median, parts)])[0]
    return median, {"epsilon_from": "sample", "epsilon_sample_frames": len(chosen)}


def _distances(blocks: list[kernel.Block], places: list[tuple[int, int]], corners: list[Span]) -> Panel:
    """One panel of distances; the diagonal of the matrix is exactly 0."""
    tiles = []
    for (i, j), (row, column) in zip(places, corners, strict=True):
        tile = kernel.squared_distances(blocks[i], blocks[j])
        if row == column:
            tile = scale.symmetric(tile)
        tiles.append(tile)
    return Panel(tiles, corners)


def _affinities(distances: Panel, how: Scale) -> Panel:
    """One panel of the kernel."""
    tiles = []
    for tile, (row, column) in zip(*distances, strict=True):
        if how.local is None:
            tiles.append(kernel.kernel_from_distances(tile, how.epsilon))
        else:
            rows, columns = how.local[row : row + tile.shape[0]], how.local[column : column + tile.shape[1]]
            tiles.append(kernel.kernel_local(tile, rows, columns))
    return Panel(tiles, distances.spans)


def _product(part: Panel, x: Floats) -> Floats:
    """One panel's share of a product."""
    return panel.symmetric_product(part.tiles, part.spans, x)


def _nearest(part: Panel, n: int, k: int) -> Floats:
    """Smallest distances that one panel knows."""
    return panel.nearest(part.tiles, part.spans, n, k)


def _sample(part: Panel, stride: int) -> Tile:
    """Some distances of one panel."""
    return panel.sample_entries(part.tiles, part.spans, stride)


def _count(part: Panel, low: float, high: float) -> tuple[int, Tile]:
    """What of one panel lies below and within a bracket."""
    return panel.count_and_collect(part.tiles, part.spans, low, high)


def _take(block: kernel.Block, chosen: NDArray[np.int64]) -> kernel.Block:
    """Some frames of one block."""
    return kernel.take(block, chosen)


def _median(blocks: list[kernel.Block]) -> float:
    """Median distance between the frames of small blocks."""
    return scale.median_between(blocks)
