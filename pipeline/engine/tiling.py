"""The kernel matrix as panels of tiles, and its products with vectors.

A panel pairs two groups of blocks and works in its own rows: those of its blocks, one after the other.
Tiles have one of three homes behind the same product: resident on the workers, recomputed in every
pass, or on disk.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.engine import kernel, panel, tilefile
from manifold_observer.tasks.engine.kernel import Scale
from manifold_observer.tasks.engine.panel import Corner
from manifold_observer.tasks.engine.protocols import Block
from manifold_observer.tasks.engine.treesum import Node, fold

from ..graph.compute import compute, in_order_of, persist, placed, places, task
from ..graph.progress import Progress
from ..graph.spans import Span
from ..graph.warn import warn
from .cuts import MANY_PANELS, PanelPlan, Side, deal, panels

MatMat = Callable[[Floats], Floats]
# Panels up to which vectors travel with the panels' tasks: tasks of their own cost more than the copies.
_FEW_PANELS = 32


class Tiling(NamedTuple):
    """Blocks of frames on the workers, the frames of each, panels, units of blocks, precision of the tiles.

    Units are the finest groups of blocks that panels have: pieces of vectors and their sums are those of units.
    """

    blocks: list[Delayed]
    spans: list[Span]
    panels: list[PanelPlan]
    units: list[Span]
    precision: str

    @property
    def n_frames(self) -> int:
        """Frames in all."""
        return self.spans[-1][1]

    @property
    def many(self) -> bool:
        """Whether panels are so many that blocks are handed out, and shares added up, by the workers."""
        return len(self.panels) > MANY_PANELS

    @property
    def unit_spans(self) -> list[Span]:
        """Frames of every unit."""
        return [(self.spans[first][0], self.spans[stop - 1][1]) for first, stop in self.units]

    def units_of(self, *sides: Side) -> list[int]:
        """Units of the blocks of some sides, in their order."""
        size = self.units[0][1]
        return [unit for side in sides for unit in range(side.first // size, -(-side.stop // size))]

    def rows(self, plan: PanelPlan) -> list[Span]:
        """Frames of a panel's blocks."""
        return [self.spans[number] for number in plan.blocks]

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


class Term(NamedTuple):
    """Rows ``first`` to ``stop`` of a panel's share, and the node that they are sums over, None for the diagonal."""

    panel: int
    first: int
    stop: int
    node: Node | None


@dataclass(frozen=True)
class Terms:
    """What the sum of a unit is made of."""

    of: tuple[Term, ...]


def tiling(blocks: list[Delayed], spans: list[Span], precision: str, n_workers: int = 1) -> Tiling:
    """Deal blocks into panels for so many workers; nothing is computed."""
    side = spans[0][1] - spans[0][0]
    sizes = len(blocks), side * side * np.dtype(precision).itemsize, n_workers
    return Tiling(blocks, spans, panels(*sizes), deal(*sizes).units(len(blocks)), precision)


def distance_panels(tiles: Tiling) -> list[Delayed]:
    """Panels of distances, not yet computed."""
    return [task(_distances, [tiles.blocks[number] for number in plan.blocks], plan) for plan in tiles.panels]


def kernel_panels(tiles: Tiling, distances: list[Delayed] | None, scale: Scale) -> list[Delayed]:
    """Panels of the kernel, not yet computed; from distances where they are kept, else with distances on the way."""
    scales = [_own_scale(tiles, plan, scale) for plan in tiles.panels]
    if distances is not None:
        return [task(_affinities, part, own) for part, own in zip(distances, scales, strict=True)]
    return [
        task(_kernel, [tiles.blocks[number] for number in plan.blocks], plan, own)
        for plan, own in zip(tiles.panels, scales, strict=True)
    ]


def local_product(tiles: Tiling, distances: list[Delayed] | None, scale: Scale, progress: Progress) -> MatMat:
    """Product with a small kernel that is brought here whole: a pass over it costs less than asking for one."""
    made = kernel_panels(tiles, distances, scale)
    n = tiles.n_frames
    matrix = np.empty((n, n))
    for part, plan in zip(compute(made, "kernel", progress), tiles.panels, strict=True):
        panel.assemble(matrix, part.tiles, part.corners, tiles.of(plan, np.arange(n)))
    return partial(panel.whole_product, matrix)


