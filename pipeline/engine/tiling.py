"""The kernel matrix as panels of tiles, its scale, and its products with vectors.

A panel pairs two groups of blocks and works in its own rows: those of its blocks, one after the other.
Tiles have one of three homes behind the same product: resident on the workers, recomputed in every
pass, or on disk.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.engine import forms, kernel, panel, scale, tilefile
from manifold_observer.tasks.engine.kernel import Scale
from manifold_observer.tasks.engine.panel import Corner, Pair
from manifold_observer.tasks.engine.protocols import Block

from ..graph.compute import Progress, compute, in_order_of, persist, task
from ..graph.spans import Span
from ..graph.warn import warn
from .config import Attrs, EmbedConfig
from .cuts import EXACT_MEDIAN_FRAMES, PanelPlan, panels

MatMat = Callable[[Floats], Floats]
# Frames among which the median distance is taken where there are too many for all pairs.
_SAMPLE_FRAMES = 2048
# Panels up to which vectors travel with the panels' tasks: tasks of their own cost more than the copies.
_FEW_PANELS = 32
# A local scale below this share of the median one is rounding.
_ROUNDING = 1e-6


class Tiling(NamedTuple):
    """Blocks of frames on the workers, the frames of each, the panels that pair them, precision of the tiles."""

    blocks: list[Delayed]
    spans: list[Span]
    panels: list[PanelPlan]
    precision: str

    @property
    def n_frames(self) -> int:
        """Frames in all."""
        return self.spans[-1][1]

    def rows(self, plan: PanelPlan) -> list[Span]:
        """Frames of a panel's blocks."""
        return [self.spans[number] for number in plan.blocks]

    def corners(self, plan: PanelPlan) -> list[Corner]:
        """First row and column of every tile of a panel, in the panel's own rows."""
        lengths = [stop - start for start, stop in self.rows(plan)]
        offsets = np.cumsum([0, *lengths]).tolist()
        return [(offsets[i], offsets[j]) for i, j in plan.tiles]

    def of(self, plan: PanelPlan, values: Array) -> Array:
        """The panel's own rows of an array over all frames."""
        return np.concatenate([values[start:stop] for start, stop in self.rows(plan)])


class Panel(NamedTuple):
    """Tiles of one panel, and the first row and column of each in the panel's rows."""

    tiles: list[Array]
    corners: list[Corner]


class Share(NamedTuple):
    """One panel's share of a product, and the ``errno`` that kept tiles from their files, 0 without trouble."""

    values: Floats
    trouble: int


def tiling(blocks: list[Delayed], spans: list[Span], precision: str) -> Tiling:
    """Deal blocks into panels; nothing is computed."""
    side = spans[0][1] - spans[0][0]
    return Tiling(blocks, spans, panels(len(blocks), side * side * np.dtype(precision).itemsize), precision)


def distance_panels(tiles: Tiling) -> list[Delayed]:
    """Panels of distances, not yet computed."""
    return [
        task(_distances, [tiles.blocks[number] for number in plan.blocks], plan.tiles, tiles.corners(plan))
        for plan in tiles.panels
    ]


def find_scale(tiles: Tiling, distances: list[Delayed], config: EmbedConfig, progress: Progress) -> tuple[Scale, Attrs]:
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


def local_product(tiles: Tiling, distances: list[Delayed], scale: Scale, progress: Progress) -> MatMat:
    """Product with a small kernel that is brought here whole: a pass over it costs less than asking for one."""
    made = [
        task(_affinities, part, _own_scale(tiles, plan, scale))
        for part, plan in zip(distances, tiles.panels, strict=True)
    ]
    n = tiles.n_frames
    matrix = np.empty((n, n))
    for part, plan in zip(compute(made, "kernel", progress), tiles.panels, strict=True):
        panel.assemble(matrix, part.tiles, part.corners, tiles.of(plan, np.arange(n)))
    return partial(panel.whole_product, matrix)


def resident_product(tiles: Tiling, distances: list[Delayed], scale: Scale, progress: Progress) -> MatMat:
    """Product with a kernel whose tiles are kept on the workers; they are computed here."""
    made = [
        task(_affinities, part, _own_scale(tiles, plan, scale))
        for part, plan in zip(distances, tiles.panels, strict=True)
    ]
    kept = persist(made, "kernel", progress)
    return _product(tiles, lambda number, parts: task(_stored, kept[number], parts), progress)


def recomputed_product(tiles: Tiling, scale: Scale, progress: Progress) -> MatMat:
    """Product with a kernel whose tiles are made anew in every pass."""

    def share(number: int, parts: list[Delayed]) -> Delayed:
        plan = tiles.panels[number]
        blocks = [tiles.blocks[block] for block in plan.blocks]
        return task(_fused, blocks, plan.tiles, tiles.corners(plan), _own_scale(tiles, plan, scale), parts)

    return _product(tiles, share, progress)


def disk_product(tiles: Tiling, scale: Scale, folder: Path, progress: Progress) -> MatMat:
    """Product with a kernel whose tiles lie in files, written in the first pass.

    All workers should see the folder. Tiles that cannot be kept there are made again in every pass, with one warning.
    """
    told: list[int] = []

    def heard(share: Share) -> Floats:
        if share.trouble and not told:
            told.append(share.trouble)
            _warn_of_tiles(folder, share.trouble)
        return share.values

    def share(number: int, parts: list[Delayed]) -> Delayed:
        plan = tiles.panels[number]
        blocks = [tiles.blocks[block] for block in plan.blocks]
        path = str(folder / f"panel-{number:05d}")
        own = _own_scale(tiles, plan, scale)
        return task(_from_disk, path, blocks, plan.tiles, tiles.corners(plan), own, parts)

    return _product(tiles, share, progress, heard)


