"""Panels of distances and of the kernel, made from blocks of frames within one task."""

from __future__ import annotations

from typing import NamedTuple

from manifold_observer.tasks.arrays import Array
from manifold_observer.tasks.engine import kernel
from manifold_observer.tasks.engine.kernel import Scale
from manifold_observer.tasks.engine.panel import Corner
from manifold_observer.tasks.engine.protocols import Block

from .cuts import PanelPlan


class Panel(NamedTuple):
    """Tiles of one panel, and the first row and column of each in the panel's rows."""

    tiles: list[Array]
    corners: list[Corner]


def distances_of(blocks: list[Block], plan: PanelPlan) -> Panel:
    """One panel of distances; the diagonal of the matrix is exactly 0."""
    tiles, corners = [], plan.corners(block.n_frames for block in blocks)
    for (i, j), (row, column) in zip(plan.tiles, corners, strict=True):
        tile = kernel.squared_distances(blocks[i], blocks[j])
        tiles.append(kernel.symmetric(tile) if row == column else tile)
    return Panel(tiles, corners)


def affinities_of(distances: Panel, how: Scale, in_place: bool = False) -> Panel:
    """One panel of the kernel from one of distances, which may still be wanted unless it is ``in_place``."""
    tiles = []
    for tile, (row, column) in zip(distances.tiles, distances.corners, strict=True):
        if how.local is None:
            tiles.append(kernel.kernel_from_distances(tile, how.epsilon, tile if in_place else None))
        else:
            rows, columns = how.local[row : row + tile.shape[0]], how.local[column : column + tile.shape[1]]
            tiles.append(kernel.kernel_local(tile, rows, columns))
    return Panel(tiles, distances.corners)


def made_affinities_of(distances: Panel, how: Scale) -> Panel:
    """The same of distances that nobody wants any more, in their memory; what a cluster sent may be read alone."""
    return affinities_of(distances, how, all(tile.flags.writeable for tile in distances.tiles))


def kernel_of(blocks: list[Block], plan: PanelPlan, how: Scale) -> Panel:
    """One panel of the kernel; a tile goes from distances to affinities in its own memory, while rows are in cache."""
    if how.local is not None:
        return affinities_of(distances_of(blocks, plan), how)
    tiles, corners = [], plan.corners(block.n_frames for block in blocks)
    for (i, j), (row, column) in zip(plan.tiles, corners, strict=True):
        on_diagonal = row == column
        tile = (kernel.squared_distances if on_diagonal else kernel.unclipped_distances)(blocks[i], blocks[j])
        tiles.append(kernel.to_affinities(kernel.symmetric(tile) if on_diagonal else tile, how.epsilon))
    return Panel(tiles, corners)