def resident_product(tiles: Tiling, distances: list[Delayed] | None, scale: Scale, progress: Progress) -> MatMat:
    """Product with a kernel whose tiles are kept on the workers; they are computed here."""
    kept = persist(kernel_panels(tiles, distances, scale), "kernel", progress)

    def share(number: int, parts: list[Delayed]) -> Delayed:
        return task(_stored, kept[number], tiles.panels[number], parts)

    return _product(tiles, share, progress)


def recomputed_product(tiles: Tiling, scale: Scale, progress: Progress) -> MatMat:
    """Product with a kernel whose tiles are made anew in every pass."""
    units = _blocks_of_units(tiles, progress)

    def share(number: int, parts: list[Delayed]) -> Delayed:
        plan = tiles.panels[number]
        blocks = [units[unit] for unit in tiles.units_of(*plan.sides)]
        return task(_fused, blocks, plan, _own_scale(tiles, plan, scale), parts)

    return _product(tiles, share, progress)


def disk_product(tiles: Tiling, scale: Scale, folder: Path, progress: Progress) -> MatMat:
    """Product with a kernel whose tiles lie in files, written in the first pass.

    All workers should see the folder. Tiles that cannot be kept there are made again in every pass, with one warning.
    """
    told: list[int] = []
    units = _blocks_of_units(tiles, progress)

    def heard(trouble: int) -> None:
        if trouble and not told:
            told.append(trouble)
            _warn_of_tiles(folder, trouble)

    def share(number: int, parts: list[Delayed]) -> Delayed:
        plan = tiles.panels[number]
        blocks = [units[unit] for unit in tiles.units_of(*plan.sides)]
        path = str(folder / f"panel-{number:05d}")
        return task(_from_disk, path, blocks, plan, _own_scale(tiles, plan, scale), parts)

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


def _blocks_of_units(tiles: Tiling, progress: Progress) -> list[Any]:
    """Lists of the blocks of every unit; where panels are many, one task a unit, which is all that panels ask for."""
    lists = [tiles.blocks[first:stop] for first, stop in tiles.units]
    return persist([task(_together, blocks) for blocks in lists], "blocks", progress) if tiles.many else lists


def _product(
    tiles: Tiling,
    share: Callable[[int, list[Delayed]], Delayed],
    progress: Progress,
    heard: Callable[[int], object] = abs,
) -> MatMat:
    """Sum the panels' shares in one fixed tree, wherever and whenever they were made.

    ``heard`` is called with the trouble of every sum. Vectors, the panels' sums and their sums are in the precision of
    the tiles. A few panels are added up here, many by the workers: a caller would receive more than it could.
    """
    terms = _terms(tiles)

    def matmat(x: Floats) -> Floats:
        narrow = x.astype(tiles.precision)
        pieces = [narrow[slice(*frames)] for frames in tiles.unit_spans]
        if tiles.many:
            with places():
                found = compute(_sums(terms, _shares(tiles, share, _sent(pieces))), "pass", progress)
        else:
            sent = _sent(pieces) if len(tiles.panels) > _FEW_PANELS else pieces
            made = compute(_shares(tiles, share, sent), "pass", progress)
            found = [_sum(own, [made[term.panel] for term in own.of]) for own in terms]
        y = np.empty_like(x)
        for frames, total in zip(tiles.unit_spans, found, strict=True):
            heard(total.trouble)
            y[slice(*frames)] = total.values
        return y

    return matmat


def _sent(pieces: list[Floats]) -> list[Delayed]:
    """Pieces of vectors as tasks of their own."""
    made = []
    for number, piece in enumerate(pieces):
        with placed(number, len(pieces)):
            made.append(dask.delayed(piece, pure=False))
    return made