def _warn_of_tiles(folder: Path, trouble: int) -> None:
    """Say why tiles are not kept, and what would help."""
    why = os.strerror(trouble)
    if trouble == errno.ENOENT:
        why = "a worker does not find the folder. Give checkpoint= on a disk that all workers share"
    warn(
        f"embed: tiles could not be kept in {folder}: {why}. They are made again in every pass, as with "
        "home='recomputed'."
    )


def _product(
    tiles: Tiling,
    share: Callable[[int, list[Delayed]], Delayed],
    progress: Progress,
    heard: Callable[[Any], Floats] = lambda values: values,
) -> MatMat:
    """Sum the panels' shares in the order of the panels, wherever and whenever they were made.

    ``heard`` takes the values out of a share that says more. Vectors and the panels' sums travel in the precision of
    the tiles; sums are taken in float64.
    """

    def matmat(x: Floats) -> Floats:
        narrow = x.astype(tiles.precision)
        parts = [narrow[start:stop] for start, stop in tiles.spans]
        if len(tiles.panels) > _FEW_PANELS:
            parts = [dask.delayed(part, pure=False) for part in parts]
        shares = []
        for number, plan in enumerate(tiles.panels):
            with in_order_of(number):
                shares.append(share(number, [parts[block] for block in plan.blocks]))
        y = np.zeros_like(x)
        for plan, made in zip(tiles.panels, compute(shares, "pass", progress), strict=True):
            values, first = heard(made), 0
            for start, stop in tiles.rows(plan):
                y[start:stop] += values[first : first + stop - start]
                first += stop - start
        return y

    return matmat


def _own_scale(tiles: Tiling, plan: PanelPlan, scale: Scale) -> Scale:
    """The scale in a panel's own rows."""
    return scale if scale.local is None else Scale(scale.epsilon, tiles.of(plan, scale.local))


def _local_scale(
    tiles: Tiling, distances: list[Delayed], config: EmbedConfig, progress: Progress
) -> tuple[Scale, Attrs]:
    """Distance of every frame to its k-th nearest."""
    n = tiles.n_frames
    k = min(config.neighbours, n - 1)
    lengths = [sum(stop - start for start, stop in tiles.rows(plan)) for plan in tiles.panels]
    tables = compute(
        [task(_nearest, part, length, k) for part, length in zip(distances, lengths, strict=True)], "scale", progress
    )
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


def _exact_median(distances: list[Delayed], n: int) -> float:
    """Median over all pairs i < j in two looks: a bracket from a sample, then what lies within."""
    pairs = n * (n - 1) // 2
    stride = max(1, pairs // 2**15) | 1  # odd, so that it does not keep to one column of a tile
    sample = np.concatenate(compute([task(_sample, part, stride) for part in distances]))
    for low, high in scale.brackets(sample):
        parts = compute([task(_count, part, low, high) for part in distances])
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


def _distances(blocks: list[Block], places: tuple[Pair, ...], corners: list[Corner]) -> Panel:
    """One panel of distances; the diagonal of the matrix is exactly 0."""
    tiles = []
    for (i, j), (row, column) in zip(places, corners, strict=True):
        tile = kernel.squared_distances(blocks[i], blocks[j])
        tiles.append(kernel.symmetric(tile) if row == column else tile)
    return Panel(tiles, corners)


def _affinities(distances: Panel, how: Scale) -> Panel:
    """One panel of the kernel from one of distances, which may still be wanted."""
    tiles = []
    for tile, (row, column) in zip(distances.tiles, distances.corners, strict=True):
        if how.local is None:
            tiles.append(kernel.kernel_from_distances(tile, how.epsilon))
        else:
            rows, columns = how.local[row : row + tile.shape[0]], how.local[column : column + tile.shape[1]]
            tiles.append(kernel.kernel_local(tile, rows, columns))
    return Panel(tiles, distances.corners)


def _stored(part: Panel, x: list[Floats]) -> Floats:
    """One panel's share of a product, from its tiles."""
    own = np.concatenate(x)
    return panel.stored_product(part.tiles, part.corners, own).astype(own.dtype, copy=False)


def _fused(blocks: list[Block], places: tuple[Pair, ...], corners: list[Corner], how: Scale, x: list[Floats]) -> Floats:
    """One panel's share of a product, its tiles made on the way."""
    own = np.concatenate(x)
    return panel.fused_product(blocks, places, corners, how, own).astype(own.dtype, copy=False)


def _from_disk(
    path: str, blocks: list[Block], places: tuple[Pair, ...], corners: list[Corner], how: Scale, x: list[Floats]
) -> Share:
    """One panel's share of a product, its tiles from files that are made where they are missing."""
    errors: list[OSError] = []
    found = tilefile.read_or_make(path, blocks, places, corners, how, errors.append)
    return Share(_stored(Panel(found, corners), x), (errors[0].errno or errno.EIO) if errors else 0)


def _nearest(part: Panel, n: int, k: int) -> Floats:
    """Smallest distances that one panel knows."""
    return panel.nearest(part.tiles, part.corners, n, k)


def _sample(part: Panel, stride: int) -> Array:
    """Some distances of one panel."""
    return panel.sample_entries(part.tiles, part.corners, stride)


def _count(part: Panel, low: float, high: float) -> tuple[int, Array]:
    """What of one panel lies below and within a bracket."""
    return panel.count_and_collect(part.tiles, part.corners, low, high)