def _shares(tiles: Tiling, share: Callable[[int, list[Any]], Delayed], pieces: Sequence[Any]) -> list[Delayed]:
    """What every panel gives, not yet computed; neighbours, which need the same blocks, are for the same worker."""
    sizes = [plan.n_tiles for plan in tiles.panels]
    before, total = itertools.accumulate(sizes, initial=0), sum(sizes)
    shares = []
    for number, (plan, done) in enumerate(zip(tiles.panels, before, strict=False)):
        with in_order_of(number), placed(done + plan.n_tiles // 2, total):
            shares.append(share(number, [pieces[unit] for unit in tiles.units_of(*plan.sides)]))
    return shares


def _sums(terms: list[Terms], shares: list[Delayed]) -> list[Delayed]:
    """Sums of the panels' shares on the workers."""
    sums = []
    for number, own in enumerate(terms):
        with in_order_of(-1), placed(number, len(terms)):  # before whatever comes next
            sums.append(task(_sum, own, [shares[term.panel] for term in own.of]))
    return sums


def _terms(tiles: Tiling) -> list[Terms]:
    """For each unit what is added up: rows of the panels that hold it, and the nodes that they are the sums over."""
    terms: list[list[Term]] = [[] for _ in tiles.units]
    for number, plan in enumerate(tiles.panels):
        nodes = {unit: side.node for side in plan.sides for unit in tiles.units_of(side)}
        row = 0
        for unit, node in nodes.items():
            first, stop = tiles.unit_spans[unit]
            terms[unit].append(Term(number, row, row + stop - first, node))
            row += stop - first
    return [Terms(tuple(own)) for own in terms]


def _own_scale(tiles: Tiling, plan: PanelPlan, scale: Scale) -> Scale:
    """The scale in a panel's own rows."""
    return scale if scale.local is None else Scale(scale.epsilon, tiles.of(plan, scale.local))


def _distances(blocks: list[Block], plan: PanelPlan) -> Panel:
    """One panel of distances; the diagonal of the matrix is exactly 0."""
    tiles, corners = [], plan.corners(block.n_frames for block in blocks)
    for (i, j), (row, column) in zip(plan.tiles, corners, strict=True):
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


def _kernel(blocks: list[Block], plan: PanelPlan, how: Scale) -> Panel:
    """One panel of the kernel; a tile goes from distances to affinities in its own memory, while rows are in cache."""
    if how.local is not None:
        return _affinities(_distances(blocks, plan), how)
    tiles, corners = [], plan.corners(block.n_frames for block in blocks)
    for (i, j), (row, column) in zip(plan.tiles, corners, strict=True):
        on_diagonal = row == column
        tile = (kernel.squared_distances if on_diagonal else kernel.unclipped_distances)(blocks[i], blocks[j])
        tiles.append(kernel.to_affinities(kernel.symmetric(tile) if on_diagonal else tile, how.epsilon))
    return Panel(tiles, corners)


def _together(blocks: list[Block]) -> list[Block]:
    """The blocks of a unit."""
    return blocks


def _stored(part: Panel, plan: PanelPlan, x: list[Floats]) -> Floats:
    """One panel's share of a product, from its tiles."""
    own = np.concatenate(x)
    return panel.stored_product(part.tiles, part.corners, own, plan.numbers).astype(own.dtype, copy=False)


def _fused(units: list[list[Block]], plan: PanelPlan, how: Scale, x: list[Floats]) -> Floats:
    """One panel's share of a product, its tiles made on the way."""
    own, blocks = np.concatenate(x), list(itertools.chain.from_iterable(units))
    corners = plan.corners(block.n_frames for block in blocks)
    return panel.fused_product(blocks, plan.tiles, corners, how, own, plan.numbers).astype(own.dtype, copy=False)


def _from_disk(path: str, units: list[list[Block]], plan: PanelPlan, how: Scale, x: list[Floats]) -> Share:
    """One panel's share of a product, its tiles from files that are made where they are missing."""
    errors: list[OSError] = []
    blocks = list(itertools.chain.from_iterable(units))
    corners = plan.corners(block.n_frames for block in blocks)
    found = tilefile.read_or_make(path, blocks, plan.tiles, corners, how, errors.append)
    return Share(_stored(Panel(found, corners), plan, x), (errors[0].errno or errno.EIO) if errors else 0)


def _sum(terms: Terms, shares: list[Floats | Share]) -> Share:
    """Sum of the panels' shares for one unit, the diagonal last; and the first trouble of any."""
    made = [share if isinstance(share, Share) else Share(share, 0) for share in shares]
    rows = [share.values[term.first : term.stop] for term, share in zip(terms.of, made, strict=True)]
    nodes = {term.node: own for term, own in zip(terms.of, rows, strict=True) if term.node is not None}
    diagonal = next(own for term, own in zip(terms.of, rows, strict=True) if term.node is None)
    total = fold(nodes)
    trouble = next((share.trouble for share in made if share.trouble), 0)
    return Share(diagonal if total is None else total + diagonal, trouble)
